"""`${name%pattern}` and its kin, for the patterns that people write."""

from __future__ import annotations

from collections.abc import Callable

from kvlint.formats.shell.text import Slicer, joined, made
from kvlint.patterns import regex
from kvlint.source import Span, Text

_GLOB = regex(r"[*?\[\\]")
_SLICE = regex(r"\s*\(?\s*(-?\d{1,6})\s*\)?\s*(?::\s*(-?\d{1,6})\s*)?")


def apply(operator: str, text: Text, pattern: str, replacement: Text, span: Span | None) -> Text | None:
    """The changed text, with the places of what is left; None where the pattern is not followed."""
    if operator in ("%", "%%", "#", "##"):
        return _trim(operator, text, pattern)
    if operator in ("/", "//"):
        return _replace(operator == "//", text, pattern, replacement)
    if operator in ("^^", ",,") and not pattern:
        change: Callable[[str], str] = str.upper if operator == "^^" else str.lower
        return made(change(text.value), span) if change(text.value) != text.value else text
    return _substring(text, pattern) if operator == ":" else None


def _trim(operator: str, text: Text, pattern: str) -> Text | None:
    stars = pattern.count("*")
    literal = pattern.strip("*")
    if _GLOB.search(literal) or stars > 1:
        return None
    value = text.value
    greedy = len(operator) == 2
    if operator[0] == "#":
        end = _front(value, pattern, literal, greedy)
        return text.slice(end) if end else text
    start = _back(value, pattern, literal, greedy)
    return text.slice(0, start) if start < len(value) else text


def _front(value: str, pattern: str, literal: str, greedy: bool) -> int:
    """Where the part that matches at the beginning ends."""
    if pattern.startswith("*"):
        if not literal:
            return len(value) if greedy else 0
        found = value.rfind(literal) if greedy else value.find(literal)
        return found + len(literal) if found >= 0 else 0
    if not value.startswith(literal):
        return 0
    return len(value) if greedy and pattern.endswith("*") else len(literal)


def _back(value: str, pattern: str, literal: str, greedy: bool) -> int:
    """Where the part that matches at the end starts."""
    if pattern.endswith("*"):
        if not literal:
            return 0 if greedy else len(value)
        found = value.find(literal) if greedy else value.rfind(literal)
        return found if found >= 0 else len(value)
    if not value.endswith(literal):
        return len(value)
    return 0 if greedy and pattern.startswith("*") else len(value) - len(literal)


def _replace(everywhere: bool, text: Text, pattern: str, replacement: Text) -> Text | None:
    anchor = pattern[:1] if pattern[:1] in ("#", "%") else ""
    if _GLOB.search(pattern) or anchor:
        return None
    if not pattern or pattern not in text.value:
        return text
    cut = Slicer(text)
    parts = []
    at = 0
    while (found := text.value.find(pattern, at)) >= 0:
        parts += [cut(at, found), replacement]
        at = found + len(pattern)
        if not everywhere:
            break
    parts.append(cut(at, len(text.value)))
    return joined(parts)


def _substring(text: Text, arguments: str) -> Text | None:
    found = _SLICE.fullmatch(arguments)
    if found is None:
        return None
    size = len(text.value)
    start = int(found.group(1))
    start = max(size + start, 0) if start < 0 else min(start, size)
    if found.group(2) is None:
        return text.slice(start)
    length = int(found.group(2))
    end = size + length if length < 0 else min(start + length, size)
    return text.slice(start, end) if end >= start else None
