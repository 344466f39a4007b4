"""Text to `syntax` by tree-sitter.  Nothing is evaluated; a broken file gives problems and what stands outside of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kvlint.formats.nix.bindings import define, inherit
from kvlint.formats.nix.names import undefined
from kvlint.formats.nix.syntax import (
    Apply,
    Assert,
    AttrSet,
    Bad,
    Binary,
    Comment,
    Expr,
    File,
    Formal,
    HasAttr,
    If,
    Interpolation,
    Key,
    Lambda,
    Let,
    ListLiteral,
    Number,
    PathLiteral,
    Problem,
    Select,
    String,
    Unary,
    Variable,
    With,
)
from kvlint.formats.nix.text import indented_parts, quoted_text
from kvlint.source import Source, Span, Text

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_DEPTH = 160
MAX_SIZE = 500_000
_MAX_INT = 2**63 - 1
_TOO_DEEP = "nested too deeply to be read"
_BROKEN = "cannot be read: a syntax error stands here"
_NOT_CHAINED = ({"==", "!="}, {"<", ">", "<=", ">="})
_Kids = list["Node"]


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_nix

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_nix.language()))


@lru_cache(maxsize=64)
def parse(source: Source) -> File:
    """The syntax of a file, remembered while it is one of the last that were read.

    A file of more than `MAX_SIZE` characters is a problem and nothing else.
    """
    if len(source.text) > MAX_SIZE:
        return File(source, None, (), (Problem(source.span(0, 0), "the file is too large"),))
    tree = _parser().parse(source.text.encode("utf-8", "surrogatepass"))
    reader = _Reader(source)
    try:
        root = reader.file(tree.root_node)
    except RecursionError:
        return File(source, None, (), (Problem(source.span(0, 0), f"the file is {_TOO_DEEP}"),))
    if root is not None and not reader.problems:
        reader.problems += undefined(root)
    comments = tuple(sorted(reader.comments, key=lambda comment: comment.span.start))
    return File(source, root, comments, tuple(reader.problems))


def _offsets(text: str) -> array[int] | None:
    """Code point of each UTF-8 byte; None where they are the same."""
    if text.isascii():
        return None
    table = array("L")
    for index, char in enumerate(text):
        code = ord(char)
        width = 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        table.extend([index] * width)
    table.append(len(text))
    return table


def _operator(node: Node) -> str:
    if node.type != "binary_expression":
        return ""
    operator = node.child_by_field_name("operator")
    return operator.type if operator is not None else ""


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.table = _offsets(source.text)
        self.comments: list[Comment] = []
        self.problems: list[Problem] = []
        self.depth = 0

    def place(self, node: Node) -> tuple[int, int]:
        if self.table is None:
            return node.start_byte, node.end_byte
        return self.table[node.start_byte], self.table[node.end_byte]

    def span(self, node: Node) -> Span:
        return self.source.span(*self.place(node))

    def bad(self, node: Node, reason: str) -> Bad:
        return Bad(self.source, *self.place(node), reason)

    def kids(self, node: Node) -> _Kids:
        """The named children that are not comments; comments are collected on the way."""
        found = []
        for child in node.named_children:
            if child.type == "comment":
                start, end = self.place(child)
                self.comments.append(Comment(self.source.span(start, end), self.source.text[start:end]))
            else:
                found.append(child)
        return found

    def file(self, root: Node) -> Expr | None:
        if root.type == "ERROR":
            return self.salvage(root)
        kids = self.kids(root)
        sound = [kid for kid in kids if kid.type != "ERROR"]
        for kid in kids:
            if kid.type == "ERROR":
                self.report(kid)
        if len(kids) == len(sound) == 1:
            return self.expr(sound[0])
        functions = [
            kid for kid in sound if kid.type in ("function_expression", "attrset_expression", "let_expression")
        ]
        if functions:
            return self.expr(functions[0])
        return self.salvage(root) if kids else None

    def salvage(self, root: Node) -> Expr:
        """The bindings that stand directly under an error, as an open set."""
        self.report(root)
        found = AttrSet(self.source, *self.place(root), False)
        found.open.append(self.bad(root, _BROKEN))
        stack = [root]
        while stack:
            node = stack.pop()
            for kid in self.kids(node):
                if kid.type in ("ERROR", "binding_set"):
                    stack.append(kid)
                elif kid.type in ("binding", "inherit", "inherit_from"):
                    self.binding(found, kid)
        return found

    def report(self, node: Node) -> None:
        """A problem at the first token that does not fit."""
        start, end = self.place(node)
        line_end = self.source.text.find("\n", start)
        end = end if line_end < 0 or line_end <= start else min(end, line_end)
        if not any(start <= p.span.start <= end for p in self.problems):
            self.problems.append(Problem(self.source.span(start, end), "syntax error"))

    def broken(self, node: Node) -> bool:
        """An error or a missing token stands directly in `node`."""
        found = False
        for child in node.children:
            if child.is_missing or child.type == "ERROR":
                self.report(child)
                found = True
        return found

    def expr(self, node: Node) -> Expr:
        kind = node.type
        read = _READERS.get(kind)
        if read is None:
            if kind == "ERROR":
                self.report(node)
            return self.bad(node, _BROKEN if node.has_error else f"{kind} is not understood")
        if node.has_error and kind not in _TOLERANT and self.broken(node):
            self.scan(node)
            return self.bad(node, _BROKEN)
        if self.depth >= MAX_DEPTH:
            return self.bad(node, _TOO_DEEP)
        self.depth += 1
        try:
            return read(self, node)
        finally:
            self.depth -= 1

    def scan(self, node: Node) -> None:
        """Collect the comments below a node that is not read."""
        stack = [node]
        while stack:
            stack += self.kids(stack.pop())

    def parenthesized(self, node: Node) -> Expr:
        kids = self.kids(node)
        return self.expr(kids[0]) if kids else self.bad(node, _BROKEN)

    def variable(self, node: Node) -> Expr:
        start, end = self.place(node)
        self.kids(node)
        return Variable(self.source, start, end, self.source.text[start:end])

    def integer(self, node: Node) -> Expr:
        start, end = self.place(node)
        digits = self.source.text[start:end]
        if (len(digits) > 19 and int(digits[:40]) > _MAX_INT) or (len(digits) <= 19 and int(digits) > _MAX_INT):
            self.problems.append(Problem(self.source.span(start, end), "integer does not fit in 64 bits"))
            return self.bad(node, "the integer does not fit in 64 bits")
        return Number(self.source, start, end, int(digits))

    def float(self, node: Node) -> Expr:
        start, end = self.place(node)
        value = float(self.source.text[start:end])
        if value in (float("inf"), 0.0) and any(digit in "123456789" for digit in self.source.text[start:end]):
            return self.bad(node, "the number is out of the range of a double")
        return Number(self.source, start, end, value)

    def interpolation(self, node: Node) -> Interpolation:
        kids = self.kids(node)
        broken = node.has_error and self.broken(node)
        body = self.expr(kids[0]) if kids and not broken else self.bad(node, _BROKEN)
        return Interpolation(self.source, *self.place(node), body)

    def string(self, node: Node) -> Expr:
        start, end = self.place(node)
        at = start + 1
        parts: list[Text | Interpolation] = []
        for kid in node.named_children:
            if kid.type != "interpolation":
                continue
            hole = self.interpolation(kid)
            if hole.start > at:
                parts.append(quoted_text(self.source, at, hole.start))
            parts.append(hole)
            at = hole.end
        if at < end - 1 or not parts:
            parts.append(quoted_text(self.source, at, end - 1))
        return String(self.source, start, end, tuple(parts))

    def indented(self, node: Node) -> Expr:
        start, end = self.place(node)
        holes = [self.interpolation(kid) for kid in node.named_children if kid.type == "interpolation"]
        return String(self.source, start, end, indented_parts(self.source, start + 2, end - 2, holes))

    def uri(self, node: Node) -> Expr:
        start, end = self.place(node)
        return String(self.source, start, end, (Text.of(self.source, start, end),))

    def path(self, node: Node) -> Expr:
        start, end = self.place(node)
        parts: list[Text | Interpolation] = []
        for kid in node.named_children:
            if kid.type == "interpolation":
                parts.append(self.interpolation(kid))
            elif kid.type == "path_fragment":
                parts.append(Text.of(self.source, *self.place(kid)))
        written = self.source.text[start:end]
        if "//" in written.split("${")[0] or written.endswith("/"):
            return self.bad(node, "the path has an empty step")
        return PathLiteral(self.source, start, end, tuple(parts))

    def search_path(self, node: Node) -> Expr:
        start, end = self.place(node)
        return PathLiteral(self.source, start, end, (Text.of(self.source, start + 1, end - 1),), search=True)

    def key(self, node: Node) -> Key:
        start, end = self.place(node)
        span = self.source.span(start, end)
        if node.type == "identifier":
            return Key(span, Text.of(self.source, start, end))
        inner: Expr = self.interpolation(node).body if node.type == "interpolation" else self.expr(node)
        if isinstance(inner, String) and len(inner.parts) == 1 and isinstance(inner.parts[0], Text):
            return Key(span, inner.parts[0])
        return Key(span, None, inner)

    def keys(self, node: Node) -> tuple[Key, ...]:
        """The steps of an attribute path; none where it is broken."""
        if node.has_error and self.broken(node):
            return ()
        return tuple(self.key(kid) for kid in self.kids(node) if kid.type != "ERROR")

    def select(self, node: Node) -> Expr:
        kids = self.kids(node)
        default = self.expr(kids[2]) if len(kids) > 2 else None
        path = self.keys(kids[1])
        if not path:
            return self.bad(node, _BROKEN)
        return Select(self.source, *self.place(node), self.expr(kids[0]), path, default)

    def has_attr(self, node: Node) -> Expr:
        kids = self.kids(node)
        if kids[0].type == node.type:
            self.problems.append(Problem(self.span(node), "? cannot be chained"))
            return self.bad(node, "? cannot be chained")
        path = self.keys(kids[1])
        return HasAttr(self.source, *self.place(node), self.expr(kids[0]), path) if path else self.bad(node, _BROKEN)

    def apply(self, node: Node) -> Expr:
        kids = self.kids(node)
        return Apply(self.source, *self.place(node), self.expr(kids[0]), self.expr(kids[1]))

    def function(self, node: Node) -> Expr:
        name: str | None = None
        formals: tuple[Formal, ...] | None = None
        ellipsis = False
        kids = self.kids(node)
        for kid in kids[:-1]:
            if kid.type == "identifier":
                name = self.span(kid).text
            elif kid.type == "formals":
                formals, ellipsis = self.formals(kid)
        return Lambda(self.source, *self.place(node), name, formals, ellipsis, self.expr(kids[-1]))

    def formals(self, node: Node) -> tuple[tuple[Formal, ...], bool]:
        found: list[Formal] = []
        ellipsis = False
        for kid in self.kids(node):
            if kid.type == "ellipses":
                ellipsis = True
            elif kid.type == "formal":
                parts = self.kids(kid)
                span = self.span(parts[0])
                found.append(Formal(span.text, span, self.expr(parts[1]) if len(parts) > 1 else None))
            elif kid.type == "ERROR" and self.span(kid).text.strip() != ",":  # a trailing comma is newer Nix
                self.report(kid)
        return tuple(found), ellipsis

    def let(self, node: Node) -> Expr:
        kids = [kid for kid in self.kids(node) if kid.type != "ERROR"]
        bindings = self.bindings(node, [kid for kid in kids if kid.type == "binding_set"], recursive=True)
        for definition in bindings.dynamic:
            self.problems.append(Problem(definition.key.span, "a dynamic attribute cannot stand in a let"))
        return Let(self.source, *self.place(node), bindings, self.expr(kids[-1]))

    def old_let(self, node: Node) -> Expr:
        place = self.place(node)
        bindings = self.attrset(node, recursive=True)
        body = Text.at("body", self.source.span(*place))
        return Select(self.source, *place, bindings, (Key(body.span, body),), None)

    def with_(self, node: Node) -> Expr:
        kids = self.kids(node)
        return With(self.source, *self.place(node), self.expr(kids[0]), self.expr(kids[1]))

    def if_(self, node: Node) -> Expr:
        kids = self.kids(node)
        return If(self.source, *self.place(node), self.expr(kids[0]), self.expr(kids[1]), self.expr(kids[2]))

    def assert_(self, node: Node) -> Expr:
        kids = self.kids(node)
        return Assert(self.source, *self.place(node), self.expr(kids[0]), self.expr(kids[1]))

    def list(self, node: Node) -> Expr:
        return ListLiteral(self.source, *self.place(node), tuple(self.expr(kid) for kid in self.kids(node)))

    def binary(self, node: Node) -> Expr:
        kids = self.kids(node)
        operator = node.child_by_field_name("operator")
        sign = operator.type if operator is not None else ""
        if any(sign in group and _operator(kid) in group for group in _NOT_CHAINED for kid in kids):
            self.problems.append(Problem(self.span(node), f"{sign} cannot be chained"))
            return self.bad(node, f"{sign} cannot be chained")
        return Binary(self.source, *self.place(node), sign, self.expr(kids[0]), self.expr(kids[1]))

    def unary(self, node: Node) -> Expr:
        kids = self.kids(node)
        return Unary(self.source, *self.place(node), node.children[0].type, self.expr(kids[0]))

    def attrset(self, node: Node, recursive: bool = False) -> AttrSet:
        return self.bindings(node, self.kids(node), recursive)

    def rec_attrset(self, node: Node) -> AttrSet:
        return self.attrset(node, recursive=True)

    def bindings(self, node: Node, kids: _Kids, recursive: bool) -> AttrSet:
        found = AttrSet(self.source, *self.place(node), recursive)
        if node.has_error:
            self.note_errors(found, node)
        for kid in kids:
            if kid.type != "binding_set":
                continue
            if kid.has_error:
                self.note_errors(found, kid)
            for item in self.kids(kid):
                if item.type != "ERROR":
                    self.binding(found, item)
        return found

    def note_errors(self, found: AttrSet, node: Node) -> None:
        for child in node.children:
            if child.type == "ERROR" or child.is_missing:
                self.report(child)
                self.scan(child)
                found.open.append(self.bad(child, _BROKEN))

    def binding(self, into: AttrSet, node: Node) -> None:
        kids = self.kids(node)
        sound = [kid for kid in kids if kid.type != "ERROR"]
        broken = node.has_error and self.broken(node)
        if node.type == "binding" and sound:
            keys = self.keys(sound[0])
            if broken:
                self.scan(node)
                into.open.append(self.bad(node, _BROKEN))
            value = self.bad(node, _BROKEN) if broken or len(sound) < 2 else self.expr(sound[1])
            if keys:
                define(self.problems, into, keys, value)
            else:
                into.open.append(self.bad(node, _BROKEN))
        elif node.type == "inherit" and sound:
            for key in self.keys(sound[-1]):
                inherit(self.problems, into, key, None)
        elif node.type == "inherit_from" and len(sound) > 1:
            origin = self.expr(sound[0])
            for key in self.keys(sound[-1]):
                inherit(self.problems, into, key, origin)


_Read = Callable[[_Reader, Any], Expr]
_READERS: dict[str, _Read] = {
    "parenthesized_expression": _Reader.parenthesized,
    "variable_expression": _Reader.variable,
    "integer_expression": _Reader.integer,
    "float_expression": _Reader.float,
    "string_expression": _Reader.string,
    "indented_string_expression": _Reader.indented,
    "uri_expression": _Reader.uri,
    "path_expression": _Reader.path,
    "hpath_expression": _Reader.path,
    "spath_expression": _Reader.search_path,
    "select_expression": _Reader.select,
    "has_attr_expression": _Reader.has_attr,
    "apply_expression": _Reader.apply,
    "function_expression": _Reader.function,
    "let_expression": _Reader.let,
    "let_attrset_expression": _Reader.old_let,
    "with_expression": _Reader.with_,
    "if_expression": _Reader.if_,
    "assert_expression": _Reader.assert_,
    "list_expression": _Reader.list,
    "binary_expression": _Reader.binary,
    "unary_expression": _Reader.unary,
    "attrset_expression": _Reader.attrset,
    "rec_attrset_expression": _Reader.rec_attrset,
}
_TOLERANT = {"attrset_expression", "rec_attrset_expression", "let_attrset_expression", "let_expression"}
