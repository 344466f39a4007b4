"""Records do what standard dataclasses do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from kvlint import records
from kvlint.facts import Assumed, Fact
from kvlint.source import Source


def pair(**options: Any) -> list[Any]:
    """The same class, made by the standard decorator and by ours."""

    def make(decorator: Any, field: Any) -> Any:
        class Point:
            x: int
            y: int = 2
            seen: list[int] = field(default_factory=list, compare=False, repr=False)
            kind = "point"

        return decorator(**options, slots=True)(Point)

    return [make(dataclasses.dataclass, dataclasses.field), make(records.dataclass, records.field)]


def outcome(act: Any) -> Any:
    try:
        return act()
    except Exception as error:
        return type(error), str(error).replace("pair.<locals>.make.<locals>.", "")


ACTIONS = {
    "shown": lambda cls: repr(cls(1, seen=[3])),
    "equal": lambda cls: (cls(1) == cls(1, 2, [4]), cls(1) == cls(2), cls(1) == 1),
    "hashed": lambda cls: len({hash(each) for each in [cls(1), cls(1, 2)]}),
    "factory": lambda cls: cls(1).seen is cls(1).seen,
    "too few": lambda cls: cls(),
    "too many": lambda cls: cls(1, 2, [], 4),
    "misspelt": lambda cls: cls(1, z=2),
    "set": lambda cls: setattr(cls(1), "x", 5),
    "deleted": lambda cls: delattr(cls(1), "x"),
    "no such slot": lambda cls: setattr(cls(1), "z", 5),
    "matched": lambda cls: cls.__match_args__,
    "slots": lambda cls: (cls.__slots__, hasattr(cls(1), "__dict__")),
    "fields": lambda cls: [(each.name, each.init, each.compare) for each in dataclasses.fields(cls)],
    "replaced": lambda cls: dataclasses.replace(cls(1), y=7).y,
    "as a dictionary": lambda cls: dataclasses.asdict(cls(1)),
    "copied": lambda cls: copy.copy(cls(1, 5)).y,
}


@pytest.mark.parametrize("options", [{"frozen": True}, {}, {"eq": False}, {"frozen": True, "eq": False}], ids=str)
@pytest.mark.parametrize("name", list(ACTIONS))
def test_a_record_does_what_a_dataclass_does(name: str, options: dict[str, bool]) -> None:
    standard_class, our_class = pair(**options)
    standard = outcome(lambda: ACTIONS[name](standard_class))
    for _ in range(3):  # the first records are filled in another way than those that follow
        compared(name, options, standard, outcome(lambda: ACTIONS[name](our_class)))


def compared(name: str, options: dict[str, bool], standard: Any, ours: Any) -> None:
    if name in ("set", "deleted") and options.get("frozen"):
        assert standard[0] is dataclasses.FrozenInstanceError
        assert ours is None  # type checkers refuse it, and nothing does at run time
    elif name == "no such slot" and options.get("frozen"):
        assert issubclass(ours[0], AttributeError)
    else:
        assert ours == standard


@records.dataclass(eq=False, slots=True)
class Node:
    start: int


@records.dataclass(eq=False, slots=True)
class Leaf(Node):
    text: str = ""


@records.dataclass(frozen=True, slots=True)
class Checked:
    value: int

    def __post_init__(self) -> None:
        if self.value < 0:
            raise ValueError("negative")


def test_a_record_inherits_fields_and_runs_its_own_check() -> None:
    leaf = Leaf(3, "x")
    assert (leaf.start, leaf.text, Leaf.__slots__) == (3, "x", ("text",))
    assert isinstance(leaf, Node)
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def test_a_record_is_changed_in_a_copy_and_pickled() -> None:
    fact = Fact(3, Assumed("so"))
    assert records.replace(fact, value=4) == Fact(4, Assumed("so"))
    assert pickle.loads(pickle.dumps(fact)) == fact
    assert [each.name for each in records.fields(Fact)] == ["value", "origin"]


def test_two_sources_are_the_same_only_if_they_are_one_object() -> None:
    assert Source("a", "x") != Source("a", "x")
