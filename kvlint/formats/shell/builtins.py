"""Builtins of the shell that change what it knows.  Each gives what follows it, or None for an ordinary command."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kvlint.command import Opening
from kvlint.formats.shell.state import ALL_EXPORT, UNSET, Variable
from kvlint.formats.shell.text import place, unknown
from kvlint.formats.shell.tree import Assign, Simple
from kvlint.patterns import regex
from kvlint.source import HOLE, Text

if TYPE_CHECKING:
    from kvlint.formats.shell.walk import Walker

# Files that are read for their settings, not for the surroundings of a tool.
_SETTINGS = regex(r"(?:^|/)(?:[\w.-]*[._-])?(?:env|conf|config|settings|vars|params)(?:\.[\w.-]+)?$", re.IGNORECASE)
GO_ON, LEAVES, EXITS = range(3)  # what follows a command: the next; the end of the loop or function; nothing


def _declare(walker: Walker, node: Simple, words: Sequence[Text]) -> int:
    """`export`, `declare`, `local`, `readonly`: assignments, plain names, and names that come from expansions."""
    kind = words[0].value
    options = "".join(word.value[1:] for word in words[1:] if word.value.startswith("-"))
    exported = True if kind == "export" or "x" in options else None
    if kind == "export" and "n" in options:
        exported = False
    for word in node.words[1:]:
        if isinstance(word, Assign):
            walker.assign(word, exported)
            continue
        for text in walker.expander.words(word):
            _declare_name(walker, text, kind, exported)
    return GO_ON


def _declare_name(walker: Walker, text: Text, kind: str, exported: bool | None) -> None:
    if text.value.startswith("-"):
        return
    name, equals, _ = text.value.partition("=")
    if not name.isidentifier():
        if text.holes and exported:
            hole = text.holes[0]
            opening = Opening(0, hole.span, "exports names that are not known", hole.supply)
            walker.env_open = (*walker.env_open, opening)
        return
    held = walker.state.get(name)
    if equals:
        walker.state.set(name, text.slice(len(name) + 1), exported)
    elif held is not None and exported is not None:
        walker.state.put(name, Variable(held.value, exported))
    elif held is None and kind == "local":
        walker.state.set(name, UNSET)


def _set(walker: Walker, node: Simple, words: Sequence[Text]) -> int:
    for number, word in enumerate(words[1:], 1):
        value = word.value
        if value == "--":
            walker.state.put("@", Variable(tuple(words[number + 1 :])))
            return GO_ON
        if value in ("-a", "-o", "+a", "+o") or (value[:1] in "-+" and "a" in value):
            _all_export(walker, value, words[number + 1 : number + 2])
        elif value[:1] not in ("-", "+") and words[number - 1].value[-1:] != "o":
            walker.state.put("@", Variable(tuple(words[number:])))
            return GO_ON
    return GO_ON


def _all_export(walker: Walker, option: str, argument: Sequence[Text]) -> None:
    if "a" in option or (option[1:] == "o" and argument and argument[0].value == "allexport"):
        walker.state.put(ALL_EXPORT, Variable(Text("")) if option[0] == "-" else None)


def _shift(walker: Walker, node: Simple, words: Sequence[Text]) -> int:
    items = walker.state.positional
    count = words[1].value if len(words) > 1 else "1"
    if items is None or not count.isdigit() or len(count) > 4:
        walker.state.put("@", None)
        return GO_ON
    gone, rest = items[: int(count)], items[int(count) :]
    many = any(hole.splice for item in gone for hole in item.holes)
    walker.state.put("@", None if many else Variable(rest))
    return GO_ON


def _unset(walker: Walker, node: Simple, words: Sequence[Text]) -> int:
    for word in words[1:]:
        if word.value.isidentifier():
            walker.state.put(word.value, Variable(UNSET))
    return GO_ON


def _read(walker: Walker, node: Simple, words: Sequence[Text]) -> int:
    """Names that are filled from input."""
    for word in words[1:]:
        if word.value.isidentifier():
            reason = f"{word.value} is read from input"
            walker.state.set(word.value, unknown(place(word), reason, f"the value of {word.value}"))
    return GO_ON


def _printf(walker: Walker, node: Simple, words: Sequence[Text]) -> int | None:
    if len(words) > 2 and words[1].value == "-v" and words[2].value.isidentifier():
        name = words[2].value
        walker.state.set(name, unknown(place(words[2]), f"{name} is made by printf", f"the value of {name}"))
        return GO_ON
    return None


def _eval(walker: Walker, node: Simple, words: Sequence[Text]) -> int | None:
    if len(words) < 2 or all(not word.value.strip(HOLE + " ") for word in words[1:]):
        hole = next((hole for word in words[1:] for hole in word.holes), None)
        if hole is not None:
            opening = Opening(0, hole.span, "evaluates a text that is not known", hole.supply)
            walker.env_open = (*walker.env_open, opening)
        return None
    return walker.evaluate(words[1:])


def _source(walker: Walker, node: Simple, words: Sequence[Text]) -> int | None:
    """What a file in view sets; else an ordinary command, after which nothing that is set or exported is certain."""
    if len(words) < 2:
        return None
    if walker.source(words[1]):
        return GO_ON
    name = words[1].value.replace(HOLE, "…")
    span = place(words[1])
    if span is not None:
        walker.env_open = (*walker.env_open, Opening(0, span, f"{name} may set variables", name))
    if not name.endswith("/activate"):
        walker.answers.doubted = walker.state.variables()
    if _SETTINGS.search(name):
        walker.doubt()
    return None


def _leave(walker: Walker, node: Simple, words: Sequence[Text]) -> int:
    return LEAVES


def _exit(walker: Walker, node: Simple, words: Sequence[Text]) -> int:
    return EXITS


def _nothing(walker: Walker, node: Simple, words: Sequence[Text]) -> int:
    return GO_ON


BUILTINS: dict[str | None, Callable[[Walker, Simple, Sequence[Text]], int | None]] = {
    **dict.fromkeys(("export", "declare", "typeset", "local", "readonly"), _declare),
    **dict.fromkeys(("read", "mapfile", "readarray", "getopts", "let"), _read),
    **dict.fromkeys(("return", "break", "continue"), _leave),
    **dict.fromkeys((":", "true", "shopt", "trap", "wait", "umask", "ulimit"), _nothing),
    **dict.fromkeys((".", "source"), _source),
    "set": _set,
    "shift": _shift,
    "unset": _unset,
    "printf": _printf,
    "eval": _eval,
    "exit": _exit,
}
