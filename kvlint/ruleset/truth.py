"""Truth with three values, and arithmetic on doubtful numbers.

    true     holds whatever the doubt
    false    is broken whatever the doubt
    None     neither: an `Unknown` is in the way, a range straddles the limit, or the condition does not apply

A setting that is absent has no value to compare: a comparison with it does not apply, and a rule that does not apply is silent.
Only `is None` and `is not None` say true or false of it.  In `and`, a part that is false decides alone, and an unknown part
outweighs one that does not apply; in `or`, a part that is true decides alone, and a part that does not apply keeps the whole
from being false, so nothing unknown beside it needs to be supplied.

Two ranges are compared as if they were independent, which can only widen the doubt.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

from kvlint.facts import Fact, Range, Unknown, high, low, nominal

NEGATED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_HOLDS = {**ORDER, "==": operator.eq, "!=": operator.ne}
_NUMBERS = frozenset((int, Fraction))
_PLAIN = frozenset((int, Fraction, str, bool))


class Term(NamedTuple):
    """The value of an operand; None with `unknown` where it cannot be known, None without where it is absent."""

    value: Any
    facts: tuple[Fact[Any], ...] = ()
    unknown: tuple[Unknown, ...] = ()


class Compared(NamedTuple):
    """Two sides of a comparison that decided, as they were compared; either may be a `Range`."""

    left: Any
    operator: str
    right: Any


class Verdict(NamedTuple):
    """`value`: what is certain; `nominal`: the same with every range at its most likely value.

    `facts` and `compared` decided, in the order of the expression; `unknown` kept it from being decided.
    """

    value: bool | None
    nominal: bool | None
    facts: tuple[Fact[Any], ...] = ()
    unknown: tuple[Unknown, ...] = ()
    compared: tuple[Compared, ...] = ()

    @property
    def straddles(self) -> bool:
        """Ranges lie on both sides of the limit, and nothing unknown is in the way."""
        return self.value is None and self.nominal is not None

    @property
    def applies(self) -> bool:
        """False where only something absent kept it from being decided."""
        return self.nominal is not None or bool(self.unknown)


def exact(value: Any) -> Any:
    """Decimals as they are written: 0.9 is 9/10, never the binary number beside it."""
    return _decimal(value) if type(value) is float and math.isfinite(value) else value


@lru_cache(maxsize=1024)
def _decimal(value: float) -> Fraction:
    return Fraction(repr(value))


_ABSENT = Term(None)


def term_of(found: Fact[Any] | Unknown | None) -> Term:
    if isinstance(found, Fact):
        return Term(exact(found.value), (found,))
    return Term(None, (), (found,)) if isinstance(found, Unknown) else _ABSENT


def reader(name: str, new: Callable[..., Term] = tuple.__new__) -> Callable[[Callable[[str], Any]], Term]:
    """What gives `term_of` the value of a name: most of what rules do, and so without a call of its own."""

    def read(lookup: Callable[[str], Any]) -> Term:
        found = lookup(name)
        if found is None:
            return _ABSENT
        if type(found) is not Fact:
            return term_of(found)
        value = found.value
        return new(Term, (exact(value) if type(value) is float else value, (found,), ()))

    return read


def origin_of(found: Fact[Any] | Unknown | None) -> Term:
    return Term(found.origin.kind, (found,)) if isinstance(found, Fact) else term_of(found)


_KINDS = {bool: "truth value", int: "number", float: "number", Fraction: "number", Range: "number", str: "text"}


def _kind(value: Any) -> str:
    """What may be compared with what: true and false are no numbers, and text has no order."""
    if isinstance(value, float) and not math.isfinite(value):
        return "number that is not finite"
    return _KINDS.get(type(value)) or next((_KINDS[each] for each in type(value).__mro__ if each in _KINDS), "list")


def _misfit(operation: str, *terms: Term) -> Term:
    kinds = " and ".join(f"a {_kind(term.value)}" for term in terms)
    reason = f"`{operation}` was asked of {kinds}"
    return Term(None, (), (Unknown("value", reason, "write a plain number"),))


SILENT = Verdict(None, None)


def _missing(*terms: Term) -> Verdict | None:
    """The verdict where a side has no value: unknown sides block, absent ones make it not apply."""
    unknown: tuple[Unknown, ...] = ()
    for term in terms:
        if term.value is None:
            if not term.unknown:
                return SILENT
            unknown += tuple(each for each in term.unknown if not any(each is known for known in unknown))
    return Verdict(None, None, (), unknown) if unknown else None


def truth(term: Term, negated: bool) -> Verdict:
    missing = _missing(term)
    if missing:
        return missing
    if not isinstance(term.value, bool):
        return Verdict(None, None, (), _misfit("true", term).unknown)
    return Verdict(term.value != negated, term.value != negated, term.facts)


def presence(term: Term, absent: bool, new: Callable[..., Verdict] = tuple.__new__) -> Verdict:
    value, facts, unknown = term
    if unknown:
        return Verdict(None, None, (), unknown)
    holds = (value is None) == absent
    return new(Verdict, (holds, holds, facts, (), ()))


def compare(a: Term, sign: str, b: Term, new: Callable[..., Any] = tuple.__new__) -> Verdict:
    left, right = a[0], b[0]
    kind = type(left)
    if kind is type(right) and kind in (_NUMBERS if sign in ORDER else _PLAIN):  # most comparisons: nothing is in doubt
        holds = _HOLDS[sign](left, right)
        found: Verdict = new(Verdict, (holds, holds, a[1] + b[1], (), (new(Compared, (left, sign, right)),)))
        return found
    missing = _missing(a, b)
    if missing:
        return missing
    if sign in ORDER and not _kind(a.value) == _kind(b.value) == "number":
        return Verdict(None, None, (), _misfit(sign, a, b).unknown)
    certain, possible, likely = (_ordered if sign in ORDER else _equal)(a.value, sign, b.value)
    value = True if certain else None if possible else False
    return Verdict(value, likely, (*a.facts, *b.facts), (), (Compared(a.value, sign, b.value),))


def _ordered(a: Any, sign: str, b: Any) -> tuple[bool, bool, bool]:
    """Whether the comparison is true at the least favourable ends, at the most favourable ones, at the nominal values."""
    holds = ORDER[sign]
    worst, best = (high, low) if sign in ("<", "<=") else (low, high)
    return holds(worst(a), best(b)), holds(best(a), worst(b)), holds(nominal(a), nominal(b))


def _equal(a: Any, sign: str, b: Any) -> tuple[bool, bool, bool]:
    if _kind(a) != _kind(b):
        certain = possible = likely = False
    elif isinstance(a, Range) or isinstance(b, Range):
        possible = bool(low(a) <= high(b) and low(b) <= high(a))
        certain = possible and low(a) == high(a) == low(b) == high(b)
        likely = bool(nominal(a) == nominal(b))
    else:
        certain = possible = likely = bool(a == b)
    return (certain, possible, likely) if sign == "==" else (not possible, not certain, not likely)


def arithmetic(operation: Callable[[Any, Any], Any], a: Term, b: Term) -> Term:
    missing = _missing(a, b)
    if missing:
        return Term(None, (), missing.unknown)
    name = getattr(operation, "__name__", "arithmetic")
    if not _kind(a.value) == _kind(b.value) == "number":
        return _misfit(name, a, b)
    if operation is operator.floordiv and low(b.value) <= 0 <= high(b.value):
        return Term(None, (), (Unknown("value", "a divisor may be zero", "write a divisor above zero"),))
    facts = (*a.facts, *b.facts)
    likely = operation(nominal(a.value), nominal(b.value))
    if not isinstance(a.value, Range) and not isinstance(b.value, Range):
        return Term(likely, facts)
    ends = [operation(x, y) for x, y in product((low(a.value), high(a.value)), (low(b.value), high(b.value)))]
    return Term(Range(min(ends), likely, max(ends)), facts)


def negate(verdict: Verdict) -> Verdict:
    """`not` of a verdict that is already given; what does not apply still does not."""
    value, likely = (None if known is None else not known for known in (verdict.value, verdict.nominal))
    return Verdict(value, likely, verdict.facts, verdict.unknown, verdict.compared)


def combine(parts: Iterable[Verdict], decisive: bool) -> Verdict:
    seen: list[Verdict] = []
    for part in parts:
        if part.value is decisive:
            return part
        seen.append(part)
    return settle(seen, decisive)


def settle(seen: list[Verdict], decisive: bool) -> Verdict:
    """Parts of which none decided."""
    undecided = [part for part in seen if part.value is None]
    if not undecided:
        return _merge(not decisive, not decisive, seen)
    for part in undecided:
        if part.nominal is decisive:
            return part
    if None not in [part.nominal for part in seen]:
        return _merge(None, not decisive, undecided)
    if decisive and not all(part.applies for part in undecided):
        return Verdict(None, None)
    return _merge(None, None, undecided)


def _merge(value: bool | None, likely: bool | None, parts: list[Verdict]) -> Verdict:
    """Of facts and unknowns each object once: they may be deep, and are told apart by identity."""
    facts: dict[int, Fact[Any]] = {}
    unknown: dict[int, Unknown] = {}
    compared: tuple[Compared, ...] = ()
    for part in parts:
        for fact in part.facts:
            facts[id(fact)] = fact
        for missing in part.unknown:
            unknown[id(missing)] = missing
        compared += part.compared
    return Verdict(value, likely, tuple(facts.values()), tuple(unknown.values()), compared)
