"""What reading a shell script gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kvlint.command import Opening
from kvlint.records import dataclass
from kvlint.source import Span, Text

if TYPE_CHECKING:
    from kvlint.formats.shell.cursor import Comment, Fault
    from kvlint.formats.shell.expand import Assumption


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command as it may run: words expanded, redirections dropped.

    `env`: what is exported at that point, assignments in front of the command included; `env_open`: where more may have been
    exported unseen.  `conditional`: whether it runs depends on a branch, a loop, `||`, or a function that nothing in view calls.
    `nested`: it runs inside `$(…)`, so that its output and not its work is wanted.  `background`: followed by `&`.
    """

    words: tuple[Text, ...]
    env: Mapping[str, Text]
    span: Span | None
    conditional: bool = False
    nested: bool = False
    background: bool = False
    env_open: tuple[Opening, ...] = ()


@dataclass(frozen=True, slots=True)
class Heredoc:
    """A here-document: what its command is given to read.  `target`: the file its command's output goes to.

    `literal`: the delimiter was quoted, so `$` in the body stands for itself.
    """

    command: tuple[Text, ...]
    delimiter: str
    body: Text
    target: Text | None = None
    literal: bool = False
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable that the script sets.  `value` is None for an array.  `span`: from the name to the end of the value."""

    name: str
    value: Text | None
    span: Span | None
    exported: bool = False
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """`variables`: the plain variables at the end; `exported`: those of them that a process is given."""

    commands: tuple[Command, ...] = ()
    comments: tuple[Comment, ...] = ()
    heredocs: tuple[Heredoc, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    assumed: tuple[Assumption, ...] = ()
    faults: tuple[Fault, ...] = ()
    variables: Mapping[str, Text] | None = None
    exported: Mapping[str, Text] | None = None

    def assumed_in(self, text: Text) -> tuple[str, ...]:
        """The variables whose defaults the text rests on: it reads otherwise where one of them is set from outside."""
        return assumed_in(text, self.assumed)


def assumed_in(text: Text, assumed: tuple[Assumption, ...]) -> tuple[str, ...]:
    """The names among `assumed` whose default, or a use written inside it, the text comes from."""
    places = [piece.span for piece in text.pieces]
    places += [use for piece in text.pieces for use in piece.via]
    found = [one.name for one in assumed if any(one.default.covers(where) for where in places)]
    return tuple(dict.fromkeys(found))
