"""Compound commands of the shell: branches, loops, groups."""

from __future__ import annotations

from kvlint.formats.shell.blanks import ahead, blanks, expect
from kvlint.formats.shell.cursor import Cursor
from kvlint.formats.shell.redirect import redirect
from kvlint.formats.shell.tree import Block, Calculation, Case, Group, Here, If, Loop, Node, Word
from kvlint.formats.shell.words import sum_until_close, word
from kvlint.patterns import regex

_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_IN = regex(r"in\b")
REDIRECT = regex(r"(?:\{[A-Za-z_]\w*\}|\d+)?(?:[<>](?!\()|&>)")


def read_if(cursor: Cursor) -> Node:
    arms = []
    last = None
    keyword = "if"
    while keyword in ("if", "elif"):
        cursor.pos += len(keyword)
        condition = cursor.block(cursor, frozenset({"then", "fi"}))
        expect(cursor, "then")
        arms.append((condition, cursor.block(cursor, frozenset({"elif", "else", "fi"}))))
        keyword = "" if cursor.at_end() else ahead(cursor)
    if keyword == "else":
        cursor.pos += len("else")
        last = cursor.block(cursor, frozenset({"fi"}))
    expect(cursor, "fi")
    return If(tuple(arms), last)


def read_while(cursor: Cursor) -> Node:
    cursor.pos += len("while")  # as long as `until`
    condition = cursor.block(cursor, frozenset({"do"}))
    return Loop(condition, None, (), _do(cursor))


def _do(cursor: Cursor) -> Block:
    expect(cursor, "do")
    body = cursor.block(cursor, frozenset({"done"}))
    expect(cursor, "done")
    redirects(cursor)
    return body


def read_for(cursor: Cursor) -> Node:
    cursor.pos += len("for") if cursor.peek(3) == "for" else len("select")
    blanks(cursor)
    variable = None
    words: list[Word] = []
    found = _NAME.match(cursor.value, cursor.pos)
    if cursor.peek(2) == "((":
        cursor.pos += 2
        sum_until_close(cursor)
    elif found:
        variable = found.group()
        cursor.pos = found.end()
        blanks(cursor, lines=True)
        if _IN.match(cursor.value, cursor.pos):
            cursor.pos += 2
            words = _words(cursor)
    blanks(cursor)
    if cursor.peek() == ";":
        cursor.pos += 1
    return Loop(None, variable, tuple(words), _do(cursor))


def _words(cursor: Cursor) -> list[Word]:
    words: list[Word] = []
    while True:
        blanks(cursor)
        if cursor.at_end() or cursor.peek() in "\n;&|()<>":
            return words
        words.append(word(cursor))


def read_case(cursor: Cursor) -> Node:
    cursor.pos += len("case")
    blanks(cursor)
    subject = word(cursor)
    blanks(cursor, lines=True)
    if _IN.match(cursor.value, cursor.pos):
        cursor.pos += 2
    arms = []
    patterns = []
    falls = False
    while True:
        blanks(cursor, lines=True)
        before = cursor.pos
        if cursor.at_end() or ahead(cursor) == "esac":
            break
        patterns.append(_patterns(cursor))
        arms.append(cursor.block(cursor, frozenset({";;", "esac"})))
        if cursor.peek(2) in (";;", ";&"):
            falls |= cursor.peek(2) == ";&" or cursor.peek(3) == ";;&"
            cursor.pos += 3 if cursor.peek(3) == ";;&" else 2
        if cursor.pos == before:
            cursor.pos += 1
    expect(cursor, "esac")
    redirects(cursor)
    whole = any(pattern.plain == "*" for several in patterns for pattern in several)
    return Case(subject, tuple(arms), whole, tuple(patterns), falls)


def _patterns(cursor: Cursor) -> tuple[Word, ...]:
    """The patterns of an arm."""
    patterns = []
    if cursor.peek() == "(":
        cursor.pos += 1
    while True:
        blanks(cursor)
        patterns.append(word(cursor))
        blanks(cursor)
        if cursor.peek() != "|":
            break
        cursor.pos += 1
    if cursor.peek() == ")":
        cursor.pos += 1
    return tuple(patterns)


def read_braces(cursor: Cursor) -> Node:
    return _group(cursor, "}", subshell=False)


def read_subshell(cursor: Cursor) -> Node:
    return _group(cursor, ")", subshell=True)


def _group(cursor: Cursor, closer: str, subshell: bool) -> Node:
    cursor.pos += 1
    body = cursor.block(cursor, frozenset({closer}))
    expect(cursor, closer)
    heres, target = redirects(cursor)
    return Group(body, subshell, heres, target)


def redirects(cursor: Cursor) -> tuple[tuple[Here, ...], Word | None]:
    heres: list[Here] = []
    target = None
    while True:
        blanks(cursor)
        if not REDIRECT.match(cursor.value, cursor.pos):
            return tuple(heres), target
        target = redirect(cursor, heres, blanks) or target


def read_calculation(cursor: Cursor) -> Node:
    cursor.pos += 2
    return Calculation(sum_until_close(cursor))
