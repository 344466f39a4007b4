"""TGI's launcher: Rust's clap, version 4.  No prefixes; an option given twice is refused; a value may not begin with a dash."""

from __future__ import annotations

from kvlint.engines.argparse import Load, Reading
from kvlint.engines.dialects.common import CONSUME, Sheet, Word, words_of
from kvlint.engines.options import Option, Options, OptionSet
from kvlint.patterns import regex
from kvlint.source import HOLE, Text

_NEGATIVE = regex(r"-[0-9.]+")


def read(options: Options, release: str, args: tuple[Text, ...], entry: str | None, load: Load) -> Reading:
    sheet = Sheet(options, release)
    table = options.at(release)
    words = words_of(args)
    at = 0
    while 0 <= at < len(words):
        at = _next(sheet, table, words, at)
    return sheet.reading()


def _next(sheet: Sheet, table: OptionSet, words: list[Word], at: int) -> int:
    word = words[at]
    name, equals, _ = word.value.partition("=")
    if HOLE in name:
        sheet.open.append(word.text)
        return at + 1
    start = len(name) + 1 if equals else None
    option = table.find(name)
    if option is None and len(name) > 2 and name[1] != "-" and table.find(name[:2]):
        name, start = name[:2], 2
        option = table.find(name)
    if option is None:
        return _unknown(sheet, table, words, at, name, bool(equals))
    if option.action == "help":
        sheet.object(CONSUME, "help", word.text, option=option, flag=name)
        return -1
    if option.dest in sheet.settings and option.action != "append":
        sheet.object(CONSUME, "conflict", word.text, option=option, flag=name, twice=True, why="it is given twice")
    if start is not None:
        return _explicit(sheet, option, word, name, start, at)
    if option.nargs == 0:
        sheet.give(option, word, name, [])
        return at + 1
    following = words[at + 1] if at + 1 < len(words) else None
    if following is not None and _NEGATIVE.fullmatch(following.value):
        sheet.object(
            CONSUME,
            "malformed-value",
            following.text,
            option=option,
            value=following.value,
            expects=option.metavar,
            flag=name,
        )  # clap takes it for an option
        return at + 2
    if following is None or (following.value.startswith("-") and following.value != "-"):
        sheet.object(CONSUME, "missing-value", word.text, option=option, flag=name)
        return at + 1
    if following.splice:
        sheet.open.append(following.text)
    sheet.give(option, word, name, *_split(option, following.text))
    return at + 2


def _explicit(sheet: Sheet, option: Option, word: Word, name: str, start: int, at: int) -> int:
    text = word.text.slice(start)
    if option.nargs == 0:
        sheet.object(CONSUME, "malformed-value", text, option=option, value=text.value, expects="no value", flag=name)
        return at + 1
    sheet.give(option, word._replace(text=word.text.slice(0, len(name))), name, *_split(option, text))
    return at + 1


def _split(option: Option, text: Text) -> tuple[list[Text]]:
    """Values of a list option stand in one word, with commas."""
    if option.action != "append" or "," not in text.value:
        return ([text],)
    return ([*text.split(",")],)


def _unknown(sheet: Sheet, table: OptionSet, words: list[Word], at: int, name: str, equals: bool) -> int:
    word = words[at]
    if not name.startswith("-") or name in ("-", "--"):
        sheet.object(CONSUME, "stray-argument", word.text, after=words[at - 1].value if at else None)
        return at + 1
    if " " in name and table.find(name.split()[0]):
        sheet.object(CONSUME, "joined-argument", word.text, flag=name.split()[0])
        return at + 1
    kind = "removed-flag" if sheet.options.history(name, sheet.release).gone else "unknown-flag"
    sheet.object(CONSUME, kind, word.text, flag=name)
    follows = not equals and at + 1 < len(words) and not words[at + 1].value.startswith("-")
    return at + 2 if follows else at + 1
