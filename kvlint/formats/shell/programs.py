"""`sh -c STRING`, as words."""

from __future__ import annotations

from collections.abc import Sequence

from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import HOLE, Text

SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"})
_WITH_VALUE = frozenset({"--init-file", "--rcfile"})
_CLUSTER = regex(r"[-+][A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Invocation:
    """`string`: the script given with `-c`; None where the shell reads its standard input (`file`: or a file).

    `name`: `$0`; `arguments`: `$1` and on.
    """

    string: Text | None
    file: Text | None
    name: Text | None
    arguments: tuple[Text, ...]


def program_name(word: Text) -> str | None:
    """The last component of a path; None where it is not known.  What stands before the last slash may be anything."""
    name = word.value.rsplit("/", 1)[-1]
    return None if HOLE in name or not name else name


def invocation(words: Sequence[Text]) -> Invocation | None:
    """How these words start a shell; None where they start something else, or options hide it."""
    words = list(words)
    if len(words) > 1 and program_name(words[0]) == "busybox" and words[1].value in ("sh", "ash"):
        words = words[1:]
    if not words or program_name(words[0]) not in SHELLS:
        return None
    at, string = _options(words)
    if at is None:
        return None
    rest = tuple(words[at:])
    if not string:
        return Invocation(None, rest[0] if rest else None, rest[0] if rest else words[0], rest[1:])
    if not rest:
        return None
    return Invocation(rest[0], None, rest[1] if len(rest) > 1 else words[0], rest[2:])


def _options(words: Sequence[Text]) -> tuple[int | None, bool]:
    """Index of the first operand, None where a word may be an option or not; whether `-c` was among the options."""
    at = 1
    string = False
    while at < len(words):
        value = words[at].value
        if HOLE in value[:2] or (value.startswith(("-", "+")) and HOLE in value):
            return (at, string) if string and not words[at].value.startswith("-") else (None, string)
        if value in ("--", "-"):
            return at + 1, string
        if value.startswith("--"):
            at += 2 if value in _WITH_VALUE else 1
        elif _CLUSTER.fullmatch(value):
            string |= value[0] == "-" and "c" in value
            at += 1 + sum(value.count(letter) for letter in "oO")
        else:
            break
    return at, string
