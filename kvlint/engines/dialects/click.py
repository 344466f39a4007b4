"""trtllm-serve: Python's click.  No prefixes; `=` works; a value may look like an option; positionals anywhere.

`ollama serve` takes no options at all and is read the same way: its settings are environment variables.
"""

from __future__ import annotations

from kvlint.engines.argparse import Load, Reading
from kvlint.engines.dialects.common import CONSUME, REQUIRED, Sheet, Word, words_of
from kvlint.engines.options import Options, OptionSet
from kvlint.source import HOLE, Text


def read(options: Options, release: str, args: tuple[Text, ...], entry: str | None, load: Load) -> Reading:
    sheet = Sheet(options, release)
    parse(sheet, options.at(release), words_of(args))
    return sheet.reading()


def parse(sheet: Sheet, table: OptionSet, words: list[Word]) -> None:
    """Read `words` into `sheet` by the options of `table`."""
    free: list[Word] = []
    at = 0
    while 0 <= at < len(words):
        if words[at].value == "--":
            free += words[at + 1 :]
            break
        at = _next(sheet, table, words, at, free)
    if at >= 0:
        _positionals(sheet, table, free)


def _next(sheet: Sheet, table: OptionSet, words: list[Word], at: int, free: list[Word]) -> int:
    word = words[at]
    name, equals, _ = word.value.partition("=")
    if word.splice or (name.startswith("-") and HOLE in name):
        sheet.open.append(word.text)
        return at + 1
    if not name.startswith("-") or len(word.value) < 2:
        free.append(word)
        return at + 1
    option = table.find(name)
    if option is None:
        return _unknown(sheet, table, words, at, name, bool(equals))
    if option.action == "help":
        sheet.object(CONSUME, "help", word.text, option=option, flag=name)
        return -1
    if equals:
        text = word.text.slice(len(name) + 1)
        if option.nargs == 0:
            sheet.object(
                CONSUME, "malformed-value", text, option=option, value=text.value, expects="no value", flag=name
            )
        else:
            sheet.give(option, word._replace(text=word.text.slice(0, len(name))), name, [text])
        return at + 1
    if option.nargs == 0:
        sheet.give(option, word, name, [])
        return at + 1
    if at + 1 == len(words):
        sheet.object(CONSUME, "missing-value", word.text, option=option, flag=name)
        return at + 1
    if words[at + 1].splice:
        sheet.open.append(words[at + 1].text)
    sheet.give(option, word, name, [words[at + 1].text])
    return at + 2


def _positionals(sheet: Sheet, table: OptionSet, free: list[Word]) -> None:
    for option, word in zip(table.positionals, free, strict=False):
        sheet.positionals.append(word.text)
        sheet.give(option, word, option.dest, [word.text])
    for word in free[len(table.positionals) :]:
        sheet.object(REQUIRED, "stray-argument", word.text, after=None)
    missing = table.positionals[len(free) :]
    if missing and not sheet.open:
        sheet.object(REQUIRED, "missing-model", None, needs=tuple(option.dest for option in missing))


def _unknown(sheet: Sheet, table: OptionSet, words: list[Word], at: int, name: str, equals: bool) -> int:
    word = words[at]
    if " " in name and table.find(name.split()[0]):
        sheet.object(CONSUME, "joined-argument", word.text, flag=name.split()[0])
        return at + 1
    sheet.object(CONSUME, "unknown-flag", word.text, flag=name)
    follows = not equals and at + 1 < len(words) and not words[at + 1].value.startswith("-")
    return at + 2 if follows else at + 1
