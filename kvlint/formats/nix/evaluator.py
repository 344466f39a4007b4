"""The evaluator: lazy, as Nix is, and bounded.  What it does not know is a value with a reason."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kvlint.formats.nix import lib, outside
from kvlint.formats.nix.coerce import known_string, to_text
from kvlint.formats.nix.literals import list_literal, literal, path_literal, string_literal
from kvlint.formats.nix.operators import binary, unary
from kvlint.formats.nix.parser import parse
from kvlint.formats.nix.scope import bind, lookup
from kvlint.formats.nix.sets import attr_set, bindings, has_attr, select
from kvlint.formats.nix.syntax import (
    Apply,
    Assert,
    AttrSet,
    Bad,
    Binary,
    Expr,
    HasAttr,
    If,
    Lambda,
    Let,
    ListLiteral,
    Number,
    PathLiteral,
    Select,
    String,
    Unary,
    Variable,
    With,
)
from kvlint.formats.nix.values import (
    Attrs,
    Bool,
    Closure,
    Exhausted,
    Failed,
    Float,
    Int,
    Items,
    Library,
    Outside,
    Path,
    Primitive,
    Property,
    Scope,
    Script,
    Splice,
    Str,
    Stuck,
    Thunk,
    Value,
    done,
    failed,
    kind_of,
    opaque,
)
from kvlint.source import Source, Span, Text
from kvlint.tree import Opaque

MAX_DEPTH = 140
STEPS = 120_000
STEPS_A_LEAF = 40_000
MAX_LENGTH = 1_000_000
MAX_PIECES = 20_000

Resolve = Callable[[str], "Source | None"]


class Evaluator:
    """Evaluates the expressions of one run.  `scripts` and `generated` collect what the configuration writes to the store."""

    def __init__(self, resolve: Resolve | None = None) -> None:
        self.resolve = resolve
        self.steps = STEPS
        self.depth = 0
        self.files: dict[str, Thunk] = {}
        self.constants: dict[int, Value] = {}
        self.scripts: dict[tuple[Span, str], Script] = {}
        self.generated: dict[Span, tuple[Outside, Thunk, Thunk]] = {}

    # Budget

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise Exhausted(Opaque(outside.NOWHERE, "evaluating it takes too many steps"))

    @contextmanager
    def deeper(self, span: Span) -> Iterator[None]:
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                raise Exhausted(Opaque(span, "it is nested too deeply to be evaluated"))
            yield
        finally:
            self.depth -= 1

    def joined(self, parts: list[Text], span: Span) -> Text:
        """The parts as one text, within the bounds of size."""
        self.spend(sum(1 + len(part.pieces) + len(part.value) // 256 for part in parts))
        length, pieces = sum(len(part.value) for part in parts), sum(len(part.pieces) for part in parts)
        if length > MAX_LENGTH or pieces > MAX_PIECES:
            raise Exhausted(Opaque(span, "the string is too long to be evaluated"))
        if len(parts) == 1:
            return parts[0]
        text = Text.join(parts)
        return text if text.home is not None else Text("", (), (), span)

    # Thunks

    def force(self, thunk: Thunk) -> Value:
        """The value of a thunk, which may be unknown."""
        if thunk.value is not None:
            return thunk.value
        if thunk.busy:
            return Failed(thunk.span, "infinite recursion")
        thunk.busy = True
        try:
            value = self._run(thunk)
        except Exhausted:
            raise
        except Stuck as stuck:
            value = stuck.unknown if isinstance(stuck.unknown, Failed) else opaque(stuck.unknown)
        finally:
            thunk.busy = False
        thunk.value = value
        thunk.scope = thunk.run = None
        return value

    def _run(self, thunk: Thunk) -> Value:
        if thunk.run is not None:
            with self.deeper(thunk.span):
                self.spend(1)
                return thunk.run()
        assert thunk.expr is not None
        assert thunk.scope is not None
        return self.eval(thunk.expr, thunk.scope)

    def known(self, thunk: Thunk) -> Value:
        """The value of a thunk, to its outermost constructor; `Stuck` where it is unknown."""
        value = self.force(thunk)
        if isinstance(value, Outside):
            value = self.settled(value)
        if isinstance(value, (Opaque, Failed)):
            raise Stuck(value)
        return value

    def whole(self, thunk: Thunk) -> Value:
        """A known value that has no unknown part of which it could turn out to fail: no hole, no item or name left open."""
        value = self.known(thunk)
        if isinstance(value, (Str, Path)):
            known_string(value.text)
        elif isinstance(value, Items):
            self.closed(value)
        elif isinstance(value, Attrs):
            self.names(value, thunk.span)
        return value

    def settled(self, value: Outside) -> Value:
        """What the module itself says of `config.a.b`, where it says it plainly; else unknown."""
        found = outside.own_definition(self, value)
        if found is None:
            raise Stuck(opaque(value))
        return found

    def wrong(self, value: Value, wanted: str, span: Span) -> Stuck:
        """What to raise where a value is of another type than Nix wants."""
        if isinstance(value, (Opaque, Outside, Failed)):
            return Stuck(value)
        return failed(span, f"a {kind_of(value)} stands where Nix wants a {wanted}")

    def bool_of(self, thunk: Thunk) -> bool:
        value = self.known(thunk)
        if isinstance(value, Bool):
            return value.value
        raise self.wrong(value, "bool", thunk.span)

    def int_of(self, thunk: Thunk) -> int:
        value = self.known(thunk)
        if isinstance(value, Int):
            return value.value
        raise self.wrong(value, "int", thunk.span)

    def number_of(self, thunk: Thunk) -> Int | Float:
        value = self.known(thunk)
        if isinstance(value, (Int, Float)):
            return value
        raise self.wrong(value, "number", thunk.span)

    def text_of(self, thunk: Thunk) -> Text:
        """A string, which may have holes."""
        value = self.force(thunk)
        if isinstance(value, (Outside, Opaque)):
            return to_text(self, self.either(value), thunk.span, thunk=thunk)
        if isinstance(value, Str):
            return value.text
        raise self.wrong(value, "string", thunk.span)

    def string_of(self, thunk: Thunk) -> str:
        return known_string(self.text_of(thunk))

    def items_of(self, thunk: Thunk) -> Items:
        value = self.known(thunk)
        if isinstance(value, Items):
            return value
        raise self.wrong(value, "list", thunk.span)

    def closed(self, value: Items) -> tuple[Thunk, ...]:
        """The items of a list of which all are known to be there."""
        self.spend(1 + len(value.items) // 8)
        plain: list[Thunk] = []
        for item in value.items:
            if isinstance(item, Splice):
                raise Stuck(opaque(item.unknown))
            plain.append(item)
        return tuple(plain)

    def list_of(self, thunk: Thunk) -> tuple[Thunk, ...]:
        return self.closed(self.items_of(thunk))

    def attrs_of(self, thunk: Thunk) -> Attrs:
        value = self.known(thunk)
        if isinstance(value, Attrs):
            return value
        raise self.wrong(value, "set", thunk.span)

    def names(self, value: Attrs, span: Span) -> list[str]:
        """The names of a set of which all are known to be there, in Nix's order."""
        self.spend(1 + len(value.slots))
        for slot in value.slots.values():
            if slot.maybe is not None:
                raise Stuck(opaque(slot.maybe))
        if value.open:
            raise Stuck(opaque(value.open[0]))
        return sorted(value.slots)

    def either(self, value: Value) -> Value:
        """An `Outside` that the module itself answers is that answer."""
        if isinstance(value, Outside):
            return outside.own_definition(self, value) or value
        return value

    # Expressions

    def eval(self, expr: Expr, scope: Scope) -> Value:
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                raise Exhausted(Opaque(expr.span, "it is nested too deeply to be evaluated"))
            while True:
                self.steps -= 1
                if self.steps < 0:
                    raise Exhausted(Opaque(expr.span, "evaluating it takes too many steps"))
                if isinstance(expr, Apply):
                    function = self.eval(expr.function, scope)
                    argument = self.delay(expr.argument, scope)
                    if not isinstance(function, Closure):
                        return self.apply(function, argument, expr.span)
                    scope, expr = bind(self, function, argument, expr.span), function.function.body
                elif isinstance(expr, If):
                    expr = expr.then if self.condition(expr.condition, scope) else expr.otherwise
                elif isinstance(expr, Let):
                    scope, expr = bindings(self, expr.bindings, scope), expr.body
                elif isinstance(expr, With):
                    scope, expr = Scope({}, scope, self.delay(expr.environment, scope)), expr.body
                elif isinstance(expr, Assert):
                    if not self.condition(expr.condition, scope):
                        raise failed(expr.span, "an assertion fails")
                    expr = expr.body
                else:
                    return _HANDLERS[type(expr)](self, expr, scope)
        finally:
            self.depth -= 1

    def delay(self, expr: Expr, scope: Scope) -> Thunk:
        return Thunk(expr, scope)

    def condition(self, expr: Expr, scope: Scope) -> bool:
        value = self.either(self.eval(expr, scope))
        if isinstance(value, Bool):
            return value.value
        raise self.wrong(value, "bool", expr.span)

    def variable(self, expr: Variable, scope: Scope) -> Value:
        return self.force(lookup(self, expr, scope))

    def known_or_outside(self, thunk: Thunk) -> Value:
        value = self.force(thunk)
        if isinstance(value, (Opaque, Failed)):
            raise Stuck(value)
        return value

    def attribute(self, value: Value, name: str, span: Span | None = None) -> Thunk | None:
        """An attribute of a value; None where it is certainly absent, `Stuck` where that is not known."""
        if isinstance(value, Attrs):
            slot = value.slots.get(name)
            if slot is not None:
                if slot.maybe is not None:
                    raise Stuck(opaque(slot.maybe))
                return slot.value
            if value.open:
                raise Stuck(opaque(value.open[0]))
            return None
        if isinstance(value, (Opaque, Failed)):
            raise Stuck(value)
        place = span or outside.NOWHERE
        if isinstance(value, Library):
            return done(lib.member(value, name, place), place)
        if isinstance(value, Outside):
            return done(outside.member(value, name, place), place)
        if isinstance(value, Script):
            return done(outside.script_member(value, name, place), place)
        if isinstance(value, Property):
            raise Stuck(Opaque(value.span, "a definition with a condition or a priority has no attributes yet"))
        return None

    # Functions

    def apply(self, function: Value, argument: Thunk, span: Span) -> Value:
        """The value of a function called with one argument."""
        if isinstance(function, Closure):
            return self.eval(function.function.body, bind(self, function, argument, span))
        if isinstance(function, Primitive):
            arguments = (*function.arguments, argument)
            if len(arguments) < function.arity:
                return Primitive(function.name, function.arity, function.run, arguments)
            self.spend(2)
            with self.deeper(span):
                result: Value = function.run(self, span, *arguments)
                return result
        if isinstance(function, Outside):
            return outside.call(self, function, argument, span)
        if isinstance(function, Attrs):
            functor = self.attribute(function, "__functor")
            if functor is not None:
                inner = self.apply(self.known(functor), done(function, span), span)
                return self.apply(inner, argument, span)
        raise self.wrong(function, "function", span)

    def call(self, function: Value, *arguments: Thunk, span: Span) -> Value:
        for argument in arguments:
            function = self.apply(function, argument, span)
        return function

    def later(self, function: Thunk, *arguments: Thunk, span: Span) -> Thunk:
        """A call that is made when its value is needed."""
        return Thunk(span=span, run=lambda: self.call(self.known_or_outside(function), *arguments, span=span))

    # Files

    def load(self, path: str, span: Span) -> Thunk:
        """The value of another file of the project, or of its `default.nix`."""
        for candidate in (path, posixpath.join(path, "default.nix")):
            known = self.files.get(candidate)
            if known is not None:
                return known
            source = self.resolve(candidate) if self.resolve is not None else None
            if source is not None:
                return self.file(source, candidate)
        raise Stuck(Opaque(span, f"{path} is not in the project"))

    def file(self, source: Source, path: str) -> Thunk:
        root = parse(source).root
        if root is None:
            raise Stuck(Opaque(source.span(0, 0), "the file holds no expression"))
        thunk = self.delay(root, Scope({}, None))
        self.files[path] = thunk
        return thunk


def _function(ev: Evaluator, expr: Lambda, scope: Scope) -> Value:
    return Closure(expr, scope)


def _bad(ev: Evaluator, expr: Bad, scope: Scope) -> Value:
    raise Stuck(Opaque(expr.span, expr.reason))


_HANDLERS: dict[type[Expr], Callable[[Evaluator, Any, Scope], Value]] = {
    Variable: Evaluator.variable,
    Number: literal,
    String: string_literal,
    PathLiteral: path_literal,
    Select: select,
    HasAttr: has_attr,
    Lambda: _function,
    AttrSet: attr_set,
    ListLiteral: list_literal,
    Binary: binary,
    Unary: unary,
    Bad: _bad,
}
