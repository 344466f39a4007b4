"""Values to the located tree: what the module system makes of `mkIf`, `mkMerge` and priorities, and functions called as modules.

A definition under a condition that is not known stands in the tree as it is written; its path is noted with the condition.
"""

from __future__ import annotations

from kvlint.formats.nix.evaluator import STEPS_A_LEAF, Evaluator
from kvlint.formats.nix.scope import bind
from kvlint.formats.nix.values import (
    Attrs,
    Bool,
    Closure,
    Failed,
    Float,
    Int,
    Items,
    Library,
    Null,
    Outside,
    Path,
    Primitive,
    Property,
    Script,
    Splice,
    Str,
    Stuck,
    Thunk,
    Unknown,
    Value,
    done,
    hole,
    opaque,
)
from kvlint.records import dataclass, replace
from kvlint.source import Span
from kvlint.tree import Entry, List, Map, Node, Opaque, Scalar

Steps = tuple["str | int", ...]
MAX_DEPTH = 60
MAX_NODES = 20_000
_NORMAL = 100
_IN_ORDER = 1000
_TAGS: dict[type, str] = {Int: "int", Float: "float", Bool: "bool", Null: "null", Str: "str", Path: "path"}


@dataclass(frozen=True, slots=True)
class Condition:
    """`span`: the condition as it is written; nothing below the path is there unless it holds."""

    span: Span
    reason: str


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition of one option.  A lower `priority` wins; lists are joined by `order`."""

    thunk: Thunk
    conditions: tuple[Condition, ...] = ()
    priority: int = _NORMAL
    order: int = _IN_ORDER


class TreeBuilder:
    """Makes nodes of values.  `conditions`: by path, what must hold for the node to be in force."""

    def __init__(self, ev: Evaluator) -> None:
        self.ev = ev
        self.conditions: dict[Steps, tuple[Condition, ...]] = {}
        self.nodes = 0

    def root(self, thunk: Thunk) -> Node:
        """The node of a file: a function is called as a module is, several times if it takes its arguments one by one."""
        for _ in range(4):
            value = self.value(thunk)
            if not isinstance(value, Closure):
                break
            thunk = self.called(value, thunk.span)
        return self.node([Definition(thunk)], ()) or Map((), thunk.span)

    def called(self, function: Closure, span: Span) -> Thunk:
        """A function called with arguments from outside; `config` answers from the module's own definitions."""
        result = Thunk(span=function.function.body.span)
        argument = done(Outside(span, (), (), result), span)

        def run() -> Value:
            return self.ev.eval(function.function.body, bind(self.ev, function, argument, span))

        result.run = run
        return result

    def value(self, thunk: Thunk) -> Value:
        """The value of a thunk, with a budget of its own."""
        left = self.ev.steps
        self.ev.steps = min(left, STEPS_A_LEAF)
        given = self.ev.steps
        depth = self.ev.depth
        try:
            return self.ev.either(self.ev.force(thunk))
        except Stuck as stuck:
            thunk.value = Opaque(thunk.span, stuck.unknown.reason)
        except RecursionError:
            self.ev.depth = depth
            thunk.value = Opaque(thunk.span, "it is nested too deeply to be evaluated")
        finally:
            self.ev.steps = left - (given - max(0, self.ev.steps))
        return thunk.value

    def node(self, definitions: list[Definition], path: Steps) -> Node | None:
        """The node that some definitions of one option make together; None where there is none left."""
        self.nodes += 1
        span = definitions[0].thunk.span
        if len(path) > MAX_DEPTH or self.nodes > MAX_NODES:
            return Opaque(span, "it is nested too deeply or too large to be read")
        found = [plain for definition in definitions for plain in self.plain(definition, 0)]
        if not found:
            return None
        winners = _winners(found)
        if len(winners) == 1:
            self.note(path, winners[0].conditions)
            return self.single(winners[0], path)
        return self.several(winners, path)

    def note(self, path: Steps, conditions: tuple[Condition, ...]) -> None:
        if conditions:
            self.conditions[path] = conditions

    def plain(self, definition: Definition, depth: int) -> list[Definition]:
        """The definitions under `mkIf`, `mkMerge`, `mkOverride`, `mkOrder`."""
        value = self.value(definition.thunk)
        self.nodes += 1
        if not isinstance(value, Property) or depth > MAX_DEPTH or self.nodes > MAX_NODES:
            return [definition]
        if value.kind == "merge":
            parts = self.value(value.content)
            if not isinstance(parts, Items):
                return [replace(definition, thunk=value.content)]
            merged: list[Definition] = []
            for item in parts.items:
                thunk = item if isinstance(item, Thunk) else done(opaque(item.unknown), item.unknown.span)
                merged += self.plain(replace(definition, thunk=thunk), depth + 1)
            return merged
        inner = replace(definition, thunk=value.content)
        if value.kind == "override":
            inner = replace(inner, priority=value.priority)
        elif value.kind == "order":
            inner = replace(inner, order=value.priority)
        elif value.condition is not None:
            answer = self.value(value.condition)
            if isinstance(answer, Bool) and not answer.value:
                return []
            if not isinstance(answer, Bool):
                reason = answer.reason if isinstance(answer, (Opaque, Outside, Failed)) else "it is not a bool"
                condition = Condition(value.condition.span, reason)
                inner = replace(inner, conditions=(*inner.conditions, condition))
        return self.plain(inner, depth + 1)

    def single(self, definition: Definition, path: Steps) -> Node:
        value = self.value(definition.thunk)
        span = definition.thunk.span
        if isinstance(value, Attrs):
            return self.map([(definition, value)], path, span)
        if isinstance(value, Items):
            return self.list([(definition, value)], path, span)
        return self.leaf(value, path, span)

    def leaf(self, value: Value, path: Steps, span: Span) -> Node:
        tag = _TAGS.get(type(value))
        if tag is not None:
            assert isinstance(value, (Int, Float, Bool, Null, Str, Path))
            return Scalar(value.text, span, tag, quoted=tag == "str")
        if isinstance(value, Script):
            return Scalar(hole(value.span, value, splice=False), span, "str", quoted=True)
        if isinstance(value, Closure):
            return self.function(value, path, span)
        if isinstance(value, Outside):
            return self.outside(value, path, span)
        if isinstance(value, (Opaque, Failed)):
            return Opaque(span, value.reason, value.supply)
        if isinstance(value, (Primitive, Library)):
            return Opaque(span, "a function of nixpkgs' library")
        return Opaque(span, "a definition of the module system in a place where it is not understood")

    def function(self, value: Closure, path: Steps, span: Span) -> Node:
        """A module written in place: `{ pkgs, ... }: { … }`."""
        if value.function.formals is None:
            return Opaque(span, "a function")
        return self.node([Definition(self.called(value, span))], path) or Map((), span)

    def outside(self, value: Outside, path: Steps, span: Span) -> Node:
        """Something made elsewhere; a system made of `modules` (`nixosSystem`, `darwinSystem`, …) shows them."""
        if value.arguments:
            made = self.value(value.arguments[-1])
            if isinstance(made, Attrs) and (
                "modules" in made.slots or "flake" in made.slots or "perSystem" in made.slots
            ):
                return self.map([(Definition(value.arguments[-1]), made)], path, value.arguments[-1].span)
        return Opaque(span, value.reason, value.supply)

    def several(self, found: list[Definition], path: Steps) -> Node:
        """Several definitions of one option: sets are merged, lists joined, equal scalars are one."""
        span = found[0].thunk.span
        values = [(definition, self.value(definition.thunk)) for definition in found]
        sets = [(d, v) for d, v in values if isinstance(v, Attrs)]
        if len(sets) == len(values):
            self.note(path, _shared(found))
            return self.map(sets, path, span)
        lists = [(d, v) for d, v in values if isinstance(v, Items)]
        if len(lists) == len(values):
            self.note(path, _shared(found))
            return self.list(sorted(lists, key=lambda pair: pair[0].order), path, span)
        for definition, value in values:
            if isinstance(value, (Opaque, Outside, Failed)) and not definition.conditions and sets:
                return self.map(sets, path, span, (opaque(value),))
        texts = {v.text.value for _, v in values if isinstance(v, (Int, Float, Bool, Null, Str, Path)) and v.text.known}
        if len(texts) == 1 and all(isinstance(v, (Int, Float, Bool, Null, Str, Path)) for _, v in values):
            return self.leaf(values[0][1], path, span)
        conditions = [c for definition in found for c in definition.conditions]
        why = f"which one holds depends on {conditions[0].span.text}" if conditions else "it is defined several times"
        return Opaque(span, why)

    def map(
        self, sets: list[tuple[Definition, Attrs]], path: Steps, span: Span, unknown: tuple[Opaque, ...] = ()
    ) -> Map:
        shared = _shared([definition for definition, _ in sets])
        grouped: dict[str, list[Definition]] = {}
        keys: dict[str, Scalar] = {}
        open_: list[Opaque] = [*unknown]
        for definition, value in sets:
            open_ += (opaque(item) for item in value.open)
            below = definition.conditions[len(shared) :] if definition.conditions[: len(shared)] == shared else ()
            for name, slot in value.slots.items():
                conditions = below if slot.maybe is None else (*below, _condition(slot.maybe))
                grouped.setdefault(name, []).append(Definition(slot.value, conditions))
                keys.setdefault(name, Scalar(slot.key, slot.key_span, "str", slot.key_span.text.startswith('"')))
        entries = []
        for name, definitions in grouped.items():
            made = self.node(definitions, (*path, name))
            if made is not None:
                entries.append(Entry(keys[name], made))
        return Map(tuple(entries), span, tuple(open_))

    def list(self, lists: list[tuple[Definition, Items]], path: Steps, span: Span) -> List:
        """An item that stands for any number of items is `Opaque`, and stands in `open` too."""
        items: list[Node] = []
        open_: list[Opaque] = []
        for definition, value in lists:
            if definition.conditions and len(lists) > 1:
                condition = definition.conditions[0]
                unknown = Opaque(definition.thunk.span, f"it depends on {condition.span.text}: {condition.reason}")
                items.append(unknown)
                open_.append(unknown)
                continue
            for item in value.items:
                if isinstance(item, Splice):
                    open_.append(opaque(item.unknown))
                    items.append(open_[-1])
                    continue
                made = self.node([Definition(item)], (*path, len(items)))
                if made is not None:
                    items.append(made)
        return List(tuple(items), span, tuple(open_))


def _condition(unknown: Unknown) -> Condition:
    return Condition(unknown.span, unknown.reason)


def _shared(found: list[Definition]) -> tuple[Condition, ...]:
    """The conditions that all definitions are under."""
    first = found[0].conditions
    if all(definition.conditions == first for definition in found):
        return first
    return ()


def _winners(found: list[Definition]) -> list[Definition]:
    """The definitions of the best priority, and those of a better one whose condition is not known."""
    best = min((d.priority for d in found if not d.conditions), default=None)
    if best is None:
        return found
    return [d for d in found if d.priority <= best]
