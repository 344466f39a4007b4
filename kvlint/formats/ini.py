"""INI as llama.cpp reads it: sections of `key = value`, with places.

`;` and `#` begin a comment anywhere, nothing is quoted, and what stands before the first section has an empty name
(ggml-org/llama.cpp@13b56e2a:common/preset.cpp).  Lines of another shape are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import Text

_LINE = regex(r"[^\r\n]*")
_SECTION = regex(r"[ \t]*\[[ \t]*(?P<name>[^\]]*?)[ \t]*\][ \t]*(?:[;#].*)?")
_SETTING = regex(r"[ \t]*(?P<key>[A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*(?P<value>[^;#]*?)[ \t]*(?:[;#].*)?")


@dataclass(frozen=True, slots=True)
class Section:
    """`name` is None before the first header; of a key given twice the last counts."""

    name: Text | None
    settings: tuple[tuple[Text, Text], ...]


def sections(text: Text) -> Iterator[Section]:
    name: Text | None = None
    settings: dict[str, tuple[Text, Text]] = {}
    for line in _LINE.finditer(text.value):
        header = _SECTION.fullmatch(line[0])
        if header is not None:
            if name is not None or settings:
                yield Section(name, tuple(settings.values()))
            name, settings = _part(text, line.start(), header.span("name")), {}
            continue
        setting = _SETTING.fullmatch(line[0])
        if setting is not None:
            key, value = (_part(text, line.start(), setting.span(group)) for group in ("key", "value"))
            settings[key.value] = (key, value)
    if name is not None or settings:
        yield Section(name, tuple(settings.values()))


def _part(text: Text, line: int, span: tuple[int, int]) -> Text:
    return text.slice(line + span[0], line + span[1])
