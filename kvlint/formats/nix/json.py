"""`builtins.fromJSON` of a known text: every value is a slice of it, so a number in the JSON keeps its own place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kvlint.formats.nix.coerce import finite, integer, known_string, truth
from kvlint.formats.nix.values import Attrs, Float, Int, Items, Null, Slot, Str, Stuck, Thunk, Value, done
from kvlint.patterns import regex
from kvlint.source import Span, Text
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator

_SPACE = regex(r"[ \t\r\n]*")
_NUMBER = regex(r"-?(?:0|[1-9][0-9]*)(?P<real>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_STRING = regex(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)"')
_ESCAPE = regex(r"\\u([0-9a-fA-F]{4})|\\(.)|[^\\]+")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEPTH = 50


def from_json(ev: Evaluator, span: Span, thunk: Thunk) -> Value:
    text = ev.text_of(thunk)
    known_string(text)
    ev.spend(len(text.value) // 8)
    reader = _Reader(text, span)
    value = reader.value(0)
    if reader.skip() != len(text.value):
        raise reader.wrong()
    return value


class _Reader:
    def __init__(self, text: Text, span: Span) -> None:
        self.text = text
        self.raw = text.value
        self.span = span
        self.at = 0

    def wrong(self, why: str = "the text is not JSON") -> Stuck:
        return Stuck(Opaque(self.span, why))

    def skip(self) -> int:
        match = _SPACE.match(self.raw, self.at)
        assert match is not None
        self.at = match.end()
        return self.at

    def take(self, sign: str) -> bool:
        self.skip()
        found = self.raw.startswith(sign, self.at)
        self.at += len(sign) if found else 0
        return found

    def place(self, text: Text) -> Span:
        return text.span if text.pieces else self.span

    def value(self, depth: int) -> Value:
        if depth > _DEPTH:
            raise self.wrong("the JSON is nested too deeply")
        start = self.skip()
        if self.take("{"):
            return self.set(depth)
        if self.take("["):
            return self.list(depth)
        if self.raw.startswith('"', start):
            return Str(self.string())
        for word in ("true", "false", "null"):
            if self.take(word):
                text = self.text.slice(start, self.at)
                return Null(text) if word == "null" else truth(word == "true", self.place(text))
        return self.number(start)

    def number(self, start: int) -> Int | Float:
        match = _NUMBER.match(self.raw, start)
        if match is None or match[0] == "-0":
            raise self.wrong()
        self.at = match.end()
        text = self.text.slice(start, self.at)
        if match["real"]:
            value = float(match[0])
            finite(value, self.span)
            return Float(value, text)
        integer(int(match[0]) if len(match[0]) < 30 else 10**30, self.span)
        return Int(int(match[0]), text)

    def string(self) -> Text:
        match = _STRING.match(self.raw, self.at)
        if match is None:
            raise self.wrong()
        self.at = match.end()
        start, end = match.span(1)
        if "\\" not in match[1]:
            return self.text.slice(start, end)
        parts = []
        for token in _ESCAPE.finditer(self.raw, start, end):
            piece = self.text.slice(token.start(), token.end())
            if token[0].startswith("\\"):
                piece = Text.at(self.escaped(token), self.place(piece))
            parts.append(piece)
        return Text.join(parts)

    def escaped(self, token: re.Match[str]) -> str:
        if token[1] is None:
            return _ESCAPES.get(token[2], token[2])
        code = int(token[1], 16)
        if code == 0 or 0xD800 <= code < 0xE000:
            raise self.wrong("the JSON holds a character that is not read here")
        return chr(code)

    def list(self, depth: int) -> Value:
        items: list[Thunk] = []
        if self.take("]"):
            return Items(())
        while True:
            items.append(self.element(depth))
            if self.take("]"):
                return Items(tuple(items))
            if not self.take(","):
                raise self.wrong()

    def element(self, depth: int) -> Thunk:
        start = self.skip()
        value = self.value(depth + 1)
        return done(value, self.place(self.text.slice(start, self.at)))

    def set(self, depth: int) -> Value:
        slots: dict[str, Slot] = {}
        if self.take("}"):
            return Attrs(slots)
        while True:
            self.skip()
            key = self.string()
            if key.value in slots:
                raise self.wrong("the JSON has a key twice")
            if not self.take(":"):
                raise self.wrong()
            slots[key.value] = Slot(key, self.place(key), self.element(depth))
            if self.take("}"):
                return Attrs(slots)
            if not self.take(","):
                raise self.wrong()
