"""Variables that a tool puts into the texts of its own file, where the reader of YAML has made a hole of each use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kvlint.formats.shell.text import Slicer, reached
from kvlint.records import dataclass, field
from kvlint.source import Span, Text
from kvlint.tree import Map, Scalar

if TYPE_CHECKING:
    import re

    from kvlint.formats.shell import Assumption

MOST_FILLED = 1 << 16  # characters that the variables of one file may put in; what would be more stays unknown
Values = Mapping[str, Text]


@dataclass(slots=True)
class Filler:
    """`pattern`: a whole use, with its `name` and perhaps a `default`, quoted or a number.

    `values`: the variables by name, None for one that is not known.  `left`: how many characters they may still put in.
    `assumed`: the defaults that were taken, or may be replaced from elsewhere.
    """

    pattern: re.Pattern[str]
    values: dict[str, Text | None] = field(default_factory=dict)
    assumed: list[Assumption] = field(default_factory=list)
    left: list[int] = field(default_factory=lambda: [MOST_FILLED])

    def inside(self, node: Map | None) -> Filler:
        """The same with more variables, which are not seen outside."""
        if node is None:
            return self
        inner = Filler(self.pattern, dict(self.values), list(self.assumed), self.left)
        inner.add(node)
        return inner

    def add(self, node: Map | None, assumed: bool = False) -> None:
        """Variables in the order in which they stand; `assumed`: anybody may set them to something else."""
        from kvlint.formats.shell import Assumption

        for entry in node or ():
            value = entry.value
            known = isinstance(value, Scalar) and value.tag != "null"
            text = self.text(value.text) if isinstance(value, Scalar) and known else None
            self.values[entry.key.value] = text
            if assumed and text is not None and text.pieces:
                self.assumed.append(Assumption(entry.key.value, entry.key.span, value.span))

    def text(self, text: Text) -> Text:
        """A text with what its holes stand for."""
        if text.known:
            return text
        cut = Slicer(text)
        parts: list[Text] = []
        at = 0
        for hole in text.holes:
            value = self._value(hole.span)
            if value is not None:
                parts += [cut(at, hole.at), value]
                at = hole.at + 1
        return Text.join([*parts, cut(at, len(text.value))]) if parts else text

    def _value(self, place: Span) -> Text | None:
        match = self.pattern.fullmatch(place.text)
        if match is None:
            return None
        groups = match.groupdict()
        name = next(value for key, value in groups.items() if key.startswith("name") and value is not None)
        if name in self.values:
            return self._put(self.values[name], place)
        default = next((key for key, value in groups.items() if key.startswith("default") and value is not None), None)
        if default is None:
            return None
        start, end = (place.start + at for at in match.span(default))
        if match[default][0] in "'\"`":
            start, end = start + 1, end - 1
        from kvlint.formats.shell import Assumption

        self.assumed.append(Assumption(name, place, place.source.span(start, end)))
        return reached(Text.of(place.source, start, end), place)

    def _put(self, value: Text | None, place: Span) -> Text | None:
        self.left[0] -= len(value.value) if value is not None else 0
        return reached(value, place) if value is not None and self.left[0] > 0 else None
