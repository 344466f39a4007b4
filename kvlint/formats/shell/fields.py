"""Field splitting: how the results of expansions become the words of a command."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kvlint.formats.shell.text import Slicer, joined, spliced
from kvlint.patterns import regex
from kvlint.source import Text

BLANKS = " \t\n"


class Fields:
    """Builds words from parts.  With `split` off everything stays one word: an assignment's value, a here-document."""

    def __init__(self, separators: str, split: bool) -> None:
        self.split = split
        self._pattern = _separators(separators)
        self._done: list[Text] = []
        self._parts: list[Text] = []
        self._open = False

    def add(self, text: Text) -> None:
        """Characters that belong to the current word, whatever they are."""
        self._parts.append(text)
        self._open = True

    def add_split(self, text: Text) -> None:
        """The result of an unquoted expansion: separators in it end words, and nothing at all makes no word."""
        if not self.split:
            self.add(text)
            return
        text = spliced(text, True)
        cut = Slicer(text)
        at = 0
        for found in self._pattern.finditer(text.value) if self._pattern else ():
            if found.start() > at:
                self.add(cut(at, found.start()))
            if self._open or found.group().strip(BLANKS):
                self._close()
            at = found.end()
        if at < len(text.value):
            self.add(cut(at, len(text.value)) if at else text)

    def add_each(self, items: Sequence[Text], quoted: bool) -> None:
        """`"$@"` and the like: the first joins what stands before, the last what comes after."""
        if not self.split:
            self.add(between(items, " "))
            return
        for number, item in enumerate(items):
            if number and self._open:
                self._close()
            if quoted:
                self.add(item)
            else:
                self.add_split(item)

    def _close(self) -> None:
        self._done.append(joined(self._parts) if self._parts else Text(""))
        self._parts = []
        self._open = False

    def finish(self) -> list[Text]:
        if self._open:
            self._close()
        return self._done

    def single(self) -> Text:
        """All parts as one text, for a builder that does not split."""
        return joined(self._parts) if self._parts else Text("")


def between(items: Sequence[Text], separator: str) -> Text:
    parts: list[Text] = []
    for item in items:
        parts += [Text(separator), item] if parts else [item]
    return joined(parts) if parts else Text("")


def _separators(characters: str) -> re.Pattern[str] | None:
    if characters == BLANKS:
        return _USUAL
    blank = "".join(char for char in characters if char in BLANKS)
    other = "".join(char for char in characters if char not in BLANKS)
    around = f"[{re.escape(blank)}]*" if blank else ""
    choices = ([f"{around}[{re.escape(other)}]{around}"] if other else []) + (
        [f"[{re.escape(blank)}]+"] if blank else []
    )
    return re.compile("|".join(choices)) if choices else None


_USUAL = regex(r"[ \t\n]+")
