"""Functions on lists: Nix's own and nixpkgs'."""

from __future__ import annotations

from functools import cmp_to_key
from typing import TYPE_CHECKING

from kvlint.formats.nix.coerce import equal, integer, truth
from kvlint.formats.nix.operators import concatenated
from kvlint.formats.nix.values import (
    Bool,
    Failed,
    Items,
    Outside,
    Run,
    Splice,
    Stuck,
    Thunk,
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


MAX_ITEMS = 20_000


def length(ev: Evaluator, span: Span, items: Thunk) -> Value:
    return integer(len(ev.list_of(items)), span)


def head(ev: Evaluator, span: Span, items: Thunk) -> Value:
    return _element(ev, span, items, 0)


def elem_at(ev: Evaluator, span: Span, items: Thunk, index: Thunk) -> Value:
    return _element(ev, span, items, ev.int_of(index))


def _element(ev: Evaluator, span: Span, items: Thunk, index: int) -> Value:
    found = ev.items_of(items).items
    for item in found[: index + 1]:
        if isinstance(item, Splice):
            raise Stuck(opaque(item.unknown))
    if not 0 <= index < len(found):
        raise failed(span, "the list has no such item")
    item = found[index]
    assert isinstance(item, Thunk)
    return ev.force(item)


def tail(ev: Evaluator, span: Span, items: Thunk) -> Value:
    found = ev.items_of(items).items
    if not found:
        raise failed(span, "the list is empty")
    if isinstance(found[0], Splice):
        raise Stuck(opaque(found[0].unknown))
    return Items(found[1:])


def map_list(ev: Evaluator, span: Span, function: Thunk, items: Thunk) -> Value:
    found = ev.items_of(items).items
    ev.spend(len(found))
    return Items(tuple(i if isinstance(i, Splice) else ev.later(function, i, span=i.span) for i in found))


def filter_list(ev: Evaluator, span: Span, keep: Thunk, items: Thunk) -> Value:
    kept: list[Thunk | Splice] = []
    for item in ev.items_of(items).items:
        if isinstance(item, Splice):
            kept.append(item)
            continue
        answer = ev.either(ev.force(ev.later(keep, item, span=span)))
        if isinstance(answer, (Opaque, Outside)):
            kept.append(Splice(answer, (item,)))
        elif not isinstance(answer, Bool):
            raise ev.wrong(answer, "bool", span)
        elif answer.value:
            kept.append(item)
    return Items(tuple(kept))


def concat_lists(ev: Evaluator, span: Span, lists: Thunk) -> Value:
    found = ev.list_of(lists)
    return concatenated(ev, list(found), span)


def concat_map(ev: Evaluator, span: Span, function: Thunk, items: Thunk) -> Value:
    return concatenated(ev, [ev.later(function, item, span=item.span) for item in ev.list_of(items)], span)


def elem(ev: Evaluator, span: Span, value: Thunk, items: Thunk) -> Value:
    return truth(any(equal(ev, value, item, span) for item in ev.list_of(items)), span)


def _some(wanted: bool) -> Run:
    def run(ev: Evaluator, span: Span, test: Thunk, items: Thunk) -> Value:
        for item in ev.list_of(items):
            if ev.bool_of(ev.later(test, item, span=span)) == wanted:
                return truth(wanted, span)
        return truth(not wanted, span)

    return run


def fold(ev: Evaluator, span: Span, function: Thunk, start: Thunk, items: Thunk) -> Value:
    """`foldl'`: the accumulator is forced on the way."""
    result = start
    for item in ev.list_of(items):
        result = ev.later(function, result, item, span=span)
        ev.known(result)
    return ev.force(result)


def gen_list(ev: Evaluator, span: Span, function: Thunk, count: Thunk) -> Value:
    number = ev.int_of(count)
    if number < 0:
        raise failed(span, "a list cannot have a negative length")
    if number > MAX_ITEMS:
        raise Stuck(Opaque(span, "the list is too long to be evaluated"))
    ev.spend(number)
    return Items(tuple(ev.later(function, done(integer(i, span), span), span=span) for i in range(number)))


def sort(ev: Evaluator, span: Span, before: Thunk, items: Thunk) -> Value:
    """Stable; a comparison that holds both ways is stuck, since releases of Nix then order differently."""
    found = ev.list_of(items)

    def compare(a: Thunk, b: Thunk) -> int:
        forth = ev.bool_of(ev.later(before, a, b, span=span))
        back = ev.bool_of(ev.later(before, b, a, span=span))
        if forth and back:
            raise Stuck(Opaque(span, "the comparison does not order the list"))
        return -1 if forth else int(back)

    ordered = sorted(found, key=cmp_to_key(compare))
    return Items(tuple(ordered))


def partition(ev: Evaluator, span: Span, test: Thunk, items: Thunk) -> Value:
    parts: tuple[list[Thunk], list[Thunk]] = ([], [])
    for item in ev.list_of(items):
        parts[ev.bool_of(ev.later(test, item, span=span))].append(item)
    wrong, right = (done(Items(tuple(part)), span) for part in parts)
    return make_set({"right": right, "wrong": wrong}, span)


def group_by(ev: Evaluator, span: Span, function: Thunk, items: Thunk) -> Value:
    groups: dict[str, list[Thunk]] = {}
    for item in ev.list_of(items):
        groups.setdefault(ev.string_of(ev.later(function, item, span=span)), []).append(item)
    return make_set({name: done(Items(tuple(found)), span) for name, found in groups.items()}, span)


def answer(ev: Evaluator, condition: Thunk) -> bool | Opaque:
    """A condition, or why it is not known."""
    value = ev.either(ev.force(condition))
    if isinstance(value, Bool):
        return value.value
    if isinstance(value, (Opaque, Outside)):
        return Opaque(condition.span, f"it depends on {condition.span.text}: {value.reason}", value.supply)
    raise ev.wrong(value, "bool", condition.span)


def optional(ev: Evaluator, span: Span, condition: Thunk, item: Thunk) -> Value:
    held = answer(ev, condition)
    if isinstance(held, Opaque):
        return Items((Splice(held, (item,)),))
    return Items((item,) if held else ())


def optionals(ev: Evaluator, span: Span, condition: Thunk, items: Thunk) -> Value:
    held = answer(ev, condition)
    if isinstance(held, Opaque):
        found = ev.force(items)
        shown = tuple(i for i in found.items if isinstance(i, Thunk)) if isinstance(found, Items) else ()
        return Items((Splice(held, shown),))
    return ev.force(items) if held else Items(())


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
    if end - start > MAX_ITEMS:
        raise Stuck(Opaque(span, "the list is too long to be evaluated"))
    return Items(tuple(done(integer(number, span), span) for number in range(start, end + 1)))


def replicate(ev: Evaluator, span: Span, count: Thunk, value: Thunk) -> Value:
    number = _natural(ev, count)
    if number > MAX_ITEMS:
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
