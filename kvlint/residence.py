"""Which of several servers may be loaded at the same time, where one program loads and unloads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Union

from kvlint.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """All of these may be loaded at once."""

    parts: tuple[Residence, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """One of these at a time."""

    parts: tuple[Residence, ...]


Residence = Union[str, Together, Either]


def largest(residence: Residence, weight: Callable[[str], int]) -> frozenset[str]:
    """The names that weigh most together among those that may be loaded at once; names of no weight are left out."""
    return _largest(residence, weight, {})


def _largest(residence: Residence, weight: Callable[[str], int], seen: dict[int, frozenset[str]]) -> frozenset[str]:
    if isinstance(residence, str):
        return frozenset((residence,)) if weight(residence) > 0 else frozenset()
    if id(residence) not in seen:
        found = [_largest(part, weight, seen) for part in residence.parts]
        together = isinstance(residence, Together)
        chosen = (
            frozenset().union(*found)
            if together
            else max(found, key=lambda names: sum(map(weight, names)), default=frozenset())
        )
        seen[id(residence)] = chosen
    return seen[id(residence)]
