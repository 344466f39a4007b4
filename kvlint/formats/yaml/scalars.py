"""From a scalar's token to its text, character by character: folds, escapes, indentation, chomping.

Every mapping is compared with the value that the YAML parser gave; where they differ, the parser is right and the whole
value points at the whole token.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.formats.spelling import Run, pieces
from kvlint.patterns import regex
from kvlint.source import Piece, Source, Span, Text

_BREAK = r"(?:\r\n|[\n\r\x85])"
_HEADER = regex(rf"[|>][^\n\r\x85]*(?:{_BREAK}|\Z)")
_LINE = regex(rf"([^\n\r\x85]*)({_BREAK}|\Z)")
_FOLD = rf"(?P<fold>[ \t]*(?:{_BREAK}[ \t]*)+)"
_BREAKS = regex(_BREAK)
_TOKENS = {
    "": regex(rf"{_FOLD}|(?P<run>[^ \t\n\r\x85]+|[ \t]+)"),
    "'": regex(rf"{_FOLD}|(?P<escape>'')|(?P<run>[^' \t\n\r\x85]+|[ \t]+)"),
    '"': regex(
        rf"{_FOLD}|(?P<join>\\{_BREAK}(?:[ \t]*{_BREAK})*[ \t]*)"
        r"|(?P<escape>\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.))"
        r"|(?P<run>[^\\ \t\n\r\x85]+|[ \t]+)"
    ),
}
_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"} | {
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
    "'": "'",
}


def scalar_text(source: Source, text: str, start: int, end: int, value: str, style: str | None) -> Text:
    """`value` with its places.  `text` is what was parsed (the source's own text, or a blanked one of equal length)."""
    home = Span(source, ((start, end),))
    if not value:
        return Text("", (), (), home)
    inset = 1 if style in ("'", '"') else 0
    if end - start - 2 * inset == len(value) and text.startswith(value, start + inset):
        span = Span(source, ((start + inset, end - inset),)) if inset else home
        return Text(value, (Piece(0, len(value), span),), (), home)
    if style in ("|", ">"):
        runs = _block(text, start, end, value, style == ">")
    else:
        runs = _flow(text, start + inset, end - inset, style)
    spelled = list(runs)
    if "".join(run for _, _, run in spelled) != value:
        return Text(value, (Piece(0, len(value), home, literal=False),), (), home)
    return Text(value, tuple(pieces(source, text, spelled)), (), home)


def _flow(text: str, start: int, end: int, style: str | None) -> Iterator[Run]:
    for match in _TOKENS[style or ""].finditer(text, start, end):
        kind = match.lastgroup
        at, stop = match.span()
        if kind == "run":
            yield at, stop, text[at:stop]
        elif kind == "fold":
            breaks = [found.span() for found in _BREAKS.finditer(text, at, stop)]
            if len(breaks) == 1:
                yield (*breaks[0], " ")
            else:
                yield from ((a, b, "\n") for a, b in breaks[1:])
        elif kind == "join":
            breaks = [found.span() for found in _BREAKS.finditer(text, at, stop)]
            yield from ((a, b, "\n") for a, b in breaks[1:])
        else:
            yield at, stop, "'" if style == "'" else _unescape(text[at:stop])


def _unescape(escape: str) -> str:
    kind = escape[1]
    if kind in "xuU" and len(escape) > 2:
        code = int(escape[2:], 16)
        return chr(code) if code < 0x110000 else ""
    return _ESCAPES.get(kind, "")


def _block(text: str, start: int, end: int, value: str, folded: bool) -> Iterator[Run]:
    """Runs of a literal or folded block scalar, indentation taken from how the value begins."""
    header = _HEADER.match(text, start, end)
    if header is None:
        return
    indent = _indent(text, header.end(), end, value)
    pending: list[tuple[int, int]] = []
    blank_before: bool | None = None
    total = 0
    for line in _LINE.finditer(text, header.end(), end):
        stop = line.end(1)
        begin = line.start() + indent
        if stop > begin:
            blank = text[begin] in " \t"
            fold = folded and blank_before is False and not blank and pending
            for at, after, run in _breaks(pending, bool(fold)):
                total += len(run)
                yield at, after, run
            yield begin, stop, text[begin:stop]
            total += stop - begin
            pending, blank_before = [], blank
        if line.end() > stop:
            pending.append((stop, line.end()))
    yield from ((at, after, "\n") for at, after in pending[: max(0, len(value) - total)])


def _breaks(pending: list[tuple[int, int]], fold: bool) -> Iterator[Run]:
    if fold and len(pending) == 1:
        yield (*pending[0], " ")
        return
    for at, after in pending[fold:]:
        yield at, after, "\n"


def _indent(text: str, start: int, end: int, value: str) -> int:
    """How far a block scalar is indented: what its first written line has before what the value keeps of it."""
    for line in _LINE.finditer(text, start, end):
        written = line[1].lstrip(" ")
        if written:
            kept = value.lstrip("\n")
            return len(line[1]) - len(written) - (len(kept) - len(kept.lstrip(" ")))
        if line.end() == end:
            break
    return 0
