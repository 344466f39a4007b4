"""Values as strings, as JSON, and compared: Nix's own rules, exactly, or `Stuck`."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING

from kvlint.formats.nix.syntax import Binary
from kvlint.formats.nix.values import (
    MAX_INT,
    Attrs,
    Bool,
    Closure,
    Failed,
    Float,
    Int,
    Items,
    Null,
    Outside,
    Path,
    Primitive,
    Script,
    Splice,
    Str,
    Stuck,
    Thunk,
    Value,
    computed,
    done,
    failed,
    hole,
    kind_of,
    respelt,
)
from kvlint.patterns import regex
from kvlint.source import Span, Text
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator

_ARITHMETIC = {"+", "-", "*", "/"}
_SEVERAL = regex(r"arg|flag|opt|extra|param|cmd|command", re.IGNORECASE)
_PACKAGE_SETS = ("pkgs", "nixpkgs")
_STORE = "a path in the store, named by the hash of its contents"
_JSON_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_JSON_SPECIAL = regex(r'["\\\x00-\x1f]')


def is_package(value: Outside) -> bool:
    """Something out of a package set, or an option that holds a package: in a string it is one store path."""
    sets = value.path[:-1] or value.path
    if any(step.startswith(_PACKAGE_SETS) for step in sets) or "packages" in sets or "legacyPackages" in sets:
        return True
    return bool(value.path) and value.path[-1].lower().endswith("package")


def may_split(value: Value, thunk: Thunk | None = None) -> bool:
    """Whether something unknown may stand for several words of a command, or none."""
    if isinstance(value, Outside):
        return not is_package(value) and (bool(value.arguments) or _SEVERAL.search(value.path[-1] or "") is not None)
    expr = thunk.expr if thunk is not None else None
    return not isinstance(value, Failed) and not (isinstance(expr, Binary) and expr.operator in _ARITHMETIC)


def to_text(
    ev: Evaluator, value: Value, span: Span, *, more: bool = False, copy: bool = True, thunk: Thunk | None = None
) -> Text:
    """A value where Nix wants a string.  `more`: as `toString` does, numbers and lists too; `copy`: a path goes to the store."""
    if isinstance(value, Str):
        return value.text
    if isinstance(value, (Opaque, Outside, Failed)):
        return hole(value.span, value, splice=may_split(value, thunk))
    if isinstance(value, Script):
        return hole(value.span, value, splice=False)
    if isinstance(value, Path):
        return hole(span, Opaque(span, _STORE), splice=False) if copy else value.text
    if isinstance(value, Attrs):
        return _set_text(ev, value, span, more=more, copy=copy)
    if more and isinstance(value, Items):
        return _list_text(ev, value, span, copy=copy)
    if more and isinstance(value, (Int, Float, Bool, Null)):
        return respelt(value.text, _plain(value), span)
    hint = "; toString is missing" if isinstance(value, (Int, Float, Bool, Null, Items)) else ""
    raise failed(span, f"a {kind_of(value)} is not a string{hint}")


def _plain(value: Int | Float | Bool | Null) -> str:
    if isinstance(value, Int):
        return str(value.value)
    if isinstance(value, Float):
        return f"{value.value:f}"
    return "1" if isinstance(value, Bool) and value.value else ""


def _set_text(ev: Evaluator, value: Attrs, span: Span, *, more: bool, copy: bool) -> Text:
    for name in ("__toString", "outPath"):
        found = ev.attribute(value, name)
        if found is None:
            continue
        by_call = name == "__toString"
        result = ev.apply(ev.known(found), done(value, span), span) if by_call else ev.force(found)
        return to_text(ev, result, span, more=more, copy=copy)
    raise failed(span, "a set is not a string")


def _list_text(ev: Evaluator, value: Items, span: Span, *, copy: bool) -> Text:
    parts: list[Text] = []
    last = len(value.items) - 1
    for number, item in enumerate(value.items):
        if isinstance(item, Splice):
            parts.append(hole(item.unknown.span, item.unknown, splice=True))
            empty = False
        else:
            inner = ev.force(item)
            parts.append(to_text(ev, inner, item.span, more=True, copy=copy, thunk=item))
            empty = isinstance(inner, Items) and not inner.items
        if number < last and not empty:
            parts.append(Text.at(" ", span))
    return ev.joined(parts, span)


def json_text(ev: Evaluator, thunk: Thunk, span: Span) -> Text:
    """`builtins.toJSON`.  Floats and control characters that releases of Nix print differently are stuck."""
    parts: list[Text] = []
    _put_json(ev, thunk, span, parts)
    return ev.joined(parts, span)


def _put_json(ev: Evaluator, thunk: Thunk, span: Span, parts: list[Text]) -> None:
    value = ev.force(thunk)
    ev.spend(4)
    if isinstance(value, (Int, Bool, Null)):
        parts.append(value.text)
    elif isinstance(value, Float):
        parts.append(respelt(value.text, _json_float(value.value, span), span))
    elif isinstance(value, (Str, Script, Path)):
        parts += _json_string(to_text(ev, value, span), span)
    elif isinstance(value, Items):
        _put_list(ev, value, span, parts)
    elif isinstance(value, Attrs) and ("__toString" in value.slots or "outPath" in value.slots):
        parts += _json_string(to_text(ev, value, span), span)
    elif isinstance(value, Attrs):
        _put_set(ev, value, span, parts)
    elif isinstance(value, (Opaque, Outside, Failed)):
        parts.append(hole(value.span, value, splice=False))
    else:
        raise failed(span, f"a {kind_of(value)} cannot be written as JSON")


def _put_list(ev: Evaluator, value: Items, span: Span, parts: list[Text]) -> None:
    parts.append(Text.at("[", span))
    for number, item in enumerate(value.items):
        if number:
            parts.append(Text.at(",", span))
        if isinstance(item, Splice):
            raise Stuck(item.unknown)
        with ev.deeper(span):
            _put_json(ev, item, span, parts)
    parts.append(Text.at("]", span))


def _put_set(ev: Evaluator, value: Attrs, span: Span, parts: list[Text]) -> None:
    parts.append(Text.at("{", span))
    for number, name in enumerate(ev.names(value, span)):
        if number:
            parts.append(Text.at(",", span))
        slot = value.slots[name]
        parts += _json_string(slot.key, span)
        parts.append(Text.at(":", span))
        with ev.deeper(span):
            _put_json(ev, slot.value, span, parts)
    parts.append(Text.at("}", span))


def _json_float(value: float, span: Span) -> str:
    short, exact = f"{value:g}", repr(value)
    if short != exact:
        raise Stuck(Opaque(span, "releases of Nix write this number differently in JSON"))
    return exact


def _json_string(text: Text, span: Span) -> list[Text]:
    parts = [Text.at('"', span)]
    at = 0
    for match in _JSON_SPECIAL.finditer(text.value):
        char = match[0]
        written = _JSON_ESCAPES.get(char) or f"\\u{ord(char):04x}"
        if char in "\b\f":
            raise Stuck(Opaque(span, "releases of Nix escape this character differently in JSON"))
        parts.append(text.slice(at, match.start()))
        place = text.slice(match.start(), match.end())
        parts.append(computed(written, place.span, place))
        at = match.end()
    parts.append(text.slice(at))
    parts.append(Text.at('"', span))
    return parts


def known_string(text: Text) -> str:
    """The characters of a text of which everything is known."""
    if text.holes:
        first = text.holes[0]
        raise Stuck(Opaque(first.span, first.reason, first.supply))
    return text.value


def equal(ev: Evaluator, left: Thunk, right: Thunk, span: Span) -> bool:
    """Nix's `==`.  Functions are stuck: whether two are the same depends on how they were reached."""
    a, b = ev.known(left), ev.known(right)
    ev.spend(1)
    if isinstance(a, (Int, Float)) and isinstance(b, (Int, Float)):
        return _same_number(a, b)
    if isinstance(a, (Closure, Primitive)) and isinstance(b, (Closure, Primitive)):
        raise Stuck(Opaque(span, "functions are compared"))
    if kind_of(a) == "unknown" or kind_of(b) == "unknown" or isinstance(a, Script) or isinstance(b, Script):
        raise Stuck(Opaque(span, "what is compared is not known"))
    if type(a) is not type(b) and kind_of(a) != kind_of(b):
        ev.whole(left)
        ev.whole(right)
        return False
    if isinstance(a, Bool) and isinstance(b, Bool):
        return a.value == b.value
    if isinstance(a, (Str, Path)) and isinstance(b, (Str, Path)):
        return known_string(a.text) == known_string(b.text)
    if isinstance(a, Items) and isinstance(b, Items):
        return _same_list(ev, a, b, span)
    if isinstance(a, Attrs) and isinstance(b, Attrs):
        return _same_set(ev, a, b, span)
    if isinstance(a, Null):
        return True
    raise Stuck(Opaque(span, "what is compared is not known"))


def _same_number(a: Int | Float, b: Int | Float) -> bool:
    if isinstance(a, Int) and isinstance(b, Int):
        return a.value == b.value
    return float(a.value) == float(b.value)


def _same_list(ev: Evaluator, a: Items, b: Items, span: Span) -> bool:
    xs, ys = ev.closed(a), ev.closed(b)
    if len(xs) != len(ys):
        return False
    with ev.deeper(span):
        return all(equal(ev, x, y, span) for x, y in zip(xs, ys, strict=True))


def _same_set(ev: Evaluator, a: Attrs, b: Attrs, span: Span) -> bool:
    """Nix compares in an order of its own, so an unknown attribute anywhere is stuck."""
    names = ev.names(a, span)
    if any("type" in side.slots for side in (a, b)):
        raise Stuck(Opaque(span, "sets with a type may be derivations, which are compared by their paths"))
    others = ev.names(b, span)
    if len(names) != len(others):
        return False
    with ev.deeper(span):
        same = [equal(ev, a.slots[name].value, b.slots[name].value, span) for name in names if name in b.slots]
    return names == others and all(same)


def less(ev: Evaluator, left: Thunk, right: Thunk, span: Span) -> bool:
    """Nix's `<` on numbers, strings, paths and lists."""
    a, b = ev.known(left), ev.known(right)
    ev.spend(1)
    if isinstance(a, Int) and isinstance(b, Int):
        return a.value < b.value
    if isinstance(a, (Int, Float)) and isinstance(b, (Int, Float)):
        return float(a.value) < float(b.value)
    if (isinstance(a, Str) and isinstance(b, Str)) or (isinstance(a, Path) and isinstance(b, Path)):
        return known_string(a.text).encode("utf-8", "replace") < known_string(b.text).encode("utf-8", "replace")
    if isinstance(a, Items) and isinstance(b, Items):
        return _less_list(ev, a, b, span)
    raise failed(span, f"a {kind_of(a)} cannot be compared with a {kind_of(b)}")


def _less_list(ev: Evaluator, a: Items, b: Items, span: Span) -> bool:
    xs, ys = ev.closed(a), ev.closed(b)
    with ev.deeper(span):
        for x, y in zip(xs, ys, strict=False):
            if not equal(ev, x, y, span):
                return less(ev, x, y, span)
    return len(xs) < len(ys)


def finite(value: float, span: Span, *operands: Text) -> Float:
    if not isfinite(value):
        raise Stuck(Opaque(span, "the number is out of the range of a double"))
    return Float(value, computed(repr(value), span, *operands))


def integer(value: int, span: Span, *operands: Text) -> Int:
    if not -MAX_INT - 1 <= value <= MAX_INT:
        raise Stuck(Opaque(span, "the number does not fit in 64 bits"))
    return Int(value, computed(str(value), span, *operands))


def truth(value: bool, span: Span, *operands: Text) -> Bool:
    return Bool(value, computed("true" if value else "false", span, *operands))
