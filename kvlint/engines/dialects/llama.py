"""llama-server: its own reader.  No prefixes, no `=`; `_` counts as `-` in long names; a value may look like an option.

llama.cpp common/arg.cpp, `common_params_parse_ex`.
"""

from __future__ import annotations

from kvlint.engines.argparse import Load, Reading
from kvlint.engines.dialects.common import CONSUME, Sheet, Word, words_of
from kvlint.engines.options import Options, OptionSet
from kvlint.source import HOLE, Text


def read(options: Options, release: str, args: tuple[Text, ...], entry: str | None, load: Load) -> Reading:
    sheet = Sheet(options, release)
    table = options.at(release)
    words = words_of(args)
    at = 0
    while at < len(words):
        at = _next(sheet, table, words, at)
        if at < 0:
            break
    return sheet.reading()


def _next(sheet: Sheet, table: OptionSet, words: list[Word], at: int) -> int:
    """Read the option at `at`; the index behind it, -1 where the program prints something and ends."""
    word = words[at]
    if HOLE in word.value:
        sheet.open.append(word.text)
        return at + 1
    name = word.value.replace("_", "-") if word.value.startswith("--") else word.value
    option = table.find(name)
    if option is None:
        return _unknown(sheet, table, words, at, name)
    if option.action == "help":
        sheet.object(CONSUME, "help", word.text, option=option, flag=name)
        return -1
    if option.nargs == 0:
        sheet.give(option, word, name, [])
        return at + 1
    wanted = 2 if option.nargs == 2 else 1
    taken = words[at + 1 : at + 1 + wanted]
    if any(value.splice for value in taken):
        sheet.open.extend(value.text for value in taken if value.splice)
    elif len(taken) < wanted:
        sheet.object(CONSUME, "missing-value", word.text, option=option, flag=name)
        return len(words)
    if option.action == "removed":
        sheet.object(CONSUME, "removed-flag", word.text, option=option, flag=name)
        return at + 1 + wanted
    sheet.give(option, word, name, [value.text for value in taken])
    return at + 1 + wanted


def _unknown(sheet: Sheet, table: OptionSet, words: list[Word], at: int, name: str) -> int:
    word = words[at]
    if not name.startswith("-"):
        sheet.object(CONSUME, "stray-argument", word.text, after=words[at - 1].value if at else None)
        return at + 1
    first = name.split()[0]
    if " " in name and table.find(first):
        sheet.object(CONSUME, "joined-argument", word.text, flag=first)
        return at + 1
    flag, equals, _ = name.partition("=")
    known = table.find(flag) is not None
    gone = sheet.options.history(flag, sheet.release).gone is not None
    sheet.object(
        CONSUME,
        "removed-flag" if gone and not known else "unknown-flag",
        word.text,
        flag=flag,
        joined=bool(equals and known),
    )
    follows = not equals and at + 1 < len(words) and not words[at + 1].value.startswith("-")
    return at + 2 if follows else at + 1
