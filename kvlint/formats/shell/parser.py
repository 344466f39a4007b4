"""Reads a shell script into a tree.  What no shell would read is passed over and kept as a fault."""

from __future__ import annotations

from kvlint.formats.shell.blanks import KEYWORD, ahead, blanks
from kvlint.formats.shell.compound import (
    REDIRECT,
    read_braces,
    read_calculation,
    read_case,
    read_for,
    read_if,
    read_subshell,
    read_while,
    redirects,
)
from kvlint.formats.shell.cursor import Cursor, TooDeep
from kvlint.formats.shell.redirect import here_bodies, redirect
from kvlint.formats.shell.text import Slicer
from kvlint.formats.shell.tree import Assign, Block, Chain, Function, Here, Item, Node, Pipeline, Simple, Word
from kvlint.formats.shell.words import is_sum, process_substitution, word
from kvlint.patterns import regex
from kvlint.source import Text

_NOTHING = Block(())
_FUNCTION = regex(r"([^\s;&|<>()$`'\"\\=#]+)[ \t]*\([ \t]*\)")
_FUNCTION_NAME = regex(r"[ \t]*([^\s;&|<>()$`'\"\\]+)[ \t]*(?:\([ \t]*\))?")
_ASSIGN = regex(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[([^\]\n]{0,200})\])?(\+?)=")
_PORTABLE = regex(r"-p\b")
_KEYED = regex(r"\[[^\]\n]{1,200}\]=")
_DECLARES = frozenset({"declare", "typeset", "local", "export", "readonly"})
_CLOSERS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})


def parse(text: Text, depth: int = 0) -> tuple[Block, Cursor]:
    """The script's tree, and the cursor with the comments and faults met.  `depth`: levels already entered."""
    cursor = Cursor(Slicer(text), block, 0, depth)
    items: list[Item] = []
    try:
        _items(cursor, frozenset(), items)
    except TooDeep:
        if not depth:  # else it is the following of calls that ends here, and the script itself is read
            cursor.fault(cursor.pos, "nests deeper than is followed")
    return Block(tuple(items)), cursor


def block(cursor: Cursor, until: frozenset[str]) -> Block:
    """Commands up to one of `until` (keywords, `)`, `;;`), which is left for the caller, or up to the end."""
    items: list[Item] = []
    _items(cursor, until, items)
    return Block(tuple(items))


def _items(cursor: Cursor, until: frozenset[str], items: list[Item]) -> None:
    while True:
        blanks(cursor, lines=True)
        if cursor.at_end():
            here_bodies(cursor)
            return
        mark = ahead(cursor)
        if mark in until:
            return
        before = cursor.pos
        if mark in _CLOSERS or mark in (")", ";;", ";", "&", "|"):
            cursor.pos += len(mark)
            if mark != ";":
                cursor.fault(before, f"{mark} stands alone")
            continue
        node = _chain(cursor)
        blanks(cursor)
        background = cursor.peek() == "&" and cursor.peek(2) != "&&"
        if background or (cursor.peek() == ";" and cursor.peek(2) != ";;"):
            cursor.pos += 1
        if cursor.pos == before:
            cursor.pos += 1
            cursor.fault(before, "cannot be read")
            continue
        items.append(Item(node, background))


def _chain(cursor: Cursor) -> Node:
    first = _pipeline(cursor)
    rest: list[tuple[str, Node]] = []
    while True:
        blanks(cursor)
        operator = cursor.peek(2)
        if operator not in ("&&", "||"):
            return Chain(first, tuple(rest)) if rest else first
        cursor.pos += 2
        blanks(cursor, lines=True)
        rest.append((operator, _pipeline(cursor)))


def _pipeline(cursor: Cursor) -> Node:
    negated = False
    while (found := KEYWORD.match(cursor.value, cursor.pos)) and found.group() in ("!", "time", "coproc"):
        negated ^= found.group() == "!"
        cursor.pos = found.end()
        blanks(cursor)
        if found.group() == "time" and _PORTABLE.match(cursor.value, cursor.pos):
            cursor.pos += 2
            blanks(cursor)
    nodes = [_command(cursor)]
    while True:
        blanks(cursor)
        if cursor.peek() != "|" or cursor.peek(2) == "||":
            break
        cursor.pos += 2 if cursor.peek(2) == "|&" else 1
        blanks(cursor, lines=True)
        nodes.append(_command(cursor))
    return Pipeline(tuple(nodes), negated) if len(nodes) > 1 or negated else nodes[0]


def _command(cursor: Cursor) -> Node:
    found = KEYWORD.match(cursor.value, cursor.pos)
    keyword = found.group() if found else ""
    reader = _COMPOUND.get(keyword)
    if reader is None and cursor.peek() == "(":
        is_calculation = cursor.peek(2) == "((" and is_sum(cursor.value, cursor.pos + 2)
        reader = read_calculation if is_calculation else read_subshell
    if reader is None:
        defined = _FUNCTION.match(cursor.value, cursor.pos)
        if defined:
            cursor.pos = defined.end()
            return _function(cursor, defined.group(1), defined.start(1))
        return _simple(cursor)
    cursor.deeper()
    node = reader(cursor)
    cursor.depth -= 1
    return node


def _function(cursor: Cursor, name: str, start: int) -> Function:
    span = cursor.span(start, start + len(name))
    blanks(cursor, lines=True)
    cursor.deeper()
    body = _command(cursor)
    cursor.depth -= 1
    return Function(name, body, span)


def _named_function(cursor: Cursor) -> Node:
    cursor.pos += len("function")
    found = _FUNCTION_NAME.match(cursor.value, cursor.pos)
    if found is None:
        return _NOTHING
    cursor.pos = found.end()
    return _function(cursor, found.group(1), found.start(1))


def _test(cursor: Cursor) -> Node:
    """`[[ … ]]`, where operators are words."""
    start = cursor.pos
    words = [word(cursor)]
    while not cursor.at_end():
        blanks(cursor, lines=True)
        before = cursor.pos
        if cursor.peek() in ";":
            break
        words.append(word(cursor))
        if words[-1].plain == "]]":
            break
        if cursor.pos == before:
            cursor.pos += 1
            words[-1] = Word((), None)
    words = [found for found in words if found.parts]
    return Simple((), tuple(words), cursor.span(start), *redirects(cursor))


def _simple(cursor: Cursor) -> Node:
    start = end = cursor.pos
    assigns: list[Assign] = []
    words: list[Word | Assign] = []
    heres: list[Here] = []
    target = None
    while True:
        blanks(cursor)
        before = cursor.pos
        if REDIRECT.match(cursor.value, cursor.pos):
            target = redirect(cursor, heres, blanks) or target
            continue
        if cursor.peek(2) in ("<(", ">("):
            words.append(process_substitution(cursor))
        elif (not words or _declares(words)) and _ASSIGN.match(cursor.value, cursor.pos):
            assign = _assign(cursor)
            if words:
                words.append(assign)
            else:
                assigns.append(assign)
        else:
            found = word(cursor)
            if cursor.pos == before:
                break
            words.append(found)
        end = cursor.pos
    return Simple(tuple(assigns), tuple(words), cursor.span(start, end), tuple(heres), target)


def _declares(words: list[Word | Assign]) -> bool:
    return isinstance(words[0], Word) and words[0].plain in _DECLARES


def _assign(cursor: Cursor) -> Assign:
    start = cursor.pos
    found = _ASSIGN.match(cursor.value, start)
    assert found is not None
    name, subscript, plus = found.groups()
    cursor.pos = found.end()
    if cursor.peek() != "(":
        value = word(cursor)
        return Assign(name, cursor.span(start), value, None, bool(plus), subscript)
    cursor.pos += 1
    words: list[Word] = []
    keyed = False
    while True:
        blanks(cursor, lines=True)
        before = cursor.pos
        if cursor.at_end() or cursor.peek() == ")":
            break
        keyed |= _KEYED.match(cursor.value, cursor.pos) is not None
        words.append(word(cursor))
        if cursor.pos == before:
            cursor.pos += 1
            words.pop()
    cursor.pos = min(cursor.pos + 1, len(cursor.value))
    return Assign(name, cursor.span(start), None, tuple(words), bool(plus), subscript, keyed)


_COMPOUND = {
    "if": read_if,
    "while": read_while,
    "until": read_while,
    "for": read_for,
    "select": read_for,
    "case": read_case,
    "function": _named_function,
    "{": read_braces,
    "[[": _test,
}
