"""launchd property lists: one agent or daemon each, started without a shell; launchd.plist(5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvlint.carriers.base import Finding, Item, directory
from kvlint.carriers.host import contained, template, unexpanded
from kvlint.carriers.launch import Launch, launches
from kvlint.carriers.scripts import Files
from kvlint.command import Opening
from kvlint.parsing import TEMPLATE_ENDINGS, without_ending
from kvlint.project import Project
from kvlint.records import dataclass
from kvlint.source import Text
from kvlint.subjects import Problem, Process, Site
from kvlint.tree import List, Map, Scalar

_KEYS = ("ProgramArguments", "Program")


class Launchd:
    name = "launchd"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, Map) and any(key in item.node for key in _KEYS)

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        for item in items:
            if isinstance(item.node, Map):
                yield from agent(item.node, About(item.path, files, item.path.endswith(TEMPLATE_ENDINGS)))


CARRIER = Launchd()


@dataclass(frozen=True, slots=True)
class About:
    """The file that a property list stands in, and whether it is filled in before it is installed."""

    path: str
    files: Files
    templated: bool = False


def agent(node: Map, about: About) -> Iterator[Finding]:
    """The engines that an agent starts, and what it writes as if a shell read it."""
    words, openings = _words(node, about)
    if not words:
        return
    env = {}
    for entry in node.map("EnvironmentVariables") or ():
        if isinstance(entry.value, Scalar):
            env[entry.key.value] = _text(entry.value, about)
    label = node.text("Label")
    launch = Launch(
        words=tuple(words),
        place=words[0].span,
        env=env,
        open=tuple(openings),
        scripts=about.files.scripts(about.path),
        sources=about.files.sources,
    )
    site = Site(
        carrier="launchd",
        unit=f"host {directory(about.path)}",
        name=label.value if label is not None and label.known else _stem(about.path),
        place=words[0].span,
    )
    found = [Process(contained(site, line), line) for line in launches(launch)]
    yield from found
    if found:
        yield from literal((*words, *env.values()), found)


def _words(node: Map, about: About) -> tuple[list[Text], list[Opening]]:
    """`ProgramArguments`; `Program`, where there is one, is run under the first of them as its name."""
    words: list[Text] = []
    openings: list[Opening] = []
    for item in node.list("ProgramArguments") or List((), node.span):
        if isinstance(item, Scalar):
            words.append(_text(item, about))
        else:
            openings.append(Opening(len(words), item.span, "an argument that is no text"))
    program = node.scalar("Program")
    if program is not None:
        words[:1] = [_text(program, about)]
    return words, openings


def _text(scalar: Scalar, about: About) -> Text:
    return template(scalar.text, splice=False) if about.templated else scalar.text


def _stem(path: str) -> str:
    return without_ending(path.rpartition("/")[2]).removesuffix(".plist")


def literal(texts: Iterable[Text], found: list[Process]) -> Iterator[Problem]:
    """`$HOME` and the like, which launchd hands on as they are; a shell that the agent starts reads its own."""
    from kvlint.formats.shell import invocation

    texts = list(texts)
    started = invocation(texts)
    string = started.string if started is not None else None
    for text in texts:
        if text is not string and not any(process.line.shell and _reads(process, text) for process in found):
            yield from unexpanded(text, "launchd")


def _reads(process: Process, text: Text) -> bool:
    """Whether the command line's words were read by a shell from `text`."""
    words = [word.span for word in process.line.words if word.pieces]
    return bool(text.pieces) and any(text.span.covers(word) and word != text.span for word in words)
