"""Dockerfiles: instructions with their arguments, every character with its place.

Exec form (`["a", "b"]`) gives words; shell form gives the text that a shell will read.  Variables are left as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kvlint.formats import json
from kvlint.formats.document import Comment, Unreadable, is_directive
from kvlint.formats.spelling import Cutter, Run, spell
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import Source, Span, Text
from kvlint.tree import List, Scalar

_LINE = regex(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_ESCAPE = regex(r"[ \t]*#[ \t]*escape[ \t]*=[ \t]*([`\\])[ \t]*$", re.IGNORECASE)
_DIRECTIVE = regex(r"[ \t]*#[ \t]*\w+[ \t]*=")
_KEYWORD = regex(r"[ \t]*([A-Za-z]+)(?:[ \t]+|$)")
_HEREDOC = regex(r"<<-?[ \t]*([\"']?)([A-Za-z_][\w.-]*)\1")
_WITH_HEREDOC = frozenset({"RUN", "COPY", "ADD"})
_FLAG = regex(r"--[a-z][\w-]*(?:=\S*)?[ \t]+")
_WORD = regex(
    r"(?P<blank>[ \t\n]+)|(?P<single>'[^']*')|(?P<double>\"[^\"\\]*(?:\\.[^\"\\]*)*\")|(?P<escape>\\.)"
    r"|(?P<run>[^ \t\n'\"\\]+|['\"\\])"
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """`text`: what follows the keyword and its flags (`--mount=…`), continuations joined.  `words`: in exec form, its strings."""

    keyword: str
    text: Text
    span: Span
    words: tuple[Text, ...] | None = None
    flags: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """`FROM image AS name` and what follows it, in order."""

    image: Text
    name: str | None
    instructions: tuple[Instruction, ...]

    def last(self, keyword: str) -> Instruction | None:
        return next((found for found in reversed(self.instructions) if found.keyword == keyword), None)


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """`instructions`: all of them; `stages`: the same by `FROM`; what stands before the first one (`ARG`) is in no stage."""

    source: Source
    instructions: tuple[Instruction, ...]
    problems: tuple[Unreadable, ...] = ()
    comments: tuple[Comment, ...] = ()

    def stages(self) -> list[Stage]:
        found: list[tuple[Text, str | None, list[Instruction]]] = []
        for instruction in self.instructions:
            if instruction.keyword == "FROM":
                words = split(instruction.text)
                named = len(words) > 2 and words[1].value.lower() == "as"
                image = words[0] if words else instruction.text
                found.append((image, words[2].value if named else None, []))
            elif found:
                found[-1][2].append(instruction)
        return [Stage(image, name, tuple(parts)) for image, name, parts in found]


def parse(source: Source) -> Dockerfile:
    """Read a Dockerfile; a line that is no instruction is a problem and nothing more."""
    instructions: list[Instruction] = []
    problems: list[Unreadable] = []
    comments: list[Comment] = []
    for line in _logical_lines(source, comments):
        match = _KEYWORD.match(line.value)
        if match is None:
            problems.append(Unreadable("not an instruction", line.span))
            continue
        instructions.append(_instruction(match[1].upper(), line, match.end()))
    return Dockerfile(source, tuple(instructions), tuple(problems), tuple(comments))


def pairs(instruction: Instruction) -> list[tuple[Text, Text | None]]:
    """The names and values of `ENV`, `ARG` and `LABEL`: `A=1 B="2 3"`, the old `ENV A 1`, `ARG A`."""
    words = split(instruction.text)
    if instruction.keyword == "ENV" and words and "=" not in words[0].value:
        rest = instruction.text.value[len(words[0].value) :].lstrip()
        return [(words[0], instruction.text.slice(len(instruction.text.value) - len(rest)))]
    found: list[tuple[Text, Text | None]] = []
    for word in words:
        name, equals, _ = word.value.partition("=")
        found.append((word.slice(0, len(name)), word.slice(len(name) + 1) if equals else None))
    return found


def split(text: Text) -> list[Text]:
    """Words by a Dockerfile's own quoting, which is no shell's: quotes and backslashes only."""
    cut = Cutter(text).cut
    found: list[Text] = []
    parts: list[Text] = []
    begun = -1
    for match in _WORD.finditer(text.value):
        kind, (start, end) = match.lastgroup, match.span()
        if kind == "blank":
            if begun >= 0:
                found.append(Text.join(parts))
            parts, begun = [], -1
            continue
        begun = start if begun < 0 else begun
        if kind == "single":
            parts.append(cut(start + 1, end - 1))
        elif kind == "double":
            parts.append(_double(cut(start, end)))
        elif kind == "escape":
            parts.append(Text.at(match[0][1], cut(start, end).span))
        else:
            parts.append(cut(start, end))
    return [*found, Text.join(parts)] if begun >= 0 else found


def _double(quoted: Text) -> Text:
    """A word in double quotes: a backslash is dropped only before a quote, a backslash or `$`."""
    value = quoted.value
    cut = Cutter(quoted).cut
    parts: list[Text] = [cut(1, 1)]
    at = 1
    for match in re.finditer(r'\\["\\$]', value):
        parts.append(cut(at, match.start()))
        parts.append(Text.at(match[0][1], cut(*match.span()).span))
        at = match.end()
    return Text.join([*parts, cut(at, len(value) - 1)])


def _instruction(keyword: str, line: Text, at: int) -> Instruction:
    flags: list[Text] = []
    while keyword in ("RUN", "COPY", "ADD", "FROM", "HEALTHCHECK") and (flag := _FLAG.match(line.value, at)):
        flags.append(line.slice(at, at + len(flag[0].rstrip())))
        at = flag.end()
    if keyword == "HEALTHCHECK" and (nested := _KEYWORD.match(line.value, at)):
        at = nested.end()
    text = line.slice(at, max(at, len(line.value.rstrip())))
    return Instruction(keyword, text, line.span, _exec(text), tuple(flags))


def _exec(text: Text) -> tuple[Text, ...] | None:
    """The words of a JSON list of strings; anything else is shell form, as Docker takes it."""
    if not text.value.startswith("["):
        return None
    inner = Source("", text.value)
    (document, *rest) = json.documents(inner)
    node = document.node
    if rest or not isinstance(node, List) or not node.items:
        return None
    words: list[Text] = []
    cut = Cutter(text).cut
    for item in node:
        if not isinstance(item, Scalar) or not item.quoted:
            return None
        words.append(_lifted(item.text, cut))
    return tuple(words)


def _lifted(word: Text, cut: Callable[[int, int], Text]) -> Text:
    """A word that was read from a value, with the places that the value itself has."""
    parts: list[Text] = []
    for piece in word.pieces:
        place = cut(piece.span.start, piece.span.end)
        value = word.value[piece.at : piece.at + piece.length]
        parts.append(place if piece.literal else Text.at(value, place.span))
    home = cut(word.span.start, word.span.end)
    return Text.join(parts) if parts else Text("", (), (), home.span)


def _logical_lines(source: Source, comments: list[Comment]) -> Iterator[Text]:
    """Lines with continuations joined, comments and empty lines among them left out; a here-document stays with its line."""
    text = source.text
    escape, leading = "\\", True
    runs: list[Run] = []
    endless: set[str] = set()
    at = 0
    while at < len(text):
        match = _LINE.match(text, at)
        if match is None:
            return
        (start, end), at = match.span(1), match.end()
        written = match[1].strip(" \t\ufeff")
        if written.startswith("#"):
            if leading and (found := _ESCAPE.match(match[1])):
                escape = found[1]
            leading = leading and _DIRECTIVE.match(match[1]) is not None
            if is_directive(written):
                first = text.index("#", start)
                comments.append(Comment(source.span(first, end), text[first:end], True))
            continue
        leading = leading and not written
        if not written:
            continue
        if written.endswith(escape):
            cut = start + len(match[1].rstrip()) - 1
            runs += ((start, cut, text[start:cut]), (cut, at, ""))
            continue
        runs.append((start, end, match[1]))
        line = spell(source, runs, runs[0][0], end)
        runs = []
        keyword = _KEYWORD.match(line.value)
        if keyword and keyword[1].upper() in _WITH_HEREDOC:
            stop = _heredocs(text, line.value, at, endless)
            line = Text.join((line, Text.of(source, end, stop))) if stop > at else line
            at = max(at, stop)
        yield line
    if runs:
        yield spell(source, runs, runs[0][0], len(text))


def _heredocs(text: str, line: str, at: int, endless: set[str]) -> int:
    """Where the here-documents that a line opens end; `endless` remembers words that close none further on."""
    for opened in _HEREDOC.finditer(line):
        word = opened[2]
        if word in endless:
            return at
        closing = re.compile(rf"^[ \t]*{re.escape(word)}[ \t]*\r?$", re.MULTILINE).search(text, at)
        if closing is None:
            endless.add(word)
            return at
        at = closing.end()
    return at
