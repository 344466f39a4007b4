"""nixpkgs' `lib`: what configurations use of it, on lists, sets and the module system's definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.formats import nix_builtins
from kvlint.formats.nix_builtins import BUILTINS, make_set
from kvlint.formats.nix_coerce import equal, integer, less, truth
from kvlint.formats.nix_lib_strings import STRING_FUNCTIONS
from kvlint.formats.nix_operators import concatenated
from kvlint.formats.nix_sets import update
from kvlint.formats.nix_values import (
    Attrs,
    Bool,
    Failed,
    Items,
    Library,
    Outside,
    Primitive,
    Property,
    Run,
    Slot,
    Splice,
    Str,
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
    from kvlint.formats.nix_evaluate import Evaluator

# lib/modules.nix: lower wins; what is written without any is 100.
PRIORITIES = {"mkVMOverride": 10, "mkForce": 50, "mkImageMediaOverride": 60, "mkDefault": 1000, "mkOptionDefault": 1500}
ORDERS = {"mkBefore": 500, "mkAfter": 1500}


def _priority(kind: str, priority: int) -> Run:
    def run(ev: Evaluator, span: Span, content: Thunk) -> Value:
        return Property(kind, span, content, None, priority)

    return run


def _with_priority(kind: str) -> Run:
    def run(ev: Evaluator, span: Span, priority: Thunk, content: Thunk) -> Value:
        return Property(kind, span, content, None, ev.int_of(priority))

    return run


def mk_if(ev: Evaluator, span: Span, condition: Thunk, content: Thunk) -> Value:
    return Property("if", span, content, condition)


def mk_merge(ev: Evaluator, span: Span, contents: Thunk) -> Value:
    return Property("merge", span, contents)


# Lists and sets that depend on a condition


def _answer(ev: Evaluator, condition: Thunk) -> bool | Opaque:
    """A condition, or why it is not known."""
    value = ev.either(ev.force(condition))
    if isinstance(value, Bool):
        return value.value
    if isinstance(value, (Opaque, Outside)):
        return Opaque(condition.span, f"it depends on {condition.span.text}: {value.reason}", value.supply)
    raise ev.wrong(value, "bool", condition.span)


def optional(ev: Evaluator, span: Span, condition: Thunk, item: Thunk) -> Value:
    answer = _answer(ev, condition)
    if isinstance(answer, Opaque):
        return Items((Splice(answer, (item,)),))
    return Items((item,) if answer else ())


def optionals(ev: Evaluator, span: Span, condition: Thunk, items: Thunk) -> Value:
    answer = _answer(ev, condition)
    if isinstance(answer, Opaque):
        found = ev.force(items)
        shown = tuple(i for i in found.items if isinstance(i, Thunk)) if isinstance(found, Items) else ()
        return Items((Splice(answer, shown),))
    return ev.force(items) if answer else Items(())


def optional_attrs(ev: Evaluator, span: Span, condition: Thunk, value: Thunk) -> Value:
    answer = _answer(ev, condition)
    if isinstance(answer, Opaque):
        found = ev.attrs_of(value)
        slots = {n: Slot(s.key, s.key_span, s.value, s.maybe or answer) for n, s in found.slots.items()}
        return Attrs(slots, found.open)
    return ev.force(value) if answer else Attrs({})


# Lists


def flatten(ev: Evaluator, span: Span, items: Thunk) -> Value:
    flat: list[Thunk | Splice] = []
    _flatten(ev, items, span, flat)
    return Items(tuple(flat))


def _flatten(ev: Evaluator, thunk: Thunk, span: Span, into: list[Thunk | Splice]) -> None:
    value = ev.either(ev.force(thunk))
    ev.spend(1)
    if isinstance(value, (Opaque, Outside)):
        into.append(Splice(opaque(value)))
    elif isinstance(value, Failed):
        raise Stuck(value)
    elif not isinstance(value, Items):
        into.append(thunk)
    else:
        with ev.deeper(span):
            for item in value.items:
                if isinstance(item, Splice):
                    into.append(item)
                else:
                    _flatten(ev, item, span, into)


def to_list(ev: Evaluator, span: Span, value: Thunk) -> Value:
    found = ev.known(value)
    return found if isinstance(found, Items) else Items((value,))


def singleton(ev: Evaluator, span: Span, value: Thunk) -> Value:
    return Items((value,))


def concat(ev: Evaluator, span: Span, a: Thunk, b: Thunk) -> Value:
    return concatenated(ev, [a, b], span)


def last(ev: Evaluator, span: Span, items: Thunk) -> Value:
    found = ev.list_of(items)
    if not found:
        raise failed(span, "the list is empty")
    return ev.force(found[-1])


def init(ev: Evaluator, span: Span, items: Thunk) -> Value:
    found = ev.list_of(items)
    if not found:
        raise failed(span, "the list is empty")
    return Items(found[:-1])


def take(ev: Evaluator, span: Span, count: Thunk, items: Thunk) -> Value:
    return Items(ev.list_of(items)[: max(0, _natural(ev, count))])


def drop(ev: Evaluator, span: Span, count: Thunk, items: Thunk) -> Value:
    return Items(ev.list_of(items)[max(0, _natural(ev, count)) :])


def _natural(ev: Evaluator, count: Thunk) -> int:
    number = ev.int_of(count)
    if number < 0:
        raise failed(count.span, "a negative number of items")
    return number


def reverse(ev: Evaluator, span: Span, items: Thunk) -> Value:
    return Items(ev.items_of(items).items[::-1])


def number_range(ev: Evaluator, span: Span, first: Thunk, final: Thunk) -> Value:
    start, end = ev.int_of(first), ev.int_of(final)
    if end - start > nix_builtins.MAX_ITEMS:
        raise Stuck(Opaque(span, "the list is too long to be evaluated"))
    return Items(tuple(done(integer(number, span), span) for number in range(start, end + 1)))


def replicate(ev: Evaluator, span: Span, count: Thunk, value: Thunk) -> Value:
    number = _natural(ev, count)
    if number > nix_builtins.MAX_ITEMS:
        raise Stuck(Opaque(span, "the list is too long to be evaluated"))
    return Items((value,) * number)


def unique(ev: Evaluator, span: Span, items: Thunk) -> Value:
    kept: list[Thunk] = []
    for item in ev.list_of(items):
        if not any(equal(ev, item, other, span) for other in kept):
            kept.append(item)
    return Items(tuple(kept))


def _numbered(first: int) -> Run:
    def run(ev: Evaluator, span: Span, function: Thunk, items: Thunk) -> Value:
        found = ev.list_of(items)
        numbers = (done(integer(first + index, span), span) for index in range(len(found)))
        return Items(tuple(ev.later(function, n, i, span=i.span) for n, i in zip(numbers, found, strict=True)))

    return run


def fold_right(ev: Evaluator, span: Span, function: Thunk, start: Thunk, items: Thunk) -> Value:
    result = start
    for item in reversed(ev.list_of(items)):
        result = ev.later(function, item, result, span=span)
    return ev.force(result)


def zip_lists_with(ev: Evaluator, span: Span, function: Thunk, a: Thunk, b: Thunk) -> Value:
    pairs = zip(ev.list_of(a), ev.list_of(b), strict=False)
    return Items(tuple(ev.later(function, x, y, span=span) for x, y in pairs))


def find_first(ev: Evaluator, span: Span, test: Thunk, default: Thunk, items: Thunk) -> Value:
    for item in ev.list_of(items):
        if ev.bool_of(ev.later(test, item, span=span)):
            return ev.force(item)
    return ev.force(default)


def count(ev: Evaluator, span: Span, test: Thunk, items: Thunk) -> Value:
    return integer(sum(ev.bool_of(ev.later(test, item, span=span)) for item in ev.list_of(items)), span)


def subtract_lists(ev: Evaluator, span: Span, gone: Thunk, items: Thunk) -> Value:
    removed = ev.list_of(gone)
    return Items(tuple(i for i in ev.list_of(items) if not any(equal(ev, i, other, span) for other in removed)))


# Sets


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
    return nix_builtins.list_to_attrs(ev, span, done(Items(tuple(pairs)), span))


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
        answer = _answer(ev, _pair(ev, keep, slot))
        if isinstance(answer, Opaque):
            slots[name] = Slot(slot.key, slot.key_span, slot.value, slot.maybe or answer)
        elif answer:
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


# Values and functions


def _extreme(largest: bool) -> Run:
    def run(ev: Evaluator, span: Span, a: Thunk, b: Thunk) -> Value:
        return ev.force(a if (less(ev, b, a, span) if largest else less(ev, a, b, span)) else b)

    return run


def mod(ev: Evaluator, span: Span, a: Thunk, b: Thunk) -> Value:
    left, right = ev.number_of(a), ev.number_of(b)
    x, y = ev.int_of(a), ev.int_of(b)
    if y == 0:
        raise failed(span, "division by zero")
    rest = abs(x) % abs(y)
    return integer(rest if x >= 0 else -rest, span, left.text, right.text)


def identity(ev: Evaluator, span: Span, value: Thunk) -> Value:
    return ev.force(value)


def constant(ev: Evaluator, span: Span, value: Thunk, ignored: Thunk) -> Value:
    return ev.force(value)


def flip(ev: Evaluator, span: Span, function: Thunk, a: Thunk, b: Thunk) -> Value:
    return ev.call(ev.known_or_outside(function), b, a, span=span)


def pipe(ev: Evaluator, span: Span, value: Thunk, functions: Thunk) -> Value:
    for function in ev.list_of(functions):
        value = ev.later(function, value, span=span)
    return ev.force(value)


def apply_to(ev: Evaluator, span: Span, value: Thunk, function: Thunk) -> Value:
    return ev.call(ev.known_or_outside(function), value, span=span)


def guarded(ev: Evaluator, span: Span, condition: Thunk, message: Thunk, value: Thunk) -> Value:
    """`throwIf`."""
    if ev.bool_of(condition):
        raise failed(span, "the expression throws an error")
    return ev.force(value)


def guarded_not(ev: Evaluator, span: Span, condition: Thunk, message: Thunk, value: Thunk) -> Value:
    if not ev.bool_of(condition):
        raise failed(span, "the expression throws an error")
    return ev.force(value)


def warned_if(ev: Evaluator, span: Span, condition: Thunk, message: Thunk, value: Thunk) -> Value:
    return ev.force(value)


def assert_message(ev: Evaluator, span: Span, condition: Thunk, message: Thunk) -> Value:
    if not ev.bool_of(condition):
        raise failed(span, "an assertion fails")
    return truth(True, span)


def mk_option(ev: Evaluator, span: Span, options: Thunk) -> Value:
    found = ev.attrs_of(options)
    kind = Slot(Text.at("_type", span), span, done(Str(Text.at("option", span)), span))
    return Attrs({**found.slots, "_type": kind}, found.open)


def mk_enable_option(ev: Evaluator, span: Span, name: Thunk) -> Value:
    return make_set(
        {"_type": done(Str(Text.at("option", span)), span), "default": done(truth(False, span), span)}, span
    )


_TABLE: dict[str, tuple[int, Run]] = {
    "assertMsg": (2, assert_message),
    "attrByPath": (3, attr_by_path),
    "concat": (2, concat),
    "concatMapAttrs": (2, concat_map_attrs),
    "const": (2, constant),
    "count": (2, count),
    "drop": (2, drop),
    "filterAttrs": (2, filter_attrs),
    "findFirst": (3, find_first),
    "flatten": (1, flatten),
    "flip": (3, flip),
    "fold": (3, fold_right),
    "foldr": (3, fold_right),
    "forEach": (2, lambda ev, span, items, function: nix_builtins.map_list(ev, span, function, items)),
    "genAttrs": (2, gen_attrs),
    "getAttrFromPath": (2, lambda ev, span, path, value: attr_by_path(ev, span, path, _missing(span), value)),
    "id": (1, identity),
    "imap0": (2, _numbered(0)),
    "imap1": (2, _numbered(1)),
    "init": (1, init),
    "last": (1, last),
    "mapAttrs'": (2, map_attrs_new),
    "mapAttrsToList": (2, map_attrs_to_list),
    "max": (2, _extreme(True)),
    "mergeAttrs": (2, merge_attrs),
    "mergeAttrsList": (1, merge_attrs_list),
    "min": (2, _extreme(False)),
    "mkEnableOption": (1, mk_enable_option),
    "mkIf": (2, mk_if),
    "mkMerge": (1, mk_merge),
    "mkOption": (1, mk_option),
    "mkOrder": (2, _with_priority("order")),
    "mkOverride": (2, _with_priority("override")),
    "mod": (2, mod),
    "nameValuePair": (2, name_value_pair),
    "optional": (2, optional),
    "optionalAttrs": (2, optional_attrs),
    "optionals": (2, optionals),
    "pipe": (2, pipe),
    "range": (2, number_range),
    "recursiveUpdate": (2, recursive_update),
    "replicate": (2, replicate),
    "reverseList": (1, reverse),
    "setAttrByPath": (2, set_attr_by_path),
    "singleton": (1, singleton),
    "subtractLists": (2, subtract_lists),
    "take": (2, take),
    "throwIf": (3, guarded),
    "throwIfNot": (3, guarded_not),
    "toList": (1, to_list),
    "unique": (1, unique),
    "warn": (2, nix_builtins.trace),
    "warnIf": (3, warned_if),
    "warnIfNot": (3, warned_if),
    "zipListsWith": (3, zip_lists_with),
    **{name: (1, _priority("override", priority)) for name, priority in PRIORITIES.items()},
    **{name: (1, _priority("order", priority)) for name, priority in ORDERS.items()},
    **STRING_FUNCTIONS,
}
# What lib has of its own: of the builtins it hands on the rest under the same name.
_NOT_SHARED = {"abort", "import", "isNull", "throw"}
LIBRARY = {name: run for name, run in BUILTINS.items() if name not in _NOT_SHARED}
LIBRARY |= {name: Primitive(f"lib.{name}", arity, run) for name, (arity, run) in _TABLE.items()}
_SECTIONS = frozenset(
    {
        "asserts",
        "attrsets",
        "cli",
        "debug",
        "generators",
        "lists",
        "meta",
        "modules",
        "options",
        "strings",
        "trivial",
        "versions",
    }
)
_OWN_SECTIONS = ("cli.", "generators.", "utils.")


def _missing(span: Span) -> Thunk:
    return done(Opaque(span, "the attribute is missing"), span)


def has(value: Library, name: str) -> bool:
    """Whether `lib` or `builtins` is known to have the name."""
    if value.prefix == "builtins.":
        return name in BUILTINS
    return value.prefix + name in LIBRARY or (not value.prefix and name in _SECTIONS)


def member(value: Library, name: str, span: Span) -> Value:
    """`lib.name`, `lib.strings.name`, `builtins.name`; what is not understood is from outside."""
    if value.prefix == "builtins.":
        return nix_builtins.member(name, span)
    if not value.prefix and name in _SECTIONS:
        return Library(f"{name}.")
    found = LIBRARY.get(value.prefix + name)
    if found is None and value.prefix not in _OWN_SECTIONS:
        found = LIBRARY.get(name)
    if found is None:
        path = f"{'' if value.prefix == 'utils.' else 'lib.'}{value.prefix}{name}"
        return Outside(span, tuple(path.split(".")))
    if name == "replicate" and value.prefix == "strings.":
        return LIBRARY["strings.replicate"]
    return found
