"""Shell scripts: every command that starts an engine, in the order of the script, and the files that the script writes."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Finding, Item, directory
from kvlint.carriers.host import contained
from kvlint.carriers.launch import Launch, of_script
from kvlint.carriers.scripts import Files
from kvlint.carriers.written import Writer, heredocs
from kvlint.command import CommandLine
from kvlint.formats import shell
from kvlint.formats.shell import Script
from kvlint.formats.shell.text import script_of
from kvlint.parsing import without_ending
from kvlint.project import COMMAND, Project
from kvlint.source import Span
from kvlint.subjects import Problem, Process, Site


class Shell:
    name = "shell"

    def claims(self, item: Item) -> bool:
        return item.kind == "shell"

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        for item in items:
            script = shell.commands(script_of(item.source), sources=files.sources)
            found = list(processes(script, item, files, stem(item.path)))
            yield from found
            yield from _unread(script, item, project, found)
            writer = Writer(item.source, stem(item.path), f"host {directory(item.path)}", files)
            yield from heredocs(script, writer)


CARRIER = Shell()
UNSURE = "what kvlint cannot follow, a shell may"


def stem(path: str) -> str:
    """The file's name without its last ending, `serve-qwen2.5` of `serve-qwen2.5.sh`; nor that of a template."""
    name = path.rpartition("/")[2]
    name = without_ending(name) or name
    return name.rpartition(".")[0] or name


def processes(script: Script, item: Item, files: Files, name: str) -> Iterator[Process]:
    """The engines of a script.  One that nothing else starts is `alone`: its arguments are not known."""
    whole = item.source.span(0, len(item.source.text))
    launch = Launch(
        words=(),
        place=whole,
        env={},
        shell=True,
        scripts=files.scripts(item.path),
        sources=files.sources,
        following=(whole,),
    )
    for line in of_script(script, launch):
        site = Site(
            carrier="shell",
            unit=f"host {directory(item.path)}",
            name=name,
            place=place(line, whole),
            data={"alone": not _elsewhere(line, whole)},
        )
        yield Process(contained(site, line), line)


def _unread(script: Script, item: Item, project: Project, found: list[Process]) -> Iterator[Problem]:
    """Where a quote that is never closed, or too deep a nest, keeps from us what starts an engine.

    A shell would stop there as well, or it understands what we do not: which of the two is in doubt.
    """
    first = min((each.span.start for each in script.faults if each.span is not None), default=None)
    if first is None or item.path not in project.seeds:
        return
    rest = item.source.text[first:]
    if not COMMAND.search(rest) or any(each.site.place.end > first for each in found):
        return
    fault = next(each for each in script.faults if each.span is not None and each.span.start == first)
    problem = project.cannot_read(rest, item.source.span(first, first), fault.message, UNSURE)
    if problem is not None:
        yield problem


def place(line: CommandLine, whole: Span) -> Span:
    """The program, or in the file at hand what leads to it."""
    program = line.program or line.image
    spans = [
        *([program.span] if program is not None and program.pieces else []),
        *(each.span for each in line.wrappers),
    ]
    return next((span for span in spans if span.source is whole.source), whole)


def _elsewhere(line: CommandLine, whole: Span) -> bool:
    return line.program is not None and bool(line.program.pieces) and line.program.span.source is not whole.source
