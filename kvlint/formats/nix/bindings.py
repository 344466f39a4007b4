"""Bindings into sets as Nix's own parser folds them: dotted keys, sets under one key, `inherit`."""

from __future__ import annotations

from kvlint.formats.nix.syntax import AttrSet, Bad, Definition, Expr, Key, Problem, Variable

_MERGED = "releases of Nix merge these sets differently"


def inherit(problems: list[Problem], into: AttrSet, key: Key, origin: Expr | None) -> None:
    if key.name is None:
        problems.append(Problem(key.span, "a dynamic attribute cannot be inherited"))
        return
    name = key.name.value
    if name in into.static:
        duplicate(problems, key)
        return
    value = Variable(into.source, key.span.start, key.span.end, name)
    into.static[name] = Definition(key, value, inherited=origin is None, origin=origin)


def define(problems: list[Problem], into: AttrSet, keys: tuple[Key, ...], value: Expr) -> None:
    """`a.b.c = value`: nested sets on the way, merged with those that stand there already."""
    for index, key in enumerate(keys[:-1]):
        rest = keys[index + 1].span.start
        if key.name is None:
            nested = AttrSet(into.source, rest, value.end, False)
            into.dynamic.append(Definition(key, nested))
            into = nested
            continue
        name = key.name.value
        present = into.static.get(name)
        if present is None:
            nested = AttrSet(into.source, rest, value.end, False)
            into.static[name] = Definition(key, nested)
            into = nested
        elif isinstance(present.value, AttrSet) and present.origin is None:
            into = present.value
            if into.recursive:
                into.open.append(Bad(into.source, rest, value.end, _MERGED))
        else:
            duplicate(problems, key)
            return
    place_last(problems, into, keys[-1], value)


def place_last(problems: list[Problem], into: AttrSet, key: Key, value: Expr) -> None:
    if key.name is None:
        into.dynamic.append(Definition(key, value))
        return
    name = key.name.value
    present = into.static.get(name)
    if present is None:
        into.static[name] = Definition(key, value)
    elif isinstance(present.value, AttrSet) and isinstance(value, AttrSet) and present.origin is None:
        merge(problems, present.value, value)
    else:
        duplicate(problems, key)


def merge(problems: list[Problem], into: AttrSet, other: AttrSet) -> None:
    """Two literal sets under one key.  Releases differ in what becomes of dynamic keys and of `rec`: those are opened."""
    for name, definition in other.static.items():
        if name in into.static:
            duplicate(problems, definition.key)
        else:
            into.static[name] = definition
    into.open += other.open
    if other.dynamic or other.recursive or into.recursive:
        into.open.append(Bad(into.source, other.start, other.end, _MERGED))


def duplicate(problems: list[Problem], key: Key) -> None:
    name = key.name.value if key.name is not None else key.span.text
    problems.append(Problem(key.span, f"attribute {name!r} is defined twice"))
