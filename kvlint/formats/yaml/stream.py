"""Where one document of a YAML stream ends and the next begins, without parsing any of them."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.patterns import regex

BREAKS = "\n\r\x85\u2028\u2029"
_MARKER = regex(rf"(?:---|\.\.\.)(?=[ \t{BREAKS}]|\Z)")
_EMPTY = regex(
    rf"(?:(?:(?:[ \t]*(?:#[^{BREAKS}]*)?|%[^{BREAKS}]*)[{BREAKS}])*---(?=[ \t{BREAKS}]|\Z))?"
    rf"(?:[ \t{BREAKS}]|#[^{BREAKS}]*[{BREAKS}])*(?:#[^{BREAKS}]*|\.\.\.)?\Z"
)
_BOM = "\ufeff"


def chunks(text: str) -> Iterator[tuple[int, int]]:
    """The documents of a stream, each with its directives, comments and markers.

    `---` and `...` at the start of a line are markers in every context, block scalars and quotes included.
    """
    start, bare = 0, True
    for match in _MARKER.finditer(text):
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
    return _EMPTY.match(text, start + text.startswith(_BOM, start), end) is not None


def _is_prefix(text: str) -> bool:
    """Whether only comments, directives and blank lines stand here: they belong to the `---` that follows."""
    return all(line[:1] == "%" or line.strip(" \t\ufeff")[:1] in ("", "#") for line in text.splitlines())
