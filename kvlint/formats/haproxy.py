"""haproxy.cfg with places: sections, each with its lines in words.

A word ends at a blank; quotes join, a backslash takes the next character as it is, `#` begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from kvlint.formats.shell.text import Slicer
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import Text

SECTIONS = frozenset(
    {
        "global",
        "defaults",
        "frontend",
        "backend",
        "listen",
        "peers",
        "resolvers",
        "userlist",
        "mailers",
        "program",
        "cache",
    }
)
_LINE = regex(r"[^\r\n]+")
_WORD = regex(r"(?:\\.|\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s#\"'\\])+|(?P<comment>#.*)")


@dataclass(frozen=True, slots=True)
class Section:
    """`kind` and, where it has one, `name`; `lines`: each one's words."""

    kind: str
    name: Text | None
    lines: tuple[tuple[Text, ...], ...]


def parse(text: Text) -> Iterator[Section]:
    """The sections of a file's text in their order; lines before the first are left out."""
    cut = Slicer(text)
    head: tuple[Text, ...] = ()
    lines: list[tuple[Text, ...]] = []
    for line in _LINE.finditer(text.value):
        words = tuple(_words(cut, line))
        if not words:
            continue
        if words[0].value in SECTIONS:
            if head:
                yield _section(head, lines)
            head, lines = words, []
        elif head:
            lines.append(words)
    if head:
        yield _section(head, lines)


def _section(head: tuple[Text, ...], lines: list[tuple[Text, ...]]) -> Section:
    return Section(head[0].value, head[1] if len(head) > 1 else None, tuple(lines))


def _words(cut: Slicer, line: re.Match[str]) -> Iterator[Text]:
    for match in _WORD.finditer(cut.value, line.start(), line.end()):
        if match["comment"] is not None:
            return
        text = match[0]
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
        yield cut(match.start() + quoted, match.end() - quoted)


def option(words: tuple[Text, ...], name: str) -> Text | None:
    """The word behind a keyword of a line."""
    for word, following in pairwise(words):
        if word.value == name:
            return following
    return None
