"""Python's argparse, as of 3.10 to 3.13: prefixes, `=`, short options, `nargs`, `--`, and the order of its refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from kvlint.engines.argparse import Load, Reading
from kvlint.engines.dialects.common import CLASSIFY, CONSUME, EXTRA, REQUIRED, Sheet, Word, words_of
from kvlint.engines.options import Option, Options, OptionSet
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import HOLE, Text

# Words left over of which each is a finding.  A line with more is no command line that anybody wrote, and is refused anyway.
MOST_LEFT_OVER = 100
_NEGATIVE = regex(r"-\d+|-\d*\.\d+")


@dataclass(frozen=True, slots=True)
class Match:
    """A word as an option: the record and the full spelling, the offset of a value in it; or the candidates of a prefix."""

    option: Option | None
    spelling: str
    at: int | None = None  # where the explicit value starts
    candidates: tuple[str, ...] = ()


def read(options: Options, release: str, args: tuple[Text, ...], entry: str | None, load: Load) -> Reading:
    sheet = Sheet(options, release)
    parse(sheet, options.at(release, entry), words_of(args))
    return sheet.reading()


def parse(sheet: Sheet, table: OptionSet, words: Sequence[Word]) -> None:
    """Read `words` into `sheet` by the options of `table`."""
    Run(sheet, table, words).run()


def optional(table: OptionSet, word: str) -> Match | None:
    """What a word is if it is no plain argument; None if it is one."""
    if len(word) < 2 or word[0] != "-":
        return None
    found = table.find(word)
    if found is not None:
        return Match(found, word)
    equals = word.find("=")
    if equals > 0:
        found = table.find(word[:equals])
        if found is not None:
            return Match(found, word[:equals], equals + 1)
    candidates = _candidates(table, word, equals)
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        return Match(None, word, None, tuple(match.spelling for match in candidates))
    if _NEGATIVE.fullmatch(word) or " " in word:
        return None
    return Match(None, word)


def matched(table: OptionSet, word: str) -> Match | None:
    """`optional`, remembered."""
    known = table.matches
    if word not in known:
        if len(known) > 4096:
            known.clear()
        known[word] = optional(table, word)
    found: Match | None = known[word]
    return found


def _candidates(table: OptionSet, word: str, equals: int) -> list[Match]:
    if word.startswith("--"):
        prefix = word[:equals] if equals > 0 else word
        at = equals + 1 if equals > 0 else None
        return [Match(table.find(s), s, at) for s in table.starting(prefix)]
    found = [Match(table.find(s), s) for s in table.starting(word)]
    short = table.find(word[:2])
    if short is not None and len(word) > 2:
        found.append(Match(short, word[:2], 2))
    return found


_OPTIONAL: dict[int | str | None, str] = {None: "[AS]", "?": "[AS]?", "*": "[AS]*", "+": "[AS]+"}
_POSITIONAL: dict[int | str | None, str] = {None: "-*A-*", "?": "-*A?-*", "*": "-*[A-]*", "+": "-*A[A-]*"}


@lru_cache(maxsize=64)
def _takes(nargs: int | str | None, positional: bool) -> re.Pattern[str]:
    """How many words an option takes: `A` argument, `S` unknown words, `-` the bare double dash, `O` option."""
    known = (_POSITIONAL if positional else _OPTIONAL).get(nargs)
    return re.compile("[AS]" * int(nargs or 0) if known is None else known)


class Run:
    """One pass over the words."""

    def __init__(self, sheet: Sheet, table: OptionSet, words: Sequence[Word]) -> None:
        self.sheet, self.table, self.words = sheet, table, words
        self.matches: dict[int, Match] = {}
        self.kinds = self._classify()
        self.positionals = list(table.positionals)
        self.extras: dict[
            int, int
        ] = {}  # words left over, each with the first of the run of plain words that it stands in
        self.owned: set[int] = set()
        self.seen: set[int] = set()
        self.stopped = False

    def _classify(self) -> str:
        """One letter a word: O option, A argument, `-` the bare double dash (all behind it are arguments), S unknown words."""
        plain = next((at for at, word in enumerate(self.words) if word.value == "--"), len(self.words))
        kinds = [self._kind(at, word) for at, word in enumerate(self.words[:plain])]
        kinds += ["-"] * (plain < len(self.words))
        return "".join([*kinds, *("S" if word.splice else "A" for word in self.words[plain + 1 :])])

    def _kind(self, at: int, word: Word) -> str:
        value = word.value
        if HOLE in value:
            if word.splice and value[0] == HOLE:
                return "S"
            if value[0] == "-" and HOLE in value.partition("=")[0]:
                return "S"
        if not value.startswith("-"):
            return "A"
        match = matched(self.table, value)
        if match is None:
            return "A"
        self.matches[at] = match
        return "O"

    def run(self) -> None:
        self._object_to_prefixes()
        at = 0
        last = max(self.matches, default=-1)
        while at <= last and not self.stopped:
            if self.kinds[at] == "S":
                self._open(at)
                at += 1
            elif at in self.matches:
                at = self._option(at)
            else:
                at = self._arguments(at)
        while at < len(self.words) and not self.stopped:
            if self.kinds[at] == "S":
                self._open(at)
                at += 1
                continue
            end = self._positionals(at)
            if end == at:
                self._leave(at)
                end += 1
            at = end
        if not self.stopped:
            self._finish()

    def _object_to_prefixes(self) -> None:
        for match_at, match in self.matches.items():
            if match.candidates:
                word = self.words[match_at]
                self.sheet.object(CLASSIFY, "ambiguous-flag", word.text, candidates=match.candidates, flag=word.value)

    def _open(self, at: int) -> None:
        self.sheet.open.append(self.words[at].text)

    def _arguments(self, at: int) -> int:
        """Plain words before the next option: positionals take what they can, the rest is left over."""
        end = self._positionals(at)
        if end > at:
            return end
        self._leave(at)
        return at + 1

    def _positionals(self, at: int) -> int:
        for count in range(len(self.positionals), 0, -1):
            end, taken = at, []
            for option in self.positionals[:count]:
                match = _takes(option.nargs, True).match(self.kinds, end)
                if match is None:
                    break
                taken.append((option, end, match.end()))
                end = match.end()
            else:
                for option, start, stop in taken:
                    self._take_positional(option, start, stop)
                del self.positionals[:count]
                return end
        return at

    def _take_positional(self, option: Option, start: int, stop: int) -> None:
        words = [self.words[i] for i in range(start, stop) if self.kinds[i] != "-"]
        self.seen.add(option.syntax)
        if not words:
            return
        for word in words:
            flag = word.value.partition(" ")[0]
            if flag.startswith("-") and optional(self.table, flag):
                self.sheet.object(EXTRA, "joined-argument", word.text, stage="note", flag=flag, taken_as=option.dest)
        self.sheet.positionals += [word.text for word in words]
        self.sheet.give(option, words[0], option.dest, [word.text for word in words], [word.value for word in words])

    def _leave(self, at: int) -> None:
        runs_on = self.kinds[at] == "A" and at - 1 in self.extras and self.kinds[at - 1] == "A"
        self.extras[at] = self.extras[at - 1] if runs_on else at

    def _option(self, at: int) -> int:
        match, word = self.matches[at], self.words[at]
        if match.option is None:
            return self._unknown(at, match)
        option = match.option
        if option.action == "help" and match.at is None:
            self.sheet.object(CONSUME, "help", word.text, option=option, flag=match.spelling)
            self.stopped = True
            return at
        if option.action == "removed":
            self._farewell(option, word, match.spelling)
            return at + 1
        self.seen.add(option.syntax)
        if match.at is not None:
            return self._explicit(at, option, match.spelling, match.at)
        taken = _takes(option.nargs, False).match(self.kinds, at + 1)
        if taken is None:
            self.sheet.object(CONSUME, "missing-value", word.text, option=option, flag=match.spelling)
            return at + 1
        self._give(option, word, match.spelling, range(at + 1, taken.end()))
        return taken.end()

    def _farewell(self, option: Option, word: Word, spelling: str) -> None:
        """A flag that the parser still knows, only to end the start with the name of its successor."""
        kind = "removed-flag" if self.sheet.options.history(spelling, self.sheet.release).gone else "unknown-flag"
        self.sheet.object(CONSUME, kind, word.text, option=option, flag=spelling)

    def _give(self, option: Option, name: Word, spelling: str, where: range) -> None:
        words = [self.words[i] for i in where]
        for i in where:
            if self.kinds[i] == "S":
                self._open(i)
        self.sheet.give(option, name, spelling, [w.text for w in words], [w.value for w in words])

    def _explicit(self, at: int, option: Option, spelling: str, start: int) -> int:
        """A value in the same word: behind `=`, or behind a short option."""
        word = self.words[at]
        if option.nargs == 0:
            self._bundled(word, option, spelling, start)
            return at + 1
        if option.nargs == 2:
            self.sheet.object(CONSUME, "missing-value", word.text, option=option, flag=spelling)
            return at + 1
        given = word.text.slice(start)
        name = word._replace(text=word.text.slice(0, start - 1 if word.value[start - 1] == "=" else start))
        self.sheet.give(option, name, spelling, [given], [word.value[start:]])
        return at + 1

    def _bundled(self, word: Word, option: Option, spelling: str, start: int) -> None:
        """Several short switches in one word; anything else behind a switch is refused."""
        while not spelling.startswith("--") and start < len(word.value):
            following = self.table.find(f"-{word.value[start]}")
            if following is None:
                break
            self.sheet.give(option, word, spelling, [])
            option, spelling, start = following, f"-{word.value[start]}", start + 1
            if option.nargs == 0 and start == len(word.value):
                self.sheet.give(option, word, spelling, [])
                return
            if option.nargs != 0 and start < len(word.value):
                self.sheet.give(option, word, spelling, [word.text.slice(start)], [word.value[start:]])
                return
        self.sheet.object(
            CONSUME, "malformed-value", word.text.slice(start), option=option, value=word.value[start:], expects="no value",
            flag=spelling,
        )  # fmt: skip

    def _unknown(self, at: int, match: Match) -> int:
        """A word that is no option here.  Where it took a value elsewhere, the next word belongs to it."""
        if not match.candidates:
            self._leave(at)
        follows = at + 1 < len(self.words) and self.kinds[at + 1] == "A"
        if follows and "=" not in self.words[at].value and self._valued(match):
            self.owned.add(at + 1)
            return at + 2
        return at + 1

    def _valued(self, match: Match) -> bool:
        if match.candidates:
            records = [record for s in match.candidates if (record := self.table.find(s)) is not None]
        else:
            records = list(self.sheet.options.known(match.spelling))
        return bool(records) and all(record.nargs != 0 for record in records)

    def _finish(self) -> None:
        sheet = self.sheet
        missing = [option for option in self.table.required if option.syntax not in self.seen]
        if missing and not sheet.open:
            kind = (
                "missing-model"
                if any(o.dest in ("model", "model_path", "model_tag") for o in missing)
                else "missing-argument"
            )
            sheet.object(REQUIRED, kind, None, needs=tuple(option.name for option in missing))
        for at in islice(self.extras, MOST_LEFT_OVER):
            self._left_over(at)

    def _left_over(self, at: int) -> None:
        word = self.words[at]
        if self.kinds[at] == "O":
            flag = word.value.partition("=")[0]
            options, release = self.sheet.options, self.sheet.release
            flag = flag if options.known(flag) else options.abbreviated(flag, release) or flag
            kind = "removed-flag" if options.history(flag, release).gone else "unknown-flag"
            self.sheet.object(EXTRA, kind, word.text, flag=flag)
        elif word.value.startswith("-") and " " in word.value:
            self.sheet.object(EXTRA, "joined-argument", word.text, flag=word.value.split()[0].partition("=")[0])
        elif word.value.startswith(HOLE):
            self._open(at)
        elif not self._follows_unknown(at):
            self.sheet.object(EXTRA, "stray-argument", word.text, after=self._flag_before(at))

    def _follows_unknown(self, at: int) -> bool:
        """The word behind an unknown flag is taken for its value."""
        before = at - 1
        return before in self.extras and self.kinds[before] == "O" and "=" not in self.words[before].value

    def _flag_before(self, at: int) -> str | None:
        """The option or unknown flag that the stray word follows."""
        before = self.extras[at] - 1
        return self.words[before].value if before in self.matches else None
