"""Sets: `{ … }`, `rec`, `inherit`, `//`, and what is taken from them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kvlint.formats.nix import outside
from kvlint.formats.nix.coerce import truth
from kvlint.formats.nix.syntax import AttrSet, Definition, HasAttr, Key, Select
from kvlint.formats.nix.values import (
    Attrs,
    Failed,
    Library,
    Outside,
    Property,
    Scope,
    Script,
    Slot,
    Str,
    Stuck,
    Thunk,
    Unknown,
    Value,
    done,
    failed,
    kind_of,
    opaque,
)
from kvlint.source import Span
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator

REPLACED = "it may be replaced"  # of what is written, by what another module may set


def bindings(ev: Evaluator, expr: AttrSet, scope: Scope) -> Scope:
    """The scope inside of a recursive set or a let."""
    names: dict[str, Thunk] = {}
    inner = Scope(names, scope)
    origins: dict[int, Thunk] = {}
    for name, definition in expr.static.items():
        names[name] = binding(ev, definition, scope, inner, origins)
    return inner


def binding(ev: Evaluator, definition: Definition, outer: Scope, inner: Scope, origins: dict[int, Thunk]) -> Thunk:
    if definition.origin is None:
        return ev.delay(definition.value, outer if definition.inherited else inner)
    origin = origins.get(id(definition.origin))
    if origin is None:
        origin = origins[id(definition.origin)] = ev.delay(definition.origin, inner)
    name, span = definition.key.name, definition.key.span
    assert name is not None
    return Thunk(span=span, run=partial(inherited, ev, origin, name.value, span))


def inherited(ev: Evaluator, origin: Thunk, name: str, span: Span) -> Value:
    found = ev.attribute(ev.known_or_outside(origin), name, span)
    if found is None:
        raise failed(span, f"attribute {name!r} is missing")
    return ev.force(found)


def attr_set(ev: Evaluator, expr: AttrSet, scope: Scope) -> Value:
    slots: dict[str, Slot] = {}
    unknown: list[Unknown] = [Opaque(bad.span, bad.reason) for bad in expr.open]
    if expr.recursive:
        inner = bindings(ev, expr, scope)
        thunks = inner.names
        if "__overrides" in thunks:
            raise Stuck(Opaque(expr.span, "__overrides is not understood"))
    else:
        inner = scope
        origins: dict[int, Thunk] = {}
        thunks = {name: binding(ev, item, scope, scope, origins) for name, item in expr.static.items()}
    for name, definition in expr.static.items():
        assert definition.key.name is not None
        slots[name] = Slot(definition.key.name, definition.key.span, thunks[name])
    for definition in expr.dynamic:
        dynamic_slot(ev, definition, inner, slots, unknown)
    return Attrs(slots, tuple(unknown))


def dynamic_slot(
    ev: Evaluator, definition: Definition, scope: Scope, slots: dict[str, Slot], unknown: list[Unknown]
) -> None:
    key = definition.key
    assert key.dynamic is not None
    thunk = ev.delay(key.dynamic, scope)
    value = ev.either(ev.force(thunk))
    if kind_of(value) == "null":
        return
    if isinstance(value, (Opaque, Outside)):
        unknown.append(opaque(value))
        return
    if not isinstance(value, Str):
        raise ev.wrong(value, "string", key.span)
    if value.text.holes:
        first = value.text.holes[0]
        unknown.append(Opaque(first.span, first.reason, first.supply))
        return
    name = value.text.value
    if name in slots:
        raise failed(key.span, f"attribute {name!r} is defined twice")
    slots[name] = Slot(value.text.seen_from(key.span), key.span, ev.delay(definition.value, scope))


def update(ev: Evaluator, left: Thunk, right: Thunk, span: Span) -> Value:
    """`left // right`."""
    a, b = _parts(ev, left, span), _parts(ev, right, span)
    if not a.slots and not b.slots and a.open and b.open:
        raise Stuck(opaque(a.open[0]))
    ev.spend(1 + len(a.slots) // 4)
    slots = dict(a.slots)
    if b.open:
        slots = {name: replaced_slot(slot, b.open[0], slot.maybe) for name, slot in slots.items()}
    for name, slot in b.slots.items():
        before = slots.pop(name, None)
        if before is not None and slot.maybe is not None:
            slot = replaced_slot(slot, slot.maybe, None)
        slots[name] = slot
    return Attrs(slots, a.open + b.open)


def _parts(ev: Evaluator, thunk: Thunk, span: Span) -> Attrs:
    """One side of `//`: of a set that is unknown, nothing but that it is open."""
    value = ev.either(ev.force(thunk))
    if isinstance(value, Attrs):
        return value
    if isinstance(value, (Opaque, Outside)):
        return Attrs({}, (opaque(value),))
    raise ev.wrong(value, "set", span)


def select(ev: Evaluator, expr: Select, scope: Scope) -> Value:
    value = ev.eval(expr.base, scope)
    for key in expr.path:
        name = key_name(ev, key, scope)
        if isinstance(value, Outside) and name is None:
            value = outside.member(value, "?", expr.span)
            continue
        if name is None:
            raise Stuck(Opaque(key.span, "the attribute's name is not known"))
        found = ev.attribute(value, name, expr.source.span(expr.start, key.span.end))
        if found is None:
            if expr.default is not None:
                return ev.eval(expr.default, scope)
            raise failed(key.span, f"attribute {name!r} is missing")
        value = ev.force(found)
    return value


def key_name(ev: Evaluator, key: Key, scope: Scope) -> str | None:
    """The name of a key; None where it is not known."""
    if key.name is not None:
        return key.name.value
    assert key.dynamic is not None
    value = ev.either(ev.eval(key.dynamic, scope))
    if isinstance(value, (Opaque, Outside)):
        return None
    if not isinstance(value, Str):
        raise ev.wrong(value, "string", key.span)
    return None if value.text.holes else value.text.value


def has_attr(ev: Evaluator, expr: HasAttr, scope: Scope) -> Value:
    value = ev.eval(expr.base, scope)
    for number, key in enumerate(expr.path):
        name = key_name(ev, key, scope)
        if name is None or isinstance(value, (Opaque, Failed, Outside, Library, Script, Property)):
            raise Stuck(Opaque(expr.span, "whether the attribute is there is not known"))
        found = ev.attribute(value, name, key.span)
        if found is None:
            return truth(False, expr.span)
        if number < len(expr.path) - 1:
            value = ev.force(found)
    return truth(True, expr.span)


def replaced_slot(slot: Slot, unknown: Unknown, maybe: Unknown | None) -> Slot:
    """An attribute that something unknown may have replaced."""
    why = Opaque(unknown.span, f"{REPLACED}: {unknown.reason}", unknown.supply)
    return Slot(slot.key, slot.key_span, done(why, slot.value.span), maybe)
