"""Coefficients: figures that were measured or chosen, each with its reason; a project's own win."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from kvlint.compiled import load
from kvlint.facts import Coefficient, Fact, Range, Unknown, Value


@cache
def bundled() -> Mapping[str, Mapping[str, Any]]:
    data: Mapping[str, Mapping[str, Any]] = load("coefficients.json")
    return data


class Coefficients:
    """`get(name)` gives a fact whose value is a whole number, a `Fraction`, or a `Range` of them."""

    def __init__(self, own: Mapping[str, Mapping[str, Fact[Any]]]) -> None:
        self._own = own
        self.memo: dict[Any, Any] = {}  # what others worked out of these alone
        self._found: dict[str, Value[Any]] = {}

    def get(self, name: str) -> Value[Any]:
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def value(self, name: str) -> Any:
        """The bare value; KeyError for a coefficient that does not exist."""
        found = self.get(name)
        if isinstance(found, Unknown):
            raise KeyError(name)
        return found.value

    def _find(self, name: str) -> Value[Any]:
        own = self._own.get(name)
        if own is not None:
            values = {key: fact.value for key, fact in own.items()}
            return Fact(_number(values), own["value"].origin if "value" in own else Coefficient(name, values["reason"]))
        row = bundled().get(name)
        if row is None:
            return Unknown(f"coefficient.{name}", f"there is no coefficient {name}", f"[coefficients] {name}")
        return Fact(_number(row), Coefficient(name, row["reason"]))


def _number(row: Mapping[str, Any]) -> Any:
    if "value" in row:
        return _exact(row["value"])
    return Range(_exact(row["low"]), _exact(row.get("nominal", row["low"])), _exact(row["high"]))


def _exact(value: Any) -> int | Fraction:
    number = Fraction(str(value)) if not isinstance(value, Fraction) else value
    return int(number) if number.denominator == 1 else number
