"""Where one document of a YAML stream ends and the next begins, without parsing any of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvlint.patterns import regex

BREAKS = "\n\r\x85\u2028\u2029"
USUAL, UNUSUAL = BREAKS[:2], BREAKS[2:]
_BOM = "\ufeff"


def _marker(breaks: str) -> re.Pattern[str]:
    return regex(rf"(?:---|\.\.\.)(?=[ \t{breaks}]|\Z)")


def _empty(breaks: str) -> re.Pattern[str]:
    return regex(
        rf"(?:(?:(?:[ \t]*(?:#[^{breaks}]*)?|%[^{breaks}]*)[{breaks}])*---(?=[ \t{breaks}]|\Z))?"
        rf"(?:[ \t{breaks}]|#[^{breaks}]*[{breaks}])*(?:#[^{breaks}]*|\.\.\.)?\Z"
    )


# Sets with characters beyond Latin-1 take long to compile, and next to no text breaks its lines with them.
_MARKERS = {breaks: _marker(breaks) for breaks in (USUAL, BREAKS)}
_EMPTIES = {breaks: _empty(breaks) for breaks in (USUAL, BREAKS)}


def _breaks(text: str, start: int, end: int) -> str:
    """The line breaks that may stand in a piece of text."""
    return BREAKS if any(text.find(each, start, end) >= 0 for each in UNUSUAL) else USUAL


def chunks(text: str) -> Iterator[tuple[int, int]]:
    """The documents of a stream, each with its directives, comments and markers.

    `---` and `...` at the start of a line are markers in every context, block scalars and quotes included.
    """
    start, bare = 0, True
    for match in _MARKERS[_breaks(text, 0, len(text))].finditer(text):
        at = match.start()
        before = text[at - 1 : at]
        if before == _BOM:
            before = text[at - 2 : at - 1]
        if before and before not in BREAKS:
            continue
        if text[at] == ".":
            if not (bare and is_empty(text, start, at)):
                yield start, match.end()
            start, bare = match.end(), True
            continue
        if not (bare and _is_prefix(text[start:at])):
            yield start, at
            start = at
        bare = False
    if not bare or text[start:].strip():
        yield start, len(text)


def is_empty(text: str, start: int, end: int) -> bool:
    """Whether a document has nothing but its marker, comments and blanks."""
    empty = _EMPTIES[_breaks(text, start, end)]
    return empty.match(text, start + text.startswith(_BOM, start), end) is not None


def _is_prefix(text: str) -> bool:
    """Whether only comments, directives and blank lines stand here: they belong to the `---` that follows."""
    return all(line[:1] == "%" or line.strip(" \t\ufeff")[:1] in ("", "#") for line in text.splitlines())
