"""What stands between the words of a shell script: blanks, comments, line ends, keywords and operators."""

from __future__ import annotations

from kvlint.formats.shell.cursor import Comment, Cursor
from kvlint.formats.shell.redirect import here_bodies
from kvlint.patterns import regex

KEYWORD = regex(
    r"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|time|coproc|\[\[|[{}!])(?![^\s;&|<>()])"
)
_BLANK = " \t"


def blanks(cursor: Cursor, lines: bool = False) -> None:
    """Past blanks, continuations and a comment; with `lines` past line ends too, and the here-documents behind them."""
    continued = False
    while not cursor.at_end():
        char = cursor.peek()
        if char in _BLANK:
            cursor.pos += 1
        elif char == "\\" and cursor.peek(2) == "\\\n":
            cursor.pos += 2
            continued = True
        elif char == "#":
            _comment(cursor, continued)
        elif char == "\n" and lines:
            cursor.pos += 1
            continued = False
            here_bodies(cursor)
        else:
            return


def _comment(cursor: Cursor, continued: bool) -> None:
    start = cursor.pos
    end = cursor.value.find("\n", start)
    cursor.pos = end = len(cursor.value) if end < 0 else end
    line = cursor.value.rfind("\n", 0, start) + 1
    own_line = not cursor.value[line:start].strip()
    cursor.comments.append(Comment(cursor.cut(start, end), own_line, continued))


def ahead(cursor: Cursor) -> str:
    """The keyword or operator that starts here, or "" before a word."""
    found = KEYWORD.match(cursor.value, cursor.pos)
    if found:
        return found.group()
    two = cursor.peek(2)
    if two in (";;", ";&"):
        return ";;"
    return two[0] if two[0] in ");&|" else ""


def expect(cursor: Cursor, closer: str) -> None:
    blanks(cursor, lines=True)
    if not cursor.at_end() and ahead(cursor) == closer:
        cursor.pos += len(closer)
        return
    cursor.fault(cursor.pos, f"{closer} is missing")
