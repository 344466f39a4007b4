"""LMDeploy: argparse, and from 0.9.2 what its FlexibleArgumentParser rewrites before (lmdeploy/cli/utils.py, `parse_args`)."""

from __future__ import annotations

import json
from typing import Any

from kvlint.engines import values
from kvlint.engines.argparse import Load, Reading
from kvlint.engines.dialects.common import BEFORE, Sheet, Word, words_of
from kvlint.engines.dialects.python import parse
from kvlint.engines.options import Options
from kvlint.source import HOLE, Text


def read(options: Options, release: str, args: tuple[Text, ...], entry: str | None, load: Load) -> Reading:
    sheet, words = Sheet(options, release), words_of(args)
    if options.feature("flexible", release):
        words = _merged(sheet, [_dashed(word) for word in words])
    parse(sheet, options.at(release, entry), words)
    return sheet.reading()


def _dashed(word: Word) -> Word:
    """`--a_b` is `--a-b`, up to the first dot."""
    if not word.value.startswith("--"):
        return word
    key, equals, value = word.value.partition("=")
    head, dot, tail = key.partition(".")
    return word._replace(value=head.replace("_", "-") + dot + tail + equals + value)


def _merged(sheet: Sheet, words: list[Word]) -> list[Word]:
    """`--a.b.c value` joins into one JSON word for `--a`, placed at the end."""
    plain: list[Word] = []
    merged: dict[str, tuple[Word, Word, dict[str, Any]]] = {}
    rest = iter(words)
    for word in rest:
        key, equals, value = word.value.partition("=")
        if not key.startswith("--") or "." not in key or HOLE in key:
            plain.append(word)
            continue
        holder = word if equals else next(rest, None)
        if holder is None:
            sheet.object(BEFORE, "missing-value", word.text, flag=word.value)
            break
        name, *path = key.split(".")
        tree: Any = _leaf(value if equals else holder.value)
        for part in reversed(path[:64]):
            tree = {part: tree}
        _update(merged.setdefault(name, (word, holder, {}))[2], tree)
    for name, (word, holder, tree) in merged.items():
        plain.append(word._replace(value=name))
        plain.append(holder._replace(value=json.dumps(tree, ensure_ascii=False)))
    return plain


def _leaf(text: str) -> Any:
    try:
        return values.load_json(text)
    except values.Malformed:
        return text


def _update(original: dict[str, Any], update: dict[str, Any]) -> None:
    for key, value in update.items():
        known = original.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            _update(known, value)
        else:
            original[key] = value
