"""The functions of Nix itself, as far as they are pure.  Each takes the evaluator, the place of the call, and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor
from typing import TYPE_CHECKING

from kvlint.formats.nix import outside
from kvlint.formats.nix.attrs import (
    attr_names,
    attr_values,
    cat_attrs,
    get_attr,
    has_attr,
    intersect_attrs,
    list_to_attrs,
    map_attrs,
    remove_attrs,
    zip_attrs_with,
)
from kvlint.formats.nix.coerce import integer, json_text, less, to_text, truth
from kvlint.formats.nix.json import from_json
from kvlint.formats.nix.lists import (
    _some,
    concat_lists,
    concat_map,
    elem,
    elem_at,
    filter_list,
    fold,
    gen_list,
    group_by,
    head,
    length,
    map_list,
    partition,
    sort,
    tail,
)
from kvlint.formats.nix.numbers import arithmetic
from kvlint.formats.nix.strings import STRING_BUILTINS
from kvlint.formats.nix.syntax import Variable
from kvlint.formats.nix.values import (
    Attrs,
    Closure,
    Int,
    Items,
    Library,
    Null,
    Outside,
    Primitive,
    Property,
    Run,
    Str,
    Stuck,
    Thunk,
    Value,
    done,
    failed,
    kind_of,
    make_set,
)
from kvlint.source import Span, Text
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator


def to_string(ev: Evaluator, span: Span, value: Thunk) -> Value:
    return Str(to_text(ev, ev.either(ev.force(value)), span, more=True, copy=False, thunk=value))


def to_json(ev: Evaluator, span: Span, value: Thunk) -> Value:
    return Str(json_text(ev, value, span))


def fail(ev: Evaluator, span: Span, message: Thunk) -> Value:
    raise failed(span, "the expression throws an error")


def trace(ev: Evaluator, span: Span, message: Thunk, value: Thunk) -> Value:
    return ev.force(value)


def seq(ev: Evaluator, span: Span, first: Thunk, value: Thunk) -> Value:
    ev.whole(first)
    return ev.force(value)


def deep_seq(ev: Evaluator, span: Span, first: Thunk, value: Thunk) -> Value:
    _deep(ev, first, span)
    return ev.force(value)


def _deep(ev: Evaluator, thunk: Thunk, span: Span) -> None:
    value = ev.whole(thunk)
    with ev.deeper(span):
        if isinstance(value, Items):
            for item in ev.closed(value):
                _deep(ev, item, span)
        elif isinstance(value, Attrs):
            for name in ev.names(value, span):
                _deep(ev, value.slots[name].value, span)


def try_eval(ev: Evaluator, span: Span, value: Thunk) -> Value:
    """Known only where the value is: a failure may be one that tryEval does not catch."""
    ev.whole(value)
    success = done(truth(True, span), span)
    return make_set({"success": success, "value": value}, span)


def _operator(sign: str) -> Run:
    def run(ev: Evaluator, span: Span, a: Thunk, b: Thunk) -> Value:
        return arithmetic(sign, ev.number_of(a), ev.number_of(b), span)

    return run


def _rounded(how: Callable[[float], int]) -> Run:
    def run(ev: Evaluator, span: Span, value: Thunk) -> Value:
        number = ev.number_of(value)
        if isinstance(number, Int) and abs(number.value) < 2**53:
            return number
        if isinstance(number, Int) or abs(number.value) >= 2**63:
            raise Stuck(Opaque(span, "the number is too large to be rounded exactly"))
        return integer(how(number.value), span, number.text)

    return run


def _bits(how: Callable[[int, int], int]) -> Run:
    def run(ev: Evaluator, span: Span, a: Thunk, b: Thunk) -> Value:
        left, right = ev.number_of(a), ev.number_of(b)
        return integer(how(ev.int_of(a), ev.int_of(b)), span, left.text, right.text)

    return run


def less_than(ev: Evaluator, span: Span, a: Thunk, b: Thunk) -> Value:
    return truth(less(ev, a, b, span), span)


def _is(*kinds: str) -> Run:
    def run(ev: Evaluator, span: Span, value: Thunk) -> Value:
        return truth(_kind(ev, value, span) in kinds, span)

    return run


def _kind(ev: Evaluator, thunk: Thunk, span: Span) -> str:
    value = ev.whole(thunk)
    if isinstance(value, (Property, Outside)):
        raise Stuck(Opaque(span, "the type of the value is not known"))
    return kind_of(value)


def type_of(ev: Evaluator, span: Span, value: Thunk) -> Value:
    return Str(Text.at(_kind(ev, value, span), span))


def function_args(ev: Evaluator, span: Span, function: Thunk) -> Value:
    value = ev.known(function)
    if not isinstance(value, Closure):
        raise Stuck(Opaque(span, "the arguments of the function are not known"))
    formals = value.function.formals or ()
    return make_set({f.name: done(truth(f.default is not None, f.span), f.span) for f in formals}, span)


_TABLE: dict[str, tuple[int, Run]] = {
    "abort": (1, fail),
    "add": (2, _operator("+")),
    "addErrorContext": (2, trace),
    "all": (2, _some(False)),
    "any": (2, _some(True)),
    "attrNames": (1, attr_names),
    "attrValues": (1, attr_values),
    "bitAnd": (2, _bits(int.__and__)),
    "bitOr": (2, _bits(int.__or__)),
    "bitXor": (2, _bits(int.__xor__)),
    "catAttrs": (2, cat_attrs),
    "ceil": (1, _rounded(ceil)),
    "concatLists": (1, concat_lists),
    "concatMap": (2, concat_map),
    "deepSeq": (2, deep_seq),
    "div": (2, _operator("/")),
    "elem": (2, elem),
    "elemAt": (2, elem_at),
    "filter": (2, filter_list),
    "floor": (1, _rounded(floor)),
    "foldl'": (3, fold),
    "fromJSON": (1, from_json),
    "functionArgs": (1, function_args),
    "genList": (2, gen_list),
    "getAttr": (2, get_attr),
    "groupBy": (2, group_by),
    "hasAttr": (2, has_attr),
    "head": (1, head),
    "import": (1, lambda ev, span, path: outside.load(ev, path, span)),
    "intersectAttrs": (2, intersect_attrs),
    "isAttrs": (1, _is("set")),
    "isBool": (1, _is("bool")),
    "isFloat": (1, _is("float")),
    "isFunction": (1, _is("lambda")),
    "isInt": (1, _is("int")),
    "isList": (1, _is("list")),
    "isNull": (1, _is("null")),
    "isPath": (1, _is("path")),
    "isString": (1, _is("string")),
    "length": (1, length),
    "lessThan": (2, less_than),
    "listToAttrs": (1, list_to_attrs),
    "map": (2, map_list),
    "mapAttrs": (2, map_attrs),
    "mul": (2, _operator("*")),
    "partition": (2, partition),
    "readFile": (1, lambda ev, span, path: Str(outside.source_of(ev, path, span))),
    "removeAttrs": (2, remove_attrs),
    "seq": (2, seq),
    "sort": (2, sort),
    "sub": (2, _operator("-")),
    "tail": (1, tail),
    "throw": (1, fail),
    "toJSON": (1, to_json),
    "toString": (1, to_string),
    "trace": (2, trace),
    "traceVerbose": (2, trace),
    "tryEval": (1, try_eval),
    "typeOf": (1, type_of),
    "zipAttrsWith": (2, zip_attrs_with),
    **STRING_BUILTINS,
}
BUILTINS = {name: Primitive(name, arity, run) for name, (arity, run) in _TABLE.items()}
# What Nix puts in scope without `builtins.`.
_GLOBAL = ("abort", "baseNameOf", "dirOf", "import", "isNull", "map", "removeAttrs", "throw", "toString")
_OUTSIDE = (
    "derivation",
    "fetchGit",
    "fetchMercurial",
    "fetchTarball",
    "fetchTree",
    "placeholder",
    "fromTOML",
    "scopedImport",
)


def global_value(expr: Variable) -> Value | None:
    """What a name means where nothing binds it: a builtin that needs no prefix."""
    name = expr.name
    if name == "null":
        return Null(Text.of(expr.source, expr.start, expr.end))
    if name in _GLOBAL:
        return BUILTINS[name]
    if name == "builtins":
        return Library("builtins.")
    if name.startswith("__"):
        return BUILTINS.get(name[2:])
    if name in _OUTSIDE:
        return Outside(expr.span, ("builtins", name))
    return None


def member(name: str, span: Span) -> Value:
    """`builtins.name`."""
    if name in BUILTINS:
        return BUILTINS[name]
    if name in ("true", "false"):
        return truth(name == "true", span)
    if name == "null":
        return Null(Text.at("null", span))
    if name == "builtins":
        return Library("builtins.")
    return Outside(span, ("builtins", name))
