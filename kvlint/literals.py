"""Literals that claim to equal, or to bound, a derived value: compared in the literal's own unit and printed precision."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from kvlint.facts import Range
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import Text
from kvlint.units import UNITS

_NUMBER = regex(
    r"(?P<sign>-?)(?P<digits>[0-9][0-9_,]*(?:\.[0-9]+)?)(?P<gap>\s*)(?P<unit>KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB|Ki|Mi|Gi|Ti|%)?"
)
# Kubernetes spells binary units without the B.
SHORT = {"Ki": UNITS["KiB"], "Mi": UNITS["MiB"], "Gi": UNITS["GiB"], "Ti": UNITS["TiB"]}


@dataclass(frozen=True, slots=True)
class Literal:
    """A number as written: `value` in bytes or tokens, `step` one unit of its last printed digit, `text` its place."""

    value: Fraction
    step: Fraction
    unit: str
    decimals: int
    grouped: str
    text: Text

    def spelled(self, exact: Fraction) -> str:
        """Another value in this literal's unit, precision and grouping."""
        scale = factor(self.unit)
        rounded = round(exact / scale, self.decimals)
        whole, rest = divmod(abs(int(rounded * 10**self.decimals)), 10**self.decimals)
        digits = f"{whole:,}".replace(",", self.grouped)
        if self.decimals:
            digits += f".{rest:0{self.decimals}}"
        digits = "-" + digits if rounded < 0 else digits
        tail = self.text.value[len(self._number()) :]
        return digits + tail

    def _number(self) -> str:
        match = _NUMBER.match(self.text.value)
        return match["sign"] + match["digits"] if match else ""

    def equals(self, exact: Any) -> bool:
        """Whether `exact`, printed as this literal is, would read the same.  A range cannot be equalled."""
        if isinstance(exact, Range):
            return False
        scale = factor(self.unit)
        return round(Fraction(exact) / scale, self.decimals) * scale == self.value

    def bounds(self, exact: Any) -> bool:
        """Whether the derived value is at least the literal: `literal <= quantity`, at the value's lower end."""
        low = exact.low if isinstance(exact, Range) else exact
        return self.value <= Fraction(low)


def factor(unit: str) -> Fraction:
    if unit == "%":
        return Fraction(1, 100)
    return Fraction(SHORT.get(unit, UNITS.get(unit, 1)))


def read(text: Text) -> Literal | None:
    """The number that a text is, quotes and blanks around it aside; None where it is none."""
    inner = text.value.strip().strip("\"'")
    start = text.value.find(inner) if inner else 0
    match = _NUMBER.fullmatch(inner)
    if not inner or match is None:
        return None
    digits = match["digits"]
    grouped = "_" if "_" in digits else "," if "," in digits else ""
    plain = digits.replace("_", "").replace(",", "")
    decimals = len(plain.partition(".")[2])
    unit = match["unit"] or ""
    value = Fraction(match["sign"] + plain) * factor(unit)
    return Literal(value, factor(unit) / 10**decimals, unit, decimals, grouped, text.slice(start, start + len(inner)))


def on_line(line: Text) -> Iterator[Literal]:
    """Every number on a line of text, in order, with its place."""
    for match in _NUMBER.finditer(line.value):
        before = line.value[match.start() - 1] if match.start() else " "
        after = line.value[match.end()] if match.end() < len(line.value) else " "
        if before.isalnum() or before in "._-/" or after.isalnum() or after in "_":
            continue
        found = read(line.slice(*match.span()))
        if found is not None:
            yield found
