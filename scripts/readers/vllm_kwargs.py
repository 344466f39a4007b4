"""What vLLM's `get_kwargs` makes of a config class: an option's arguments out of a field's type and default.

vllm/engine/arg_utils.py, `get_kwargs` (0.8.4 on) and `_compute_kwargs` (0.9.2 on).  Its forms differ from release to release;
what decides is asked of the function's own text, and a form that was not read yet is refused.
"""

from __future__ import annotations

import ast
import hashlib
import re
from typing import Any, NamedTuple

from vllm_source import Class, Expression, Field, Hint, Module, Open, docstrings, dotted, fields, find, hints, members

MECHANISM = (
    "get_kwargs", "_compute_kwargs", "optional_type", "parse_type", "union_dict_and_str", "is_type", "contains_type", "get_type",
    "literal_to_kwargs", "collection_to_kwargs", "is_not_builtin", "get_type_hints", "is_dict_subclass",
)  # fmt: skip
# The forms that were read, by a digest of their statements: first release with each.
READ = {
    "e3b0c44298fc": "0.6.0",
    "9ab3ba457f81": "0.8.4",
    "ae851aadb4b8": "0.8.5",
    "83776ba10d6c": "0.9.0",
    "26471aeeda95": "0.9.1",
    "2df6069d0f9a": "0.9.2",
    "870f325332a5": "0.10.0",
    "561ff8789c8e": "0.10.1",
    "8ac37b0ae57f": "0.10.2",
    "d000b4e91fd9": "0.11.1",
    "4d045657f196": "0.12.0",
    "acda94331a8a": "0.14.0",
    "2e58c4739762": "0.17.0",
    "79e00a9dce91": "0.19.0",
    "88929be98c18": "0.20.0",
    "37a5e313c526": "0.21.0",
    "0625b5aa356c": "0.26.0",
    "01cc200f1bfa": "0.29.0",
    "d4b0c2dd031f": "0.31.0",
}


class Default(NamedTuple):
    value: Any


class Form(NamedTuple):
    """What differs between the forms of `get_kwargs`."""

    text: str
    human: frozenset[str]
    human_or_auto: bool

    @property
    def early(self) -> bool:
        """0.8.4: no type is looked into, what is optional is text."""
        return "is_type_in_union" in self.text

    @property
    def dataclasses(self) -> bool:
        return "is_dataclass(th)" in self.text

    @property
    def unions(self) -> bool:
        return "union_dict_and_str" in self.text

    @property
    def suggests(self) -> bool:
        """A literal beside `str` only suggests its values."""
        return "metavar" in self.text

    @property
    def nested(self) -> bool:
        """Unions inside `Annotated` are taken apart."""
        return "get_type_hints" in self.text

    @property
    def flags_with_text(self) -> bool:
        return "{bool, str, type(None)}" in self.text


def form_of(module: Module) -> Form:
    inside = module.find("EngineArgs")
    parts = [node for name in MECHANISM if isinstance(node := module.names.get(name), ast.FunctionDef)]
    if not parts and isinstance(inside, Class):
        parts = [
            node
            for node in ast.walk(inside.node)
            if isinstance(node, ast.FunctionDef) and node.name in (*MECHANISM, "is_type_in_union", "is_optional")
        ]
    text = "\n".join(bare(module, node) for node in parts)
    digest = hashlib.sha256(re.sub(r"\s", "", text).encode()).hexdigest()[:12]
    if digest not in READ:
        raise LookupError(f"{module.path}: get_kwargs in a form that was not read yet ({digest})")
    return Form(text, frozenset(human_names(parts)), "human_readable_int_or_auto" in text)


def bare(module: Module, node: ast.FunctionDef) -> str:
    """The function's text without its documentation and comments."""
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    lines = module.text.splitlines()
    start = node.body[1].lineno if documented and len(node.body) > 1 else node.lineno
    kept = lines[start - 1 : node.end_lineno]
    return "\n".join(line for line in kept if line.strip() and not line.strip().startswith("#"))


def human_names(parts: list[ast.FunctionDef]) -> set[str]:
    """The fields whose integers take a suffix: names in the branch that knows `human_readable_int`."""
    found = set()
    for part in parts:
        for node in ast.walk(part):
            if not isinstance(node, ast.If) or ast.unparse(node.test) != "contains_type(type_hints, int)":
                continue
            if "human_readable_int" in "".join(ast.unparse(each) for each in node.body):
                inside = [each for statement in node.body for each in ast.walk(statement)]
                found |= {str(each.value) for each in inside if isinstance(each, ast.Constant)} - {"type", "help"}
    return found


def kwargs_of(owner: Class) -> dict[str, dict[str, Any]]:
    """The arguments of `add_argument` for each field of a config class."""
    module = owner.module.tree.module("vllm.engine.arg_utils")
    assert module is not None
    form = form_of(module)
    help_of = docstrings(owner)
    found = {}
    for name, field in fields(owner).items():
        default = default_of(owner, name)
        kwargs: dict[str, Any] = {"default": default.value if default else None, "field": f"{owner.name}.{name}"}
        if name in help_of:
            kwargs["help"] = help_of[name].strip()
        parts = hints(field.module, field.annotation)
        if "is_dict_subclass" in form.text:
            parts = [Hint("dict", "dict") if part.kind == "dictlike" else part for part in parts]
        kwargs.update(typed(form, name, parts))
        found[name] = kwargs
    return found


def typed(form: Form, name: str, parts: list[Hint]) -> dict[str, Any]:
    """`type`, `nargs`, `choices` as the type of a field decides them."""
    if form.early:
        return early(parts)
    kinds = {part.kind: part for part in reversed(parts)}
    if form.dataclasses and "dataclass" in kinds:
        first = next(part for part in parts if part.kind == "dataclass")
        return {"type": Open(f"json:{first.name}")}
    if form.flags_with_text and set(kinds) == {"bool", "str", "none"}:
        return {"type": Open("str"), "nargs": "?", "const": True}
    if "bool" in kinds:
        return {"action": Open("argparse.BooleanOptionalAction"), "type": Open("bool")}
    return valued(form, name, kinds, parts)


def valued(form: Form, name: str, kinds: dict[str, Hint], parts: list[Hint]) -> dict[str, Any]:
    if "literal" in kinds:
        return literal(form, kinds["literal"], "str" in kinds)
    for kind in ("tuple", "list", "set"):
        if kind in kinds:
            return collection(form, kinds[kind])
    if "int" in kinds:
        if name == "max_model_len" and form.human_or_auto:
            return {"type": Open("human_readable_int_or_auto")}
        return {"type": Open("human_readable_int" if name in form.human else "int")}
    if "float" in kinds:
        return {"type": Open("float")}
    if "dict" in kinds:
        foreign = any(not part.builtin for part in parts)
        return {"type": Open("json_or_str" if form.unions and ("str" in kinds or foreign) else "json")}
    if "str" in kinds:
        return {"type": Open("str")}
    return {"type": Open("str")}


def early(parts: list[Hint]) -> dict[str, Any]:
    kinds = {part.kind for part in parts}
    if kinds == {"bool"}:
        return {}
    if "none" in kinds:
        return {"type": Open("nullable_str")}
    return {"type": Open("str" if "str" in kinds else parts[0].kind)}


def literal(form: Form, part: Hint, text: bool) -> dict[str, Any]:
    values = list(part.args)
    if any(isinstance(value, Open) for value in values):
        raise LookupError(f"a literal of unknown values: {values}")
    return {
        "type": Open(type(values[0]).__name__),
        "metavar_choices" if form.suggests and text else "choices": sorted(values),
    }


def collection(form: Form, part: Hint) -> dict[str, Any]:
    elements = [each for each in part.args if each is not ...]
    open_ended = part.kind != "tuple" or ... in part.args
    nargs = "+" if open_ended else len(elements)
    kinds = {each.kind: each for each in elements[0]}
    if "literal" in kinds:
        return {**literal(form, kinds["literal"], False), "nargs": nargs}
    if len(elements[0]) > 1:
        return {"type": Open("str"), "nargs": nargs}
    return {"type": Open(elements[0][0].name), "nargs": nargs}


# --- defaults ---------------------------------------------------------------------------------------------------------


def default_of(owner: Class, name: str) -> Default | None:
    """The default of a field, a factory's result with it; None for a field without one."""
    field = fields(owner).get(name)
    if field is None or field.value is None:
        return None
    return evaluated(field, field.value)


def evaluated(field: Field, node: ast.expr) -> Default | None:
    if isinstance(node, ast.Call):
        name = dotted(node.func).rpartition(".")[2]
        if name in ("field", "Field"):
            return declared(field, node)
        if name == "cast":
            return evaluated(field, node.args[1])
        if name == "get_field":
            owner = find(field.module, node.args[0])
            key = node.args[1]
            if isinstance(owner, Class) and isinstance(key, ast.Constant):
                return default_of(owner, key.value)
        return Default(Open(ast.unparse(node)))
    if isinstance(node, ast.Attribute):
        return attribute(field, node)
    if isinstance(node, ast.Name):
        return named(field, node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = evaluated(field, node.operand)
        return (
            Default(not inner.value)
            if inner and not isinstance(inner.value, Open)
            else Default(Open(ast.unparse(node)))
        )
    found = constant(node)
    return Default(Open(ast.unparse(node)) if found is None else found[0])


def attribute(field: Field, node: ast.Attribute) -> Default:
    """A field of another class, or a member of an enumeration."""
    if node.attr == "value" and isinstance(node.value, ast.Attribute):
        return attribute(field, node.value)
    owner = find(field.module, node.value)
    found = class_value(owner, node.attr) if isinstance(owner, Class) else None
    return found or Default(Open(ast.unparse(node)))


def class_value(owner: Class, name: str) -> Default | None:
    values = members(owner)
    return Default(values[name]) if name in values else default_of(owner, name)


def constant(node: ast.expr) -> tuple[Any] | None:
    """The value of a literal, or of arithmetic of whole numbers."""
    if isinstance(node, ast.BinOp):
        parts = constant(node.left), constant(node.right)
        if all(part is not None and isinstance(part[0], int) for part in parts):
            (left,), (right,) = parts  # type: ignore[misc]
            steps = {ast.Mult: lambda: left * right, ast.Add: lambda: left + right, ast.LShift: lambda: left << right}
            step = steps.get(type(node.op))
            return (step(),) if step else None
    try:
        return (ast.literal_eval(node),)
    except (ValueError, TypeError):
        return None


def declared(field: Field, node: ast.Call) -> Default | None:
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if "default_factory" in keywords:
        return made(field, keywords["default_factory"])
    value = keywords.get("default", node.args[0] if node.args else None)
    if value is None or (isinstance(value, ast.Constant) and value.value is Ellipsis):
        return None
    return evaluated(field, value)


def made(field: Field, factory: ast.expr) -> Default:
    text = ast.unparse(factory)
    if text in ("dict", "list", "set"):
        return Default({} if text == "dict" else [])
    if isinstance(factory, ast.Lambda):
        return evaluated(field, factory.body) or Default(Open(text))
    return Default(Open(f"{text}()"))


def named(field: Field, node: ast.Name) -> Default:
    """A constant of the class or of a module."""
    inside = fields(field.owner).get(node.id)
    if inside is not None and inside.value is not None:
        return evaluated(inside, inside.value) or Default(Open(node.id))
    found = field.module.find(node.id)
    value = constant(found.node) if isinstance(found, Expression) else None
    return Default(Open(node.id) if value is None else value[0])
