"""The two kinds of Nix strings: escapes, and the indentation rule of `''…''`, character by character as Nix's lexer reads them.

Every character of the result knows where it stands.  CRLF is read as LF in both kinds.
"""

from __future__ import annotations

import re

from kvlint.formats.nix.syntax import Interpolation, Part
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import Piece, Source, Text

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_QUOTED = regex(r"[^\\\r]+|\\(?:\r\n|.)|\r\n?", re.DOTALL)
_INDENTED = regex(
    r"(?P<plain>(?:[^$']|\$[^{']|'[^'$])+)|(?P<dollar>''\$|\$)|(?P<quotes>''')|''\\(?P<escape>.)|(?P<quote>')",
    re.DOTALL,
)
_OPENING = regex(r" *\r?\n")
_SPACES = regex(" *")
_NO_LIMIT = 1_000_000


class _Builder:
    """Collects the characters of one text and where they stand."""

    def __init__(self, source: Source, home: int) -> None:
        self.source = source
        self.home = home
        self.value: list[str] = []
        self.pieces: list[Piece] = []
        self.length = 0

    def plain(self, start: int, end: int) -> None:
        """Characters `start:end` of the file, as they stand."""
        if start == end:
            return
        last = self.pieces[-1] if self.pieces else None
        if last is not None and last.literal and last.span.end == start:
            span = self.source.span(last.span.start, end)
            self.pieces[-1] = Piece(last.at, last.length + end - start, span)
        else:
            self.pieces.append(Piece(self.length, end - start, self.source.span(start, end)))
        self.value.append(self.source.text[start:end])
        self.length += end - start

    def escaped(self, value: str, start: int, end: int) -> None:
        self.pieces.append(Piece(self.length, len(value), self.source.span(start, end), literal=False))
        self.value.append(value)
        self.length += len(value)

    def text(self) -> Text:
        home = self.source.span(self.home, self.home)
        return Text("".join(self.value), tuple(self.pieces), (), home)


def quoted_text(source: Source, start: int, end: int) -> Text:
    """Characters `start:end` inside `"…"`, between interpolations."""
    raw = source.text[start:end]
    if "\\" not in raw and "\r" not in raw:
        return Text.of(source, start, end)
    built = _Builder(source, start)
    for token in _QUOTED.finditer(raw):
        a, b = start + token.start(), start + token.end()
        first = raw[token.start()]
        if first == "\\":
            char = raw[token.start() + 1 : token.end()]
            built.escaped(_ESCAPES.get(char, char), a, b)
        elif first == "\r":
            built.escaped("\n", a, b)
        else:
            built.plain(a, b)
    return built.text()


@dataclass(frozen=True, slots=True)
class _Token:
    """A run of an indented string: as it stands (`value` None), or an escape that stands for `value`."""

    start: int
    end: int
    value: str | None = None


def indented_parts(source: Source, start: int, end: int, holes: list[Interpolation]) -> tuple[Part, ...]:
    """The parts of `''…''` whose body stands at `start:end`, with the indentation taken off."""
    opening = _OPENING.match(source.text, start, holes[0].start if holes else end)
    at = opening.end() if opening else start
    tokens: list[_Token | Interpolation] = []
    for hole in holes:
        tokens += _tokens(source.text, at, hole.start)
        tokens.append(hole)
        at = hole.end
    tokens += _tokens(source.text, at, end)
    return _strip(source, tokens, _least_indentation(source.text, tokens), at)


def _tokens(text: str, start: int, end: int) -> list[_Token]:
    tokens = []
    for match in _INDENTED.finditer(text, start, end):
        kind = match.lastgroup
        if kind == "plain":
            tokens.append(_Token(match.start(), match.end()))
        elif kind == "escape":
            char = match["escape"]
            tokens.append(_Token(match.start(), match.end(), _ESCAPES.get(char, char)))
        else:
            value = {"dollar": "$", "quotes": "''", "quote": "'"}[str(kind)]
            tokens.append(_Token(match.start(), match.end(), value))
    return tokens


def _lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The lines of `start:end`, line feeds kept."""
    lines = []
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop + 1
        lines.append((start, stop))
        start = stop
    return lines


def _spaces(text: str, start: int, end: int) -> int:
    match = _SPACES.match(text, start, end)
    return match.end() - start if match is not None else 0


def _blank(text: str, at: int, end: int) -> bool:
    """A line break stands at `at`."""
    return at < end and (text[at] == "\n" or (text[at] == "\r" and text[at + 1 : end] == "\n"))


def _least_indentation(text: str, tokens: list[_Token | Interpolation]) -> int:
    least, indent, at_start = _NO_LIMIT, 0, True
    for token in tokens:
        if isinstance(token, Interpolation) or token.value is not None:
            if at_start:
                least, at_start = min(least, indent), False
            continue
        for a, b in _lines(text, token.start, token.end):
            if at_start:
                indent += _spaces(text, a, b)
                first = a + _spaces(text, a, b)
                if _blank(text, first, b):
                    indent = 0
                elif first < b:
                    least, at_start = min(least, indent), False
            if text[b - 1] == "\n":
                indent, at_start = 0, True
    return least


def _strip(source: Source, tokens: list[_Token | Interpolation], least: int, home: int) -> tuple[Part, ...]:
    parts: list[Part] = []
    built = _Builder(source, tokens[0].start if tokens else home)
    dropped, at_start = 0, True
    for number, token in enumerate(tokens):
        if isinstance(token, Interpolation):
            parts += [built.text(), token]
            built = _Builder(source, token.end)
            dropped, at_start = 0, False
            continue
        last = number == len(tokens) - 1
        if token.value is not None:
            if at_start and token.value == " ":
                dropped += 1
                if dropped <= least:
                    continue
            elif at_start:
                dropped, at_start = 0, token.value == "\n"
            else:
                at_start = token.value == "\n"
            built.escaped(token.value, token.start, token.end)
            continue
        lines = _lines(source.text, token.start, token.end)
        if last and len(lines) > 1 and _spaces(source.text, *lines[-1]) == lines[-1][1] - lines[-1][0]:
            lines.pop()
        for a, b in lines:
            dropped, at_start = _line(built, a, b, least, dropped, at_start)
    parts.append(built.text())
    return tuple(part for part in parts if isinstance(part, Interpolation) or part.value or len(parts) == 1)


def _line(built: _Builder, a: int, b: int, least: int, dropped: int, at_start: bool) -> tuple[int, bool]:
    """Put one line of a plain token without its indentation.

    `dropped`: spaces of this line seen before the token; the new pair of `dropped` and `at_start` is returned.
    """
    text = built.source.text
    spaces = _spaces(text, a, b) if at_start else 0
    first = a + spaces
    a += min(spaces, max(0, least - dropped))
    stop = b - 2 if text.endswith("\r\n", a, b) else b
    built.plain(a, stop)
    if stop != b:
        built.escaped("\n", stop, b)
    if text[b - 1] == "\n":
        return 0, True
    if at_start and first == b:
        return dropped + spaces, True
    return 0, False
