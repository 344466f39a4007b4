"""Shell scripts: every command that starts an engine, in the order of the script."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Finding, Item, directory
from kvlint.carriers.launch import Launch, of_script
from kvlint.formats import shell
from kvlint.project import Project
from kvlint.source import Text
from kvlint.subjects import Process, Site


class Shell:
    name = "shell"

    def claims(self, item: Item) -> bool:
        return item.kind == "shell"

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        for item in items:
            yield from _script(item)


CARRIER = Shell()


def _script(item: Item) -> Iterator[Finding]:
    source = item.source
    script = shell.commands(Text.of(source, 0, len(source.text)))
    stem = item.path.rpartition("/")[2].partition(".")[0] or item.path
    whole = source.span(0, len(source.text))
    launch = Launch(words=(), place=whole, env={}, assumed=script.assumed, shell=True)
    for line in of_script(script, launch):
        place = line.program or line.image
        site = Site(
            carrier="shell",
            unit=f"host {directory(item.path)}",
            name=stem,
            place=place.span if place is not None else whole,
        )
        yield Process(site, line)
