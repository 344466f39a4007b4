"""The bare graph of a document: what the parser's events say, before any text is mapped or tag resolved.

Offsets are into the text of the one document; what a scalar's characters are is left open.
"""

from __future__ import annotations

from typing import NamedTuple, Union

from kvlint.records import dataclass, field


class Leaf(NamedTuple):
    """A scalar.  `plain`: its tag is to be found from how it looks."""

    start: int
    end: int
    value: str
    style: str | None
    tag: str | None
    anchor: str | None
    plain: bool


@dataclass(eq=False, slots=True)
class Branch:
    """A mapping (children: key, value, key, value, …) or a sequence."""

    mapping: bool
    start: int
    column: int
    flow: bool
    tag: str | None
    anchor: str | None
    first: int  # how many nodes came before it
    end: int = -1
    height: int = 1
    size: int = 0
    children: list[Raw] = field(default_factory=list)
    open: list[Veiled] = field(default_factory=list)

    @property
    def wants_value(self) -> bool:
        return self.mapping and len(self.children) % 2 == 1


@dataclass(frozen=True, slots=True)
class Alias:
    start: int
    end: int
    target: Raw


@dataclass(frozen=True, slots=True)
class Veiled:
    """A place whose content cannot be known, or would be too much."""

    start: int
    end: int
    reason: str
    supply: str = ""


Raw = Union[Leaf, Branch, Alias, Veiled]


def end_of(raw: Raw) -> int:
    """Where the last character of a node stands; a block collection ends with its last child."""
    while isinstance(raw, Branch) and not raw.flow and raw.children:
        raw = raw.children[-1]
    return raw.end


def is_blank(raw: Raw) -> bool:
    """Whether nothing is written where a value could stand."""
    return isinstance(raw, Leaf) and not raw.value and raw.start == raw.end
