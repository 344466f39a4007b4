"""Words and numbers as people read them.

A message is a text with `{expression}` or `{expression:form}` in it.  A number is printed by its unit, or by the form:

    {slot_bytes}               12.207 GiB      bytes in the largest binary unit
    {slot_bytes:GB}            13.107 GB       in a given unit: GiB MiB KiB GB MB
    {window}                   131,072         tokens and counts
    {memory_fraction:percent}  90%
    {streams:stream|streams}   2 streams       the number with its noun
    {slot_bytes - pool_bytes}  0.207 GiB       arithmetic, printed by the unit of its first name

No printed number lies about a comparison: two numbers of one message that differ print differently, and rounding never moves a
number onto or across one that it was compared with, or a ratio onto a whole number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any, Union

from kvlint.facts import Range, Unknown, nominal
from kvlint.patterns import regex
from kvlint.records import dataclass, field
from kvlint.ruleset import conditions
from kvlint.ruleset.conditions import Lookup, Operand
from kvlint.ruleset.truth import Compared
from kvlint.source import HOLE
from kvlint.units import BINARY, DECIMAL

DECIMALS = 3
SCALES: Mapping[str, int] = {**BINARY, **{unit: DECIMAL[unit] for unit in ("kB", "MB", "GB", "TB")}}
FORMS = frozenset({*SCALES, "bytes", "percent"})
LONGEST = 200

_PLACEHOLDER = regex(r"\{([^{}:]*)(?::([^{}]*))?\}")
_PLAIN = {"\n": r"\n", "\r": r"\r", "\t": r"\t", HOLE: "..."}


def clean(text: str, longest: int = LONGEST) -> str:
    """Text from a file, safe to print on one line: control characters, escape sequences, marks that turn the direction of
    writing and invisible characters are written out (`\\x1b`, `\\u202e`); what is longer than `longest` ends in `...`.
    """
    if len(text) > longest:
        text = text[:longest] + "..."
    if text.isprintable() and HOLE not in text:
        return text
    return "".join(c if c.isprintable() and c != HOLE else _PLAIN.get(c) or _escaped(c) for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@dataclass(frozen=True, slots=True)
class Placeholder:
    operand: Operand
    unit: str
    form: str


@dataclass(frozen=True, slots=True)
class Message:
    """A compiled template: fixed text and placeholders in turn."""

    parts: tuple[Union[str, Placeholder], ...]
    placeholders: tuple[Placeholder, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = tuple([part for part in self.parts if isinstance(part, Placeholder)])
        object.__setattr__(self, "placeholders", found)

    def render(self, lookup: Lookup, compared: Iterable[Compared] = ()) -> str:
        """The text for one subject; `compared` are the comparisons that no printed number may blur."""
        terms = [(part, part.operand(lookup)) for part in self.placeholders]
        borders = _Borders(
            *[term.value for _, term in terms], *[side for pair in compared for side in (pair[0], pair[2])]
        )
        printed = iter(
            show(next(iter(term.unknown), term.value), part.unit, part.form, borders) for part, term in terms
        )
        return "".join(part if isinstance(part, str) else next(printed) for part in self.parts)


def compile(template: str, units: Mapping[str, str]) -> Message:
    """Compile a template whose placeholders may name `units`; raises `ConditionError` for one that is not understood."""
    parts: list[Union[str, Placeholder]] = []
    at = 0
    for match in _PLACEHOLDER.finditer(template):
        parts.append(template[at : match.start()])
        parts.append(_placeholder(match[1].strip(), match[2] or "", units))
        at = match.end()
    parts.append(template[at:])
    stray = next((part for part in parts if isinstance(part, str) and ("{" in part or "}" in part)), None)
    if stray is not None:
        raise conditions.ConditionError(
            "a brace that opens or closes no placeholder", template, template.index(stray) + 1
        )
    return Message(tuple(part for part in parts if part != ""))


def _placeholder(expression: str, form: str, units: Mapping[str, str]) -> Placeholder:
    operand = conditions.compile_operand(expression, frozenset(units))
    if not operand.names:
        raise conditions.ConditionError("a placeholder without a name", expression)
    if form and form not in FORMS and "|" not in form:
        raise conditions.ConditionError(f"unknown form `{form}`", expression)
    unit = "text" if expression.endswith(conditions.ORIGIN) else units[operand.names[0]]
    return Placeholder(operand, unit, form)


NUMBERS = (int, float, Fraction, Range)


class _Borders:
    """Numbers that rounding may not reach or cross; most texts hold nothing that is rounded, and never ask for them."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def __iter__(self) -> Iterator[Any]:
        return (end for value in self._values for end in _ends(value))

    def beside(self, *values: Any) -> _Borders:
        return _Borders(*self._values, *values)


def show(value: Any, unit: str, form: str = "", borders: Iterable[Any] = ()) -> str:
    """A value in words.  `borders`: numbers in the value's own unit (bytes, tokens) that rounding may not reach or cross."""
    if value is None:
        return "unset"
    if isinstance(value, Unknown):
        return "unknown"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, NUMBERS):
        return _number(value, unit, form, borders if isinstance(borders, _Borders) else _Borders(*borders))
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(show(item, unit) for item in value) or "none"
    return clean(str(value))


def within(compared: Iterable[Compared]) -> str:
    """`within 4% of the limit`, for the first comparison in which a range lies on both sides; the right side is the limit.

    What is estimated at less than nothing, or at twice the limit and more, is near to nothing.
    """
    for pair in compared:
        if not (isinstance(pair.left, Range) or isinstance(pair.right, Range)):
            continue
        value, limit = _fraction(nominal(pair.left)), _fraction(nominal(pair.right))
        if limit:
            apart = ceil(abs(value - limit) / abs(limit) * 100)
            return f"within {apart}% of the limit" if apart < 100 else "by a rough estimate"
    return "at the limit"


def _ends(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool) or not isinstance(value, NUMBERS):
        return ()
    return (value.low, value.high) if isinstance(value, Range) else (value,)


def _fraction(value: Any) -> Fraction:
    if type(value) is Fraction:
        return value
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def _number(value: Any, unit: str, form: str, borders: _Borders) -> str:
    if "|" in form:
        one, many = form.split("|", 1)
        return f"{_number(value, unit, '', borders)} {one if value == 1 else many}"
    if isinstance(value, Range):
        if value.exact:
            return _number(value.low, unit, form, borders)
        if unit == "bytes" and _fraction(value.low) < 0 <= _fraction(value.high):
            return f"at most {_number(value.high, unit, form, borders.beside(value.low, value.high))}"
        ends = [_number(end, unit, form, borders.beside(value.low, value.high)) for end in (value.low, value.high)]
        return "between " + " and ".join(ends)
    scale, suffix = _scale(value, unit, form)
    top, bottom = _divided(value, scale)
    if top % bottom == 0:
        return f"{top // bottom:,}{suffix}"
    marks = [_divided(border, scale) for border in borders]
    if unit in ("ratio", "fraction"):
        marks += [_divided(floor(value), scale), _divided(ceil(value), scale)]
    return _digits((top, bottom), DECIMALS, marks) + suffix


def _scale(value: Any, unit: str, form: str) -> tuple[Fraction | int, str]:
    """What a number is divided by, and what is written behind it."""
    if form in SCALES:
        return SCALES[form], f" {form}"
    if form == "percent":
        return Fraction(1, 100), "%"
    if unit != "bytes" or form == "bytes":
        return 1, " bytes" if "bytes" in (unit, form) else ""
    size = floor(abs(value))
    fitting = [name for name in ("GiB", "MiB", "KiB") if size >= BINARY[name]]
    return (BINARY[fitting[0]], f" {fitting[0]}") if fitting else (1, " bytes")


Ratio = tuple[int, int]  # of two whole numbers, the second above zero: rounding needs no more, and no common divisors


def _divided(value: Any, scale: Fraction | int) -> Ratio:
    exact = value if isinstance(value, int) else _fraction(value)
    return exact.numerator * scale.denominator, exact.denominator * scale.numerator


def _digits(value: Ratio, decimals: int, marks: Iterable[Ratio]) -> str:
    """`value` with as many decimals as it has, at most `decimals`, and more only while it would print as one of the marks."""
    others = [mark for mark in marks if mark[0] * value[1] != value[0] * mark[1]]
    while True:
        rounded = _rounded(value, decimals)
        whole = rounded * value[1] == value[0] * 10**decimals
        if whole or all(_rounded(mark, decimals) != rounded for mark in others):
            break
        decimals += 1
    text = _decimal(rounded, decimals)
    return text.rstrip("0").rstrip(".") if whole and decimals else text


def _rounded(value: Ratio, decimals: int) -> int:
    """`value` × 10^decimals to the nearest whole number, of two the even one."""
    ten: int = 10**decimals
    whole, rest = divmod(value[0] * ten, value[1])
    over = 2 * rest - value[1]
    return whole + 1 if over > 0 or (over == 0 and whole % 2 == 1) else whole


def _decimal(scaled: int, decimals: int) -> str:
    whole, rest = divmod(abs(scaled), 10**decimals)
    return f"{'-' if scaled < 0 else ''}{whole:,}" + (f".{rest:0{decimals}}" if decimals else "")
