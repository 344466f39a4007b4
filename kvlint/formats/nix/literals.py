"""Literals: numbers, strings with their interpolations, paths, lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.formats.nix import outside
from kvlint.formats.nix.coerce import to_text
from kvlint.formats.nix.syntax import Interpolation, ListLiteral, Number, PathLiteral, String
from kvlint.formats.nix.values import Exhausted, Float, Int, Items, Outside, Scope, Str, Stuck, Value, hole
from kvlint.source import Text

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator


def literal(ev: Evaluator, expr: Number, scope: Scope) -> Value:
    value = ev.constants.get(id(expr))
    if value is None:
        text = Text.of(expr.source, expr.start, expr.end)
        if isinstance(expr.value, int):
            digits = str(expr.value)
            value = Int(expr.value, text if text.value == digits else Text.at(digits, expr.span))
        else:
            value = Float(expr.value, text)
        ev.constants[id(expr)] = value
    return value


def string_literal(ev: Evaluator, expr: String, scope: Scope) -> Value:
    parts = expr.parts
    if len(parts) == 1 and isinstance(parts[0], Text):
        return Str(parts[0] if parts[0].value else Text("", (), (), expr.span))
    return Str(ev.joined([part_text(ev, part, scope) for part in parts], expr.span))


def part_text(ev: Evaluator, part: Text | Interpolation, scope: Scope, *, copy: bool = True) -> Text:
    if isinstance(part, Text):
        return part
    thunk = ev.delay(part.body, scope)
    value = ev.either(ev.force(thunk))
    try:
        text = to_text(ev, value, part.span, copy=copy, thunk=thunk)
    except Exhausted:
        raise
    except Stuck as stuck:
        text = hole(part.span, stuck.unknown, splice=False)
    return text.seen_from(part.span)


def path_literal(ev: Evaluator, expr: PathLiteral, scope: Scope) -> Value:
    first = expr.parts[0] if expr.parts else None
    if expr.search and isinstance(first, Text):
        return Outside(expr.span, (first.value,))
    text = ev.joined([part_text(ev, part, scope, copy=False) for part in expr.parts], expr.span)
    return outside.path(expr.source, text, expr.span)


def list_literal(ev: Evaluator, expr: ListLiteral, scope: Scope) -> Value:
    return Items(tuple(ev.delay(item, scope) for item in expr.items))
