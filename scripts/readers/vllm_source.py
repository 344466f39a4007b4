"""One release of vLLM as files: names followed through imports, config classes and their fields, types as argparse gets them.

Nothing of what is read is imported or run.  What only a running engine can work out is `Open` and carries the expression.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple


class Open(NamedTuple):
    """An expression that the files alone do not settle."""

    text: str


class Class(NamedTuple):
    module: Module
    node: ast.ClassDef

    @property
    def name(self) -> str:
        return self.node.name


class Function(NamedTuple):
    module: Module
    node: ast.FunctionDef | ast.AsyncFunctionDef


class Expression(NamedTuple):
    """What a module or a class assigns to a name."""

    module: Module
    node: ast.expr


class Outside(NamedTuple):
    """A name of another distribution, by its whole path."""

    path: str


Found = Class | Function | Expression | Outside | None


class Field(NamedTuple):
    """A field of a config class: its annotation and what stands behind `=`, in the module of the class that has it."""

    module: Module
    annotation: ast.expr
    value: ast.expr | None
    owner: Class


class Hint(NamedTuple):
    """A part of a type: `kind` is a built-in's name, none, literal, dataclass, or other; `builtin` as argparse asks it."""

    kind: str
    name: str = ""
    args: tuple[Any, ...] = ()
    builtin: bool = True


class Tree:
    """The modules of one unpacked release."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: dict[str, Module | None] = {}

    def module(self, dotted: str) -> Module | None:
        if dotted not in self._modules:
            base = self.root.joinpath(*dotted.split("."))
            files = (base.with_suffix(".py"), base / "__init__.py")
            path = next((path for path in files if path.is_file()), None)
            self._modules[dotted] = Module(self, dotted, path) if path else None
        return self._modules[dotted]


class Module:
    def __init__(self, tree: Tree, name: str, path: Path) -> None:
        self.tree, self.name, self.path = tree, name, path
        self.text = path.read_text(encoding="utf-8")

    @cached_property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @cached_property
    def names(self) -> dict[str, ast.AST]:
        found: dict[str, ast.AST] = {}
        for typing_only in (True, False):  # what stands for type checkers only gives way to what runs
            for node in statements(ast.parse(self.text).body, typing_only):
                found.update(bound(node))
        return found

    def find(self, name: str) -> Found:
        """What a name of this module is, followed through imports."""
        node = self.names.get(name)
        if node is None:
            return self.elsewhere(name)
        if isinstance(node, ast.ClassDef):
            return Class(self, node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return Function(self, node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self.imported(node, name)
        return Expression(self, node) if isinstance(node, ast.expr) else None

    def elsewhere(self, name: str) -> Found:
        """A name that only `import *` or the package's own directory brings."""
        for node in statements(ast.parse(self.text).body, typing_only=False):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                module = self.tree.module(self.source(node))
                if module is not None and (found := module.find(name)) is not None:
                    return found
        inside = self.tree.module(f"{self.name}.{name}") if self.path.name == "__init__.py" else None
        return Outside(inside.name) if inside else None

    def source(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        return ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])

    def imported(self, node: ast.Import | ast.ImportFrom, name: str) -> Found:
        alias = next(alias for alias in node.names if (alias.asname or alias.name.split(".")[0]) == name)
        if isinstance(node, ast.Import):
            return Outside(alias.name if alias.asname else name)
        source = self.source(node)
        module = self.tree.module(source)
        if module is None:
            return Outside(f"{source}.{alias.name}")
        return module.find(alias.name) or Outside(f"{source}.{alias.name}")


def statements(body: list[ast.stmt], typing_only: bool) -> Iterator[ast.stmt]:
    """The statements of a body, those under `if` and `try` with them; `typing_only`: the ones for type checkers."""
    for node in body:
        if isinstance(node, ast.If):
            checked = "TYPE_CHECKING" in ast.unparse(node.test)
            if checked == typing_only or typing_only:
                yield from statements(node.body, typing_only)
            yield from statements(node.orelse, typing_only)
        elif isinstance(node, ast.Try):
            handlers = [each for handler in node.handlers for each in handler.body]
            yield from statements([*handlers, *node.body, *node.orelse], typing_only)
        else:
            yield node


def bound(node: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """The names that a statement binds."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name, node
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name.split(".")[0], node) for alias in node.names)
    elif isinstance(node, ast.Assign):
        yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value


def dotted(node: ast.expr) -> str:
    """`a.b.c` of names and attributes; nothing for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def find(module: Module, node: ast.expr) -> Found:
    """What a name or an attribute of an imported module is."""
    if isinstance(node, ast.Name):
        return module.find(node.id)
    if isinstance(node, ast.Attribute):
        base = find(module, node.value)
        if isinstance(base, Outside):
            inside = module.tree.module(base.path)
            return inside.find(node.attr) if inside else Outside(f"{base.path}.{node.attr}")
    return None


def bases(owner: Class) -> Iterator[Class]:
    """The class and what it inherits from, nearest first, as far as it stands in the tree."""
    yield owner
    for node in owner.node.bases:
        found = find(owner.module, node)
        if isinstance(found, Class):
            yield from bases(found)


def is_dataclass(owner: Class) -> bool:
    return any(
        dotted(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2] in ("config", "dataclass")
        for each in bases(owner)
        for node in each.node.decorator_list
    )


def is_dict(owner: Class) -> bool:
    named = {
        dotted(node.value if isinstance(node, ast.Subscript) else node) for b in bases(owner) for node in b.node.bases
    }
    return "dict" in named


def members(owner: Class) -> dict[str, Any]:
    """The members of an enumeration with their values; nothing for other classes."""
    if not any(dotted(node).rpartition(".")[2] in ("Enum", "IntEnum", "StrEnum") for node in owner.node.bases):
        return {}
    pairs = [pair for node in owner.node.body if isinstance(node, ast.Assign) for pair in bound(node)]
    return {name: node.value for name, node in pairs if isinstance(node, ast.Constant)}


def fields(owner: Class) -> dict[str, Field]:
    """The fields of a dataclass in their order, inherited ones first; class variables are none."""
    found: dict[str, Field] = {}
    for each in reversed(list(bases(owner))):
        for node in statements(each.node.body, typing_only=False):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = dotted(node.annotation.value if isinstance(node.annotation, ast.Subscript) else node.annotation)
                if name.rpartition(".")[2] not in ("ClassVar", "InitVar"):
                    found[node.target.id] = Field(each.module, node.annotation, node.value, each)
    return found


def docstrings(owner: Class) -> dict[str, str]:
    """The text behind each field, which is its help."""
    found = {}
    for each in reversed(list(bases(owner))):
        body = each.node.body
        for node, following in pairwise(body):
            text = following.value if isinstance(following, ast.Expr) else None
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(text, ast.Constant):
                found[node.target.id] = str(text.value)
    return found


def method(owner: Class, name: str, above: bool = False) -> tuple[Class, Function] | None:
    """A method of a class or of what it inherits from; `above`: of the latter only."""
    for each in list(bases(owner))[1 if above else 0 :]:
        for node in each.node.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                return each, Function(each.module, node)
    return None


# --- types ------------------------------------------------------------------------------------------------------------

BUILTIN = ("bool", "int", "float", "str", "dict", "list", "tuple", "set")
TYPING = {"Dict": "dict", "List": "list", "Tuple": "tuple", "Set": "set"}
WRAPPERS = ("Annotated", "SkipValidation")  # the first argument is the type


def hints(module: Module, node: ast.expr) -> list[Hint]:
    """The parts of a union, aliases followed."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*hints(module, node.left), *hints(module, node.right)]
    if isinstance(node, ast.Constant):
        return [Hint("none") if node.value is None else Hint("other", repr(node.value), builtin=False)]
    if isinstance(node, ast.Subscript):
        return generic(module, node)
    name = dotted(node).rpartition(".")[2]
    kind = TYPING.get(name, name)
    found = find(module, node)
    if kind in BUILTIN and (found is None or isinstance(found, Outside)):
        return [Hint(kind, kind)]
    if isinstance(found, Expression):
        return hints(found.module, found.node)
    if isinstance(found, Class):
        if is_dataclass(found):
            return [Hint("dataclass", found.name, builtin=False)]
        return [Hint("dictlike" if is_dict(found) else "other", found.name, builtin=False)]
    return [Hint("other", ast.unparse(node), builtin=False)]


def generic(module: Module, node: ast.Subscript) -> list[Hint]:
    name = dotted(node.value).rpartition(".")[2]
    args = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name == "Optional":
        return [*hints(module, args[0]), Hint("none")]
    if name == "Union":
        return [hint for arg in args for hint in hints(module, arg)]
    if name in WRAPPERS:
        return hints(module, args[0])
    if name == "Literal":
        return [Hint("literal", args=tuple(dict.fromkeys(literals(module, args))))]
    kind = TYPING.get(name, name)
    if kind in ("list", "tuple", "set"):
        elements = [... if isinstance(arg, ast.Constant) and arg.value is ... else hints(module, arg) for arg in args]
        return [Hint(kind, ast.unparse(node), tuple(elements))]
    if kind == "dict":
        return [Hint("dict", ast.unparse(node))]
    return [Hint("other", ast.unparse(node), builtin=kind == "type")]


def literals(module: Module, args: list[ast.expr]) -> Iterator[Any]:
    """The values of `Literal[...]`, those of aliases inside it with them."""
    for arg in args:
        if isinstance(arg, ast.Constant):
            yield arg.value
        else:
            for hint in hints(module, arg):
                yield from hint.args if hint.kind == "literal" else [Open(ast.unparse(arg))]
