"""Files as text, and places in them.

Offsets everywhere are code points into `Source.text`, 0-based, ends exclusive.  Lines and columns are
worked out only when a report needs them, 1-based as people count.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from kvlint.patterns import regex
from kvlint.records import dataclass, field

_LINE_BREAK = regex(r"\r\n|\n|\r")


@dataclass(eq=False, slots=True)
class Source:
    """One file's text, decoded, without its byte-order mark.  Two sources are the same only if they are one object."""

    path: str
    text: str
    _starts: list[int] | None = field(default=None, repr=False)

    @property
    def line_starts(self) -> list[int]:
        if self._starts is None:
            self._starts = [0, *[match.end() for match in _LINE_BREAK.finditer(self.text)]]
        return self._starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of `offset`, both 1-based, in code points."""
        starts = self.line_starts
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (1-based) without its line break."""
        starts = self.line_starts
        start = starts[number - 1]
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def span(self, start: int, end: int) -> Span:
        return Span(self, ((start, end),))


@dataclass(frozen=True, slots=True)
class Span:
    """One or more pieces of a file: a value that crosses a fold or an escape has several."""

    source: Source
    pieces: tuple[tuple[int, int], ...]

    @property
    def path(self) -> str:
        return self.source.path

    @property
    def start(self) -> int:
        return self.pieces[0][0]

    @property
    def end(self) -> int:
        return self.pieces[-1][1]

    @property
    def text(self) -> str:
        """The characters as they stand in the file, pieces joined."""
        return "".join(self.source.text[a:b] for a, b in self.pieces)

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    @property
    def end_line(self) -> int:
        return self.source.position(self.end)[0]

    @property
    def end_column(self) -> int:
        return self.source.position(self.end)[1]

    def covers(self, other: Span) -> bool:
        return self.source is other.source and self.start <= other.start and other.end <= self.end


@dataclass(frozen=True, slots=True)
class Piece:
    """`Text.value[at:at + length]` came from `span`; unless `literal`, the piece has no inner positions (an escape).

    `via` holds the uses that led here, outermost first: the `$(VAR)` in a command whose value stands in a ConfigMap,
    a YAML alias, a macro's call.
    """

    at: int
    length: int
    span: Span
    literal: bool = True
    via: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Hole:
    """`Text.value[at]` is `HOLE`: something that cannot be known from the files stands there."""

    at: int
    span: Span
    reason: str
    supply: str = ""
    splice: bool = False  # may expand to several words, or to none
    whole: bool = False  # one word wherever it stands: an address, a name, a number


HOLE = "\ufffc"


@dataclass(frozen=True, slots=True)
class Text:
    """A string in which every character knows where it was written.

    What is unknown is a `Hole`, one `HOLE` character of the value.  `home` is where an empty text stands.
    """

    value: str
    pieces: tuple[Piece, ...] = ()
    holes: tuple[Hole, ...] = ()
    home: Span | None = None

    @classmethod
    def of(cls, source: Source, start: int, end: int) -> Text:
        """The characters `start:end` of a file, as they stand."""
        span = source.span(start, end)
        return cls(source.text[start:end], (Piece(0, end - start, span),) if end > start else (), (), span)

    @classmethod
    def at(cls, value: str, span: Span) -> Text:
        """A value not spelled by its characters (an escape, a number worked out): all of it points at `span`."""
        return cls(value, (Piece(0, len(value), span, literal=False),) if value else (), (), span)

    @classmethod
    def unknown(cls, span: Span, reason: str, supply: str = "", splice: bool = False, whole: bool = False) -> Text:
        return cls(HOLE, (Piece(0, 1, span, literal=False),), (Hole(0, span, reason, supply, splice, whole),), span)

    @classmethod
    def join(cls, parts: Iterable[Text]) -> Text:
        value: list[str] = []
        pieces: list[Piece] = []
        holes: list[Hole] = []
        home: Span | None = None
        at = 0
        for part in parts:
            home = home or part.home
            value.append(part.value)
            pieces += (Piece(at + p.at, p.length, p.span, p.literal, p.via) for p in part.pieces)
            holes += (Hole(at + h.at, h.span, h.reason, h.supply, h.splice, h.whole) for h in part.holes)
            at += len(part.value)
        return cls("".join(value), tuple(_merge(pieces)), tuple(holes), home)

    @property
    def known(self) -> bool:
        return not self.holes

    @property
    def span(self) -> Span:
        """Where the characters to edit stand: every piece in the file of the first one."""
        return self.pieces[0].span if len(self.pieces) == 1 else self._span(self.pieces)

    @property
    def via(self) -> tuple[Span, ...]:
        """The uses that led to this text, without repeats, outermost first."""
        return tuple(dict.fromkeys([use for piece in self.pieces for use in piece.via]))

    def __len__(self) -> int:
        return len(self.value)

    def slice(self, start: int, end: int | None = None) -> Text:
        """`value[start:end]` with its places."""
        end = len(self.value) if end is None else min(end, len(self.value))
        pieces = []
        for p in self.pieces:
            a, b = max(start, p.at), min(end, p.at + p.length)
            if a < b:
                span = _inner(p.span, a - p.at, b - p.at) if p.literal else p.span
                pieces.append(Piece(a - start, b - a, span, p.literal, p.via))
        holes = tuple(
            Hole(h.at - start, h.span, h.reason, h.supply, h.splice, h.whole) for h in self.holes if start <= h.at < end
        )
        home = self._point(start) if not pieces else self._span(pieces)
        return Text(self.value[start:end], tuple(pieces), holes, home)

    def split(self, separator: str) -> Iterator[Text]:
        """The parts between separators, as of `str.split`."""
        at = 0
        for part in self.value.split(separator):
            yield self.slice(at, at + len(part))
            at += len(part) + len(separator)

    def seen_from(self, use: Span) -> Text:
        """The same text reached through `use` (an alias, a variable, a macro)."""
        pieces = tuple(Piece(p.at, p.length, p.span, p.literal, (use, *p.via)) for p in self.pieces)
        return Text(self.value, pieces, self.holes, self.home)

    def _span(self, pieces: Iterable[Piece]) -> Span:
        found = [p.span for p in pieces]
        if len(found) == 1:
            return found[0]
        if not found:
            if self.home is None:
                raise ValueError("an empty text without a place")
            return self.home
        source = found[0].source
        spans = sorted({piece for span in found if span.source is source for piece in span.pieces})
        return Span(source, tuple(_close_up(spans)))

    def _point(self, offset: int) -> Span | None:
        for p in self.pieces:
            if p.at <= offset <= p.at + p.length:
                return _inner(p.span, offset - p.at, offset - p.at) if p.literal else p.span
        return self.home


def _inner(span: Span, start: int, end: int) -> Span:
    """Characters `start:end` of a span's own text, as a span."""
    pieces: list[tuple[int, int]] = []
    at = 0
    for a, b in span.pieces:
        lo, hi = max(start, at), min(end, at + b - a)
        if lo < hi or (start == end and at <= start <= at + b - a and not pieces):
            pieces.append((a + lo - at, a + hi - at))
        at += b - a
    return Span(span.source, tuple(pieces) or (span.pieces[-1],))


def _merge(pieces: list[Piece]) -> list[Piece]:
    """Join neighbours that stand side by side in the file, so that a word of one run has one piece."""
    merged: list[Piece] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if (
            last
            and last.literal
            and piece.literal
            and last.via == piece.via
            and last.span.source is piece.span.source
            and last.span.end == piece.span.start
            and last.at + last.length == piece.at
        ):
            span = Span(last.span.source, tuple(_close_up([*last.span.pieces, *piece.span.pieces])))
            merged[-1] = Piece(last.at, last.length + piece.length, span, True, last.via)
        else:
            merged.append(piece)
    return merged


def _close_up(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    closed: list[tuple[int, int]] = []
    for a, b in pieces:
        if closed and a <= closed[-1][1]:
            closed[-1] = (closed[-1][0], max(b, closed[-1][1]))
        else:
            closed.append((a, b))
    return closed
