"""Shell scripts as commands whose every character knows where it was written.

`commands` follows a POSIX shell or bash script, or the string of `sh -c`, as far as it can be known without running anything.
A variable that is assigned once, on every path, is known; what a branch, a loop, a command's output or the environment decides
is a hole.  A branch that a test of known variables rules out is not followed.  The default of `${X:-y}` counts as the value where
nothing in view sets X, and `Script.assumed` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Union

from kvlint.source import Text

if TYPE_CHECKING:
    from kvlint.formats.shell.cursor import Comment, Fault
    from kvlint.formats.shell.expand import Assumption
    from kvlint.formats.shell.interpolate import Interpolated, compose_interpolate, kubelet_expand
    from kvlint.formats.shell.programs import Invocation, invocation, program_name
    from kvlint.formats.shell.script import Assignment, Command, Heredoc, Script, assumed_in
    from kvlint.formats.shell.splitting import split
else:
    # Most runs split words and read no script: a name is imported when it is asked for.
    _HOMES = {
        **dict.fromkeys(("Comment", "Fault"), "cursor"),
        **dict.fromkeys(("Assumption",), "expand"),
        **dict.fromkeys(("Interpolated", "compose_interpolate", "kubelet_expand"), "interpolate"),
        **dict.fromkeys(("Invocation", "invocation", "program_name"), "programs"),
        **dict.fromkeys(("Assignment", "Command", "Heredoc", "Script", "assumed_in"), "script"),
        **dict.fromkeys(("split",), "splitting"),
    }

    def __getattr__(name):
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return found


__all__ = [
    "Assignment",
    "Assumption",
    "Command",
    "Comment",
    "Fault",
    "Heredoc",
    "Interpolated",
    "Invocation",
    "Script",
    "Sources",
    "assumed_in",
    "commands",
    "compose_interpolate",
    "invocation",
    "kubelet_expand",
    "program_name",
    "split",
]

# The text of the file that the word behind `source` names; None where it is not in view.
Sources = Callable[[Text], Union[Text, None]]
# Characters that expansions may make, for each of the script and at least.
_GROWTH = 16
_LEAST_BUDGET = 1 << 18
_LEAST_STEPS = 2000
_MOST_STEPS = 60_000  # a long script whose functions call each other walks the same lines again and again
_NO_VARIABLES: Mapping[str, Text] = MappingProxyType({})


def commands(
    text: Text,
    variables: Mapping[str, Text] = _NO_VARIABLES,
    *,
    positional: Sequence[Text] | Literal["unknown"] = "unknown",
    sources: Sources | None = None,
) -> Script:
    """The simple commands of a script, in the order in which they may run.

    `variables`: the environment, as far as it is known; a name that is not among them may still be set.
    `positional`: `$0` and the arguments.  `sources`: the text of a file that the script reads into itself.
    Never raises on any text; what cannot be read is in `Script.faults`.
    """
    from kvlint.formats.shell.expand import Ledger
    from kvlint.formats.shell.filled import filled
    from kvlint.formats.shell.record import Context, Record
    from kvlint.formats.shell.script import Script
    from kvlint.formats.shell.state import State
    from kvlint.formats.shell.walk import Walker

    text = filled(text)
    if isinstance(positional, str):
        state = State(variables, None)
    else:
        state = State(variables, positional[1:], positional[0] if positional else None)
    record = Record(
        Ledger(_GROWTH * len(text.value) + _LEAST_BUDGET), steps=_LEAST_STEPS + min(len(text.value), _MOST_STEPS)
    )
    walker = Walker(state, record)
    walker.sources = sources
    walker.script(text, Context())
    walker.uncalled()
    return Script(
        tuple(record.commands),
        tuple(dict.fromkeys(record.comments)),
        tuple(record.heredocs),
        tuple(record.assignments),
        tuple(dict.fromkeys(record.ledger.assumed)),
        tuple(dict.fromkeys(record.faults)),
        state.texts(),
        state.exported(),
    )
