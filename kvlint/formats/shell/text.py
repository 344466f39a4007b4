"""Cutting, joining and re-reading texts without losing places."""

from __future__ import annotations

from bisect import bisect_right

from kvlint.records import replace
from kvlint.source import Piece, Source, Span, Text

# A chain of variables (`B=$A; C=$B; …`) would make the list of uses grow with every hop.
LONGEST_VIA = 12
# For a text that its maker gave no place.
NOWHERE = Source("", "").span(0, 0)


def script_of(source: Source) -> Text:
    """A file as a script.  A backslash with nothing behind it, not even a line's end, is dropped, as bash drops it."""
    text = source.text
    dangling = len(text) - len(text.rstrip("\\"))
    return Text.of(source, 0, len(text) - dangling % 2)


class Slicer:
    """Repeated slices of one text, each in time that grows with the slice and not with the text."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.value = text.value
        self._pieces = [small for piece in text.pieces for small in _single(piece)]
        self._starts = [piece.at for piece in self._pieces]
        self._holes = text.holes
        self._hole_starts = [hole.at for hole in text.holes]

    def __call__(self, start: int, end: int) -> Text:
        if not self._pieces:
            return Text(self.value[start:end], (), (), self.text.home)
        first = max(bisect_right(self._starts, start) - 1, 0)
        piece = self._pieces[first]
        if piece.literal and piece.at <= start < end <= piece.at + piece.length and not self._holes:
            span = _run(piece, start, end)
            return Text(self.value[start:end], (Piece(0, end - start, span, True, piece.via),), (), span)
        last = bisect_right(self._starts, end)
        low = bisect_right(self._hole_starts, start - 1)
        high = bisect_right(self._hole_starts, end - 1)
        part = Text(self.value, tuple(self._pieces[first:last]), self._holes[low:high], self.text.home)
        return part.slice(start, end)

    def span(self, start: int, end: int) -> Span | None:
        if self._pieces:
            piece = self._pieces[max(bisect_right(self._starts, start) - 1, 0)]
            if piece.literal and piece.at <= start <= end <= piece.at + piece.length:
                return _run(piece, start, end)
        return place(self(start, end))


def _run(piece: Piece, start: int, end: int) -> Span:
    """The part of a single run's span for the characters `start:end` of the text."""
    base = piece.span.pieces[0][0] - piece.at
    return Span(piece.span.source, ((base + start, base + end),))


def _single(piece: Piece) -> list[Piece]:
    """A literal piece whose span has several runs, as one piece a run, so that it can be searched."""
    runs = piece.span.pieces
    if len(runs) == 1 or not piece.literal:
        return [piece]
    pieces = []
    at = piece.at
    for start, end in runs:
        pieces.append(Piece(at, end - start, Span(piece.span.source, ((start, end),)), True, piece.via))
        at += end - start
    return pieces


def place(text: Text) -> Span | None:
    """Where a text stands; None where it is empty and has no home."""
    return text.span if text.pieces else text.home


def where(text: Text) -> Span:
    """Where a text stands, or nowhere: for those who need a place whatever the text."""
    return place(text) or NOWHERE


def unknown(span: Span | None, reason: str, supply: str = "", splice: bool = False) -> Text:
    """A text that cannot be known."""
    return Text.unknown(span or NOWHERE, reason, supply, splice)


def made(value: str, span: Span | None) -> Text:
    """A value that no characters of the file spell."""
    return Text(value) if span is None else Text.at(value, span)


def joined(parts: list[Text], home: Span | None = None) -> Text:
    text = parts[0] if len(parts) == 1 else Text.join(parts)
    return text if text.home is not None or home is None else replace(text, home=home)


def spliced(text: Text, splice: bool) -> Text:
    """The same text with every hole marked: `splice` where it may come apart into several words, or none."""
    if all(hole.splice == (splice and not hole.whole) for hole in text.holes):
        return text
    return replace(text, holes=tuple(replace(hole, splice=splice and not hole.whole) for hole in text.holes))


def reached(text: Text, use: Span | None) -> Text:
    """The same text reached through `use`, the list of uses kept short (the outermost and the innermost are worth most)."""
    if use is None:
        return text
    pieces = tuple(Piece(p.at, p.length, p.span, p.literal, _shorten((use, *p.via))) for p in text.pieces)
    return Text(text.value, pieces, text.holes, text.home if text.home is not None else use)


def _shorten(via: tuple[Span, ...]) -> tuple[Span, ...]:
    if len(via) <= LONGEST_VIA:
        return via
    return (*via[: LONGEST_VIA - 1], via[-1])


def unix_lines(text: Text) -> Text:
    """Without the carriage return of `\\r\\n`: a checkout on Windows changes no meaning that its author sees."""
    if "\r\n" not in text.value:
        return text
    cut = Slicer(text)
    parts = []
    at = 0
    while (found := text.value.find("\r\n", at)) >= 0:
        parts.append(cut(at, found))
        at = found + 1
    parts.append(cut(at, len(text.value)))
    return replace(Text.join(parts), home=text.home)
