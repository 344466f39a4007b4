"""Configuration files that another file writes: here-documents, texts that Nix puts into place.

Each is read by the carrier of its format; every place in it is one in the file that writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import cast

from kvlint.carriers.base import Carrier, Finding, Item
from kvlint.carriers.embedded import Around, documents, read
from kvlint.carriers.embedded import _Inner as Inner
from kvlint.carriers.launch import Launch, of_script
from kvlint.carriers.scripts import Files
from kvlint.formats.shell import Script, program_name
from kvlint.formats.shell.text import where
from kvlint.parsing import kind_of
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import Source, Text
from kvlint.subjects import Process, Site
from kvlint.tree import Map

_SHAPES = {
    "plist": regex(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE plist[^>]*>\s*)?<plist\b"),
    "systemd": regex(r"[\s\S]*?^\[(?:Unit|Service|Container)\][ \t]*$", re.MULTILINE),
    "conf": regex(r"(?:[\s\S]*\n)?\[program:[^\]\r\n]+\]"),
    "shell": regex(r"#!.*\b(?:ba|da|k|z)?sh\b"),
    "yaml": regex(r"[\s\S]*?^(?:apiVersion|services|models|model_list)[ \t]*:", re.MULTILINE),
}


@dataclass(frozen=True, slots=True)
class Writer:
    """The file that writes others, and what their servers are called where they have no name of their own."""

    source: Source
    name: str
    unit: str
    files: Files

    @property
    def path(self) -> str:
        return self.source.path


def heredocs(script: Script, writer: Writer) -> Iterator[Finding]:
    """What the here-documents of a script hold, as far as they are configurations."""
    copies = {
        place.line: target
        for command in script.commands
        if (target := _teed(command.words)) and (place := command.span)
    }
    for found in script.heredocs:
        target = _teed(found.command)
        if target is None and found.target is not None and found.target.value != "/dev/null":
            target = found.target
        if target is None and found.command:
            target = copies.get(where(found.command[0]).line)
        yield from document(found.body, target, writer)


def _teed(command: tuple[Text, ...]) -> Text | None:
    """The file that `tee` writes."""
    from kvlint.carriers.wrappers.programs import unwrap

    line = unwrap(command).line
    if line.program is None or program_name(line.program) != "tee":
        return None
    return next((word for word in line.args if not word.value.startswith("-")), None)


def document(text: Text, target: Text | None, writer: Writer) -> Iterator[Finding]:
    """The findings of a configuration file with this text; `target` is where it is put."""
    if not text.pieces:
        return
    path = target.value if target is not None else ""
    kind = _kind(text, path)
    if kind == "plist":
        yield from _plist(text, writer)
    elif kind == "systemd":
        yield from _unit(text, path, writer)
    elif kind == "conf":
        yield from _supervised(text, writer)
    elif kind == "shell":
        yield from _script(text, path, writer)
    elif kind == "yaml":
        yield from _yaml(text, writer)


def _kind(text: Text, path: str) -> str | None:
    kind = kind_of(path) if path else None
    if kind in _SHAPES:
        return kind
    return next((name for name, shape in _SHAPES.items() if shape.match(text.value)), None)


def _plist(text: Text, writer: Writer) -> Iterator[Finding]:
    from kvlint.carriers import launchd
    from kvlint.formats import plist

    read = plist.parse(Source("", text.value)).node
    if isinstance(read, Map):
        node = Inner(text).node(read)
        if isinstance(node, Map):
            yield from launchd.agent(node, launchd.About(writer.path, writer.files))


def _unit(text: Text, path: str, writer: Writer) -> Iterator[Finding]:
    from kvlint.carriers import systemd
    from kvlint.formats.systemd import Section, Setting, Unit, parse

    inner = Inner(text)
    sections = []
    for part in parse(Source("", text.value)).sections:
        settings = (
            Setting(inner.text(each.key), inner.text(each.value), inner.span(each.span)) for each in part.settings
        )
        sections.append(Section(part.name, inner.span(part.span), tuple(settings)))
    path = systemd.main(path)  # of a drop-in the unit that it is for
    name = systemd.unit_name(path) if path.endswith((".service", ".container")) else writer.name
    yield from systemd.unit(Unit(writer.source, tuple(sections)), systemd.About(name, writer.path, writer.files))


def _supervised(text: Text, writer: Writer) -> Iterator[Finding]:
    from kvlint.carriers import supervisor

    yield from supervisor.programs(text, supervisor.About(writer.path, writer.unit, writer.files))


def _script(text: Text, path: str, writer: Writer) -> Iterator[Finding]:
    from kvlint.carriers.shell import place, stem
    from kvlint.formats import shell

    whole = text.span
    launch = Launch((), whole, {}, shell=True, scripts=writer.files.scripts(writer.path), sources=writer.files.sources)
    for line in of_script(shell.commands(text), launch):
        name = stem(path) if path and "\ufffc" not in path.rpartition("/")[2] else writer.name
        yield Process(Site("shell", writer.unit, name, place(line, whole)), line)


def _yaml(text: Text, writer: Writer) -> Iterator[Finding]:
    objects: list[Item] = []
    for number, node in enumerate(documents(text)):
        found = [*read(node, Around(writer.path, writer.unit))]
        yield from found
        if not found:
            objects.append(Item(writer.source, "yaml", node, text.span, number))
    yield from claimed(objects, writer)


def is_object(node: Map) -> bool:
    """A Kubernetes object."""
    return node.string("apiVersion") is not None and node.string("kind") is not None


def claimed(items: list[Item], writer: Writer) -> Iterator[Finding]:
    """What the carriers of YAML find in documents that stand inside another file."""
    from kvlint.carriers.registry import MODULES

    for module in MODULES["yaml"]:
        carrier = cast(Carrier, import_module(f"kvlint.carriers.{module}").CARRIER)
        own = [item for item in items if carrier.claims(item)]
        if own:
            yield from carrier.read(own, writer.files.project)
