"""Arithmetic as Nix does it: 64-bit integers that divide towards zero, doubles, and no overflow that releases treat alike."""

from __future__ import annotations

from kvlint.formats.nix.coerce import finite, integer
from kvlint.formats.nix.values import Float, Int, Stuck, failed
from kvlint.source import Span, Text
from kvlint.tree import Opaque


def arithmetic(sign: str, a: Int | Float, b: Int | Float, span: Span) -> Int | Float:
    """`a sign b` for `+ - * /`; division by zero and overflow are stuck."""
    if sign == "/" and b.value == 0:
        raise failed(span, "division by zero")
    if isinstance(a, Int) and isinstance(b, Int):
        return integer(_whole(sign, a.value, b.value), span, a.text, b.text)
    try:
        return finite(_real(sign, float(a.value), float(b.value)), span, a.text, b.text)
    except OverflowError:
        raise Stuck(Opaque(span, "the number is out of the range of a double")) from None


def _whole(sign: str, a: int, b: int) -> int:
    if sign == "+":
        return a + b
    if sign == "-":
        return a - b
    if sign == "*":
        return a * b
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _real(sign: str, a: float, b: float) -> float:
    if sign == "+":
        return a + b
    if sign == "-":
        return a - b
    return a * b if sign == "*" else a / b


def negate(a: Int | Float, span: Span) -> Int | Float:
    """`-a`, which Nix reads as `0 - a`: there is no negative zero."""
    result = integer(-a.value, span, a.text) if isinstance(a, Int) else finite(0.0 - a.value, span, a.text)
    if span.text == result.text.value:
        literal = Text.of(span.source, span.start, span.end)
        return Int(result.value, literal) if isinstance(result, Int) else Float(result.value, literal)
    return result
