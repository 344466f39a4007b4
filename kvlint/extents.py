"""How far something reaches that begins on a line: what a comment above it covers."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvlint.directives import texts
from kvlint.source import Source, Span, Text
from kvlint.tree import List, Map, Scalar, walk

if TYPE_CHECKING:
    from kvlint.parsing import Parsed


def ends(parsed: Parsed) -> dict[int, int]:
    """The last line of the scalar, binding, setting or command that begins on a line."""
    found: dict[int, int] = {}
    for first, last in (*_nodes(parsed), *_own(parsed), *_commands(parsed)):
        found[first] = max(found.get(first, first), last)
    return found


def _lines(first: Span, last: Span) -> tuple[int, int]:
    return first.line, last.end_line


def _nodes(parsed: Parsed) -> Iterator[tuple[int, int]]:
    """Keys and list items that own a scalar."""
    for document in parsed.documents:
        for node in walk(document.node) if document.node is not None else ():
            if isinstance(node, Map):
                yield from (
                    _lines(each.key.span, each.value.span) for each in node.entries if isinstance(each.value, Scalar)
                )
            elif isinstance(node, List):
                yield from (_lines(each.span, each.span) for each in node.items if isinstance(each, Scalar))


def _own(parsed: Parsed) -> Iterator[tuple[int, int]]:
    """Settings, assignments, instructions, recipes and bindings of formats that are no tree."""
    source, kind = parsed.source, parsed.kind
    spans: list[Span] = []
    if kind == "systemd":
        from kvlint.formats import systemd

        spans = [each.span for part in systemd.parse(source).sections for each in part.settings]
    elif kind == "env":
        from kvlint.formats import env

        spans = [each.span for each in env.parse(source).assignments]
    elif kind == "dockerfile":
        from kvlint.formats import dockerfile

        spans = [each.span for each in dockerfile.parse(source).instructions]
    elif kind in ("makefile", "justfile", "procfile"):
        read: Any = getattr(import_module("kvlint.formats.recipes"), kind)
        spans = [each.text.span for each in read(source)]
    elif kind in ("conf", "ini"):
        from kvlint.formats import supervisor

        if supervisor.is_config(source.text):
            sections = supervisor.parse(Text.of(source, 0, len(source.text)))
            spans = [each.span for part in sections.values() for each in part.settings.values()]
    elif kind == "nix":
        yield from _bindings(source)
    yield from (_lines(span, span) for span in spans)


def _commands(parsed: Parsed) -> Iterator[tuple[int, int]]:
    """Commands that go over several lines, in a script or in a string that holds one."""
    from kvlint.formats import shell

    source = parsed.source
    whole = [Text.of(source, 0, len(source.text))] if parsed.kind == "shell" else []
    for text in (*whole, *(each for each in texts(parsed) if "kvlint:" in each.value)):
        for command in shell.commands(text).commands:
            if command.span is not None and command.span.source is source:
                yield _lines(command.span, command.span)


def _bindings(source: Source) -> Iterator[tuple[int, int]]:
    """Nix bindings and list items without a set inside: a string, a number, what a function makes of them."""
    from kvlint.formats.nix import parser
    from kvlint.formats.nix.syntax import AttrSet, Definition, Expr, Lambda, Let, ListLiteral, With

    owners = (AttrSet, Lambda, Let, With)
    stack: list[object] = [parser.parse(source).root]
    while stack:
        node = stack.pop()
        if isinstance(node, Definition):
            if not isinstance(node.value, (*owners, ListLiteral)) and not _holds(node.value, owners):
                yield _lines(node.key.span, node.value.span)
            stack.append(node.value)
        elif isinstance(node, ListLiteral):
            yield from (_lines(item.span, item.span) for item in node.items if not isinstance(item, owners))
            stack += node.items
        elif isinstance(node, Expr):
            stack += _below(node)


def _holds(node: object, owners: tuple[type, ...]) -> bool:
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, owners):
            return True
        stack += _below(current)
    return False


def _below(node: object) -> list[object]:
    """Expressions and definitions directly below a node."""
    from kvlint.formats.nix.syntax import Definition, Expr

    found: list[object] = []
    stack: list[object] = [
        getattr(node, name, None) for name in getattr(type(node), "__slots__", ()) if name != "source"
    ]
    while stack:
        value = stack.pop()
        if isinstance(value, (Definition, Expr)):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            stack += value
        elif isinstance(value, dict):
            stack += value.values()
    return found
