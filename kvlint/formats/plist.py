"""XML property lists (launchd) with the place of every value.

A scanner of our own: no document type is read, no entity but XML's own five is known, depth is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvlint.formats.document import MAX_DEPTH, Comment, Document, Unreadable, comment_at, is_directive
from kvlint.formats.spelling import Run, spell
from kvlint.patterns import regex
from kvlint.source import Source, Text
from kvlint.tree import Entry, List, Map, Node, Scalar

_TOKEN = regex(
    r"<!--(?P<comment>[\s\S]*?)-->|(?P<doctype><!DOCTYPE[^>\[]*>)|<!\[CDATA\[(?P<cdata>[\s\S]*?)\]\]>|(?P<instruction><\?[\s\S]*?\?>)"
    r"|</(?P<close>[\w:.-]+)\s*>|<(?P<open>[\w:.-]+)(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*\s*(?P<empty>/?)>|(?P<text>[^<]+)"
)
_PART = regex(r"(?P<crlf>\r\n?)|&(?P<entity>#x[0-9A-Fa-f]{1,6}|#[0-9]{1,7}|\w{1,32});|(?P<run>[^&\r]+|&)")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_TAGS = {"string": "str", "key": "str", "integer": "int", "real": "float", "date": "str", "data": "str"}


class _Failure(Exception):
    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end


def parse(source: Source) -> Document:
    """The one value of a property list, usually a map, or the problem with its place."""
    span = source.span(0, len(source.text))
    reader = _Reader(source)
    try:
        node = reader.read()
    except _Failure as failure:
        place = source.span(failure.start, min(failure.end, len(source.text)))
        return Document(None, Unreadable(failure.message, place), span, tuple(reader.comments))
    return Document(node, None, span, tuple(reader.comments))


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.comments: list[Comment] = []
        self.at = 0

    def read(self) -> Node | None:
        if self.text.startswith("bplist"):
            raise _Failure("a binary property list", 0, 6)
        match = self.tag()
        if match is None:
            return None
        if match["open"] == "plist" and not match["empty"]:
            match = self.tag()
            if match is None or match["close"]:
                return None
        return self.value(match, 0)

    def next(self) -> re.Match[str] | None:
        """The next token that is no comment; None at the end."""
        while self.at < len(self.text):
            match = _TOKEN.match(self.text, self.at)
            if match is None:
                raise _Failure(self.why(), self.at, self.at + 1)
            self.at = match.end()
            if match.lastgroup == "comment":
                self.comment(match)
            elif match.lastgroup not in ("doctype", "instruction"):
                return match
        return None

    def why(self) -> str:
        if self.text.startswith("<!DOCTYPE", self.at):
            return "a document type with declarations of its own is not read"
        return "a comment that does not end" if self.text.startswith("<!--", self.at) else "not a tag"

    def comment(self, match: re.Match[str]) -> None:
        if is_directive(match[0]):
            self.comments.append(comment_at(self.source, *match.span()))

    def tag(self) -> re.Match[str] | None:
        """The next tag; blanks before it are passed over, other text is an error."""
        while match := self.next():
            if match.lastgroup not in ("text", "cdata"):
                return match
            if match[0].strip(" \t\r\n\ufeff"):
                raise _Failure("text where a tag belongs", *match.span())
        return None

    def value(self, match: re.Match[str], depth: int) -> Node:
        name = match["open"]
        start = match.start()
        if depth >= MAX_DEPTH:
            raise _Failure(f"nested deeper than {MAX_DEPTH} levels", *match.span())
        if name is None:
            raise _Failure(f"</{match['close']}> closes nothing", *match.span())
        if name == "dict":
            return self.map(match, depth)
        if name == "array":
            items = [] if match["empty"] else list(self.items(name, depth))
            return List(tuple(items), self.source.span(start, self.at))
        if name in ("true", "false"):
            if not match["empty"]:
                self.characters(name)
            span = self.source.span(start, self.at)
            return Scalar(Text.at(name, span), span, "bool")
        if name not in _TAGS:
            raise _Failure(f"<{name}> is no value of a property list", *match.span())
        return self.scalar(match, name)

    def scalar(self, match: re.Match[str], name: str) -> Scalar:
        runs = [] if match["empty"] else self.characters(name)
        inner = match.end(), max(match.end(), self.text.rfind("<", match.end(), self.at))
        text = spell(self.source, runs, *(inner if not match["empty"] else match.span()))
        if name in ("integer", "real", "date"):
            start = len(text.value) - len(text.value.lstrip())
            text = text.slice(start, max(start, len(text.value.rstrip())))
        return Scalar(text, self.source.span(match.start(), self.at), _TAGS[name], _TAGS[name] == "str")

    def items(self, name: str, depth: int) -> Iterator[Node]:
        while match := self.tag():
            if match["close"]:
                self.closes(match, name)
                return
            yield self.value(match, depth + 1)
        raise _Failure(f"<{name}> is never closed", len(self.text) - 1, len(self.text))

    def map(self, match: re.Match[str], depth: int) -> Map:
        start = match.start()
        nodes = [] if match["empty"] else list(self.items("dict", depth))
        entries: list[Entry] = []
        seen: dict[str, Scalar] = {}
        lost: list[Scalar] = []
        for at in range(0, len(nodes), 2):
            key = nodes[at]
            if not isinstance(key, Scalar) or not self.text.startswith("<key", key.span.start):
                raise _Failure("expected a <key>", key.span.start, key.span.end)
            if at + 1 == len(nodes) or self.text.startswith("<key", nodes[at + 1].span.start):
                raise _Failure(f"the key {key.value[:60]} has no value", key.span.start, key.span.end)
            entries.append(Entry(key, nodes[at + 1]))
            if key.value in seen:
                lost.append(seen[key.value])
            seen[key.value] = key
        return Map(tuple(entries), self.source.span(start, self.at), (), tuple(lost))

    def closes(self, match: re.Match[str], name: str) -> None:
        if match["close"] != name:
            raise _Failure(f"</{match['close']}> where </{name}> belongs", *match.span())

    def characters(self, name: str) -> list[Run]:
        """The characters up to the closing tag."""
        runs: list[Run] = []
        while match := self.next():
            if match.lastgroup == "text":
                runs += self.runs(match.start(), match.end())
            elif match.lastgroup == "cdata":
                runs.append((*match.span("cdata"), match["cdata"]))
            elif match["close"]:
                self.closes(match, name)
                return runs
            else:
                raise _Failure(f"a tag inside <{name}>", *match.span())
        raise _Failure(f"<{name}> is never closed", len(self.text) - 1, len(self.text))

    def runs(self, start: int, end: int) -> Iterator[Run]:
        for match in _PART.finditer(self.text, start, end):
            if match.lastgroup == "run":
                if match[0] == "&":
                    raise _Failure("`&` must be written `&amp;`", *match.span())
                yield (*match.span(), match[0])
            elif match.lastgroup == "crlf":
                yield (*match.span(), "\n")
            else:
                yield (*match.span(), self.entity(match))

    def entity(self, match: re.Match[str]) -> str:
        name = match["entity"]
        if name.startswith("#"):
            code = int(name[2:], 16) if name[1] == "x" else int(name[1:])
            if 0 < code < 0x110000:
                return chr(code)
        elif name in _ENTITIES:
            return _ENTITIES[name]
        raise _Failure(f"the entity {match[0]} is not known", *match.span())
