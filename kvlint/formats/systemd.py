"""systemd units: sections of settings, and command lines by systemd's own quoting, escapes, specifiers and variables.

After systemd.syntax(7), systemd.service(5) "Command lines" and systemd.unit(5) "Specifiers"; it is not a shell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kvlint.formats.document import Comment, Unreadable, is_directive
from kvlint.formats.spelling import Cutter, Run, spell
from kvlint.patterns import regex
from kvlint.records import dataclass, field
from kvlint.source import HOLE, Source, Span, Text

_LINE = regex(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_BLANKS = " \t\r\n"
_TOKEN = regex(
    r"(?P<blank>[ \t\r\n]+)|(?P<quote>[\"'])|(?P<escape>\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-7]{3}|[\s\S]))"
    r"|(?P<run>[^ \t\r\n\"'\\]+|\\)"
)
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    '"': '"',
    "'": "'",
} | {"s": " "}
_SPECIFIER = regex(r"%[a-zA-Z%]")
_SPECIFIERS = frozenset("aAbBcCdDEfgGhHiIjJlLmMnNopPqrsStTuUvVwWyY")
_VARIABLE = regex(r"\$\$|\$\{([^}]*)\}")
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_PREFIXES = "-@:+!|"


@dataclass(frozen=True, slots=True)
class Setting:
    """`key=value`; the value with its continuation lines joined, comments between them left out."""

    key: Text
    value: Text
    span: Span


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    span: Span
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    source: Source
    sections: tuple[Section, ...]
    problems: tuple[Unreadable, ...] = ()
    comments: tuple[Comment, ...] = ()

    def settings(self, section: str, key: str) -> list[Setting]:
        """What a list setting (`ExecStart=`, `Environment=`) holds in the end: an empty assignment forgets those before it."""
        found: list[Setting] = []
        for part in self.sections:
            for setting in part.settings if part.name == section else ():
                if setting.key.value == key:
                    found = [*found, setting] if setting.value.value else []
        return found

    def text(self, section: str, key: str) -> Text | None:
        """The value of a setting that is no list: the last one counts, an empty one unsets it."""
        found = self.settings(section, key)
        return found[-1].value if found else None


@dataclass(frozen=True, slots=True)
class Command:
    """One command of an `Exec…=` line.  `prefixes`: the special characters before the path."""

    words: tuple[Text, ...]
    prefixes: str = ""
    problem: Unreadable | None = None


@dataclass(slots=True)
class _Open:
    name: str
    span: Span
    settings: list[Setting] = field(default_factory=list)


def parse(source: Source) -> Unit:
    """Read a unit, drop-in or Quadlet file.  A line that systemd would ignore is a problem and nothing more."""
    sections: list[_Open] = []
    problems: list[Unreadable] = []
    comments: list[Comment] = []
    for line in _logical_lines(source, comments):
        text = _strip(line)
        if not text.value:
            continue
        if text.value.startswith("["):
            if not text.value.endswith("]"):
                problems.append(Unreadable("a section header without `]`", text.span))
            sections.append(_Open(text.value[1:].rstrip("]"), text.span))
            continue
        key, equals, _ = text.value.partition("=")
        if not equals or not sections:
            message = "an assignment outside of any section" if equals else "a line without `=`"
            problems.append(Unreadable(message, text.span))
            continue
        value = _strip(text.slice(len(key) + 1))
        sections[-1].settings.append(Setting(_strip(text.slice(0, len(key))), value, text.span))
    found = tuple(Section(part.name, part.span, tuple(part.settings)) for part in sections)
    return Unit(source, found, tuple(problems), tuple(comments))


def _logical_lines(source: Source, comments: list[Comment]) -> Iterator[Text]:
    """Lines with continuations joined: a backslash at the end becomes a blank, comment lines in between are skipped."""
    text = source.text
    runs: list[Run] = []
    for match in _LINE.finditer(text):
        start, end = match.span(1)
        line = match[1]
        written = line.lstrip(_BLANKS)
        if written[:1] in ("#", ";"):
            if is_directive(written):
                comments.append(Comment(source.span(end - len(written), end), written, True))
            continue
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        if continued:
            runs += ((start, end - 1, line[:-1]), (end - 1, match.end(), " "))
            if match.end() < len(text):
                continue
        else:
            runs.append((start, end, line))
        yield spell(source, runs, runs[0][0], end)
        runs = []
        if match.end() == len(text):
            return
    if runs:
        yield spell(source, runs, runs[0][0], len(text))


def _strip(text: Text) -> Text:
    start = len(text.value) - len(text.value.lstrip(_BLANKS))
    return text.slice(start, max(start, len(text.value.rstrip(_BLANKS))))


def words(text: Text) -> list[Text]:
    """Split at blanks, with quotes and C escapes read.  No specifier and no variable is expanded."""
    return [word for word, _ in _words(text)[0]]


def split(text: Text, env: Mapping[str, Text] | None = None, *, env_open: bool = True) -> list[Text]:
    """The arguments that a line gives: split, specifiers as holes, variables expanded.

    `${NAME}` is one word's part, `$NAME` as a word of its own is split at blanks.  A name that `env` does not have is a hole
    while `env_open` says that more may be set, and nothing otherwise.
    """
    return list(_expanded(words(text), env or {}, env_open))


def commands(text: Text, env: Mapping[str, Text] | None = None, *, env_open: bool = True) -> list[Command]:
    """The commands of an `Exec…=` line, parted by a lone `;`.  The path is never subject to variables."""
    found, problem = _words(text)
    groups: list[list[Text]] = [[]]
    for word, raw in found:
        if raw == ";":
            groups.append([])
        else:
            groups[-1].append(word)
    return [_command(group, env or {}, env_open, problem) for group in groups if group]


def _command(group: list[Text], env: Mapping[str, Text], env_open: bool, problem: Unreadable | None) -> Command:
    path, rest = group[0], group[1:]
    length = len(path.value) - len(path.value.lstrip(_PREFIXES))
    prefixes = path.value[:length]
    path = _specifiers(path.slice(length))
    if "@" in prefixes:
        rest = rest[1:]
    arguments = map(_specifiers, rest) if ":" in prefixes else _expanded(rest, env, env_open)
    return Command((path, *arguments), prefixes, problem)


def assignments(text: Text) -> list[tuple[Text, Text]]:
    """The `NAME=value` words of an `Environment=` line; no variable is expanded there."""
    found = []
    for word in words(text):
        expanded = _specifiers(word)
        name, equals, _ = expanded.value.partition("=")
        if equals:
            found.append((expanded.slice(0, len(name)), expanded.slice(len(name) + 1)))
    return found


def _words(text: Text) -> tuple[list[tuple[Text, str]], Unreadable | None]:
    """Words, each with its raw spelling, and the quote that is never closed."""
    found: list[tuple[Text, str]] = []
    parts: list[Text] = []
    cut = Cutter(text).cut
    quote, begun, opened = "", -1, 0
    for match in _TOKEN.finditer(text.value):
        kind, token = match.lastgroup, match[0]
        start, end = match.span()
        if kind == "blank" and not quote:
            if begun >= 0:
                found.append((_joined(cut, parts, begun), text.value[begun:start]))
            parts, begun = [], -1
            continue
        begun = start if begun < 0 else begun
        if kind == "quote" and quote in ("", token):
            quote, opened = ("" if quote else token), start
        elif kind == "escape":
            parts.append(_unescaped(cut(start, end), token))
        else:
            parts.append(cut(start, end))
    if begun >= 0:
        found.append((_joined(cut, parts, begun), text.value[begun:]))
    problem = Unreadable("a quote that is never closed", text.slice(opened, opened + 1).span) if quote else None
    return found, problem


def _joined(cut: Callable[[int, int], Text], parts: list[Text], begun: int) -> Text:
    return Text.join(parts) if parts else Text("", (), (), cut(begun, begun + 1).span)


def _unescaped(place: Text, token: str) -> Text:
    kind = token[1]
    if len(token) > 2:
        code = int(token[1:], 8) if kind.isdigit() else int(token[2:], 16)
        return Text.at(chr(code), place.span) if 0 < code < 0x110000 else place
    if kind == ";":
        return Text.at(";", place.span)
    return Text.at(_ESCAPES[kind], place.span) if kind in _ESCAPES else place


def _specifiers(word: Text) -> Text:
    parts: list[Text] = []
    cut = Cutter(word).cut
    at = 0
    for match in _SPECIFIER.finditer(word.value):
        letter = match[0][1]
        if letter != "%" and letter not in _SPECIFIERS:
            continue
        place = cut(match.start(), match.end()).span
        parts.append(cut(at, match.start()))
        if letter == "%":
            parts.append(Text.at("%", place))
        else:
            parts.append(Text.unknown(place, f"systemd puts in what %{letter} stands for"))
        at = match.end()
    return Text.join([*parts, cut(at)]) if parts else word


def _expanded(found: list[Text], env: Mapping[str, Text], env_open: bool) -> Iterator[Text]:
    for word in map(_specifiers, found):
        value = word.value
        if value[:1] == "$" and len(value) > 1 and value[1] not in "{$":
            yield from _split_variable(word, env, env_open)
        else:
            yield _substituted(word, env, env_open)


def _split_variable(word: Text, env: Mapping[str, Text], env_open: bool) -> Iterator[Text]:
    name = word.value[1:]
    if name in env:
        yield from (part.seen_from(word.span) for part in words(env[name]))
    elif env_open and _NAME.fullmatch(name):
        yield _unset(word.span, name, splice=True)


def _substituted(word: Text, env: Mapping[str, Text], env_open: bool) -> Text:
    parts: list[Text] = []
    cut = Cutter(word).cut
    at = 0
    for match in _VARIABLE.finditer(word.value):
        place = cut(match.start(), match.end()).span
        name = match[1]
        parts.append(cut(at, match.start()))
        at = match.end()
        if name is None:
            parts.append(Text.at("$", place))
        elif name in env:
            parts.append(env[name].seen_from(place))
        elif env_open and (_NAME.fullmatch(name) or HOLE in name):
            parts.append(_unset(place, name, splice=False))
        else:
            parts.append(Text("", (), (), place))
    return Text.join([*parts, cut(at)]) if parts else word


def _unset(place: Span, name: str, *, splice: bool) -> Text:
    return Text.unknown(place, f"${name} is set elsewhere", f"the environment file that sets {name}", splice)
