"""Words of a shell script: quotes, escapes and expansions, each part with its place."""

from __future__ import annotations

import re

from kvlint.formats.shell.cursor import Cursor
from kvlint.formats.shell.text import joined, made, spliced
from kvlint.formats.shell.tree import Arithmetic, Literal, Parameter, Part, Substitution, Word
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import HOLE, Text


@dataclass(frozen=True, slots=True, eq=False)
class Mode:
    """Where characters stand: the run of them that means nothing there, what ends them, and what a backslash keeps in quotes."""

    run: re.Pattern[str]
    ends: frozenset[str]
    quoted: bool = False
    escapable: str = '$`"\\'


WORD = Mode(regex(r"""[^ \t\n;&|<>()'"\\$`]+"""), frozenset(" \t\n;&|<>()"))
DOUBLE = Mode(regex(r"""[^"\\$`]+"""), frozenset('"'), quoted=True)
OPERAND = Mode(regex(r"""[^}'"\\$`]+"""), frozenset("}"))
PATTERN = Mode(regex(r"""[^}/'"\\$`]+"""), frozenset("}/"))
QUOTED_OPERAND = Mode(regex(r"""[^}"\\$`]+"""), frozenset("}"), True, '$`"\\}')
QUOTED_PATTERN = Mode(regex(r"""[^}/"\\$`]+"""), frozenset("}/"), True, '$`"\\}/')
HERE = Mode(regex(r"""[^\\$`]+"""), frozenset(), True, "$`\\")
SUM = Mode(regex(r"""[^()'"\\$`]+"""), frozenset(")"), quoted=True)
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!_-]")
_PLAIN_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!_-]")
LONGEST_SUBSCRIPT = 200
LONGEST_SUM = 1000
_PARENTHESIS = regex(r"[()]")
_OPERATOR = regex(r":[-=?+]|[-=?+]|%%?|##?|//?|\^\^?|,,?|@|:")
_ANSI = regex(
    r"\\(?:x(?P<x>[0-9a-fA-F]{1,2})|u(?P<u>[0-9a-fA-F]{1,4})|U(?P<U>[0-9a-fA-F]{1,8})|(?P<o>[0-7]{1,3})|c(?P<c>.)|(?P<s>.))",
    re.S,
)
_ANSI_NAMES = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def word(cursor: Cursor) -> Word:
    """The word that starts here; without characters where no word does."""
    start = cursor.pos
    parts = _parts(cursor, WORD)
    return Word(parts, cursor.span(start))


def here_body(cursor: Cursor) -> Word:
    """All of the cursor's text, as a here-document whose delimiter is not quoted."""
    parts = _parts(cursor, HERE)
    return Word(parts, cursor.span(0))


def is_sum(value: str, start: int) -> bool:
    """Whether what starts behind `((` ends with `))` at the same level: otherwise it is a subshell in parentheses.

    Decided by looking ahead, a fixed way: to try one reading and then the other would double the work with every level.
    """
    depth = 0
    for found in _PARENTHESIS.finditer(value, start, start + LONGEST_SUM):
        if found.group() == "(":
            depth += 1
        elif depth:
            depth -= 1
        else:
            return value.startswith("))", found.start())
    return False


def sum_until_close(cursor: Cursor) -> Word:
    """What stands before `))`, which is passed."""
    start = cursor.pos
    parts = _parts(cursor, SUM)
    found = Word(parts, cursor.span(start))
    if cursor.peek(2) != "))":
        cursor.fault(start, "arithmetic is not closed")
    cursor.pos = min(cursor.pos + 2, len(cursor.value))
    return found


def _parts(cursor: Cursor, mode: Mode) -> tuple[Part, ...]:
    parts: list[Part] = []
    value, ends, run = cursor.value, mode.ends, mode.run
    while cursor.pos < len(value):
        char = value[cursor.pos]
        if char in ends:
            break
        found = run.match(value, cursor.pos)
        if found:
            parts.append(_literal(cursor, found.start(), found.end(), mode.quoted))
            cursor.pos = found.end()
        elif char == "\\":
            parts += _backslash(cursor, mode)
        elif char == "$":
            parts += dollar(cursor, mode.quoted)
        elif char == "`":
            parts.append(_backticks(cursor, mode.quoted))
        elif char == '"':
            parts += _double(cursor)
        elif char == "'" and mode is not SUM:
            parts.append(_single(cursor))
        else:
            parts.append(_literal(cursor, cursor.pos, cursor.pos + 1, mode.quoted))
            cursor.pos += 1
            if mode is SUM and char == "(":
                parts += _inner_sum(cursor)
    return tuple(parts)


def _inner_sum(cursor: Cursor) -> tuple[Part, ...]:
    """The rest of a parenthesis inside arithmetic, its closing one included."""
    cursor.deeper()
    parts = _parts(cursor, SUM)
    cursor.depth -= 1
    if cursor.peek() == ")":
        parts = (*parts, _literal(cursor, cursor.pos, cursor.pos + 1, True))
        cursor.pos += 1
    return parts


def _literal(cursor: Cursor, start: int, end: int, quoted: bool) -> Literal:
    text = cursor.cut(start, end)
    # What fills a hole is there before the shell reads the line: unquoted, it may come apart.
    return Literal(spliced(text, not quoted) if HOLE in text.value else text, quoted)


def _backslash(cursor: Cursor, mode: Mode) -> list[Part]:
    start = cursor.pos
    after = cursor.value[start + 1 : start + 2]
    cursor.pos = start + 1 + len(after)
    if after == "\n":
        return []
    if not after or (mode.quoted and after not in mode.escapable):
        return [Literal(cursor.cut(start, cursor.pos), True)]
    return [Literal(cursor.cut(start + 1, cursor.pos), True)]


def _single(cursor: Cursor) -> Literal:
    start = cursor.pos
    close = cursor.value.find("'", start + 1)
    if close < 0:
        cursor.pos = close = len(cursor.value)
        cursor.fault(start, "a quote is not closed")
    else:
        cursor.pos = close + 1
    return Literal(_quoted(cursor, start, start + 1, close), True)


def _quoted(cursor: Cursor, start: int, inner: int, close: int) -> Text:
    """The inside of quotes; an empty one stands where its quotes do."""
    text = cursor.cut(inner, close)
    if not text.value:
        return Text("", (), (), cursor.span(start))
    return spliced(text, False) if HOLE in text.value else text


def _double(cursor: Cursor) -> list[Part]:
    start = cursor.pos
    cursor.pos += 1
    cursor.deeper()
    parts = list(_parts(cursor, DOUBLE))
    cursor.depth -= 1
    if cursor.at_end():
        cursor.fault(start, "a quote is not closed")
    cursor.pos += 1
    return parts or [Literal(Text("", (), (), cursor.span(start)), True)]


def dollar(cursor: Cursor, quoted: bool) -> list[Part]:
    start = cursor.pos
    after = cursor.value[start + 1 : start + 2]
    if after == "{":
        return [_braced(cursor, quoted)]
    if after == "(":
        return [_parenthesis(cursor, quoted)]
    if after in ("'", '"') and after and not quoted:
        cursor.pos += 1
        return _ansi(cursor, start) if after == "'" else _double(cursor)
    name = _PLAIN_NAME.match(cursor.value, start + 1)
    if name is None:
        cursor.pos += 1
        return [Literal(cursor.cut(start, start + 1), quoted)]
    cursor.pos = name.end()
    return [Parameter(name.group(), cursor.span(start), quoted)]


def _parenthesis(cursor: Cursor, quoted: bool) -> Part:
    start = cursor.pos
    cursor.deeper()
    found: Part
    if cursor.peek(3) == "$((" and is_sum(cursor.value, start + 3):
        cursor.pos += 3
        expression = sum_until_close(cursor)
        found = Arithmetic(expression, cursor.span(start), quoted)
    else:
        cursor.pos = start + 2
        found = _substitution(cursor, start, quoted)
    cursor.depth -= 1
    return found


def _substitution(cursor: Cursor, start: int, quoted: bool) -> Substitution:
    body = cursor.block(cursor, frozenset({")"}))
    if cursor.peek() != ")":
        cursor.fault(start, "a parenthesis is not closed")
    cursor.pos = min(cursor.pos + 1, len(cursor.value))
    return Substitution(body, cursor.span(start), quoted)


def process_substitution(cursor: Cursor) -> Word:
    """`<(…)` and `>(…)`."""
    start = cursor.pos
    cursor.pos += 2
    cursor.deeper()
    part = _substitution(cursor, start, True)
    cursor.depth -= 1
    return Word((part,), part.span)


def _backticks(cursor: Cursor, quoted: bool) -> Substitution:
    start = cursor.pos
    value, at = cursor.value, start + 1
    parts = []
    kept = at
    while at < len(value) and value[at] != "`":
        if value[at] == "\\" and value[at + 1 : at + 2] in ("`", "$", "\\"):
            parts.append(cursor.cut(kept, at))
            kept = at + 1
            at += 1
        at += 1
    at = min(at, len(value))
    parts.append(cursor.cut(kept, at))
    cursor.pos = min(at + 1, len(value))
    cursor.deeper()
    body = cursor.block(cursor.inside(joined(parts)), frozenset())
    cursor.depth -= 1
    return Substitution(body, cursor.span(start), quoted)


def _ansi(cursor: Cursor, start: int) -> list[Part]:
    """`$'…'`, its `$` already passed."""
    value, at = cursor.value, cursor.pos + 1
    parts: list[Part] = []
    kept = at
    while at < len(value) and value[at] != "'":
        escape = _ANSI.match(value, at) if value[at] == "\\" else None
        if escape is None:
            at += 1
            continue
        if at > kept:
            parts.append(Literal(cursor.cut(kept, at), True))
        parts.append(Literal(_escape(cursor, escape), True))
        at = kept = escape.end()
    if at >= len(value):
        cursor.fault(start, "a quote is not closed")
    if at > kept or not parts:
        parts.append(Literal(_quoted(cursor, start, kept, at), True))
    cursor.pos = min(at + 1, len(value))
    return parts


def _escape(cursor: Cursor, found: re.Match[str]) -> Text:
    start, end = found.span()
    simple = found.group("s")
    if simple is not None:
        if simple in "\\'\"?":
            return cursor.cut(start + 1, end)
        if simple in _ANSI_NAMES:
            return made(_ANSI_NAMES[simple], cursor.span(start, end))
        return cursor.cut(start, end)
    if found.group("c") is not None:
        return made(chr(ord(found.group("c")) & 0x1F), cursor.span(start, end))
    digits, base = (
        (found.group("o"), 8) if found.group("o") else (found.group("x") or found.group("u") or found.group("U"), 16)
    )
    code = int(digits, base)
    known = code <= 0x10FFFF and not 0xD800 <= code < 0xE000
    return made(chr(code), cursor.span(start, end)) if known else cursor.cut(start, end)


def _braced(cursor: Cursor, quoted: bool) -> Parameter:
    start = cursor.pos
    cursor.deeper()
    cursor.pos += 2
    found = _parameter(cursor, start, quoted)
    if found is None:
        cursor.pos = start + 2
        _skip_braces(cursor)
        found = Parameter("", cursor.span(start), quoted, "bad")
    cursor.depth -= 1
    return found


def _parameter(cursor: Cursor, start: int, quoted: bool) -> Parameter | None:
    """The inside of `${…}` up to its brace; None where it is nothing that a shell knows."""
    value = cursor.value
    prefix = value[cursor.pos : cursor.pos + 1]
    length = prefix == "#" and value[cursor.pos + 1 : cursor.pos + 2] not in ("}", "")
    indirect = prefix == "!" and value[cursor.pos + 1 : cursor.pos + 2] not in ("}", "")
    name = _NAME.match(value, cursor.pos + (1 if length or indirect else 0))
    if name is None:
        return None
    cursor.pos = name.end()
    subscript = None
    if cursor.peek() == "[" and name.group()[0].isidentifier():
        close = value.find("]", cursor.pos, cursor.pos + LONGEST_SUBSCRIPT)
        if close < 0:
            return None
        subscript = value[cursor.pos + 1 : close]
        cursor.pos = close + 1
    operator = _OPERATOR.match(value, cursor.pos)
    operand = second = None
    if operator:
        cursor.pos = operator.end()
        operand, second = _operands(cursor, operator.group(), quoted)
        if cursor.at_end():  # not read a second time, or nesting would double the work with every level
            cursor.fault(start, "a brace is not closed")
            return Parameter(name.group(), cursor.span(start), quoted, "bad")
    if cursor.peek() != "}":
        return None
    cursor.pos += 1
    sign = operator.group() if operator else ""
    return Parameter(
        name.group(), cursor.span(start), quoted, sign, operand, second, subscript, length=length, indirect=indirect
    )


def _operands(cursor: Cursor, operator: str, quoted: bool) -> tuple[Word, Word | None]:
    if operator[0] != "/":
        return _operand(cursor, QUOTED_OPERAND if quoted else OPERAND), None
    pattern = _operand(cursor, QUOTED_PATTERN if quoted else PATTERN)
    if cursor.peek() != "/":
        return pattern, None
    cursor.pos += 1
    return pattern, _operand(cursor, QUOTED_OPERAND if quoted else OPERAND)


def _operand(cursor: Cursor, mode: Mode) -> Word:
    start = cursor.pos
    parts = _parts(cursor, mode)
    return Word(parts, cursor.span(start))


def _skip_braces(cursor: Cursor) -> None:
    """Past the brace that closes one already open, or to the end of the line where none does."""
    depth = 1
    for found in re.compile(r"[{}\n]").finditer(cursor.value, cursor.pos):
        depth += {"{": 1, "}": -1}.get(found.group(), 0)
        if depth == 0 or found.group() == "\n":
            cursor.pos = found.end() if depth == 0 else found.start()
            return
    cursor.pos = len(cursor.value)
