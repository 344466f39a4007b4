"""llama-swap's macros: which a file defines, which it takes from another, and what they make of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kvlint.carriers.base import Item, nearest
from kvlint.patterns import regex
from kvlint.source import Text
from kvlint.subjects import Problem
from kvlint.tree import Map, Scalar

_MACRO = regex(r"\$\{([A-Za-z0-9_.-]+)\}")
_GIVEN = frozenset({"PORT", "MODEL_ID", "PID"})
MAX_EXPANSIONS = 64


def whose_macros(item: Item, others: list[Item]) -> Item | None:
    """The other file whose macros the models of a file use: `-config` and `-config-dir` are read as one document.

    mostlygeek/llama-swap@0bdb3720:internal/config/merge.go
    """
    root = item.node
    assert isinstance(root, Map)
    missing = set(_MACRO.findall(root.span.text)) - _GIVEN - {name for name, _ in macros_of(root.map("macros"))}
    for entry in root.map("models") or ():
        missing -= {name for name, _ in macros_of(entry.value.map("macros") if isinstance(entry.value, Map) else None)}
    missing = {name for name in missing if not name.startswith("env.")}
    holding = [other for other in others if isinstance(other.node, Map) and missing <= defined(other.node)]
    found = nearest(item.path, holding) if missing else []
    return found[0] if len(found) == 1 else None


def defined(root: Map) -> set[str]:
    return {name for name, _ in macros_of(root.map("macros"))}


def macros_of(node: Map | None) -> Iterator[tuple[str, Text]]:
    for entry in node or ():
        if isinstance(entry.value, Scalar):
            yield entry.key.value, entry.value.text


def expand(text: Text, macros: Mapping[str, Text], model: str) -> tuple[Text, list[Problem]]:
    """`${name}` replaced as llama-swap does, macros in macros included; an unknown one is refused by the loader."""
    problems: list[Problem] = []
    for _ in range(MAX_EXPANSIONS):
        match = next(_replaceable(text, macros), None)
        if match is None:
            break
        use = text.slice(*match.span())
        value = macros[match[1]]
        inner = value.seen_from(use.span) if value.value else Text("", (), (), use.span)
        text = Text.join((text.slice(0, match.start()), inner, text.slice(match.end())))
    parts, at = [], 0
    for match in _MACRO.finditer(text.value):
        place = text.slice(*match.span()).span
        if match[1].startswith("env."):
            variable = match[1].removeprefix("env.")
            hole = Text.unknown(place, f"{variable} comes from the environment", f"the value of {variable}")
            parts += [text.slice(at, match.start()), hole]
            at = match.end()
        elif match[1] != "PID":
            data = {"engine": "llama-swap", "value": match[0], "refuses": True}
            problems.append(Problem("unknown-macro", place, data))
    return Text.join((*parts, text.slice(at))), problems


def _replaceable(text: Text, macros: Mapping[str, Text]) -> Iterator[re.Match[str]]:
    return (match for match in _MACRO.finditer(text.value) if match[1] in macros)
