"""What every format's reader gives: documents with their places, comments, and what could not be read."""

from __future__ import annotations

from kvlint.records import dataclass
from kvlint.source import Source, Span
from kvlint.tree import Node

# No configuration that people write nests deeper; anything that does is refused before it can exhaust a stack.
MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a document, or a line of it, is not understood, and where."""

    message: str
    span: Span


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment with its marker (`# …`, `// …`, `<!-- … -->`).  `own_line`: nothing else stands before it on its line."""

    span: Span
    text: str
    own_line: bool

    @property
    def line(self) -> int:
        return self.span.line


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file.  `node` is None where it is empty or could not be read; then `problem` says why.

    `comments` holds those that mention `kvlint:`.
    """

    node: Node | None
    problem: Unreadable | None
    span: Span
    comments: tuple[Comment, ...] = ()


def comment_at(source: Source, start: int, end: int, before: str = " \t\ufeff") -> Comment:
    """The comment that stands at `start:end`; characters of `before` on its line leave it on a line of its own."""
    text = source.text
    at = start
    while at > 0 and text[at - 1] in before:
        at -= 1
    return Comment(source.span(start, end), text[start:end], at == 0 or text[at - 1] in "\r\n")


def is_directive(comment: str) -> bool:
    return "kvlint:" in comment
