"""supervisord's configuration: sections of `key = value` as its reader sees them, and the `%(name)s` in their values.

`;` and `#` begin a comment at the start of a line or behind a blank; a line that is indented deeper than a key continues its
value; a section that is repeated adds to the first (Supervisor/supervisor@00f07b48:supervisor/options.py, UnhosedConfigParser).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Union

from kvlint.formats.shell.text import Slicer, made, reached, unknown
from kvlint.patterns import regex
from kvlint.records import dataclass, field
from kvlint.source import Span, Text

_LINE = regex(r"([^\r\n]*)(?:\r\n|\n|\r|\Z)")
_COMMENT = regex(r"(?:^|(?<=\s))[;#]")
_HEADER = regex(r"\[(?P<name>[^\]\r\n]+)\]")
_OPTION = regex(r"(?P<key>[^=:\s][^=:]*?)[ \t]*[=:][ \t]*(?P<value>.*)")
_PROGRAM = regex(r"^\[program:[^\]\r\n]+\]", re.MULTILINE)
_USE = regex(r"%(?:%|\((?P<name>[^()%]{0,200})\)(?P<padding>0?[0-9]{0,2})(?P<how>[sd]))")
# What shlex makes of `A="1",B=2` with the characters that supervisord adds to those of words.
_TOKEN = regex(r"(?P<comment>#[^\n]*)|\"[^\"]*\"|'[^']*'|[A-Za-z0-9_/.+\-():][A-Za-z0-9_/.+\-():\"']*|\S")
Known = Mapping[str, Union[Text, int]]


@dataclass(frozen=True, slots=True)
class Setting:
    """`span`: from the key to the last line of the value."""

    key: Text
    value: Text
    span: Span


@dataclass(slots=True)
class Section:
    """`name`: the header without its brackets; settings by their key in lower case, of several the last."""

    name: Text
    settings: dict[str, Setting] = field(default_factory=dict)

    def text(self, key: str) -> Text | None:
        found = self.settings.get(key)
        return found.value if found is not None else None


def is_config(text: str) -> bool:
    """Whether a text has a program for supervisord."""
    return "[program:" in text and _PROGRAM.search(text) is not None


def parse(text: Text) -> dict[str, Section]:
    """The sections by name, in file order.  What stands outside of them, or has another shape, is left out."""
    cut = Slicer(text)
    sections: dict[str, Section] = {}
    section: Section | None = None
    key: Text | None = None
    parts: list[Text] = []
    indent = 0
    for line in _LINE.finditer(text.value):
        comment = _COMMENT.search(line[1])
        start = line.start() + len(line[1]) - len(line[1].lstrip())
        end = line.start() + (comment.start() if comment is not None else len(line[1]))
        end = start + len(text.value[start:end].rstrip())
        if end <= start:
            continue
        if key is not None and start - line.start() > indent:
            parts += [cut(end, end) if not parts else made("\n", cut.span(start, start)), cut(start, end)]
            continue
        _keep(section, key, parts)
        key, parts, indent = None, [], start - line.start()
        header = _HEADER.match(text.value, start, end)
        if header is not None:
            name = cut(*header.span("name"))
            section = sections.setdefault(name.value, Section(name))
        elif section is not None and (option := _OPTION.fullmatch(text.value, start, end)) is not None:
            key, parts = cut(*option.span("key")), [cut(*option.span("value"))]
    _keep(section, key, parts)
    return sections


def _keep(section: Section | None, key: Text | None, parts: list[Text]) -> None:
    if section is None or key is None:
        return
    value = Text.join(parts)
    pieces = [piece for text in (key, value) if text.pieces for piece in text.span.pieces]
    source = key.span.source
    span = source.span(min(a for a, _ in pieces), max(b for _, b in pieces))
    section.settings[key.value.lower()] = Setting(key, value, span)


def expand(text: Text, known: Known) -> Text:
    """A value after Python's `%` with the names that supervisord knows; what is not among them is a hole."""
    if "%" not in text.value:
        return text
    cut = Slicer(text)
    parts: list[Text] = []
    at = 0
    while (found := text.value.find("%", at)) >= 0:
        parts.append(cut(at, found))
        use = _USE.match(text.value, found)
        if use is None:  # supervisord refuses it
            at = found + 1
            parts.append(unknown(cut.span(found, at), "a `%` that supervisord cannot expand"))
            continue
        at = use.end()
        parts.append(cut(found, found + 1) if use["name"] is None else _expanded(use, cut.span(*use.span()), known))
    parts.append(cut(at, len(text.value)))
    return Text.join(parts)


def _expanded(use: re.Match[str], place: Span | None, known: Known) -> Text:
    value = known.get(use["name"])
    if isinstance(value, int):
        return made(f"%{use['padding']}d" % value, place)
    if value is not None and not use["padding"] and use["how"] == "s":
        return reached(value, place)
    name = use["name"].removeprefix("ENV_")
    whole = not use["name"].startswith("ENV_")
    if place is not None and whole:
        return Text.unknown(place, f"supervisord fills in {use[0]}", f"the value of {name}", whole=True)
    return unknown(place, f"{name} comes from supervisord's own environment", f"the value of {name}", splice=True)


def assignments(text: Text) -> dict[str, Text] | None:
    """`A="1",B=2`; None where supervisord would refuse it."""
    cut = Slicer(text)
    tokens = [match.span() for match in _TOKEN.finditer(text.value) if match["comment"] is None]
    found: dict[str, Text] = {}
    for at in range(0, len(tokens), 4):
        three = tokens[at : at + 3]
        if len(three) < 3 or text.value[slice(*three[1])] != "=":
            return None
        start, end = three[2]
        value = text.value[start:end]
        bare = value.strip("'\"")
        start += len(value) - len(value.lstrip("'\""))
        found[text.value[slice(*three[0])]] = cut(start, start + len(bare))
    return found
