"""SGLang: argparse behind a merger of YAML files, and `sglang serve` in front of it.

sglang/srt/utils/server_args_config_parser.py, sglang/cli/serve.py.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from kvlint.engines.argparse import Load, Reading
from kvlint.engines.dialects.common import AFTER, BEFORE, Sheet, Word, words_of
from kvlint.engines.dialects.configfile import Entry, Unreadable, entries
from kvlint.engines.dialects.python import parse
from kvlint.engines.options import Option, Options, OptionSet
from kvlint.source import HOLE, Text

# Stored by an action of SGLang's own (LoRAPathAction), which its merger of files refuses.
OWN_ACTION = frozenset(("lora_paths",))


def read(options: Options, release: str, args: tuple[Text, ...], entry: str | None, load: Load) -> Reading:
    sheet = Sheet(options, release)
    table = options.at(release)
    words = words_of(args)
    if entry is not None and entry.split()[-1] == "serve":
        words = _serve(sheet, words)
    if options.feature("config", release):
        words = _merge(sheet, table, words, load)
    parse(sheet, table, words)
    return sheet.reading()


def _serve(sheet: Sheet, words: list[Word]) -> list[Word]:
    """`sglang serve M`: the model in first place from 0.5.16; up to 0.5.17 the literal `--model-path` had to be there."""
    options, release = sheet.options, sheet.release
    if options.feature("model_type", release):
        words = _without_type(words)
    if any(word.value in ("-h", "--help") for word in words):
        return words
    if (
        options.feature("positional_model", release)
        and words
        and not words[0].value.startswith("-")
        and not words[0].splice
    ):
        return [words[0]._replace(value="--model-path"), words[0], *words[1:]]
    literal = any(word.value == "--model-path" or word.value.startswith("--model-path=") for word in words)
    if options.feature("literal_model_path", release) and not literal and not any(word.splice for word in words):
        sheet.object(BEFORE, "missing-model", None, needs=("--model-path",))
    return words


def _without_type(words: list[Word]) -> list[Word]:
    """`--model-type`, which only chooses between the servers of text and of images, is taken out."""
    kept, at = [], 0
    while at < len(words):
        if words[at].value == "--model-type":
            at += 2
            continue
        if not words[at].value.startswith("--model-type="):
            kept.append(words[at])
        at += 1
    return kept


def _merge(sheet: Sheet, table: OptionSet, words: list[Word], load: Load) -> list[Word]:
    """`--config FILE` (two words only) becomes its options, in front of the rest: the command line wins."""
    where = [at for at, word in enumerate(words) if word.value == "--config"]
    if not where:
        for word in words:
            if word.value.startswith("--config="):
                sheet.object(AFTER, "ineffective-flag", word.text, stage="note", flag="--config", instead="two words")
        return words
    at = where[0]
    if len(where) > 1:
        sheet.object(BEFORE, "config-file", words[where[1]].text, why="several")
    if at == len(words) - 1:
        sheet.object(BEFORE, "missing-value", words[at].text, flag="--config")
        return words[:at]
    return [*_file(sheet, table, words[at + 1], load), *words[:at], *words[at + 2 :]]


def _file(sheet: Sheet, table: OptionSet, name: Word, load: Load) -> list[Word]:
    if HOLE in name.value:
        sheet.open.append(name.text)
        return []
    if PurePosixPath(name.value).suffix.lower() not in (".yaml", ".yml"):
        sheet.object(
            BEFORE, "malformed-value", name.text, value=name.value, expects="a yaml or yml file", flag="--config"
        )
        return []
    try:
        text = load(name.text)
        if text is None:
            sheet.open.append(name.text)
            return []
        return [word for item in entries(text) for word in _entry(sheet, table, item)]
    except FileNotFoundError:
        sheet.object(BEFORE, "config-file", name.text, why="missing")
    except Unreadable as error:
        sheet.object(BEFORE, "config-file", name.text, why=str(error))
    return []


def _entry(sheet: Sheet, table: OptionSet, item: Entry) -> list[Word]:
    if HOLE in item.key:
        sheet.open.append(item.key_text)
        return []
    strict = sheet.options.feature("config_strict", sheet.release)
    option = _named(table, item.key)
    name = Word(f"--{item.key}", item.key_text, None, "file")
    if strict and option is not None and (option.action == "BooleanOptionalAction" or option.dest in OWN_ACTION):
        sheet.object(BEFORE, "config-file", item.key_text, option=option, why="an option that the file may not set")
        return []
    value = item.value
    if isinstance(value, bool):
        if strict and (option is None or option.action != "store_true"):
            return [name, Word(str(value).lower(), item.value_text, None, "file")]
        return [name] if value else []
    if isinstance(value, list):
        parts = zip(value, item.items, strict=True)
        return [name, *(Word(str(part), text, None, "file") for part, text in parts)] if value else []
    written = sheet.options.feature("config_json", sheet.release) and isinstance(value, dict)
    text = json.dumps(value, default=str) if written else str(value)
    return [name, Word(text, item.value_text, None, "file")]


def _named(table: OptionSet, key: str) -> Option | None:
    return table.find("--" + key.replace("_", "-"))
