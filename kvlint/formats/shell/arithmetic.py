"""Integer arithmetic as the shell does it: 64 bits, C's operators, division towards zero."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from kvlint.patterns import regex

Lookup = Callable[[str], "int | None"]

_TOKEN = regex(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|\d+)(?!\w)|(?P<name>[A-Za-z_]\w*)|(?P<op>\*\*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>&|^~!?:()]))",
    re.ASCII,
)
_CHANGES = regex(r"(?:\+\+|--)\s*([A-Za-z_]\w*)|([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))", re.ASCII)
_LONGEST = 400
_DEEPEST = 8
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_DO: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: int(bool(a) or bool(b)),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<<": lambda a, b: a << (b & 63),
    ">>": lambda a, b: a >> (b & 63),
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: a - b * (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)),
}


class _Unknowable(Exception):
    pass


def changed_names(expression: str) -> tuple[str, ...]:
    """The variables that the expression assigns to."""
    return tuple(one or other for one, other in _CHANGES.findall(expression))


def evaluate(expression: str, lookup: Lookup) -> int | None:
    """The value; None where a name is not known, or where the expression does more than compute."""
    if len(expression) > _LONGEST or changed_names(expression):
        return None
    tokens = []
    at = 0
    expression = expression.rstrip()
    while at < len(expression):
        found = _TOKEN.match(expression, at)
        if found is None:
            return None
        tokens.append(found)
        at = found.end()
    try:
        return _Reader(tokens, lookup).all()
    except (_Unknowable, ZeroDivisionError):
        return None


class _Reader:
    def __init__(self, tokens: list[re.Match[str]], lookup: Lookup) -> None:
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.lookup = lookup

    def peek(self) -> str | None:
        return self.tokens[self.at].group("op") if self.at < len(self.tokens) else None

    def all(self) -> int:
        if not self.tokens:
            return 0
        value = self.choice()
        if self.at < len(self.tokens):
            raise _Unknowable
        return value

    def choice(self) -> int:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Unknowable
        value = self.level(0)
        if self.peek() == "?":
            self.at += 1
            yes = self.choice()
            self.take(":")
            no = self.choice()
            value = yes if value else no
        self.depth -= 1
        return value

    def level(self, number: int) -> int:
        if number == len(_LEVELS):
            return self.power()
        value = self.level(number + 1)
        while (sign := self.peek()) in _LEVELS[number]:
            self.at += 1
            value = _wrap(_DO[sign or ""](value, self.level(number + 1)))
        return value

    def power(self) -> int:
        base = self.unary()
        if self.peek() != "**":
            return base
        self.at += 1
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _Unknowable
        exponent = self.power()
        self.depth -= 1
        if exponent < 0:
            raise _Unknowable
        return _wrap(pow(base, exponent, 1 << 64))

    def unary(self) -> int:
        signs = []
        while self.peek() in ("-", "+", "!", "~"):
            signs.append(self.peek())
            self.at += 1
        value = self.atom()
        for sign in reversed(signs):
            value = _wrap({"-": -value, "+": value, "!": int(not value), "~": ~value}[sign or ""])
        return value

    def atom(self) -> int:
        if self.at >= len(self.tokens):
            raise _Unknowable
        token = self.tokens[self.at]
        self.at += 1
        if token.group("number"):
            return integer(token.group("number"))
        if token.group("name"):
            value = self.lookup(token.group("name"))
            if value is None:
                raise _Unknowable
            return value
        if token.group("op") != "(":
            raise _Unknowable
        value = self.choice()
        self.take(")")
        return value

    def take(self, sign: str) -> None:
        if self.peek() != sign:
            raise _Unknowable
        self.at += 1


def integer(text: str) -> int:
    """A constant: decimal, `0x` hexadecimal, or octal with a leading zero."""
    try:
        if text[:2] in ("0x", "0X"):
            return _wrap(int(text, 16))
        return _wrap(int(text, 8 if text[0] == "0" else 10))
    except ValueError:
        raise _Unknowable from None


def constant(text: str) -> int | None:
    """The integer that a variable's text spells."""
    text = text.strip()
    sign = -1 if text[:1] == "-" else 1
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not re.fullmatch(r"0[xX][0-9a-fA-F]+|\d{1,19}", digits, re.ASCII):
        return None
    try:
        return sign * integer(digits)
    except _Unknowable:
        return None


def _wrap(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
