"""The functions of vLLM that add arguments, followed statement by statement: what each `add_argument` is given.

Values are Python's own where the files settle them and `Open` where they do not.  A statement, a condition or a call that this
reader does not know how to follow is refused, so that no option is passed over.
"""

from __future__ import annotations

import ast
import re
from itertools import permutations
from typing import Any

from build_flags import record
from vllm_kwargs import class_value, constant, default_of, kwargs_of
from vllm_source import Class, Expression, Function, Module, Open, Outside, dotted, find, hints, members, method

PARSER = "the parser"
COMMAND = "the parser of `vllm` itself"
# Calls that get the parser and add nothing of vLLM's own: platforms out of the tree, the filter of --help.
PASSED_BY = ("pre_register_and_update", "show_filtered_argument_or_group_from_help", "set_defaults")
# Questions asked of the process: none of them is `--help`, and the arguments of the engine are wanted.
ANSWERS = {
    "not ('serve' in sys.argv[1:] and '--help' in sys.argv[1:])": True,
    "'serve' not in sys.argv[1:] and '--help' not in sys.argv[1:]": True,
    "not async_args_only": True,
}
METHODS = (
    "items",
    "keys",
    "values",
    "get",
    "pop",
    "update",
    "append",
    "extend",
    "remove",
    "replace",
    "lower",
    "copy",
    "join",
)
DEPRECATED = re.compile(r"\W*deprecated\b|.*(\b(is|are|been) |[\[(*])deprecated\b", re.IGNORECASE | re.DOTALL)


class Refused(Exception):
    """A statement that this reader does not follow: read it, and teach it."""


class Walk:
    """One reading of the functions that add arguments, in the order in which a process would run them."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.depth = 0  # of the functions shared with the module entry

    def run(self, function: Function, env: dict[str, Any], owner: Class | None) -> Any:
        frame = Frame(self, function.module, env, owner)
        return frame.block(function.node.body)

    def add(self, flags: list[Any], given: dict[str, Any]) -> None:
        if not all(isinstance(flag, str) for flag in flags):
            raise Refused(f"add_argument{flags}")
        raw = raw_record(flags, given)
        entry = record("vllm", raw)
        if not self.depth:
            entry["entry"] = "serve"
        self.records.append(entry)


class Returned(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class Frame:
    """One function's names, and what its statements make of them."""

    def __init__(self, walk: Walk, module: Module, env: dict[str, Any], owner: Class | None) -> None:
        self.walk, self.module, self.env, self.owner = walk, module, env, owner

    def block(self, body: list[ast.stmt]) -> Any:
        try:
            for node in body:
                self.statement(node)
        except Returned as returned:
            return returned.value
        return None

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Expr):
            self.value(node.value)
        elif isinstance(node, ast.Assign):
            value = self.value(node.value)
            for target in node.targets:
                self.assign(target, value)
        elif isinstance(node, ast.AugAssign):
            old = self.value(node.target)  # type: ignore[arg-type]
            self.assign(node.target, joined(old, self.value(node.value), node))
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                assert isinstance(target, ast.Subscript)
                del self.value(target.value)[self.value(target.slice)]
        elif isinstance(node, ast.If):
            for each in node.body if self.test(node.test) else node.orelse:
                self.statement(each)
        elif isinstance(node, ast.For):
            for item in self.items(node):
                self.assign(node.target, item)
                for each in node.body:
                    self.statement(each)
        elif isinstance(node, ast.Return):
            raise Returned(self.value(node.value) if node.value else None)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                self.env[name] = self.module.imported(node, name)
        elif isinstance(node, ast.FunctionDef):
            self.env[node.name] = Function(self.module, node)
        elif not isinstance(node, ast.Pass | ast.AnnAssign):
            raise Refused(f"{self.module.path}:{node.lineno}: {ast.unparse(node)[:80]}")

    def assign(self, target: ast.AST, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.env[target.id] = value
        elif isinstance(target, ast.Subscript):
            self.value(target.value)[self.value(target.slice)] = value
        elif isinstance(target, ast.Tuple):
            for part, item in zip(target.elts, value, strict=True):
                self.assign(part, item)
        elif not isinstance(target, ast.Attribute):
            raise Refused(f"{self.module.path}: {ast.unparse(target)} =")

    def test(self, node: ast.expr) -> bool:
        text = ast.unparse(node)
        if text in ANSWERS:
            return ANSWERS[text]
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
            inside = self.value(node.comparators[0])
            if isinstance(inside, dict | list):
                return self.value(node.left) in inside
        raise Refused(f"{self.module.path}:{node.lineno}: if {text}")

    def items(self, node: ast.For) -> list[Any]:
        found = self.value(node.iter)
        if isinstance(found, Open):
            raise Refused(f"{self.module.path}:{node.lineno}: for ... in {found.text}")
        return list(found)

    def value(self, node: ast.expr) -> Any:
        """The value of an expression, `Open` where the files do not settle it."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return self.listed(node)
        if isinstance(node, ast.Dict):
            return self.mapping(node)
        if isinstance(node, ast.Name):
            return self.env[node.id] if node.id in self.env else self.named(node)
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        if isinstance(node, ast.Subscript):
            base, key = self.value(node.value), self.value(node.slice)
            return base[key] if isinstance(base, dict) else Open(ast.unparse(node))
        if isinstance(node, ast.JoinedStr):
            return self.formatted(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return joined(self.value(node.left), self.value(node.right), node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.ListComp):
            return self.comprehension(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.value(node.operand)
            return Open(ast.unparse(node)) if isinstance(inner, Open) else not inner
        return Open(ast.unparse(node))

    def listed(self, node: ast.List | ast.Tuple | ast.Set) -> Any:
        items: list[Any] = []
        for each in node.elts:
            if not isinstance(each, ast.Starred):
                items.append(self.value(each))
                continue
            inside = self.members_of(each.value)
            if inside is None:
                return Open(ast.unparse(node))
            items += inside
        return items

    def members_of(self, node: ast.expr) -> list[Any] | None:
        """What `*name` puts in: a list of constants, or the keys of a table whose values are whatever they are."""
        found = find(self.module, node) if isinstance(node, ast.Name) and node.id not in self.env else None
        table = found.node if isinstance(found, Expression) else None
        if (
            isinstance(found, Expression)
            and isinstance(table, ast.Call)
            and ast.unparse(table).startswith("list(get_args(")
        ):
            inner = table.args[0]
            assert isinstance(inner, ast.Call)
            (part,) = hints(found.module, inner.args[0])
            return list(part.args) if part.kind == "literal" else None
        keys = table.keys if isinstance(table, ast.Dict) else table.elts if isinstance(table, ast.List) else None
        if keys is None or not all(isinstance(key, ast.Constant) for key in keys):
            return None
        return [key.value for key in keys if isinstance(key, ast.Constant)]

    def comprehension(self, node: ast.ListComp) -> Any:
        """`[f.value for f in Enumeration]`, `[",".join(p) for p in permutations(names, r=2)]`."""
        if len(node.generators) == 1 and not node.generators[0].ifs and "permutations(" in ast.unparse(node):
            return self.permuted(node, node.generators[0])
        over = self.value(node.generators[0].iter)
        values = members(over) if isinstance(over, Class) else {}
        plain = isinstance(node.elt, ast.Attribute) and node.elt.attr == "value" and not node.generators[0].ifs
        return list(values.values()) if plain and values else Open(ast.unparse(node))

    def permuted(self, node: ast.ListComp, each: ast.comprehension) -> Any:
        call = each.iter
        if (
            not isinstance(call, ast.Call)
            or dotted(call.func) != "permutations"
            or not isinstance(each.target, ast.Name)
        ):
            return Open(ast.unparse(node))
        over, length = self.value(call.args[0]), [self.value(keyword.value) for keyword in call.keywords]
        if not isinstance(over, list):
            return Open(ast.unparse(node))
        found = []
        for chosen in permutations(over, *length):
            self.env[each.target.id] = list(chosen)
            found.append(self.value(node.elt))
        del self.env[each.target.id]
        return found

    def mapping(self, node: ast.Dict) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(self.value(item))
            else:
                found[self.value(key)] = self.value(item)
        return found

    def named(self, node: ast.expr) -> Any:
        found = find(self.module, node)
        if isinstance(found, Class | Function | Outside):
            return found
        value = constant(found.node) if isinstance(found, Expression) else None
        return Open(ast.unparse(node)) if value is None else value[0]

    def attribute(self, node: ast.Attribute) -> Any:
        base = self.value(node.value)
        if isinstance(base, Class):
            if node.attr == "__name__":
                return base.name
            found = class_value(base, node.attr)
            return Open(ast.unparse(node)) if found is None else found.value
        if node.attr == "value" and isinstance(base, str | int):
            return base
        return self.named(node)

    def formatted(self, node: ast.JoinedStr) -> Any:
        parts = [self.value(p.value if isinstance(p, ast.FormattedValue) else p) for p in node.values]
        return "".join(parts) if all(isinstance(part, str) for part in parts) else Open(ast.unparse(node))

    def call(self, node: ast.Call) -> Any:
        name = dotted(node.func).rpartition(".")[2] or getattr(node.func, "attr", "")
        if name == "add_argument":
            return self.added(node)
        if name in ("add_argument_group", "add_parser", "add_mutually_exclusive_group", "add_subparsers"):
            return PARSER
        if name == "get_kwargs":
            return kwargs_of(self.value(node.args[0]))
        if name == "get_field":
            found = default_of(self.value(node.args[0]), self.value(node.args[1]))
            return found.value if found else Open(ast.unparse(node))
        if name == "get_args":
            parts = hints(self.module, node.args[0])
            return list(parts[0].args) if parts[0].kind == "literal" else Open(ast.unparse(node))
        if name == "cast":
            return self.value(node.args[1])
        if name == "FlexibleArgumentParser":
            return COMMAND
        if isinstance(node.func, ast.Attribute):
            return self.method_call(node, node.func, name)
        target = self.value(node.func)
        args = [self.value(arg) for arg in node.args]
        if isinstance(target, Function) and PARSER in args and name not in PASSED_BY:
            return self.followed(target, args, node, None)
        return self.passed(node, args, name)

    def method_call(self, node: ast.Call, func: ast.Attribute, name: str) -> Any:
        args = [self.value(arg) for arg in node.args]
        if isinstance(func.value, ast.Call) and ast.unparse(func.value) == "super()":
            assert self.owner is not None
            found = method(self.owner, name, above=True)
            return self.followed(found[1], [self.env["cls"], *args], node, found[0]) if found else None
        base = self.value(func.value)
        if isinstance(base, Class):
            found = method(base, name)
            if found is None:
                return Open(ast.unparse(node))
            static = any(dotted(each) == "staticmethod" for each in found[1].node.decorator_list)
            return self.followed(found[1], args if static else [base, *args], node, found[0])
        if isinstance(base, dict | list | str) and base != PARSER and name in METHODS:
            return getattr(base, name)(*args)
        return self.passed(node, args, name)

    def followed(self, function: Function, args: list[Any], node: ast.Call, owner: Class | None) -> Any:
        names = [arg.arg for arg in function.node.args.args]
        shared = function.node.name == "make_arg_parser"
        self.walk.depth += shared
        result = self.walk.run(function, dict(zip(names, args, strict=False)), owner)
        self.walk.depth -= shared
        return result

    def passed(self, node: ast.Call, args: list[Any], name: str) -> Any:
        if PARSER in args and name not in PASSED_BY:
            raise Refused(f"{self.module.path}:{node.lineno}: {ast.unparse(node)}")
        if name == "list" and args and isinstance(args[0], list):
            return list(args[0])
        return Open(ast.unparse(node))

    def added(self, node: ast.Call) -> Any:
        assert isinstance(node.func, ast.Attribute)
        if self.value(node.func.value) == COMMAND:
            return None
        flags: list[Any] = []
        for arg in node.args:
            flags += self.value(arg.value) if isinstance(arg, ast.Starred) else [self.value(arg)]
        given: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            given.update(value if keyword.arg is None else {keyword.arg: value})
            if keyword.arg is None and isinstance(keyword.value, ast.Dict) and "default" in literal_keys(keyword.value):
                given["default_resolved_at_runtime"] = True
        self.walk.add(flags, given)
        return Open(ast.unparse(node))


def literal_keys(node: ast.Dict) -> list[Any]:
    return [key.value for key in node.keys if isinstance(key, ast.Constant)]


def joined(left: Any, right: Any, node: ast.AST) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, list) and isinstance(right, list):
        return left + right
    return Open(ast.unparse(node))


def raw_record(flags: list[str], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of one `add_argument` as the extracted lists have them."""
    raw = {"flags": flags, "type": text_of(given.get("type", "str")), "action": None}
    action = given.get("action")
    if action is not None:
        raw["action"] = text_of(action)
    for key in ("nargs", "const", "dest", "required", "field", "metavar_choices", "default_resolved_at_runtime"):
        if given.get(key) is not None and not isinstance(given[key], Open):
            raw[key] = given[key]
    raw["deprecated"] = given.get("deprecated") is True or deprecated(given.get("help"))
    choices = given.get("choices")
    raw["choices"] = [each for each in choices if each is not None] if isinstance(choices, list) else None
    raw["optional"] = isinstance(choices, list) and None in choices
    default = given.get("default", False if raw["action"] == "store_true" else None)
    raw["default"] = f"expr:{text_of(default)}" if isinstance(default, Open | Outside | Class) else default
    if raw["type"] == "bool" and action is None:
        raw["type"] = "str"  # `bool` of a text: any is taken
    if raw["action"] == "argparse.BooleanOptionalAction":
        raw["negated"] = ["--no-" + flag[2:] for flag in flags if flag.startswith("--")]
    return raw


def text_of(value: Any) -> str:
    if isinstance(value, Open):
        return value.text
    if isinstance(value, Outside):
        return value.path
    return value.node.name if isinstance(value, Class | Function) else str(value)


def deprecated(text: Any) -> bool:
    return isinstance(text, str) and bool(DEPRECATED.match(text))
