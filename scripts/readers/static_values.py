"""What a name of a source tree stands for, told from its syntax trees alone: nothing of the tree is imported or run.

Read are literals, names of other modules, lists that their module lengthens, attributes of classes, members of enumerations, and
the few calls that only copy (`list(X)`, `X.keys()`).  Anything else is `Unread`, which says what it was.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COPIES: Mapping[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
METHODS: Mapping[str, Callable[[Any], Any]] = {"keys": list, "lower": str.lower, "upper": str.upper}
NOTHING: Mapping[str, Any] = {}


class Unread(Exception):
    """A value that only the program itself could tell."""


@dataclass(frozen=True)
class Member:
    """One of an enumeration."""

    name: str
    value: Any


@dataclass(frozen=True)
class Class:
    module: Module
    node: ast.ClassDef

    def fields(self) -> Iterator[tuple[str, ast.expr, ast.expr | None]]:
        """Names with an annotation, and the default of each; a base's come first."""
        for base in self._bases():
            yield from base.fields()
        for item in self.node.body:
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                yield item.target.id, item.annotation, item.value

    def members(self) -> list[Member]:
        """The members, if it is an enumeration."""
        if not any(ast.unparse(base).endswith("Enum") for base in self.node.bases):
            raise Unread(f"{self.node.name} is no enumeration")
        found = []
        for item in self.node.body:
            if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
                try:
                    value = self.module.value(item.value)
                except Unread:
                    value = None
                found.append(Member(item.targets[0].id, value))
        return found

    def attribute(self, name: str) -> Any:
        if any(ast.unparse(base).endswith("Enum") for base in self.node.bases):
            return next(member for member in self.members() if member.name == name)
        for item in self.node.body:
            targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
            value = getattr(item, "value", None)
            if value is not None and any(isinstance(each, ast.Name) and each.id == name for each in targets):
                return self.module.value(value, _Body(self))
        for base in self._bases():
            try:
                return base.attribute(name)
            except Unread:
                continue
        raise Unread(f"{self.node.name}.{name}")

    def method(self, name: str) -> ast.FunctionDef:
        return next(item for item in self.node.body if isinstance(item, ast.FunctionDef) and item.name == name)

    def _bases(self) -> Iterator[Class]:
        for base in self.node.bases:
            try:
                found = self.module.value(base)
            except Unread:
                continue
            if isinstance(found, Class):
                yield found


class _Body(dict[str, Any]):
    """The names that a class's own body sees."""

    def __init__(self, owner: Class) -> None:
        super().__init__()
        self.owner = owner

    def __contains__(self, name: object) -> bool:
        return any(
            isinstance(item, ast.Assign)
            and any(isinstance(each, ast.Name) and each.id == name for each in item.targets)
            for item in self.owner.node.body
        )

    def __getitem__(self, name: str) -> Any:
        return self.owner.attribute(name)


@dataclass
class Module:
    """One file: what binds each of its names, and what lengthens it afterwards."""

    tree: Tree
    name: str
    bound: dict[str, ast.AST] = field(default_factory=dict)
    longer: dict[str, list[ast.expr]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

    def read(self, body: list[ast.stmt]) -> Module:
        for item in body:
            if isinstance(item, (ast.ClassDef, ast.FunctionDef)):
                self.bound[item.name] = item
            elif isinstance(item, ast.ImportFrom) and item.names[0].name == "*":
                self.stars.append(self._absolute(item))
            elif isinstance(item, (ast.ImportFrom, ast.Import)):
                self.bound.update({alias.asname or alias.name: item for alias in item.names})
            elif isinstance(item, ast.Assign):
                names = [each.id for each in item.targets if isinstance(each, ast.Name)]
                self.bound.update(
                    {each: item.value for each in names if not isinstance(self.bound.get(each), ast.ClassDef)}
                )
            elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.value is not None:
                self.bound[item.target.id] = item.value
            elif isinstance(item, ast.AugAssign) and isinstance(item.target, ast.Name):
                self.longer.setdefault(item.target.id, []).append(item.value)
            elif isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
                self._call(item.value)
            elif isinstance(item, ast.Try):
                self.read(item.body)
        return self

    def _call(self, call: ast.Call) -> None:
        target = call.func
        if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and call.args):
            return
        if target.attr == "extend":
            self.longer.setdefault(target.value.id, []).append(call.args[0])
        elif target.attr == "append":
            self.longer.setdefault(target.value.id, []).append(ast.List(elts=[call.args[0]]))

    def value(self, node: ast.expr, local: Mapping[str, Any] = NOTHING) -> Any:
        """What an expression of this module is.  `local`: names that its function or class has bound.  Raises `Unread`."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            kind = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
            return kind(self._elements(node.elts, local))
        if isinstance(node, ast.Dict):
            return {self.value(key, local): value for key, value in zip(node.keys, node.values, strict=True) if key}
        if isinstance(node, ast.Name):
            return local[node.id] if node.id in local else self.named(node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(node, local)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return self.value(node.value, local)[node.slice.value]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self.value(node.operand, local)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
            left, right = self.value(node.left, local), self.value(node.right, local)
            return left + right if isinstance(node.op, ast.Add) else left * right
        if isinstance(node, ast.ListComp) and len(node.generators) == 1 and not node.generators[0].ifs:
            return self._comprehension(node, local)
        if isinstance(node, ast.Call):
            return self._called(node, local)
        raise Unread(ast.unparse(node))

    def _elements(self, nodes: list[ast.expr], local: Mapping[str, Any]) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self.value(node.value, local)
            else:
                yield self.value(node, local)

    def named(self, name: str) -> Any:
        """What the name is at the end of the module; a class that is made over there stays what it was declared as."""
        node = self.bound.get(name)
        if node is None:
            return self._starred(name)
        if isinstance(node, ast.ClassDef):
            return Class(self, node)
        if isinstance(node, ast.FunctionDef):
            return node
        if isinstance(node, ast.ImportFrom):
            return self._imported(node, name)
        if not isinstance(node, ast.expr):
            raise Unread(f"{self.name}.{name}")
        value = self.value(node)
        for more in self.longer.get(name, ()):
            value = value + type(value)(self.value(more))
        return value

    def _starred(self, name: str) -> Any:
        """The name of a module of which all names are taken."""
        for module in filter(None, map(self.tree.module, self.stars)):
            try:
                return module.named(name)
            except Unread:
                continue
        raise Unread(f"{self.name}.{name}")

    def _imported(self, node: ast.ImportFrom, name: str) -> Any:
        origin = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
        module = self.tree.module(self._absolute(node))
        if module is None:
            raise Unread(f"{node.module}.{origin}")
        return module.named(origin)

    def _absolute(self, node: ast.ImportFrom) -> str:
        package = self.name.rsplit(".", node.level)[0] + "." if node.level else ""
        return package + (node.module or "")

    def _attribute(self, node: ast.Attribute, local: Mapping[str, Any]) -> Any:
        if ast.unparse(node) == "sys.maxsize":
            return 2**63 - 1  # of every platform that the engines have wheels for
        owner = self.value(node.value, local)
        if isinstance(owner, Class):
            return owner.attribute(node.attr)
        if isinstance(owner, Member) and node.attr in ("name", "value"):
            return getattr(owner, node.attr)
        raise Unread(ast.unparse(node))

    def _comprehension(self, node: ast.ListComp, local: Mapping[str, Any]) -> list[Any]:
        generator = node.generators[0]
        if not isinstance(generator.target, ast.Name):
            raise Unread(ast.unparse(node))
        several = self.value(generator.iter, local)
        several = several.members() if isinstance(several, Class) else several
        return [self.value(node.elt, {**local, generator.target.id: each}) for each in several]

    def _called(self, node: ast.Call, local: Mapping[str, Any]) -> Any:
        target = node.func
        if isinstance(target, ast.Attribute) and target.attr in METHODS and not node.args:
            return METHODS[target.attr](self.value(target.value, local))
        if ast.unparse(target).rpartition(".")[2] == "field":
            return self._field(node, local)
        if not isinstance(target, ast.Name):
            raise Unread(ast.unparse(node))
        if target.id in COPIES and len(node.args) == 1:
            value = self.value(node.args[0], local)
            return COPIES[target.id](value.members() if isinstance(value, Class) else value)
        function = self.value(target, local)
        if isinstance(function, ast.FunctionDef) and not node.args:
            return self._returned(function)
        if callable(function):
            return function(*(self.value(argument, local) for argument in node.args))
        raise Unread(ast.unparse(node))

    def _field(self, node: ast.Call, local: Mapping[str, Any]) -> Any:
        """The default in `field(default=...)` or `field(default_factory=...)`."""
        for key in node.keywords:
            if key.arg == "default":
                return self.value(key.value, local)
            if key.arg == "default_factory" and isinstance(key.value, ast.Lambda):
                return self.value(key.value.body, local)
            if key.arg == "default_factory" and ast.unparse(key.value) in ("list", "dict"):
                return [] if ast.unparse(key.value) == "list" else {}
        raise Unread(ast.unparse(node))

    def _returned(self, function: ast.FunctionDef) -> Any:
        """What a function without arguments gives where none of its conditions holds: what it returns at its end."""
        last = function.body[-1]
        if not isinstance(last, ast.Return) or last.value is None:
            raise Unread(function.name)
        inner = Module(self.tree, self.name, dict(self.bound), self.longer, self.stars).read(function.body)
        return inner.value(last.value)


@dataclass
class Tree:
    """A directory that holds packages."""

    root: Path
    modules: dict[str, Module | None] = field(default_factory=dict)

    def module(self, name: str) -> Module | None:
        """The module of that dotted name; None if the tree has it not."""
        if name not in self.modules:
            stem = self.root.joinpath(*name.split("."))
            path = next((each for each in (stem.with_suffix(".py"), stem / "__init__.py") if each.is_file()), None)
            self.modules[name] = None if path is None else self._read(name, path)
        return self.modules[name]

    def _read(self, name: str, path: Path) -> Module:
        module = Module(self, f"{name}.__init__" if path.name == "__init__.py" else name)
        return module.read(ast.parse(path.read_text(encoding="utf-8")).body)
