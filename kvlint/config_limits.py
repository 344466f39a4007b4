"""What the values of `kvlint.toml` may be: bounds of each key, and values that cannot stand side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from kvlint.facts import Fact, Written
from kvlint.records import dataclass

# No device, file or conversation comes near; what is longer is a slip, and slow to reckon with.
MOST_BYTES = 2**60
MOST_COUNT = 10**12
# A number without a unit is bytes: `memory = 128` is a slip, as no device has less than this.
LEAST_MEMORY = 2**20


@dataclass(frozen=True, slots=True)
class Refused:
    """`key`: whose value cannot be, None for the table as a whole."""

    key: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """`above` and `below` are excluded, `least` and `most` included."""

    least: Fraction | int | None = None
    above: Fraction | int | None = None
    most: Fraction | int | None = None
    below: Fraction | int | None = None
    whole: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Bounds:
        """The bounds that a coefficient's data states."""
        ends = {name: Fraction(row[name]) for name in ("least", "above", "most", "below") if name in row}
        return cls(**ends, whole=bool(row.get("whole")))

    def refusal(self, value: Any) -> str | None:
        """Why a number is none of these."""
        if self.whole and Fraction(value).denominator != 1:
            return "expected a whole number"
        if self.least is not None and value < self.least:
            unit = " bytes; a number without a unit is bytes" if self.least == LEAST_MEMORY else ""
            return f"must be at least {_said(self.least)}{unit}"
        if self.above is not None and value <= self.above:
            return f"must be above {_said(self.above)}"
        if self.most is not None and value > self.most:
            return f"must be at most {_said(self.most)}"
        if self.below is not None and value >= self.below:
            return f"must be below {_said(self.below)}"
        return None


# By the kind of value that a key holds, as the tables of `kvlint.config` have it.
BOUNDS: dict[str, Bounds] = {
    "count": Bounds(least=1, most=MOST_COUNT, whole=True),
    "tokens": Bounds(least=1, most=MOST_COUNT, whole=True),
    "prefix": Bounds(least=0, most=MOST_COUNT, whole=True),
    "size": Bounds(above=0, most=MOST_BYTES),
    "memory": Bounds(least=LEAST_MEMORY, most=MOST_BYTES),
    "remainder": Bounds(least=0, most=MOST_BYTES),
    "capability": Bounds(least=1, below=20),
    "floor": Bounds(least=0, most=MOST_COUNT),
}

# Of two values in one table the first cannot exceed the second.
_ORDERED: dict[str, tuple[tuple[str, str], ...]] = {
    "hardware": (
        ("budget", "memory"),
        ("available_kv", "memory"),
        ("free", "memory"),
        ("loaded_free", "memory"),
        ("loaded_free", "free"),
    ),
    "workload": (("tokens", "window"), ("shared_prefix", "window")),
}
_EITHER: dict[str, tuple[str, str]] = {"parity": ("equal", "at_most"), "derived": ("is", "at_most")}


def in_table(kind: str, values: Mapping[str, Fact[Any]]) -> Refused | None:
    """What of a table's values cannot stand beside the others."""
    for small, large in _ORDERED.get(kind, ()):
        if small in values and large in values and values[small].value > values[large].value:
            return Refused(small, f"{small} cannot exceed {large}, which is {_written(values[large])}")
    if kind in _EITHER:
        one, other = _EITHER[kind]
        if one in values and other in values:
            return Refused(other, f"[[{kind}]] takes {one} or {other}, not both")
    if kind == "engine" and "version" in values:
        from kvlint.engines.versions import contradiction

        why = contradiction(values["version"].value)
        return Refused("version", why) if why else None
    return None


def in_coefficient(row: Mapping[str, Any], values: Mapping[str, Fact[Any]]) -> Refused | None:
    """What a coefficient cannot be: `row` is what the data says of it."""
    if "value" in values:
        beside = next((key for key in ("low", "nominal", "high") if key in values), None)
        if beside:
            return Refused(beside, f"a coefficient has a value, or low and high: not value and {beside}")
    elif "low" not in values or "high" not in values:
        return Refused(None, "a coefficient needs a value, or low and high")
    bounds = Bounds.of(row)
    for key, fact in _numbers(values):
        why = bounds.refusal(fact.value)
        if why:
            return Refused(key, why)
    ordered = [(key, values[key].value) for key in ("low", "nominal", "high") if key in values]
    for (small, low), (large, high) in pairwise(ordered):
        if low > high:
            return Refused(small, f"{small} cannot exceed {large}, which is {_said(high)}")
    return None


def _numbers(values: Mapping[str, Fact[Any]]) -> Iterator[tuple[str, Fact[Any]]]:
    return ((key, fact) for key, fact in values.items() if key != "reason")


def _written(fact: Fact[Any]) -> str:
    """A value as the file has it."""
    return fact.origin.span.text.strip("\"'") if isinstance(fact.origin, Written) else str(fact.value)


def _said(number: Fraction | int) -> str:
    exact = Fraction(number)
    return f"{exact.numerator:,}" if exact.denominator == 1 else f"{float(exact):g}"
