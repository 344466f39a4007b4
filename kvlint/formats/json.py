"""JSON with the place of every token.  Comments and trailing commas, which editors' and servers' own files have, are let pass.

Depth is bounded; nothing is converted: numbers keep their spelling.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.formats.document import MAX_DEPTH, Comment, Document, Unreadable, comment_at, is_directive
from kvlint.formats.spelling import Run, spell
from kvlint.patterns import regex
from kvlint.source import Source
from kvlint.tree import Entry, List, Map, Node, Opaque, Scalar

_SPACE = regex(r"[ \t\r\n\ufeff]+")
_COMMENT = regex(r"//[^\r\n]*|/\*[\s\S]*?\*/")
_STRING = regex(r'"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*"')
_PART = regex(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]+")
_WORD = regex(r"-?[A-Za-z_][\w-]*|[-+]?[\d.][\w.+-]*")
_NUMBER = regex(r"-?(?:0|[1-9]\d*)(?P<fraction>\.\d+)?(?P<exponent>[eE][-+]?\d+)?")
# An array of numbers, or of such arrays, that is longer than any in a configuration: a series of measurements.
LONG_SERIES = 4096
_FIGURES = regex(r"[\[\],0-9.eE+\- \t\r\n]*")
_WORDS = {"true": "bool", "false": "bool", "null": "null", "NaN": "float", "Infinity": "float", "-Infinity": "float"}
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class _Failure(Exception):
    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end


def documents(source: Source) -> Iterator[Document]:
    """The values of a file: one, or one a line.  After one that cannot be read nothing more is read."""
    reader = _Reader(source)
    start = 0
    while True:
        try:
            reader.skip()
            if reader.at >= len(source.text) and start:
                return
            if start and "\n" not in source.text[start : reader.at]:
                raise _Failure("more stands after the value", reader.at, len(source.text))
            first = reader.at
            node = reader.value(0) if first < len(source.text) else None
            reader.skip(line=True)
        except _Failure as failure:
            span = source.span(failure.start, failure.end)
            yield Document(
                None, Unreadable(failure.message, span), source.span(start, len(source.text)), reader.taken()
            )
            return
        yield Document(node, None, source.span(start, reader.at), reader.taken())
        start = reader.at
        if node is None:
            return


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.at = 0
        self.looked = 0
        self.comments: list[Comment] = []

    def taken(self) -> tuple[Comment, ...]:
        found, self.comments = tuple(self.comments), []
        return found

    def skip(self, *, line: bool = False) -> None:
        """Past blanks and comments; `line`: not past the end of this line."""
        while True:
            if space := _SPACE.match(self.text, self.at):
                stop = self.text.find("\n", space.start(), space.end()) if line else -1
                self.at = space.end() if stop < 0 else stop
                if stop >= 0:
                    return
            if not self.text.startswith("/", self.at):
                return
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                raise _Failure("a comment that does not end", self.at, self.at + 1)
            self._comment(comment.start(), comment.end())
            self.at = comment.end()

    def _comment(self, start: int, end: int) -> None:
        if is_directive(self.text[start:end]):
            self.comments.append(comment_at(self.source, start, end))

    def value(self, depth: int) -> Node:
        if depth >= MAX_DEPTH:
            raise _Failure(f"nested deeper than {MAX_DEPTH} levels", self.at, self.at + 1)
        first = self.text[self.at : self.at + 1]
        if first == "{":
            return self.object(depth)
        if first == "[":
            return self.array(depth)
        return self.string() if first == '"' else self.word()

    def object(self, depth: int) -> Map:
        start = self.at
        entries: list[Entry] = []
        lost: list[Scalar] = []
        seen: dict[str, Scalar] = {}
        while self.item("}", bool(entries)):
            if not self.text.startswith('"', self.at):
                raise self.unexpected("a key in double quotes")
            key = self.string()
            self.skip()
            if not self.text.startswith(":", self.at):
                raise self.unexpected("`:`")
            self.at += 1
            self.skip()
            entries.append(Entry(key, self.value(depth + 1)))
            if key.value in seen:
                lost.append(seen[key.value])
            seen[key.value] = key
        return Map(tuple(entries), self.source.span(start, self.at), (), tuple(lost))

    def series(self) -> int | None:
        """Where a long series of numbers that begins here ends; no stretch of the text is looked at twice for it."""
        start = self.at
        if start < self.looked:
            return None
        self.looked = start + LONG_SERIES
        if _FIGURES.fullmatch(self.text, start, self.looked) is None or len(self.text) < self.looked:
            return None
        from json import JSONDecoder

        try:
            end = JSONDecoder().raw_decode(self.text, start)[1]
        except (ValueError, RecursionError):
            return None
        return end if end >= self.looked and _FIGURES.fullmatch(self.text, start, end) else None

    def array(self, depth: int) -> List | Opaque:
        start = self.at
        if (end := self.series()) is not None:
            self.at = end
            return Opaque(self.source.span(start, end), "a long series of numbers")
        items: list[Node] = []
        while self.item("]", bool(items)):
            items.append(self.value(depth + 1))
        return List(tuple(items), self.source.span(start, self.at))

    def item(self, closer: str, later: bool) -> bool:
        """Whether another item begins here; passes the opening bracket, a comma or the closing bracket."""
        if not later:
            self.at += 1
        self.skip()
        if later and self.text.startswith(",", self.at):
            self.at += 1
            self.skip()
        elif later and not self.text.startswith(closer, self.at):
            raise self.unexpected(f"`,` or `{closer}`")
        if self.text.startswith(closer, self.at):
            self.at += 1
            return False
        return True

    def string(self) -> Scalar:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise _Failure("a string that does not end on its line", self.at, self.at + 1)
        start, self.at = match.span()
        text = spell(self.source, self.runs(start + 1, self.at - 1), start, self.at)
        return Scalar(text, self.source.span(start, self.at), "str", True)

    def runs(self, start: int, end: int) -> Iterator[Run]:
        for match in _PART.finditer(self.text, start, end):
            part = match[0]
            if part[0] != "\\":
                yield (*match.span(), part)
            elif len(part) > 2:
                yield (*match.span(), _unicode(part))
            elif part[1] in _ESCAPES:
                yield (*match.span(), _ESCAPES[part[1]])
            else:
                raise _Failure(f"`{part}` is no escape", *match.span())

    def word(self) -> Scalar:
        match = _WORD.match(self.text, self.at)
        if match is None:
            raise self.unexpected("a value")
        tag = _WORDS.get(match[0])
        if tag is None:
            number = _NUMBER.fullmatch(match[0])
            if number is None:
                raise _Failure(f"`{match[0][:40]}` is no value", *match.span())
            tag = "float" if number["fraction"] or number["exponent"] else "int"
        start, self.at = match.span()
        span = self.source.span(start, self.at)
        return Scalar(spell(self.source, [(start, self.at, match[0])], start, self.at), span, tag)

    def unexpected(self, wanted: str) -> _Failure:
        found = self.text[self.at : self.at + 1]
        return _Failure(f"expected {wanted}" + ("" if found else ", not the end"), self.at, self.at + len(found))


def _unicode(escape: str) -> str:
    if len(escape) == 6:
        return chr(int(escape[2:], 16))
    high, low = int(escape[2:6], 16), int(escape[8:], 16)
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
