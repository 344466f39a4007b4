"""haproxy.cfg with places: sections, each with its lines in words.

A word ends at a blank; quotes join, a backslash takes the next character as it is, `#` begins a comment.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import Source, Text

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
_WORD = regex(r"(?:\\.|\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s#\"'\\])+|(?P<comment>#.*)")


@dataclass(frozen=True, slots=True)
class Section:
    """`kind` and, where it has one, `name`; `lines`: each one's words."""

    kind: str
    name: Text | None
    lines: tuple[tuple[Text, ...], ...]


def parse(source: Source) -> Iterator[Section]:
    """The sections of a file in their order; lines before the first are left out."""
    head: tuple[Text, ...] = ()
    lines: list[tuple[Text, ...]] = []
    for start in source.line_starts:
        words = tuple(_words(source, start))
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


def _words(source: Source, start: int) -> Iterator[Text]:
    end = source.text.find("\n", start)
    for match in _WORD.finditer(source.text, start, end if end >= 0 else len(source.text)):
        if match["comment"] is not None:
            return
        text = match[0]
        quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
        yield Text.of(source, match.start() + quoted, match.end() - quoted)


def option(words: tuple[Text, ...], name: str) -> Text | None:
    """The word behind a keyword of a line."""
    for word, following in pairwise(words):
        if word.value == name:
            return following
    return None
