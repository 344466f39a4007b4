"""Shell scripts: every command that starts an engine, in the order of the script, and the files that the script writes."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Finding, Item, directory
from kvlint.carriers.host import contained
from kvlint.carriers.launch import Launch, of_script
from kvlint.carriers.scripts import Files
from kvlint.carriers.unread import of_file
from kvlint.carriers.written import Writer, heredocs
from kvlint.command import CommandLine
from kvlint.formats import shell
from kvlint.formats.shell import Script
from kvlint.formats.shell.text import script_of
from kvlint.parsing import without_ending
from kvlint.project import Project
from kvlint.source import Span
from kvlint.subjects import Process, Site


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
            unread = of_file(script.faults, found, item.source, project)
            yield from [unread] if unread is not None else []
            writer = Writer(item.source, stem(item.path), f"host {directory(item.path)}", files)
            yield from heredocs(script, writer)


CARRIER = Shell()


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
