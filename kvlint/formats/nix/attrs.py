"""Functions on sets: Nix's own and nixpkgs'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.formats.nix.coerce import truth
from kvlint.formats.nix.lists import answer
from kvlint.formats.nix.sets import update
from kvlint.formats.nix.values import (
    Attrs,
    Items,
    Outside,
    Slot,
    Splice,
    Str,
    Stuck,
    Thunk,
    Unknown,
    Value,
    done,
    failed,
    make_set,
    opaque,
)
from kvlint.source import Span
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator


def attr_names(ev: Evaluator, span: Span, value: Thunk) -> Value:
    found = ev.attrs_of(value)
    names = ev.names(found, span)
    return Items(tuple(done(Str(found.slots[name].key), found.slots[name].key_span) for name in names))


def attr_values(ev: Evaluator, span: Span, value: Thunk) -> Value:
    found = ev.attrs_of(value)
    return Items(tuple(found.slots[name].value for name in ev.names(found, span)))


def get_attr(ev: Evaluator, span: Span, name: Thunk, value: Thunk) -> Value:
    wanted = ev.string_of(name)
    found = ev.attribute(ev.known_or_outside(value), wanted, span)
    if found is None:
        raise failed(span, f"attribute {wanted!r} is missing")
    return ev.force(found)


def has_attr(ev: Evaluator, span: Span, name: Thunk, value: Thunk) -> Value:
    return truth(ev.attribute(ev.attrs_of(value), ev.string_of(name), span) is not None, span)


def remove_attrs(ev: Evaluator, span: Span, value: Thunk, names: Thunk) -> Value:
    found = ev.attrs_of(value)
    gone = {ev.string_of(name) for name in ev.list_of(names)}
    return Attrs({name: slot for name, slot in found.slots.items() if name not in gone}, found.open)


def intersect_attrs(ev: Evaluator, span: Span, a: Thunk, b: Thunk) -> Value:
    left, right = ev.attrs_of(a), ev.attrs_of(b)
    names = set(ev.names(left, span))
    ev.names(right, span)
    return Attrs({name: slot for name, slot in right.slots.items() if name in names})


def map_attrs(ev: Evaluator, span: Span, function: Thunk, value: Thunk) -> Value:
    found = ev.attrs_of(value)
    ev.spend(len(found.slots))
    slots = {}
    for name, slot in found.slots.items():
        key = done(Str(slot.key), slot.key_span)
        result = ev.later(function, key, slot.value, span=slot.value.span)
        slots[name] = Slot(slot.key, slot.key_span, result, slot.maybe)
    return Attrs(slots, found.open)


def list_to_attrs(ev: Evaluator, span: Span, items: Thunk) -> Value:
    slots: dict[str, Slot] = {}
    unknown: list[Unknown] = []
    for item in ev.items_of(items).items:
        if isinstance(item, Splice):
            raise Stuck(opaque(item.unknown))
        pair = ev.attrs_of(item)
        name, value = ev.attribute(pair, "name"), ev.attribute(pair, "value")
        if name is None or value is None:
            raise failed(span, "an item lacks its name or value")
        key = ev.text_of(name)
        if key.holes:
            unknown.append(Opaque(name.span, key.holes[0].reason, key.holes[0].supply))
        else:
            slots.setdefault(key.value, Slot(key, name.span, value))
    if unknown and slots:
        raise Stuck(opaque(unknown[0]))
    return Attrs(slots, tuple(unknown))


def cat_attrs(ev: Evaluator, span: Span, name: Thunk, items: Thunk) -> Value:
    wanted = ev.string_of(name)
    found = [ev.attribute(ev.attrs_of(item), wanted, span) for item in ev.list_of(items)]
    return Items(tuple(value for value in found if value is not None))


def zip_attrs_with(ev: Evaluator, span: Span, function: Thunk, items: Thunk) -> Value:
    groups: dict[str, list[Thunk]] = {}
    keys: dict[str, Slot] = {}
    for item in ev.list_of(items):
        value = ev.attrs_of(item)
        for name in ev.names(value, span):
            groups.setdefault(name, []).append(value.slots[name].value)
            keys.setdefault(name, value.slots[name])
    slots = {}
    for name, found in groups.items():
        slot = keys[name]
        arguments = done(Str(slot.key), slot.key_span), done(Items(tuple(found)), span)
        slots[name] = Slot(slot.key, slot.key_span, ev.later(function, *arguments, span=span))
    return Attrs(slots)


def optional_attrs(ev: Evaluator, span: Span, condition: Thunk, value: Thunk) -> Value:
    held = answer(ev, condition)
    if isinstance(held, Opaque):
        found = ev.attrs_of(value)
        slots = {n: Slot(s.key, s.key_span, s.value, s.maybe or held) for n, s in found.slots.items()}
        return Attrs(slots, found.open)
    return ev.force(value) if held else Attrs({})


def map_attrs_to_list(ev: Evaluator, span: Span, function: Thunk, value: Thunk) -> Value:
    found = ev.attrs_of(value)
    slots = [found.slots[name] for name in ev.names(found, span)]
    return Items(tuple(_pair(ev, function, slot) for slot in slots))


def _pair(ev: Evaluator, function: Thunk, slot: Slot) -> Thunk:
    return ev.later(function, done(Str(slot.key), slot.key_span), slot.value, span=slot.value.span)


def map_attrs_new(ev: Evaluator, span: Span, function: Thunk, value: Thunk) -> Value:
    """`mapAttrs'`: the function gives the names too."""
    found = ev.attrs_of(value)
    pairs = [_pair(ev, function, found.slots[name]) for name in ev.names(found, span)]
    return list_to_attrs(ev, span, done(Items(tuple(pairs)), span))


def concat_map_attrs(ev: Evaluator, span: Span, function: Thunk, value: Thunk) -> Value:
    found = ev.attrs_of(value)
    slots: dict[str, Slot] = {}
    for name in ev.names(found, span):
        result = ev.attrs_of(_pair(ev, function, found.slots[name]))
        ev.names(result, span)
        slots.update(result.slots)
    return Attrs(slots)


def filter_attrs(ev: Evaluator, span: Span, keep: Thunk, value: Thunk) -> Value:
    found = ev.attrs_of(value)
    slots = {}
    for name, slot in found.slots.items():
        held = answer(ev, _pair(ev, keep, slot))
        if isinstance(held, Opaque):
            slots[name] = Slot(slot.key, slot.key_span, slot.value, slot.maybe or held)
        elif held:
            slots[name] = slot
    return Attrs(slots, found.open)


def gen_attrs(ev: Evaluator, span: Span, names: Thunk, function: Thunk) -> Value:
    slots: dict[str, Slot] = {}
    for item in ev.list_of(names):
        key = ev.text_of(item)
        name = ev.string_of(item)
        slots.setdefault(name, Slot(key, item.span, ev.later(function, item, span=span)))
    return Attrs(slots)


def name_value_pair(ev: Evaluator, span: Span, name: Thunk, value: Thunk) -> Value:
    return make_set({"name": name, "value": value}, span)


def attr_by_path(ev: Evaluator, span: Span, path: Thunk, default: Thunk, value: Thunk) -> Value:
    found: Thunk | None = value
    for step in ev.list_of(path):
        assert found is not None
        found = ev.attribute(ev.known_or_outside(found), ev.string_of(step), span)
        if found is None:
            return ev.force(default)
    assert found is not None
    return ev.force(found)


def set_attr_by_path(ev: Evaluator, span: Span, path: Thunk, value: Thunk) -> Value:
    result = value
    for step in reversed(ev.list_of(path)):
        key = ev.text_of(step)
        name = ev.string_of(step)
        result = done(Attrs({name: Slot(key, step.span, result)}), value.span)
    return ev.force(result)


def recursive_update(ev: Evaluator, span: Span, left: Thunk, right: Thunk) -> Value:
    a, b = ev.attrs_of(left), ev.attrs_of(right)
    ev.names(b, span)
    if a.open:
        raise Stuck(opaque(a.open[0]))
    slots = dict(a.slots)
    for name, slot in b.slots.items():
        before = slots.pop(name, None)
        if before is None:
            slots[name] = slot
        elif before.maybe is not None:
            raise Stuck(opaque(before.maybe))
        else:
            slots[name] = Slot(slot.key, slot.key_span, _updated(ev, before.value, slot.value, span))
    return Attrs(slots)


def _updated(ev: Evaluator, left: Thunk, right: Thunk, span: Span) -> Thunk:
    def run() -> Value:
        value = ev.force(right)
        if not isinstance(value, Attrs):
            return value
        before = ev.either(ev.force(left))
        if isinstance(before, (Opaque, Outside)):
            raise Stuck(opaque(before))
        return recursive_update(ev, span, left, right) if isinstance(before, Attrs) else value

    return Thunk(span=right.span, run=run)


def merge_attrs(ev: Evaluator, span: Span, left: Thunk, right: Thunk) -> Value:
    return update(ev, left, right, span)


def merge_attrs_list(ev: Evaluator, span: Span, sets: Thunk) -> Value:
    result = done(Attrs({}), span)
    for item in ev.list_of(sets):
        result = done(update(ev, result, item, span), span)
    return ev.force(result)
