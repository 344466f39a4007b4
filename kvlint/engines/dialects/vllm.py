"""vLLM's FlexibleArgumentParser: what it rewrites before argparse sees the words, release by release.

vllm/utils/argparse_utils.py (vllm/utils/__init__.py up to 0.11.0), `parse_args` and `_pull_args_from_config`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from kvlint.engines import values
from kvlint.engines.argparse import Load, Reading
from kvlint.engines.dialects import kind_of
from kvlint.engines.dialects.common import AFTER, BEFORE, Sheet, Word, words_of
from kvlint.engines.dialects.configfile import Entry, Unreadable, entries
from kvlint.engines.dialects.dotted import merged
from kvlint.engines.dialects.python import parse
from kvlint.engines.options import Options, OptionSet
from kvlint.patterns import regex
from kvlint.source import HOLE, Text

_MODEL = regex(r"--model(=.+|$)", re.DOTALL)
_SERVED = regex(r"--served[-_]model[-_]name(=.+|$)", re.DOTALL)
_CONFIG = regex(r"--config(=.+|$)", re.DOTALL)
_LEVELS = ("0", "1", "2", "3")


def read(options: Options, release: str, args: tuple[Text, ...], entry: str | None, load: Load) -> Reading:
    run = Flexible(options, release, kind_of(entry), load)
    return run.read(words_of(args))


class Flexible:
    """One reading by one release at one entry point (`serve` or `api_server`)."""

    def __init__(self, options: Options, release: str, entry: str, load: Load) -> None:
        self.sheet = Sheet(options, release)
        self.table: OptionSet = options.at(release, entry)
        self.entry = entry
        self.load = load

    def has(self, feature: str) -> bool:
        return self.sheet.options.feature(feature, self.sheet.release)

    def read(self, words: list[Word]) -> Reading:
        if self.entry == "serve":
            words = self._model_first(words)
        words = self._pull_config(words)
        words = self._normalise(words)
        if self.has("dotted"):
            dash = "-" if self.has("dotted_json") else "--"
            words = merged(self.sheet, words, self._leaf, dash=dash, appends=self.has("dotted_json"))
        parse(self.sheet, self.table, words)
        self._settle_model()
        return self.sheet.reading()

    def _settle_model(self) -> None:
        """`vllm serve` takes the positional before `--model`; the module entry never looks at the positional."""
        positional = self.sheet.settings.get("model_tag")
        if positional is None:
            return
        if self.entry == "serve":
            self.sheet.settings["model"] = positional
        else:
            word = positional.value or positional.name
            self.sheet.object(AFTER, "ineffective-flag", word, stage="note", flag=word.value, instead="--model")

    def _model_first(self, words: list[Word]) -> list[Word]:
        at = next((i for i, word in enumerate(words) if _MODEL.match(word.value)), None)
        if self.has("model_refused") and at is not None and any(word.value == "--model" for word in words):
            why = "the model is given as the first word, without a flag"
            self.sheet.object(BEFORE, "conflict", words[at].text, flag="--model", why=why)
        if self.has("model_moved") and at is not None:
            words = self._move_model(words, at)
        if self.has("served_name_needs_model") and self._served_name_without_model(words):
            self.sheet.object(BEFORE, "missing-model", words[0].text, needs=("the model as first word",))
        return words

    def _move_model(self, words: list[Word], at: int) -> list[Word]:
        word = words[at]
        if word.value != "--model":
            start = len("--model=")
            tag = Word(word.value[start:], word.text.slice(start), word.at, word.source)
            return [tag, *words[:at], *words[at + 1 :]]
        if at + 1 < len(words):
            return [words[at + 1], *words[:at], *words[at + 2 :]]
        self.sheet.object(BEFORE, "missing-value", word.text, option=self.table.find("--model"), flag="--model")
        return words[:at]

    def _served_name_without_model(self, words: list[Word]) -> bool:
        if not words or not words[0].value.startswith("-") or any(word.splice for word in words):
            return False
        return any(_SERVED.match(w.value) for w in words) and not any(_CONFIG.match(w.value) for w in words)

    def _pull_config(self, words: list[Word]) -> list[Word]:
        where = [i for i, word in enumerate(words) if word.value == "--config"]
        if not where:
            self._note_joined_config(words)
            return words
        at = where[0]
        name = words[at].text
        if len(where) > 1:
            self.sheet.object(BEFORE, "config-file", words[where[1]].text, why="several")
        if at == len(words) - 1:
            self.sheet.object(BEFORE, "missing-value", name, flag="--config")
            return words[:at]
        pulled = self._file(words[at + 1])
        first = words[0].value
        if self.entry == "serve":
            lead = 1 if self.has("config_second") or (self.has("config_model") and not first.startswith("-")) else 0
            named = self.has("config_model") and any(w.value == "--model" for w in pulled)
            if (self.has("config_second") and at == 0) or (self.has("config_model") and not lead and not named):
                self._no_model(words, at)
        else:
            lead = 0 if self.has("config_entry") and first.startswith("-") else 1
        rest = words[at + 2 :]
        return [*words[:lead], *pulled, *words[lead:at], *rest] if at >= lead else [*words[:lead], *pulled, *rest]

    def _no_model(self, words: list[Word], at: int) -> None:
        if self.sheet.open or any(word.splice for word in words):
            return
        self.sheet.object(BEFORE, "missing-model", words[at].text, needs=("the model as first word, or in the file",))

    def _note_joined_config(self, words: list[Word]) -> None:
        for word in words:
            if word.value.startswith("--config=") and self.table.find("--config"):
                self.sheet.object(
                    AFTER, "ineffective-flag", word.text, stage="note", flag="--config", instead="two words"
                )

    def _file(self, name: Word) -> list[Word]:
        if HOLE in name.value:
            self.sheet.open.append(name.text)
            return []
        if name.value.split(".")[-1] not in ("yaml", "yml"):
            self.sheet.object(
                BEFORE, "malformed-value", name.text, value=name.value, expects="a yaml or yml file", flag="--config"
            )
            return []
        try:
            text = self.load(name.text)
            if text is None:
                self.sheet.open.append(name.text)
                return []
            return [word for item in entries(text, filled=True) for word in self._entry(item)]
        except FileNotFoundError:
            self.sheet.object(BEFORE, "config-file", name.text, why="missing")
        except Unreadable as error:
            self.sheet.object(BEFORE, "config-file", name.text, why=str(error))
        return []

    def _entry(self, item: Entry) -> list[Word]:
        flag = f"--{item.key}"
        name = Word(flag, item.key_text, None, "file")
        if HOLE in item.key:
            self.sheet.open.append(item.key_text)
            return []
        value = item.value
        if isinstance(value, bool) and self.has("config_bool") and not self._stores_boolean(item.key):
            return self._switch(name, item)
        if isinstance(value, list) and self.has("config_list"):
            parts = zip(value, item.items, strict=True)
            return [name, *(Word(str(part), text, None, "file") for part, text in parts)] if value else []
        if isinstance(value, dict) and self.has("config_map"):
            return [name, self._value(item, json.dumps(value, default=str))]
        return [name, self._value(item, str(value))]

    def _value(self, item: Entry, text: str) -> Word:
        return Word(text, item.value_text, None, "file")

    def _stores_boolean(self, key: str) -> bool:
        """Names are compared as they are stored, in the parser of the module entry only: that of `vllm` has no such option."""
        option = self.table.find("--" + key.replace("_", "-")) if self.entry == "api_server" else None
        return option is not None and option.type == "truth" and option.dest == key

    def _switch(self, name: Word, item: Entry) -> list[Word]:
        """true is the flag alone.  false is dropped, but for the module entry of late releases, which writes `--no-`."""
        if item.value:
            return [name]
        off = f"--no-{item.key}"
        if self.entry == "api_server" and self.has("config_no") and self.table.find(off):
            return [Word(off, item.key_text, None, "file")]
        if self.table.find(name.value.replace("_", "-")):
            self.sheet.object(AFTER, "ineffective-flag", item.key_text, stage="note", flag=name.value, instead=off)
        return []

    def _normalise(self, words: list[Word]) -> list[Word]:
        found: list[Word] = []
        for at, word in enumerate(words):
            value = word.value
            if not value.startswith("-"):
                found.append(word)
            elif value.startswith("--help=") and self.has("help_keyword"):
                found.append(word._replace(value="--help"))
            elif value.startswith("--"):
                found.append(word._replace(value=self._dashed(value)) if "_" in value else word)
            elif value.startswith("-O") and self.has("dotted"):
                found += self._optimization(word, words[at + 1].value if at + 1 < len(words) else None)
            else:
                found.append(word)
        return found

    def _dashed(self, value: str) -> str:
        key, equals, rest = value.partition("=")
        whole = not self.has("dotted") or self.has("dotted_dashes")
        head, dot, tail = (key, "", "") if whole else key.partition(".")
        return head.replace("_", "-") + dot + tail + equals + rest

    def _optimization(self, word: Word, following: str | None) -> list[Word]:
        """-O3, -O=3, -O 3: a compilation level, later a mode, later the optimization level."""
        key = next((name for name in ("level", "mode") if self.has(name)), None)
        late = self.has("optimization")
        if not key and not late:
            return [word]
        value = word.value
        if value.startswith("-O.") and self.has("optimization_dotted"):
            return [word._replace(value="-cc" + value[2:])]
        if value == "-O":
            if following in _LEVELS:
                return [word._replace(value=f"-O.{key}" if key else "--optimization-level")]
            return [word]
        if key and value[2] == ".":
            return [word]
        start = 3 if value[2] == "=" else 2
        if key:
            return [word._replace(value=f"-O.{key}={value[start:]}")]
        level = Word(value[start:], word.text.slice(start), word.at, word.source)
        return [word._replace(value="--optimization-level", text=word.text.slice(0, 2)), level]

    def _leaf(self, text: str) -> Any:
        if not self.has("dotted_json"):
            return text
        try:
            return values.load_json(text)
        except values.Malformed:
            pass
        if self.has("dotted_human"):
            try:
                return values.human_int(text)
            except values.Malformed:
                pass
        return text
