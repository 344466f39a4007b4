"""Procfiles, Makefiles and justfiles: lines that plainly start an engine."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Finding, Item, directory
from kvlint.carriers.host import contained
from kvlint.carriers.launch import Launch, of_script
from kvlint.carriers.scripts import Files
from kvlint.carriers.shell import place
from kvlint.formats import shell
from kvlint.formats.recipes import Recipe, justfile, makefile, procfile
from kvlint.project import Project
from kvlint.subjects import Process, Site

_READERS = {"procfile": procfile, "makefile": makefile, "justfile": justfile}


class Procfile:
    name = "procfile"

    def claims(self, item: Item) -> bool:
        return item.kind in _READERS

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        for item in items:
            for recipe in _READERS[item.kind](item.source):
                yield from _recipe(recipe, item, files)


CARRIER = Procfile()


def _recipe(recipe: Recipe, item: Item, files: Files) -> Iterator[Process]:
    whole = item.source.span(0, len(item.source.text))
    script = shell.commands(recipe.text, recipe.variables)
    launch = Launch((), recipe.text.span, {}, shell=True, scripts=files.scripts(item.path), sources=files.sources)
    for line in of_script(script, launch):
        site = Site("procfile", f"host {directory(item.path)}", recipe.name, place(line, whole))
        yield Process(contained(site, line), line)
