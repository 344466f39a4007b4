"""`--a.b.c value`: dotted names, which vLLM's FlexibleArgumentParser, and LMDeploy's copy of it, join into one JSON word."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kvlint.engines.dialects.common import BEFORE, Sheet, Word
from kvlint.source import HOLE

DEEPEST = 64  # names between dots that are followed


def merged(
    sheet: Sheet, words: list[Word], leaf: Callable[[str], Any], *, dash: str = "--", appends: bool = False
) -> list[Word]:
    """The words with one JSON word for each dotted name at the end.

    `leaf`: what a value is taken for; `dash`: how a name begins; `appends`: `--a.b+ x,y` lengthens a list.
    """
    if not any("." in word.value and word.value.startswith(dash) for word in words):
        return words
    plain: list[Word] = []
    found: dict[str, tuple[Word, Word, dict[str, Any]]] = {}
    rest = iter(words)
    for word in rest:
        key, equals, value = word.value.partition("=")
        if not word.value.startswith(dash) or "." not in key or HOLE in key:
            plain.append(word)
            continue
        holder = word if equals else next(rest, None)
        if holder is None:
            sheet.object(BEFORE, "missing-value", word.text, flag=word.value)
            break
        value = value if equals else holder.value
        if appends and key.endswith("+"):
            key, value = key[:-1], json.dumps(value.split(","))
        name, *path = key.split(".")
        tree: Any = leaf(value)
        for part in reversed(path[:DEEPEST]):
            tree = {part: tree}
        _update(found.setdefault(name, (word, holder, {}))[2], tree, appends)
    for name, (word, holder, tree) in found.items():
        plain.append(word._replace(value=name))
        plain.append(holder._replace(value=json.dumps(tree, ensure_ascii=False)))
    return plain


def _update(original: dict[str, Any], update: dict[str, Any], appends: bool) -> None:
    for key, value in update.items():
        known = original.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            _update(known, value, appends)
        elif appends and isinstance(value, list) and isinstance(known, list):
            known += value
        else:
            original[key] = value
