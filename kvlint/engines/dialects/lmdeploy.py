"""LMDeploy: argparse, and from 0.9.2 what its FlexibleArgumentParser rewrites before (lmdeploy/cli/utils.py, `parse_args`)."""

from __future__ import annotations

from typing import Any

from kvlint.engines import values
from kvlint.engines.argparse import Load, Reading
from kvlint.engines.dialects.common import Sheet, Word, words_of
from kvlint.engines.dialects.dotted import merged
from kvlint.engines.dialects.python import parse
from kvlint.engines.options import Options
from kvlint.source import Text


def read(options: Options, release: str, args: tuple[Text, ...], entry: str | None, load: Load) -> Reading:
    sheet, words = Sheet(options, release), words_of(args)
    if options.feature("flexible", release):
        words = merged(sheet, [_dashed(word) for word in words], _leaf)
    parse(sheet, options.at(release, entry), words)
    return sheet.reading()


def _dashed(word: Word) -> Word:
    """`--a_b` is `--a-b`, up to the first dot."""
    if not word.value.startswith("--"):
        return word
    key, equals, value = word.value.partition("=")
    head, dot, tail = key.partition(".")
    return word._replace(value=head.replace("_", "-") + dot + tail + equals + value)


def _leaf(text: str) -> Any:
    try:
        return values.load_json(text)
    except values.Malformed:
        return text
