"""Names that nothing binds: Nix refuses the whole file for one, wherever it stands."""

from __future__ import annotations

from typing import Any

from kvlint.formats.nix.syntax import AttrSet, Bad, Expr, Key, Lambda, Let, Number, Problem, Variable, With
from kvlint.records import fields

MAX_DEPTH = 150
_PARTS: dict[Any, tuple[str, ...]] = {}
# What Nix binds without `builtins.`, in every release; all names that start with two underscores beside.
_GLOBAL = frozenset(
    {
        "abort",
        "baseNameOf",
        "break",
        "builtins",
        "derivation",
        "derivationStrict",
        "dirOf",
        "false",
        "fetchGit",
        "fetchMercurial",
        "fetchTarball",
        "fetchTree",
        "fromTOML",
        "import",
        "isNull",
        "map",
        "null",
        "placeholder",
        "removeAttrs",
        "scopedImport",
        "throw",
        "toString",
        "true",
    }
)


def undefined(root: Expr) -> list[Problem]:
    """A problem for each use of an unbound name outside of any `with`."""
    found: list[Problem] = []
    _visit(root, _GLOBAL, found, 0)
    return found


def _visit(node: Any, names: frozenset[str], found: list[Problem], depth: int) -> None:
    if depth > MAX_DEPTH or node is None or isinstance(node, Bad):
        return
    if isinstance(node, Variable):
        if node.name not in names and not node.name.startswith("__"):
            found.append(Problem(node.span, f"{node.name} is not defined"))
    elif isinstance(node, AttrSet):
        _visit_set(node, names | node.static.keys() if node.recursive else names, names, found, depth)
    elif isinstance(node, Let):
        inner = names | node.bindings.static.keys()
        _visit_set(node.bindings, inner, names, found, depth)
        _visit(node.body, inner, found, depth + 1)
    elif isinstance(node, With):
        _visit(node.environment, names, found, depth + 1)
    elif isinstance(node, Lambda):
        formals = node.formals or ()
        inner = names | {formal.name for formal in formals} | ({node.name} if node.name else set())
        for formal in formals:
            _visit(formal.default, inner, found, depth + 1)
        _visit(node.body, inner, found, depth + 1)
    elif not isinstance(node, Number):
        for child in below(node):
            _visit(child, names, found, depth + 1)


def _visit_set(node: AttrSet, inner: frozenset[str], outer: frozenset[str], found: list[Problem], depth: int) -> None:
    for definition in (*node.static.values(), *node.dynamic):
        _visit(definition.key.dynamic, inner, found, depth + 1)
        if definition.origin is not None:
            _visit(definition.origin, inner, found, depth + 1)
        else:
            _visit(definition.value, outer if definition.inherited else inner, found, depth + 1)


def _parts(node: Expr) -> tuple[str, ...]:
    """The fields of an expression that may hold others."""
    kind = type(node)
    if kind not in _PARTS:
        _PARTS[kind] = tuple(item.name for item in fields(node) if item.name not in ("source", "start", "end"))
    return _PARTS[kind]


def below(node: Expr) -> list[Expr]:
    """The expressions directly below one that binds no names."""
    found: list[Expr] = []
    stack: list[Any] = [getattr(node, name) for name in _parts(node)]
    while stack:
        value = stack.pop()
        if isinstance(value, Expr):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            stack += value
        elif isinstance(value, Key):
            stack.append(value.dynamic)
    return found
