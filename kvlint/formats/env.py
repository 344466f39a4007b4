"""Environment files: `NAME=value` lines, by the rules of whoever reads them.

`dotenv` (Docker Compose): quotes, escapes in double quotes, `export`, comments after a blank.  `systemd` (`EnvironmentFile=`):
quotes, escapes, continued lines, comments on lines of their own only.  `plain` (`docker run --env-file`, Kustomize): what
follows `=` as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.formats.document import Comment, Unreadable, comment_at, is_directive
from kvlint.formats.spelling import Run, spell
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import Source, Span, Text

_LINE = regex(r"[^\r\n]*")
_NAME = regex(r"[ \t]*(?:export[ \t]+)?(?P<name>[^\s=#:'\"][^\s=#'\"]*)[ \t]*(?P<equals>=)?")
_QUOTED = regex(r"[ \t]*(?:'(?P<single>[^']*)'|\"(?P<double>[^\"\\]*(?:\\[\s\S][^\"\\]*)*)\")")
_REMARK = regex(r"[ \t]#")
_PART = regex(r"(?P<escape>\\(?:\r\n|[\s\S]))|(?P<run>[^\\]+|\\)")
_DOUBLE = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}
_SYSTEMD = regex(
    r"(?P<single>'[^']*')|(?P<double>\"[^\"\\]*(?:\\[\s\S][^\"\\]*)*\")|(?P<escape>\\(?:\r\n|[\s\S]))|(?P<run>[^'\"\\\r\n]+|['\"\\])"
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """`quote`: `'`, `\"` or nothing; a reader that expands `$NAME` leaves single quotes alone."""

    name: Text
    value: Text
    span: Span
    quote: str = ""


@dataclass(frozen=True, slots=True)
class EnvFile:
    source: Source
    assignments: tuple[Assignment, ...]
    problems: tuple[Unreadable, ...] = ()
    comments: tuple[Comment, ...] = ()

    def get(self, name: str) -> Assignment | None:
        """The last assignment of a name: the one that counts."""
        return next((found for found in reversed(self.assignments) if found.name.value == name), None)


def parse(source: Source, dialect: str = "dotenv") -> EnvFile:
    """Read an environment file; a line that is no assignment is a problem and nothing more."""
    text = source.text
    assignments: list[Assignment] = []
    problems: list[Unreadable] = []
    comments: list[Comment] = []
    at = 0
    while at < len(text):
        line = _LINE.match(text, at)
        end = line.end() if line else at
        written = text[at:end].strip(" \t\ufeff")
        if not written or written[0] == "#" or (written[0] == ";" and dialect == "systemd"):
            _comment(source, comments, at, end)
        elif found := _assignment(source, at, end, dialect):
            assignments.append(found)
            end = max(end, found.span.end)
            rest = _LINE.match(text, found.span.end)
            end = rest.end() if rest else end
            if dialect == "dotenv":
                _comment(source, comments, found.span.end, end)
        elif "=" in written or dialect != "dotenv":
            problems.append(Unreadable("not `NAME=value`", source.span(at, end)))
        at = end + (2 if text.startswith("\r\n", end) else 1)
    return EnvFile(source, tuple(assignments), tuple(problems), tuple(comments))


def _comment(source: Source, comments: list[Comment], start: int, end: int) -> None:
    at = source.text.find("#", start, end)
    if at >= 0 and is_directive(source.text[at:end]):
        comments.append(comment_at(source, at, end))


def _assignment(source: Source, start: int, end: int, dialect: str) -> Assignment | None:
    match = _NAME.match(source.text, start, end)
    if match is None or not match["equals"]:
        return None
    name = Text.of(source, *match.span("name"))
    if dialect == "systemd":
        return _systemd(source, name, match.end())
    if dialect == "plain":
        return Assignment(name, Text.of(source, match.end(), end), source.span(name.span.start, end))
    return _dotenv(source, name, match.end(), end)


def _dotenv(source: Source, name: Text, start: int, end: int) -> Assignment:
    text = source.text
    quoted = _QUOTED.match(text, start)
    if quoted is not None:
        kind = str(quoted.lastgroup)
        a, b = quoted.span(kind)
        value = spell(source, _escapes(text, a, b), a, b) if kind == "double" else Text.of(source, a, b)
        return Assignment(name, value, source.span(name.span.start, quoted.end()), text[a - 1])
    remark = _REMARK.search(text, start, end)
    bare = text[start : remark.start() if remark else end]
    start += len(bare) - len(bare.lstrip(" \t"))
    stop = start + len(bare.strip(" \t"))
    return Assignment(name, Text.of(source, start, stop), source.span(name.span.start, stop))


def _escapes(text: str, start: int, end: int) -> Iterator[Run]:
    for match in _PART.finditer(text, start, end):
        part = match[0]
        if match.lastgroup == "escape" and part[1] in _DOUBLE:
            yield (*match.span(), _DOUBLE[part[1]])
        else:
            yield (*match.span(), part)


def _systemd(source: Source, name: Text, start: int) -> Assignment:
    """Quotes may open anywhere, a backslash takes the next character as it is and joins lines; blanks around are dropped."""
    text = source.text
    while text[start : start + 1] in (" ", "\t"):
        start += 1
    runs: list[Run] = []
    at, quote = start, ""
    while match := _SYSTEMD.match(text, at):
        part, kind = match[0], match.lastgroup
        a, b = match.span()
        if kind == "single":
            runs.append((a + 1, b - 1, part[1:-1]))
        elif kind == "double":
            runs += _double(text, a + 1, b - 1)
        elif kind == "escape":
            runs.append((a, b, "" if part[1] in "\r\n" else part[1]))
        else:
            runs.append((a, b, part))
        quote = {"single": "'", "double": '"'}.get(str(kind), "") if at == start else quote
        at = b
    value = spell(source, runs, start, at)
    if not quote:
        value = value.slice(0, len(value.value.rstrip()))
    return Assignment(name, value, source.span(name.span.start, at), quote)


def _double(text: str, start: int, end: int) -> Iterator[Run]:
    """In double quotes a backslash is dropped only before what needs it."""
    for match in _PART.finditer(text, start, end):
        part = match[0]
        if match.lastgroup == "escape" and part[1] in '"\\`$\r\n':
            yield (*match.span(), "" if part[1] in "\r\n" else part[1])
        else:
            yield (*match.span(), part)
