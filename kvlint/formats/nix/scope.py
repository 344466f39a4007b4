"""Names: what is in scope where an expression stands, and what a function's argument binds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.formats.nix import builtins, lib, outside
from kvlint.formats.nix.syntax import Formal, Lambda, Variable
from kvlint.formats.nix.values import (
    Attrs,
    Bool,
    Closure,
    Exhausted,
    Library,
    Outside,
    Scope,
    Script,
    Stuck,
    Thunk,
    Value,
    done,
    failed,
    opaque,
)
from kvlint.source import Span, Text
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator


def lookup(ev: Evaluator, expr: Variable, scope: Scope) -> Thunk:
    """The thunk of a name: of the nearest binding, else of the innermost `with` that has it."""
    environments: list[Thunk] = []
    at: Scope | None = scope
    while at is not None:
        found = at.names.get(expr.name)
        if found is not None:
            return found
        if at.environment is not None:
            environments.append(at.environment)
        at = at.parent
    if expr.name in ("true", "false"):
        return done(Bool(expr.name == "true", Text.of(expr.source, expr.start, expr.end)), expr.span)
    found_global = builtins.global_value(expr)
    if found_global is not None:
        return done(found_global, expr.span)
    return from_environments(ev, expr, environments)


def from_environments(ev: Evaluator, expr: Variable, environments: list[Thunk]) -> Thunk:
    """A name that only a `with` can bind: the innermost set that has it, if it is certain which one that is."""
    for number, environment in enumerate(environments):
        value = ev.known_or_outside(environment)
        if number < len(environments) - 1 and not certain(ev, value, expr.name):
            raise Stuck(Opaque(expr.span, f"several sets in force may hold {expr.name}"))
        found = ev.attribute(value, expr.name, expr.span)
        if found is not None:
            return found
    raise failed(expr.span, f"{expr.name} is not defined")


def certain(ev: Evaluator, value: Value, name: str) -> bool:
    """Whether it is known that a set has the name, or has it not."""
    if isinstance(value, Library):
        return lib.has(value, name)
    return not isinstance(value, (Outside, Script))


def bind(ev: Evaluator, function: Closure, argument: Thunk, span: Span) -> Scope:
    """The scope of a function's body, called with `argument`."""
    code = function.function
    names: dict[str, Thunk] = {}
    scope = Scope(names, function.scope)
    if code.formals is not None:
        bind_formals(ev, code, argument, scope, span)
    if code.name is not None:
        names[code.name] = argument
    return scope


def bind_formals(ev: Evaluator, code: Lambda, argument: Thunk, scope: Scope, span: Span) -> None:
    assert code.formals is not None
    value = ev.either(ev.force(argument))
    if not isinstance(value, (Attrs, Outside, Library)):
        raise ev.wrong(value, "set", span)
    wanted = {formal.name for formal in code.formals}
    if isinstance(value, Attrs) and not code.ellipsis:
        for name in value.slots:
            if name not in wanted:
                raise failed(span, f"the function is called with {name!r}, which it does not take")
    for formal in code.formals:
        scope.names[formal.name] = bind_formal(ev, value, formal, scope, span)


def bind_formal(ev: Evaluator, value: Value, formal: Formal, scope: Scope, span: Span) -> Thunk:
    """The thunk of one name of `{ a, b ? 1 }:`."""
    if isinstance(value, Outside):
        if formal.default is None or formal.name in outside.ARGUMENTS:
            return done(outside.member(value, formal.name, formal.span), formal.span)
        if value.path:
            return done(opaque(value), formal.span)
        return ev.delay(formal.default, scope)
    try:
        found = ev.attribute(value, formal.name, formal.span)
    except Exhausted:
        raise
    except Stuck as stuck:
        return done(opaque(stuck.unknown), formal.span)
    if found is not None:
        return found
    if formal.default is None:
        raise failed(span, f"the function is called without {formal.name!r}")
    return ev.delay(formal.default, scope)
