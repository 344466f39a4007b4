"""The place where a shell script is being read, and what was met on the way."""

from __future__ import annotations

from collections.abc import Callable

from kvlint.formats.shell.text import Slicer
from kvlint.formats.shell.tree import Block, Here
from kvlint.records import dataclass, field
from kvlint.source import Span, Text

# Levels of nesting that are followed.  Each costs a handful of Python frames.
DEEPEST = 30


class TooDeep(Exception):
    """The script nests deeper than is followed."""


@dataclass(frozen=True, slots=True)
class Comment:
    """`text` starts with its `#`.  `own_line`: nothing stands before it on its line.

    `continued`: it stands where a backslash asked for more of a command, so it cuts that command off.
    """

    text: Text
    own_line: bool
    continued: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """A place that no shell would read, passed over."""

    span: Span | None
    message: str


@dataclass(slots=True)
class Cursor:
    cut: Slicer
    block: Callable[[Cursor, frozenset[str]], Block]
    pos: int = 0
    depth: int = 0
    comments: list[Comment] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    pending: list[Here] = field(default_factory=list)

    @property
    def value(self) -> str:
        return self.cut.value

    def peek(self, width: int = 1) -> str:
        return self.cut.value[self.pos : self.pos + width]

    def at_end(self) -> bool:
        return self.pos >= len(self.cut.value)

    def span(self, start: int, end: int | None = None) -> Span | None:
        return self.cut.span(start, self.pos if end is None else end)

    def fault(self, start: int, message: str) -> None:
        self.faults.append(Fault(self.span(start, max(self.pos, start)), message))

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooDeep

    def inside(self, text: Text) -> Cursor:
        """A cursor on the text of a part that had to be unescaped first; what it meets is kept with the rest."""
        return Cursor(Slicer(text), self.block, 0, self.depth, self.comments, self.faults)
