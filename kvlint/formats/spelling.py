"""From runs of characters, each with what it stands for, to a `Text`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from kvlint.source import Piece, Source, Span, Text

# Characters start:end of the file spell the third.
Run = tuple[int, int, str]


def spell(source: Source, runs: Iterable[Run], start: int, end: int) -> Text:
    """The text that the runs spell together; `start:end` is where it stands when it is empty."""
    runs = list(runs)
    value = "".join(run for _, _, run in runs)
    return Text(value, tuple(pieces(source, source.text, runs)), (), source.span(start, end))


def pieces(source: Source, text: str, runs: Iterable[Run]) -> Iterator[Piece]:
    """The runs' pieces, neighbours joined where the characters stand for themselves.

    `text` is what was read: the source's own, or one of equal length.
    """
    at, begun, opened, closed = 0, 0, -1, -1
    for start, end, run in runs:
        literal = end - start == len(run) and text.startswith(run, start)
        if literal and start == closed:
            closed = end
            at += len(run)
            continue
        if closed > opened:
            yield Piece(begun, closed - opened, Span(source, ((opened, closed),)))
        begun, opened, closed = (at, start, end) if literal else (at, -1, -1)
        if not literal and run:
            yield Piece(at, len(run), Span(source, ((start, end),)), literal=False)
        at += len(run)
    if closed > opened:
        yield Piece(begun, closed - opened, Span(source, ((opened, closed),)))


class Cutter:
    """`Text.slice` for a text that is cut many times: each cut looks only at the pieces it needs."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.pieces = [piece.at for piece in text.pieces]
        self.holes = [hole.at for hole in text.holes]

    def cut(self, start: int, end: int | None = None) -> Text:
        text = self.text
        end = len(text.value) if end is None else end
        first = max(0, bisect_left(self.pieces, start) - 1)
        last = bisect_right(self.pieces, end)
        holes = text.holes[bisect_left(self.holes, start) : bisect_left(self.holes, end)]
        return Text(text.value, text.pieces[first:last], holes, text.home).slice(start, end)
