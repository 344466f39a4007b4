"""The tags of a Jinja template, with their places: enough to see what is printed before what."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvlint.patterns import regex
from kvlint.records import dataclass

_OPEN = regex(r"\{\{|\{%|\{#")
# Up to the end of the tag; quoted text may hold it.
_BODY = {
    "{{": regex(r"(?:[^'\"}]|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\}(?!\}))*\}\}", re.DOTALL),
    "{%": regex(r"(?:[^'\"%]|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|%(?!\}))*%\}", re.DOTALL),
}
_KINDS = {"{{": "output", "{%": "statement"}


@dataclass(frozen=True, slots=True)
class Tag:
    """`kind`: output or statement; `start`, `end`: its body between the braces, without the marks that trim blanks."""

    kind: str
    start: int
    end: int


def tags(text: str) -> Iterator[Tag]:
    """The tags in their order; comments are left out, and so is everything after a tag that does not end."""
    at = 0
    while (opened := _OPEN.search(text, at)) is not None:
        if opened[0] == "{#":
            at = text.find("#}", opened.end()) + 2
            if at < 2:
                return
            continue
        body = _BODY[opened[0]].match(text, opened.end())
        if body is None:
            return
        start, end = opened.end(), body.end() - 2
        start += text[start : start + 1] in ("-", "+")
        end -= end > start and text[end - 1] in ("-", "+")
        yield Tag(_KINDS[opened[0]], start, end)
        at = body.end()
