"""What a variable holds after an assignment: `x=y`, `x+=y`, `x=(…)`, `x[i]=y`."""

from __future__ import annotations

from kvlint.formats.shell.expand import Expander
from kvlint.formats.shell.state import State, Unset, Value, array, open_array
from kvlint.formats.shell.text import joined, unknown
from kvlint.formats.shell.tree import Assign
from kvlint.source import Text


def assigned_value(assign: Assign, state: State, expander: Expander) -> Value:
    """The new value of the name; of what is added at a place that is not followed, an array that may hold more."""
    old = state.get(assign.name)
    held = old.value if old is not None else None
    if assign.words is not None:
        items: tuple[Text, ...] = tuple(text for word in assign.words for text in expander.words(word))
        if assign.keyed:
            return open_array(assign.name, (), assign.span)
        if not assign.append:
            return items
        before = array(held) if held is not None else open_array(assign.name, (), assign.span)
        return (*before, *items)
    text = expander.text(assign.value) if assign.value is not None else Text("", (), (), assign.span)
    if assign.subscript is not None:
        return open_array(assign.name, (), assign.span)
    if not assign.append:
        return text
    if isinstance(held, tuple):
        return open_array(assign.name, (), assign.span)
    if isinstance(held, Unset):
        return text
    base = held if held is not None else unknown(assign.span, f"{assign.name} is not set in this script")
    return joined([base, text])
