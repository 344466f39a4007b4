"""What a walk through a script has met so far, and what holds where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.records import dataclass, field, replace

if TYPE_CHECKING:
    from kvlint.formats.shell.cursor import Comment, Fault
    from kvlint.formats.shell.expand import Ledger
    from kvlint.formats.shell.script import Assignment, Command, Heredoc


@dataclass(slots=True)
class Record:
    """What was met, over the script and the scripts inside it."""

    ledger: Ledger
    commands: list[Command] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    heredocs: list[Heredoc] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    steps: int = 4000  # commands that may still be followed


@dataclass(frozen=True, slots=True)
class Context:
    """`depth`: how many scripts, branches and functions lie around; the others as of a `Command`."""

    conditional: bool = False
    nested: bool = False
    background: bool = False
    depth: int = 0

    def branch(self) -> Context:
        return replace(self, conditional=True, depth=self.depth + 1)

    def inside(self) -> Context:
        return replace(self, depth=self.depth + 1)
