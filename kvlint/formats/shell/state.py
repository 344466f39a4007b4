"""What a shell knows at one place of its script: variables, positional parameters, and how branches come together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Union

from kvlint.formats.shell.text import joined, place, unknown
from kvlint.records import dataclass
from kvlint.source import Span, Text

Array = tuple[Text, ...]


class Unset:
    """Certainly without a value, as after `unset`."""


UNSET = Unset()
Value = Union[Text, Array, Unset]
POSITIONAL = "@"  # kept with the variables: `$0` is apart
ALL_EXPORT = "-a"


@dataclass(frozen=True, slots=True)
class Variable:
    value: Value
    exported: bool = False


Changes = dict[str, "Variable | None"]


class State:
    """Variables by name.  A name that is not there comes from the environment, or from nowhere: that is not known."""

    def __init__(
        self, variables: Mapping[str, Text], positional: Sequence[Text] | None, name: Text | None = None
    ) -> None:
        self._variables: dict[str, Variable] = {key: Variable(text, True) for key, text in variables.items()}
        if positional is not None:
            self._variables[POSITIONAL] = Variable(tuple(positional))
        self.name = name
        self._journals: list[Changes] = []
        self._exported: Mapping[str, Text] | None = None

    def get(self, name: str) -> Variable | None:
        return self._variables.get(name)

    @property
    def positional(self) -> Array | None:
        found = self._variables.get(POSITIONAL)
        return found.value if found is not None and isinstance(found.value, tuple) else None

    def set(self, name: str, value: Value, exported: bool | None = None) -> None:
        old = self._variables.get(name)
        if exported is None:
            exported = (old is not None and old.exported) or ALL_EXPORT in self._variables
        self.put(name, Variable(value, exported))

    def put(self, name: str, variable: Variable | None) -> None:
        """`variable` None: not known whether the name is set."""
        old = self._variables.get(name)
        if self._journals:
            self._journals[-1].setdefault(name, old)
        if (old is not None and old.exported) or (variable is not None and variable.exported):
            self._exported = None
        if variable is None:
            self._variables.pop(name, None)
        else:
            self._variables[name] = variable

    def exported(self) -> Mapping[str, Text]:
        """What a process started here is given.  Arrays are not exported."""
        if self._exported is None:
            found = {k: v.value for k, v in self._variables.items() if v.exported and isinstance(v.value, Text)}
            self._exported = MappingProxyType(found)
        return self._exported

    def variables(self) -> dict[str, Variable]:
        """All that is known now."""
        return dict(self._variables)

    def texts(self) -> dict[str, Text]:
        """The plain variables that are set."""
        return {k: v.value for k, v in self._variables.items() if isinstance(v.value, Text) and k != ALL_EXPORT}

    @contextmanager
    def branch(self) -> Iterator[Changes]:
        """Changes made inside are undone at the end and handed over: name to what it was inside."""
        self._journals.append({})
        changes: Changes = {}
        try:
            yield changes
        finally:
            journal = self._journals.pop()
            for name, old in journal.items():
                changes[name] = self._variables.get(name)
                journals, self._journals = self._journals, []
                self.put(name, old)
                self._journals = journals

    def meet(self, branches: Sequence[Changes], whole: bool) -> None:
        """Go on where several branches may have been taken; `whole`: one of them certainly was."""
        for name in dict.fromkeys(name for changes in branches for name in changes):
            old = self._variables.get(name)
            ends = [changes.get(name, old) for changes in branches]
            if not whole:
                ends.insert(0, old)
            merged = ends[0]
            for end in ends[1:]:
                merged = _meet(name, merged, end)
            self.put(name, merged)


def _meet(name: str, one: Variable | None, other: Variable | None) -> Variable | None:
    if one == other:
        return one
    exported = (one is not None and one.exported) or (other is not None and other.exported)
    if name == POSITIONAL:
        return None
    first, second = (end.value if end is not None else UNSET for end in (one, other))
    if isinstance(first, tuple) or isinstance(second, tuple):
        return Variable(_meet_arrays(name, array(first), array(second)), exported)
    if isinstance(first, Unset) and isinstance(second, Unset):
        return None
    where = _place(second) or _place(first)
    if isinstance(first, Text) and isinstance(second, Text) and first.value and begins(second, first):
        more = second.slice(len(first.value))
        return Variable(grown(name, first, place(more), more.value[0].isspace()), exported)
    return Variable(unknown(where, f"{name} depends on a branch of the script", f"the value of {name}"), exported)


def begins(text: Text, start: Text) -> bool:
    """Whether `text` is `start` with more behind it, not only spelled alike but from the same places."""
    if len(text.value) <= len(start.value) or not text.value.startswith(start.value):
        return False
    head = text.slice(0, len(start.value))
    return [p.span for p in head.pieces] == [p.span for p in start.pieces]


def grown(name: str, text: Text, where: Span | None, apart: bool) -> Text:
    """`text` with something that is not known behind it; `apart`: after a blank."""
    more = unknown(where, f"{name} may have grown in a branch of the script", f"the value of {name}", splice=True)
    return joined([text, Text(" "), more] if apart else [text, more])


def open_array(name: str, items: Array, where: Span | None) -> Array:
    reason = f"{name} may hold more, from a branch of the script"
    return (*items, unknown(where, reason, f"the elements of {name}", splice=True))


def _meet_arrays(name: str, one: Array, other: Array) -> Array:
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    rest = (*one[same:], *other[same:])
    return open_array(name, one[:same], place(rest[0])) if rest else one


def array(value: Value) -> Array:
    """The elements of a variable: a plain one is its own only element."""
    if isinstance(value, Unset):
        return ()
    return value if isinstance(value, tuple) else (value,)


def _place(value: Value) -> Span | None:
    if isinstance(value, tuple):
        return place(value[0]) if value else None
    return place(value) if isinstance(value, Text) else None


def widened(name: str, variable: Variable | None, appends: bool, where: Span | None) -> Variable:
    """What a name may hold inside a loop that changes it; `appends`: the loop only ever adds at its end."""
    exported = variable is not None and variable.exported
    value = variable.value if variable is not None else UNSET
    if appends and isinstance(value, tuple):
        return Variable(open_array(name, value, where), exported)
    if appends and isinstance(value, Text):
        return Variable(grown(name, value, where, True), exported)
    reason = f"{name} is changed by a loop"
    return Variable(unknown(where, reason, f"the value of {name}", splice=True), exported)
