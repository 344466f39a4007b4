"""Redirections and here-documents."""

from __future__ import annotations

from collections.abc import Callable

from kvlint.formats.shell.cursor import Cursor
from kvlint.formats.shell.text import joined
from kvlint.formats.shell.tree import Here, Literal, Word
from kvlint.formats.shell.words import here_body, process_substitution, word
from kvlint.patterns import regex
from kvlint.source import Text

_OPERATOR = regex(r"(?:\{[A-Za-z_]\w*\}|(?P<fd>\d+))?(?P<op><<<|<<-|<<|&>>|&>|<>|<&|>&|>>|>\||<|>)")


def redirect(cursor: Cursor, heres: list[Here], blanks: Callable[[Cursor], None]) -> Word | None:
    """Past one redirection; the file, where standard output goes to one."""
    found = _OPERATOR.match(cursor.value, cursor.pos)
    if found is None:
        return None
    operator = found.group("op")
    cursor.pos = found.end()
    blanks(cursor)
    if cursor.peek(2) in ("<(", ">("):
        process_substitution(cursor)
        return None
    target = word(cursor)
    if operator == "<<<":
        heres.append(Here("", False, False, target))
    elif operator in ("<<", "<<-"):
        here = Here(_delimiter(target), _is_quoted(target), operator == "<<-")
        heres.append(here)
        cursor.pending.append(here)
    is_output = operator in (">", ">>", ">|", "&>", "&>>") and found.group("fd") in (None, "1")
    return target if is_output else None


def _delimiter(target: Word) -> str:
    return "".join(part.text.value for part in target.parts if isinstance(part, Literal))


def _is_quoted(target: Word) -> bool:
    return any(isinstance(part, Literal) and part.quoted for part in target.parts)


def here_bodies(cursor: Cursor) -> None:
    """Read the bodies that were announced on the line that just ended."""
    pending, cursor.pending = cursor.pending, []
    for here in pending:
        here.body = _body(cursor, here)


def _body(cursor: Cursor, here: Here) -> Word:
    start = cursor.pos
    parts: list[Text] = []
    kept = at = start
    value = cursor.value
    while at < len(value):
        end = value.find("\n", at)
        stop = len(value) if end < 0 else end
        tabs = len(value[at:stop]) - len(value[at:stop].lstrip("\t")) if here.strip_tabs else 0
        if value[at + tabs : stop] == here.delimiter:
            break
        if tabs:
            parts.append(cursor.cut(kept, at))
            kept = at + tabs
        at = stop + 1
    at = min(at, len(value))
    parts.append(cursor.cut(kept, at))
    end = value.find("\n", at)
    cursor.pos = len(value) if end < 0 else end + 1
    text = joined(parts)
    if here.literal:
        return Word((Literal(text, True),), cursor.span(start, at))
    return here_body(cursor.inside(text))
