"""Configuration in nested directives, of nginx and of Caddy, with places.

Words may be quoted; `#` begins a comment at the start of a word.  nginx ends a directive with `;`, Caddy with its line.
What cannot be read is left out: a proxy's file is context, never a reason to stop.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.formats.shell.text import Slicer
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import Span, Text

MAX_DEPTH = 32
_TOKEN = regex(
    r"(?P<blank>[ \t\r]+|\\\r?\n)|(?P<line>\n)|(?P<comment>#[^\n]*)|(?P<end>;)"
    r"|(?P<quoted>\"(?:[^\"\\]|\\[\s\S])*\"|'(?:[^'\\]|\\[\s\S])*'|`[^`]*`)"
    r"|(?P<word>(?:\$?\{\$?[\w.:,-]+\}|[^\s;{}])+)|(?P<open>\{)|(?P<close>\})|(?P<other>.)"
)


@dataclass(frozen=True, slots=True)
class Directive:
    """`words`: its name and arguments, unquoted; `block`: the directives in its braces, None where it has none."""

    words: tuple[Text, ...]
    block: tuple[Directive, ...] | None = None

    @property
    def name(self) -> str:
        return self.words[0].value

    @property
    def args(self) -> tuple[Text, ...]:
        return self.words[1:]

    @property
    def span(self) -> Span:
        return self.words[0].span


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: Text


def parse(text: Text, *, by_line: bool = False) -> tuple[Directive, ...]:
    """The directives of a file's text; `by_line`: a line ends a directive, as in a Caddyfile."""
    return _Reader(list(_tokens(text)), by_line).block(0)


def all_named(directives: tuple[Directive, ...], name: str) -> Iterator[Directive]:
    return (each for each in directives if each.name == name)


def _tokens(text: Text) -> Iterator[Token]:
    cut = Slicer(text)
    for match in _TOKEN.finditer(text.value):
        kind = match.lastgroup or "other"
        if kind in ("blank", "comment"):
            continue
        start, end = match.span()
        inner = (start + 1, end - 1) if kind == "quoted" else (start, end)
        yield Token("word" if kind in ("quoted", "other") else kind, cut(*inner))


class _Reader:
    def __init__(self, tokens: list[Token], by_line: bool) -> None:
        self.tokens = tokens
        self.by_line = by_line
        self.at = 0

    def block(self, depth: int) -> tuple[Directive, ...]:
        """Directives up to the brace that closes their block, which is taken too."""
        found: list[Directive] = []
        words: list[Text] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.kind == "word":
                words.append(token.text)
            elif token.kind == "open":
                inner = self._skipped() if depth >= MAX_DEPTH or _foreign(words) else self.block(depth + 1)
                # A Caddyfile may begin with a block of options that has no name.
                found.append(Directive(tuple(words) or (token.text,), inner))
                words = []
            elif token.kind == "close":
                break
            elif words and (token.kind == "end" or self.by_line):
                found.append(Directive(tuple(words)))
                words = []
        if words:
            found.append(Directive(tuple(words)))
        return tuple(found)

    def _skipped(self) -> tuple[Directive, ...]:
        """Nothing of a block that is another language, or too deep."""
        depth = 1
        while self.at < len(self.tokens) and depth:
            kind = self.tokens[self.at].kind
            depth += (kind == "open") - (kind == "close")
            self.at += 1
        return ()


def _foreign(words: list[Text]) -> bool:
    return bool(words) and words[0].value.endswith("_by_lua_block")
