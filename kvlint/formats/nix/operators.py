"""Operators, on values that may be unknown in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.formats.nix import outside
from kvlint.formats.nix.coerce import equal, less, to_text, truth
from kvlint.formats.nix.numbers import arithmetic, negate
from kvlint.formats.nix.sets import update
from kvlint.formats.nix.syntax import Binary, Unary
from kvlint.formats.nix.values import (
    Failed,
    Float,
    Int,
    Items,
    Outside,
    Path,
    Scope,
    Splice,
    Str,
    Stuck,
    Thunk,
    Value,
    opaque,
)
from kvlint.source import Span
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator


def binary(ev: Evaluator, expr: Binary, scope: Scope) -> Value:
    sign, span = expr.operator, expr.span
    if sign in ("&&", "||", "->"):
        return logic(ev, expr, scope)
    left, right = ev.delay(expr.left, scope), ev.delay(expr.right, scope)
    if sign == "//":
        return update(ev, left, right, span)
    if sign == "++":
        return concatenated(ev, [left, right], span)
    if sign in ("==", "!="):
        return truth(equal(ev, left, right, span) == (sign == "=="), span)
    if sign in ("<", ">="):
        return truth(less(ev, left, right, span) == (sign == "<"), span)
    if sign in (">", "<="):
        return truth(less(ev, right, left, span) == (sign == ">"), span)
    if sign == "+":
        return plus(ev, left, right, span)
    if sign in ("-", "*", "/"):
        return arithmetic(sign, ev.number_of(left), ev.number_of(right), span)
    raise Stuck(Opaque(span, f"the operator {sign} is not understood"))


def logic(ev: Evaluator, expr: Binary, scope: Scope) -> Value:
    left = ev.condition(expr.left, scope)
    if (expr.operator == "&&" and not left) or (expr.operator == "||" and left):
        return truth(left, expr.span)
    if expr.operator == "->" and not left:
        return truth(True, expr.span)
    return truth(ev.condition(expr.right, scope), expr.span)


def unary(ev: Evaluator, expr: Unary, scope: Scope) -> Value:
    if expr.operator == "!":
        return truth(not ev.condition(expr.operand, scope), expr.span)
    return negate(ev.number_of(ev.delay(expr.operand, scope)), expr.span)


def concatenated(ev: Evaluator, lists: list[Thunk], span: Span) -> Value:
    """Lists one after the other; one that is unknown may hold any number of items."""
    items: list[Thunk | Splice] = []
    known = False
    for thunk in lists:
        value = ev.either(ev.force(thunk))
        if isinstance(value, Items):
            items += value.items
            known = True
        elif isinstance(value, (Opaque, Outside)):
            items.append(Splice(opaque(value)))
        else:
            raise ev.wrong(value, "list", span)
    ev.spend(1 + len(items) // 8)
    if not known and lists:
        first = items[0]
        assert isinstance(first, Splice)
        raise Stuck(opaque(first.unknown))
    return Items(tuple(items))


def plus(ev: Evaluator, left: Thunk, right: Thunk, span: Span) -> Value:
    a = ev.either(ev.force(left))
    b = ev.either(ev.force(right))
    if isinstance(a, (Int, Float)):
        return arithmetic("+", a, ev.number_of(right), span)
    if isinstance(a, Path):
        return outside.longer_path(a, to_text(ev, b, span, copy=False), span)
    for side in (a, b):
        if isinstance(side, Failed):
            raise Stuck(side)
    if isinstance(a, (Opaque, Outside)) and not isinstance(b, Str):
        raise Stuck(opaque(a))
    texts = [to_text(ev, a, span, thunk=left), to_text(ev, b, span, thunk=right)]
    return Str(ev.joined(texts, span))
