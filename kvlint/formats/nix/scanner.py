"""Calls that write a script, anywhere in a file: in functions that nobody calls, in branches that are not taken."""

from __future__ import annotations

from typing import Any

from kvlint.formats.nix.evaluator import Evaluator
from kvlint.formats.nix.names import below
from kvlint.formats.nix.outside import SET_WRITERS, WRITERS
from kvlint.formats.nix.scope import bind_formal
from kvlint.formats.nix.sets import bindings
from kvlint.formats.nix.syntax import Apply, AttrSet, Expr, Lambda, Let, Select, Variable, With
from kvlint.formats.nix.values import Outside, Scope, Stuck, Thunk, done
from kvlint.source import Span

MAX_DEPTH = 150


def scan(ev: Evaluator, root: Expr) -> None:
    """Evaluate every call of a writer that has not been evaluated yet, arguments of functions unknown."""
    if any(name in root.source.text for name in (*WRITERS, *SET_WRITERS)):
        _walk(ev, root, Scope({}, None), {span for span, _ in ev.scripts}, 0)


def _walk(ev: Evaluator, expr: Any, scope: Scope, seen: set[Span], depth: int) -> None:
    if depth > MAX_DEPTH:
        return
    if isinstance(expr, Apply) and _writer(expr) and expr.span not in seen:
        try:
            ev.force(Thunk(expr, scope))
        except (Stuck, RecursionError):
            return
    if isinstance(expr, AttrSet):
        _walk_set(ev, expr, bindings(ev, expr, scope) if expr.recursive else scope, seen, depth, outer=scope)
        return
    if isinstance(expr, Let):
        inner = bindings(ev, expr.bindings, scope)
        _walk_set(ev, expr.bindings, inner, seen, depth, outer=scope)
        _walk(ev, expr.body, inner, seen, depth + 1)
        return
    if isinstance(expr, With):
        _walk(ev, expr.environment, scope, seen, depth + 1)
        _walk(ev, expr.body, Scope({}, scope, Thunk(expr.environment, scope)), seen, depth + 1)
        return
    if isinstance(expr, Lambda):
        scope = _unknown_arguments(ev, expr, scope)
    for child in below(expr):
        _walk(ev, child, scope, seen, depth + 1)


def _walk_set(ev: Evaluator, expr: AttrSet, scope: Scope, seen: set[Span], depth: int, *, outer: Scope) -> None:
    for definition in (*expr.static.values(), *expr.dynamic):
        if definition.origin is not None:
            _walk(ev, definition.origin, scope, seen, depth + 1)
        else:
            _walk(ev, definition.value, outer if definition.inherited else scope, seen, depth + 1)


def _unknown_arguments(ev: Evaluator, function: Lambda, scope: Scope) -> Scope:
    names: dict[str, Thunk] = {}
    inner = Scope(names, scope)
    argument = done(Outside(function.span, ()), function.span)
    for formal in function.formals or ():
        names[formal.name] = bind_formal(ev, Outside(function.span, ()), formal, inner, function.span)
    if function.name is not None:
        module = function.formals is not None
        names[function.name] = argument if module else done(Outside(function.span, (function.name,)), function.span)
    return inner


def _writer(expr: Apply) -> bool:
    """The call is complete: `writeShellScript name text`, `writeShellApplication { … }`."""
    head: Expr = expr
    arguments = 0
    while isinstance(head, Apply):
        head, arguments = head.function, arguments + 1
    name = head.name if isinstance(head, Variable) else ""
    if isinstance(head, Select) and head.path[-1].name is not None:
        name = head.path[-1].name.value
    return (name in WRITERS and arguments == 2) or (name in SET_WRITERS and arguments == 1)
