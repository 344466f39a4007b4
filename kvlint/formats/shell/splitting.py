"""Splitting a command string into words where no shell runs: compose's `command:`, llama-swap's `cmd`."""

from __future__ import annotations

from kvlint.formats.shell.filled import filled
from kvlint.formats.shell.text import Slicer, joined, spliced, unix_lines
from kvlint.patterns import regex
from kvlint.source import HOLE, Text

_PLAIN = regex(r"""[^\s'"\\]+""")
_BLANK = regex(r"\s+")
_IN_DOUBLE = regex(r'[^"\\]+')


def split(text: Text, *, comment_lines: bool = False) -> list[Text]:
    """Words by the quoting rules of POSIX, with nothing expanded: `$X`, `&&` and `>` are characters.

    `comment_lines`: lines that start with `#` are dropped and backslashes at the end of a line join it to the next, as
    llama-swap does.  A quote that is not closed reaches to the end.
    """
    text = filled(unix_lines(text), script=False)
    return _Splitter(_without_comments(text) if comment_lines else text).words()


def _without_comments(text: Text) -> Text:
    cut = Slicer(text)
    parts = []
    at = 0
    for line in text.value.splitlines(keepends=True):
        bare = line.strip()
        if bare.endswith("\\") and not bare.startswith("#"):
            parts += [cut(at, at + line.rindex("\\")), Text(" ")]
        elif not bare.startswith("#"):
            parts.append(cut(at, at + len(line)))
        at += len(line)
    return joined(parts) if parts else Text("")


class _Splitter:
    def __init__(self, text: Text) -> None:
        self.cut = Slicer(text)
        self.value = text.value
        self.at = 0
        self.parts: list[Text] = []
        self.open = False

    def words(self) -> list[Text]:
        words = []
        while self.at < len(self.value):
            blank = _BLANK.match(self.value, self.at)
            if blank:
                self.at = blank.end()
                if self.open:
                    words.append(self.word())
                continue
            self.open = True
            self.step()
        if self.open:
            words.append(self.word())
        return words

    def word(self) -> Text:
        word = joined(self.parts) if self.parts else Text("", (), (), self.cut.span(self.at, self.at))
        self.parts, self.open = [], False
        return word

    def step(self) -> None:
        char = self.value[self.at]
        if char == "'":
            close = self.value.find("'", self.at + 1)
            self.quoted(self.at + 1, len(self.value) if close < 0 else close)
        elif char == '"':
            self.double()
        elif char == "\\":
            self.escape(self.at + 1)
        else:
            found = _PLAIN.match(self.value, self.at)
            end = found.end() if found else self.at + 1
            self.take(self.at, end, quoted=False)
            self.at = end

    def take(self, start: int, end: int, quoted: bool) -> None:
        text = self.cut(start, end)
        self.parts.append(spliced(text, not quoted) if HOLE in text.value else text)

    def quoted(self, start: int, end: int) -> None:
        if start == end:
            self.parts.append(Text("", (), (), self.cut.span(start - 1, end + 1)))
        else:
            self.take(start, end, quoted=True)
        self.at = end + 1

    def double(self) -> None:
        start = self.at + 1
        if self.value[start : start + 1] == '"':
            self.quoted(start, start)
            return
        self.at = start
        while self.at < len(self.value) and self.value[self.at] != '"':
            if self.value[self.at] == "\\":
                after = self.value[self.at + 1 : self.at + 2]
                self.escape(self.at + (1 if after and after in '$`"\\\n' else 0))
                continue
            found = _IN_DOUBLE.match(self.value, self.at)
            assert found is not None
            self.take(self.at, found.end(), quoted=True)
            self.at = found.end()
        self.at += 1

    def escape(self, start: int) -> None:
        """The character at `start`, the backslash before it dropped; a line end goes with it."""
        if self.value[start : start + 1] not in ("\n", ""):
            self.take(start, start + 1, quoted=True)
        self.at = start + 1
