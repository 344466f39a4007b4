"""TOML with the place of every key and value.

The library says whether a text is valid; our own scanner, which may then take validity for granted, finds the places.
Dates and times are scalars with the tag `str` and no quotes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Union

from kvlint.formats.document import MAX_DEPTH, Comment, Document, Unreadable, comment_at, is_directive
from kvlint.formats.spelling import Run, spell
from kvlint.patterns import regex
from kvlint.records import dataclass, field
from kvlint.source import Source
from kvlint.tree import Entry, List, Map, Node, Scalar

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

_PLACE = regex(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_BLANK = regex(r"(?:[ \t]|\r?\n)+")
_COMMENT = regex(r"#[^\n]*")
_BARE_KEY = regex(r"[A-Za-z0-9_-]+")
_BARE = regex(r"[^,\]}#\r\n]*[^,\]}#\s]")
_STRING = regex(
    r'"{3}(?P<long>[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*"{0,2})"{3}'
    r"|'{3}(?P<raw>[^']*(?:'(?!'')[^']*)*'{0,2})'{3}"
    r'|"(?P<basic>[^"\\\n]*(?:\\.[^"\\\n]*)*)"'
    r"|'(?P<literal>[^'\n]*)'"
)
_PART = regex(
    r"(?P<join>\\[ \t]*\r?\n\s*)|(?P<escape>\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|.))"
    r"|(?P<crlf>\r\n)|(?P<run>[^\\\r]+|\r)"
)
_LINES = regex(r"(?P<crlf>\r\n)|(?P<run>[^\r]+|\r)")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b", '"': '"', "\\": "\\"}
_INT = regex(r"[+-]?(?:0[xob][\da-fA-F_]+|\d[\d_]*)")
_FLOAT = regex(r"[+-]?(?:inf|nan|\d[\d_]*(?:\.[\d_]+)?(?:[eE][+-]?[\d_]+)?)")


class _Failure(Exception):
    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


@dataclass(slots=True)
class _Table:
    """A table that headers and dotted keys may still add to."""

    start: int
    end: int
    depth: int
    entries: dict[str, tuple[Scalar, _Value]] = field(default_factory=dict)


@dataclass(slots=True)
class _Tables:
    """An array of tables: `[[name]]`."""

    items: list[_Table]


_Value = Union[_Table, _Tables, Node]


def parse(source: Source) -> Document:
    """The one document of a TOML file: a map, or the problem with its place."""
    span = source.span(0, len(source.text))
    reader = _Reader(source)
    try:
        tomllib.loads(source.text)
        node = reader.read()
    except tomllib.TOMLDecodeError as error:
        return Document(None, _invalid(source, str(error)), span)
    except _Failure as failure:
        return Document(None, Unreadable(failure.message, source.span(failure.at, failure.at + 1)), span)
    except (ValueError, RecursionError) as error:
        message = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return Document(None, Unreadable(message, span), span)
    return Document(node, None, span, tuple(reader.comments))


def _invalid(source: Source, message: str) -> Unreadable:
    match = _PLACE.search(message)
    text = message[: match.start()] if match else message
    if match is None or match[1] is None:
        end = len(source.text.rstrip())
        return Unreadable(text, source.span(max(0, end - 1), end))
    line, column = int(match[1]), int(match[2])
    newlines = re.compile("\n").finditer(source.text)
    start = 0
    for _ in range(line - 1):
        found = next(newlines, None)
        start = found.end() if found else start
    at = min(start + column - 1, len(source.text))
    return Unreadable(text, source.span(at, min(at + 1, len(source.text))))


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.at = 0
        self.comments: list[Comment] = []

    def read(self) -> Map:
        root = _Table(0, len(self.text), 0)
        current = root
        while self.skip():
            if self.text.startswith("[", self.at):
                current = self.header(root)
            else:
                self.pair(current)
        root.end = len(self.text)
        return self.freeze(root)

    def skip(self) -> bool:
        """Past blanks, line breaks and comments; whether anything is left."""
        while True:
            if blank := _BLANK.match(self.text, self.at):
                self.at = blank.end()
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                return self.at < len(self.text)
            self.at = comment.end()
            text = comment[0].rstrip("\r")
            if is_directive(text):
                self.comments.append(comment_at(self.source, comment.start(), comment.start() + len(text)))

    def header(self, root: _Table) -> _Table:
        start = self.at
        many = self.text.startswith("[[", start)
        self.at += 2 if many else 1
        path = self.path()
        self.at += 2 if many else 1
        table = self.descend(root, path[:-1])
        name = path[-1].value
        fresh = _Table(start, self.at, table.depth + 1)
        found = table.entries.get(name)
        if found is None:
            table.entries[name] = (path[-1], _Tables([fresh]) if many else fresh)
        elif isinstance(found[1], _Tables) and many:
            found[1].items.append(fresh)
        elif isinstance(found[1], _Table):
            return found[1]
        return fresh

    def descend(self, table: _Table, path: list[Scalar]) -> _Table:
        """The table at a path of keys, made where it does not exist yet."""
        for key in path:
            if table.depth >= MAX_DEPTH:
                raise _Failure(f"nested deeper than {MAX_DEPTH} levels", key.span.start)
            fresh = _Table(key.span.start, key.span.end, table.depth + 1)
            _, value = table.entries.setdefault(key.value, (key, fresh))
            if isinstance(value, _Tables):
                value = value.items[-1]
            if not isinstance(value, _Table):
                raise _Failure("a key of what is no table", key.span.start)
            table.end = max(table.end, key.span.end)
            table = value
        return table

    def path(self) -> list[Scalar]:
        keys = [self.key()]
        while True:
            self.blanks()
            if not self.text.startswith(".", self.at):
                return keys
            self.at += 1
            keys.append(self.key())

    def key(self) -> Scalar:
        self.blanks()
        if self.text[self.at : self.at + 1] in ('"', "'"):
            return self.string()
        match = _BARE_KEY.match(self.text, self.at)
        if match is None:
            raise _Failure("expected a key", self.at)
        start, self.at = match.span()
        return Scalar(
            spell(self.source, [(start, self.at, match[0])], start, self.at), self.source.span(start, self.at)
        )

    def blanks(self) -> None:
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1

    def pair(self, table: _Table) -> None:
        path = self.path()
        self.at += 1
        self.blanks()
        owner = self.descend(table, path[:-1])
        value = self.value(owner.depth + 1)
        owner.entries[path[-1].value] = (path[-1], value)
        owner.end = table.end = self.at

    def value(self, depth: int) -> _Value:
        if depth > MAX_DEPTH:
            raise _Failure(f"nested deeper than {MAX_DEPTH} levels", self.at)
        first = self.text[self.at : self.at + 1]
        if first in ('"', "'"):
            return self.string()
        if first == "[":
            return self.array(depth)
        if first == "{":
            return self.inline(depth)
        match = _BARE.match(self.text, self.at)
        if match is None:
            raise _Failure("expected a value", self.at)
        start, self.at = match.span()
        text = spell(self.source, [(start, self.at, match[0])], start, self.at)
        return Scalar(text, self.source.span(start, self.at), _tag(match[0]))

    def array(self, depth: int) -> List:
        start = self.at
        self.at += 1
        items: list[Node] = []
        while self.skip() and not self.text.startswith("]", self.at):
            items.append(self.frozen(self.value(depth + 1)))
            self.skip()
            if self.text.startswith(",", self.at):
                self.at += 1
        self.at += 1
        return List(tuple(items), self.source.span(start, self.at))

    def inline(self, depth: int) -> _Table:
        table = _Table(self.at, self.at, depth)
        self.at += 1
        while self.skip() and not self.text.startswith("}", self.at):
            self.pair(table)
            self.skip()
            if self.text.startswith(",", self.at):
                self.at += 1
        self.at += 1
        table.end = self.at
        return table

    def string(self) -> Scalar:
        match = _STRING.match(self.text, self.at)
        if match is None or match.lastgroup is None:
            raise _Failure("expected a string", self.at)
        kind = match.lastgroup
        self.at = match.end()
        start, end = match.span(kind)
        if kind in ("long", "raw"):
            start += self.text.startswith("\r\n", start, end) * 2 or self.text.startswith("\n", start, end)
        parts = _PART if kind in ("long", "basic") else _LINES
        text = spell(self.source, self.runs(parts, start, end), *match.span())
        return Scalar(text, self.source.span(*match.span()), "str", True)

    def runs(self, parts: re.Pattern[str], start: int, end: int) -> Iterator[Run]:
        for match in parts.finditer(self.text, start, end):
            if match.lastgroup == "run":
                yield (*match.span(), match[0])
            elif match.lastgroup == "crlf":
                yield (*match.span(), "\n")
            elif match.lastgroup == "escape":
                escape = match[0]
                yield (*match.span(), chr(int(escape[2:], 16)) if len(escape) > 2 else _ESCAPES.get(escape[1], escape))

    def freeze(self, table: _Table) -> Map:
        entries = tuple(Entry(key, self.frozen(value)) for key, value in table.entries.values())
        return Map(entries, self.source.span(table.start, max(table.start, table.end)))

    def frozen(self, value: _Value) -> Node:
        if isinstance(value, _Table):
            return self.freeze(value)
        if isinstance(value, _Tables):
            items = tuple(self.freeze(item) for item in value.items)
            return List(items, self.source.span(items[0].span.start, max(item.span.end for item in items)))
        return value


def _tag(word: str) -> str:
    if word in ("true", "false"):
        return "bool"
    if _INT.fullmatch(word):
        return "int"
    return "float" if _FLOAT.fullmatch(word) else "str"
