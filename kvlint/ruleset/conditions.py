"""The conditions of rules: a small part of Python's expressions, read with three truth values (see `truth`).

An expression is compiled from its syntax tree to closures over `lookup(name) -> Fact | Unknown | None`.  It may hold names
(`window`, `link.front.limit`), `<name>.origin` (how the value came about: `written`, `default`, ...), constants, `+ - * //`,
comparisons, `in` with a tuple of constants, `is None`, and `and`, `or`, `not`.  There are no calls, and Python evaluates none
of it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Union

from kvlint.facts import Fact, Unknown
from kvlint.records import dataclass
from kvlint.ruleset import truth
from kvlint.ruleset.truth import Term, Verdict

Lookup = Callable[[str], Union[Fact[Any], Unknown, None]]
Names = frozenset[str]

ORIGIN = ".origin"
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


class ConditionError(ValueError):
    """An expression that cannot be compiled.  `column` is 1-based in `expression`."""

    def __init__(self, message: str, expression: str, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.expression = expression
        self.column = column


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled expression.  `names` are the settings that it reads, in its order, without `.origin`."""

    expression: str
    names: tuple[str, ...]
    evaluate: Callable[[Lookup], Verdict]

    def __call__(self, lookup: Lookup) -> Verdict:
        return self.evaluate(lookup)


@dataclass(frozen=True, slots=True)
class Operand:
    """A compiled expression that gives a value: what a message prints."""

    expression: str
    names: tuple[str, ...]
    evaluate: Callable[[Lookup], Term]

    def __call__(self, lookup: Lookup) -> Term:
        return self.evaluate(lookup)


def compile(expression: str, names: Names) -> Condition:
    """Compile a condition that may read `names`; raises `ConditionError` with its place."""
    reader = _Reader(expression, names)
    return Condition(expression, *reader.read(reader.condition))


def compile_operand(expression: str, names: Names) -> Operand:
    """Compile an expression for its value: names, constants and arithmetic."""
    reader = _Reader(expression, names)
    return Operand(expression, *reader.read(reader.operand))


def either(first: Verdict, second: Verdict) -> Verdict:
    """`first or second`."""
    return truth.combine((first, second), decisive=True)


class _Reader:
    """Turns one expression's syntax tree into closures and notes the names it meets."""

    def __init__(self, expression: str, names: Names) -> None:
        self.expression = expression
        self.names = names
        self.met: dict[str, None] = {}

    def read(self, compiler: Callable[[ast.expr], Any]) -> tuple[tuple[str, ...], Any]:
        try:
            tree = ast.parse(self.expression.replace("\n", " ").strip(), mode="eval")
        except SyntaxError as error:
            raise ConditionError(error.msg or "not an expression", self.expression, error.offset or 1) from None
        closure = compiler(tree.body)
        return tuple(self.met), closure

    def condition(self, node: ast.expr, negated: bool = False) -> Callable[[Lookup], Verdict]:
        """`not` is carried inward to the comparisons, so that `and` and `or` need one table each."""
        if isinstance(node, ast.BoolOp):
            parts = [self.condition(part, negated) for part in node.values]
            return _all_or_any(parts, decisive=isinstance(node.op, ast.Or) != negated)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.condition(node.operand, not negated)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            links = [self.comparison(a, op, b, negated) for (a, b), op in zip(pairwise(sides), node.ops, strict=True)]
            return links[0] if len(links) == 1 else _all_or_any(links, decisive=negated)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            verdict = Verdict(node.value != negated, node.value != negated)
            return lambda lookup: verdict
        if isinstance(node, ast.Name | ast.Attribute):
            term = self.name(node)
            return lambda lookup: truth.truth(term(lookup), negated)
        raise self.error(node, "not a condition")

    def comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr, negated: bool) -> Callable[[Lookup], Verdict]:
        if isinstance(op, ast.Is | ast.IsNot):
            return self.presence(left, right, absent=isinstance(op, ast.Is) != negated)
        if isinstance(op, ast.In | ast.NotIn):
            return self.membership(left, right, inside=isinstance(op, ast.In) != negated)
        sign = _COMPARISONS[type(op)]
        if negated:
            sign = truth.NEGATED[sign]
        a, b = self.operand(left), self.operand(right)
        if isinstance(right, ast.Constant):
            limit = b(_nothing)
            return lambda lookup: truth.compare(a(lookup), sign, limit)
        return lambda lookup: truth.compare(a(lookup), sign, b(lookup))

    def presence(self, left: ast.expr, right: ast.expr, absent: bool) -> Callable[[Lookup], Verdict]:
        if not (isinstance(right, ast.Constant) and right.value is None):
            raise self.error(right, "`is` compares only with None")
        term = self.name(left)
        return lambda lookup: truth.presence(term(lookup), absent)

    def membership(self, left: ast.expr, right: ast.expr, inside: bool) -> Callable[[Lookup], Verdict]:
        if not isinstance(right, ast.Tuple) or not right.elts:
            raise self.error(right, "`in` needs a tuple of constants")
        a = self.operand(left)
        constants = [self.constant(item)(_nothing) for item in right.elts]
        sign = "==" if inside else "!="
        return lambda lookup: truth.combine(
            (truth.compare(a(lookup), sign, item) for item in constants), decisive=inside
        )

    def operand(self, node: ast.expr) -> Callable[[Lookup], Term]:
        if isinstance(node, ast.BinOp):
            operation = _ARITHMETIC.get(type(node.op))
            if operation is None:
                raise self.error(node, "only + - * // are understood")
            a, b = self.operand(node.left), self.operand(node.right)
            return lambda lookup: truth.arithmetic(operation, a(lookup), b(lookup))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.operand(node.operand)
            return lambda lookup: truth.arithmetic(operator.sub, Term(0), inner(lookup))
        if isinstance(node, ast.Constant):
            return self.constant(node)
        return self.name(node)

    def constant(self, node: ast.expr) -> Callable[[Lookup], Term]:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str | int | float):
            raise self.error(node, "only text, numbers, True and False can stand here (`is None` asks for presence)")
        term = Term(truth.exact(node.value))
        return lambda lookup: term

    def name(self, node: ast.expr) -> Callable[[Lookup], Term]:
        dotted = _dotted(node)
        if dotted is None:
            raise self.error(node, "not a name")
        name = dotted.removesuffix(ORIGIN) if dotted not in self.names else dotted
        if name not in self.names:
            raise self.error(node, f"unknown name `{dotted}`{_did_you_mean(dotted, self.names)}")
        self.met[name] = None
        if name != dotted:
            return lambda lookup: truth.origin_of(lookup(name))
        return truth.reader(name)

    def error(self, node: ast.AST, message: str) -> ConditionError:
        return ConditionError(message, self.expression, getattr(node, "col_offset", 0) + 1)


def _nothing(name: str) -> None:
    return None


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        parent = _dotted(node.value)
        return f"{parent}.{node.attr}" if parent else None
    return None


def _did_you_mean(name: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _all_or_any(parts: list[Callable[[Lookup], Verdict]], decisive: bool) -> Callable[[Lookup], Verdict]:
    """`decisive` True: any of the parts; False: all of them.  Later parts are looked at only while nothing has decided."""

    def evaluate(lookup: Lookup) -> Verdict:
        seen = []
        for part in parts:
            verdict = part(lookup)
            if verdict.value is decisive:
                return verdict
            seen.append(verdict)
        return truth.settle(seen, decisive)

    return evaluate
