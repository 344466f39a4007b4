"""Options of the programs that start other programs, read by the tables of data/wrappers.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from kvlint.command import Opening
from kvlint.compiled import load
from kvlint.formats.shell.text import where
from kvlint.patterns import regex
from kvlint.records import dataclass, field
from kvlint.source import HOLE, Text

_NUMBER = regex(r"-\d+")
_STOPS = frozenset({"--help", "--version"})


@dataclass(frozen=True, slots=True)
class Table:
    """The options of one program, or of one of its subcommands."""

    name: str
    kind: str
    operands: int
    lists: Mapping[str, frozenset[str]]
    plain: Mapping[str, Any]

    def has(self, key: str, option: str) -> bool:
        return option in self.lists.get(key, ())

    def says(self, key: str) -> bool:
        return self.plain.get(key) is True


@dataclass(frozen=True, slots=True)
class Option:
    name: str
    value: Text | None = None


@dataclass(slots=True)
class Scan:
    """Options read up to `at`.  `uncertain`: a word that may or may not be an option; then nothing behind it is sure.

    `splices`: interpolations passed over among the options.
    `stopped`: an option that starts nothing.  `begun`: the command follows.  `module`: a Python module's name follows, from
    character `module_at` of the word.
    """

    at: int
    options: list[Option] = field(default_factory=list)
    uncertain: Opening | None = None
    stopped: bool = False
    begun: bool = False
    module: bool = False
    splices: list[Text] = field(default_factory=list)
    module_at: int = 0

    def values(self, table: Table, key: str) -> list[Text]:
        """The values of the options that the table lists under `key`."""
        return [option.value for option in self.options if option.value is not None and table.has(key, option.name)]


@cache
def _tables() -> dict[str, Any]:
    loaded: dict[str, Any] = load("wrappers.json")
    return loaded


@cache
def table(name: str) -> Table | None:
    entry = _tables().get(name)
    if entry is None:
        return None
    lists = {key: frozenset(value) for key, value in entry.items() if isinstance(value, list)}
    return Table(entry["name"], entry.get("kind", "command"), entry.get("operands", 0), lists, entry)


def scan(words: Sequence[Text], at: int, about: Table) -> Scan:
    """Read options from `words[at]` on, up to the first operand."""
    found = Scan(at)
    loose = about.says("loose")
    while found.at < len(words):
        value = words[found.at].value
        if value == "--":
            found.at += 1
            found.begun = True
            return found
        if _is_splice(words[found.at]) and not _goes_on(words, found.at, about):
            return found
        if not value.startswith("-") or (value == "-" and not _known(about, "-")):
            loose = loose and not any(about.has("tightens", option.name) for option in found.options)
            if _is_splice(words[found.at]):
                found.splices.append(words[found.at])
            elif not loose:
                return found
            found.at += 1
            continue
        if not _option(words, about, found):
            return found
    return found


def _goes_on(words: Sequence[Text], at: int, about: Table) -> bool:
    """Whether an interpolation stands among options: one that the table knows follows."""
    following = words[at + 1].value if at + 1 < len(words) else ""
    return following.startswith("-") and _known(about, following.partition("=")[0])


def _known(about: Table, option: str) -> bool:
    keys = ("flags", "values", "optional", "pairs", "modules", "begins", "stops")
    return any(about.has(key, option) for key in keys)


def _is_splice(word: Text) -> bool:
    return not word.value.strip(HOLE) and any(hole.splice for hole in word.holes)


def _option(words: Sequence[Text], about: Table, found: Scan) -> bool:
    """Read the option at `found.at`; False where the scan ends with it."""
    word = words[found.at]
    name, equals, _ = word.value.partition("=")
    if name in _STOPS or about.has("stops", name):
        found.stopped = True
        return False
    if about.has("begins", name):
        found.at, found.begun = found.at + 1, True
        return False
    if about.has("modules", word.value):
        found.at, found.module = found.at + 1, True
        return False
    if equals and _known(about, name):
        found.options.append(Option(name, word.slice(len(name) + 1)))
        found.at += 1
    elif about.has("values", word.value):
        _take(words, found, word.value, 1)
    elif about.has("pairs", word.value):
        _take(words, found, word.value, 2)
    elif about.has("flags", word.value) or about.has("optional", word.value):
        found.options.append(Option(word.value))
        found.at += 1
    elif about.says("numeric") and _NUMBER.fullmatch(word.value):
        found.at += 1
    else:
        return _cluster(words, about, found)
    return True


def _take(words: Sequence[Text], found: Scan, name: str, count: int) -> None:
    value = words[found.at + 1] if found.at + 1 < len(words) else None
    found.options.append(Option(name, value))
    found.at = min(found.at + 1 + count, len(words))


def _cluster(words: Sequence[Text], about: Table, found: Scan) -> bool:
    """`-it`, `-p8000:8000`: letters of one word, the last of which may have a value."""
    word = words[found.at]
    letters = word.value[1:]
    if letters.startswith("-") or not letters:
        return _unsure(word, about, found)
    options = []
    for number, letter in enumerate(letters, 1):
        name = f"-{letter}"
        rest = word.slice(number + 1) if number < len(letters) else None
        if about.has("flags", name):
            options.append(Option(name))
            continue
        if about.has("modules", name):
            found.at, found.module, found.module_at = found.at + (rest is None), True, number + 1 if rest else 0
            return False
        if not (about.has("values", name) or about.has("optional", name)):
            return _unsure(word, about, found)
        found.options += options
        if rest is None and about.has("values", name):
            _take(words, found, name, 1)
        else:
            found.options.append(Option(name, rest))
            found.at += 1
        return True
    found.options += options
    found.at += 1
    return True


def _unsure(word: Text, about: Table, found: Scan) -> bool:
    shown = word.value.replace(HOLE, "…")
    found.uncertain = Opening(0, where(word), f"{about.name} is not known to have the option {shown}")
    return False
