"""Ollama's Modelfile: the model and the parameters with which every service loads it."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Finding, Item, directory
from kvlint.command import CommandLine, Opening
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.source import Source, Text
from kvlint.subjects import Process, Site

# ollama/ollama parser/parser.go: instructions in any case, values in triple quotes over several lines
_INSTRUCTION = regex(r"[ \t]*(?P<name>[A-Za-z]+)[ \t]+(?P<value>\S.*?)[ \t]*\r?$")
_PARAMETER = regex(r"(?P<key>\S+)[ \t]+(?P<value>\S.*)")


class Modelfile:
    name = "modelfile"

    def claims(self, item: Item) -> bool:
        return item.kind == "modelfile"

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        for item in items:
            yield from _model(item)


CARRIER = Modelfile()


def _model(item: Item) -> Iterator[Finding]:
    """A load of the model by a service whose environment stands elsewhere."""
    found = dict(instructions(item.source))
    start = found.get("from")
    if start is None:
        return
    folder, _, file = item.path.rpartition("/")
    named = file.partition(".")[2] or folder.rpartition("/")[2]
    line = CommandLine(
        program=Text.at("ollama", start.span),
        args=(Text.at("serve", start.span),),
        env_open=(Opening(0, start.span, "the service's environment stands elsewhere"),),
    )
    site = Site(
        carrier="modelfile",
        unit=f"host {directory(item.path)}",
        name=named or "model",
        place=start.span,
        data={"modelfile": found},
    )
    yield Process(site, line)


def instructions(source: Source) -> Iterator[tuple[str, Text]]:
    """`from` and the parameters by name, with the places of their values; the last of a name wins."""
    at, quoted = 0, False
    for line in source.text.splitlines(keepends=True):
        quotes = line.count('"""') % 2 == 1
        match = _INSTRUCTION.match(line.rstrip("\n")) if not quoted and not line.lstrip().startswith("#") else None
        quoted = quoted != quotes
        if match is not None:
            start, end = at + match.start("value"), at + match.end("value")
            if match["name"].lower() == "from":
                yield "from", Text.of(source, start, end)
            elif match["name"].lower() == "parameter" and (parameter := _PARAMETER.fullmatch(match["value"])):
                yield (
                    parameter["key"],
                    Text.of(source, start + parameter.start("value"), start + parameter.end("value")),
                )
        at += len(line)
