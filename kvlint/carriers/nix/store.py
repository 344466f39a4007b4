"""What a Nix file writes to the store besides scripts: files of settings, found again by the path that a command names."""

from __future__ import annotations

from collections.abc import Mapping

from kvlint.formats.nix import Reading
from kvlint.records import dataclass, field
from kvlint.source import Span, Text
from kvlint.tree import Map, Opaque, Scalar

NO_SHELL = frozenset({"writeText", "writeTextFile", "writeFish", "writeFishBin"})
_STORE = "/nix/store/"


@dataclass(slots=True)
class Store:
    """`texts`: what is written, by the place of the hole that its path is.  `named`: the same by the paths given so far."""

    texts: Mapping[Span, tuple[str, Text]] = field(default_factory=dict)
    named: dict[str, Text] = field(default_factory=dict)

    def path(self, place: Span) -> str | None:
        """The name, below the store, of the text that the hole at `place` is the path of."""
        found = self.texts.get(place)
        if found is None:
            return None
        self.named[_STORE + found[0]] = found[1]
        return found[0]

    def add(self, name: str, text: Text) -> str:
        self.named[_STORE + name] = text
        return _STORE + name

    def read(self, path: str) -> Text | None:
        return self.named.get(path)

    def placed(self, word: Text) -> Text:
        """A word with the paths of these texts in place of the holes that they are."""
        parts, at = [], 0
        for hole in word.holes:
            name = self.path(hole.span)
            if name is not None:
                parts += [word.slice(at, hole.at), Text.at(_STORE + name, hole.span)]
                at = hole.at + 1
        return Text.join([*parts, word.slice(at)]) if parts else word


def store(reading: Reading) -> Store:
    """The texts of a file, and its generated files that read as INI: those of two levels."""
    texts: dict[Span, tuple[str, Text]] = {}
    several: set[Span] = set()
    for script in reading.scripts:
        if script.function in NO_SHELL and script.name is not None and script.name.known:
            several |= {script.span} & texts.keys()
            texts[script.span] = (script.name.value, script.text)
    for generated in reading.generated:
        text = ini(generated.node) if isinstance(generated.node, Map) else None
        if text is not None and generated.name is not None and generated.name.known:
            texts[generated.span] = (generated.name.value, text)
    return Store({span: found for span, found in texts.items() if span not in several})


def ini(node: Map) -> Text | None:
    """Sets of settings as `lib.generators.toINI` writes them; None where something else stands among them."""
    parts: list[Text] = []
    for section in node:
        if not isinstance(section.value, Map) or node.open:
            return None
        parts += [Text("["), section.key.text, Text("]\n")]
        for setting in section.value:
            value = setting.value
            if isinstance(value, Scalar):
                parts += [setting.key.text, Text(" = "), value.text, Text("\n")]
            elif isinstance(value, Opaque):
                why = Text.unknown(value.span, value.reason, f"the value of {setting.key.value}")
                parts += [setting.key.text, Text(" = "), why, Text("\n")]
            else:
                return None
    return Text.join(parts) if parts else None
