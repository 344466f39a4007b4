"""nixpkgs' `lib`: what configurations use of it, on lists, sets and the module system's definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.formats.nix import builtins
from kvlint.formats.nix.attrs import (
    attr_by_path,
    concat_map_attrs,
    filter_attrs,
    gen_attrs,
    map_attrs_new,
    map_attrs_to_list,
    merge_attrs,
    merge_attrs_list,
    name_value_pair,
    optional_attrs,
    recursive_update,
    set_attr_by_path,
)
from kvlint.formats.nix.builtins import BUILTINS
from kvlint.formats.nix.coerce import integer, less, truth
from kvlint.formats.nix.lib_shell import SHELL_FUNCTIONS
from kvlint.formats.nix.lib_strings import STRING_FUNCTIONS
from kvlint.formats.nix.lists import (
    _numbered,
    concat,
    count,
    drop,
    find_first,
    flatten,
    fold_right,
    init,
    last,
    map_list,
    number_range,
    optional,
    optionals,
    replicate,
    reverse,
    singleton,
    subtract_lists,
    take,
    to_list,
    unique,
    zip_lists_with,
)
from kvlint.formats.nix.values import (
    Attrs,
    Library,
    Outside,
    Primitive,
    Property,
    Run,
    Slot,
    Str,
    Thunk,
    Value,
    done,
    failed,
    make_set,
)
from kvlint.source import Span, Text
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator

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
    "forEach": (2, lambda ev, span, items, function: map_list(ev, span, function, items)),
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
    "warn": (2, builtins.trace),
    "warnIf": (3, warned_if),
    "warnIfNot": (3, warned_if),
    "zipListsWith": (3, zip_lists_with),
    **{name: (1, _priority("override", priority)) for name, priority in PRIORITIES.items()},
    **{name: (1, _priority("order", priority)) for name, priority in ORDERS.items()},
    **SHELL_FUNCTIONS,
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
        return builtins.member(name, span)
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
