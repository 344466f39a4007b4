"""Tests that give a variable its default: `[ -z "$X" ] && X=y`, `[ -n "$X" ] || X=y`, and the same with `if`."""

from __future__ import annotations

from kvlint.formats.shell.expand import Assumption
from kvlint.formats.shell.state import Changes, State, Unset
from kvlint.formats.shell.text import place
from kvlint.formats.shell.tree import Block, Calculation, Literal, Node, Parameter, Pipeline, Simple, Word
from kvlint.source import HOLE, Text

_TESTS = frozenset({"[", "[[", "test"})
# Commands that are run to learn something: what `&&` joins to them depends on it.
_QUESTIONS = _TESTS | {"command", "which", "type", "hash", "grep", "false", "pgrep", "nvidia-smi"}


def asks(node: Node) -> bool:
    """Whether a command is there for its answer, so that what follows by `&&` may well not run."""
    if isinstance(node, Pipeline):
        return node.negated or asks(node.nodes[-1])
    if isinstance(node, Calculation):
        return True
    word = node.words[0] if isinstance(node, Simple) and node.words else None
    return isinstance(word, Word) and word.plain in _QUESTIONS


def guarded(node: Node, flag: str) -> Parameter | None:
    """The variable that `[ -z "$X" ]` asks for; `flag` is `-z`, or `-n` where the answer is wanted the other way round."""
    if isinstance(node, Block):
        return guarded(node.items[0].node, flag) if len(node.items) == 1 else None
    if not isinstance(node, Simple) or len(node.words) not in (3, 4):
        return None
    first, second, third = node.words[:3]
    if not (isinstance(first, Word) and isinstance(second, Word) and isinstance(third, Word)):
        return None
    if first.plain not in _TESTS or second.plain != flag:
        return None
    parts = [part for part in third.parts if not isinstance(part, Literal) or part.text.value]
    part = parts[0] if len(parts) == 1 else None
    if not isinstance(part, Parameter) or part.length or part.indirect or part.subscript is not None:
        return None
    is_empty = part.operator in ("", ":-", "-") and not (part.operand and part.operand.parts)
    return part if is_empty and part.name.isidentifier() else None


def given_default(guard: Parameter, changes: Changes, state: State) -> Assumption | None:
    """`[ -z "$X" ] && X=y`: what `: ${X:=y}` says.  Other changes are those of any branch and stay in `changes`."""
    given = changes.get(guard.name)
    if given is None or not isinstance(given.value, Text):
        return None
    held = state.get(guard.name)
    assumed = None
    if held is None:
        where = place(given.value)
        if guard.span is not None and where is not None:
            assumed = Assumption(guard.name, guard.span, where)
        state.put(guard.name, given)
    elif isinstance(held.value, Unset) or (isinstance(held.value, Text) and not held.value.value):
        state.put(guard.name, given)
    elif not isinstance(held.value, Text) or not held.value.value.strip(HOLE):
        return None
    del changes[guard.name]
    return assumed
