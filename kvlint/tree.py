"""The located tree that every data format is read into, so that a carrier reads YAML, Nix, JSON and plists alike.

Scalars keep their raw text; numbers and booleans are read by whoever needs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from kvlint.records import dataclass, field, replace
from kvlint.source import Span, Text


@dataclass(frozen=True, slots=True)
class Scalar:
    """`text`: the value after unescaping and unfolding.  `tag`: str, int, float, bool, null, by the format's own rules
    (YAML 1.1 as PyYAML resolves it); `quoted`: the format marks it as a string; `span`: the token in the file.
    """

    text: Text
    span: Span
    tag: str = "str"
    quoted: bool = False

    @property
    def value(self) -> str:
        return self.text.value

    @property
    def known(self) -> bool:
        """Whether all of the value stands in the files."""
        return self.text.known


@dataclass(frozen=True, slots=True)
class Entry:
    key: Scalar
    value: Node


@dataclass(frozen=True, slots=True)
class Map:
    """Entries in file order, merge keys applied; of duplicate keys `get` gives the last, as loaders do.

    `open`: something unseen may add entries (a templated splice, an unknown merge): an absent key is unknown.
    """

    entries: tuple[Entry, ...]
    span: Span
    open: tuple[Opaque, ...] = ()
    duplicates: tuple[Scalar, ...] = ()
    _index: dict[str, Entry] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._index.update((entry.key.value, entry) for entry in self.entries)

    def get(self, *path: str | int) -> Node | None:
        """The node at a path of keys and indices; None where a step is absent or of another kind."""
        return step(self, path)

    def entry(self, key: str) -> Entry | None:
        return self._index.get(key)

    def child(self, key: str) -> Node | None:
        """The value of a key."""
        entry = self.entry(key)
        return entry.value if entry is not None else None

    def map(self, *path: str | int) -> Map | None:
        found = step(self, path)
        return found if isinstance(found, Map) else None

    def list(self, *path: str | int) -> List | None:
        found = step(self, path)
        return found if isinstance(found, List) else None

    def scalar(self, *path: str | int) -> Scalar | None:
        found = step(self, path)
        return found if isinstance(found, Scalar) else None

    def text(self, *path: str | int) -> Text | None:
        """The text of a scalar that is not null."""
        found = step(self, path)
        return found.text if isinstance(found, Scalar) and found.tag != "null" else None

    def string(self, *path: str | int) -> str | None:
        """The known value of a scalar."""
        found = step(self, path)
        return found.value if isinstance(found, Scalar) and found.tag != "null" and found.known else None

    def __contains__(self, key: str) -> bool:
        return key in self._index

    def __iter__(self) -> Iterator[Entry]:
        """The effective entries: of duplicate keys only the last."""
        return iter(self._index.values())


@dataclass(frozen=True, slots=True)
class List:
    items: tuple[Node, ...]
    span: Span
    open: tuple[Opaque, ...] = ()

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)

    def maps(self) -> Iterator[Map]:
        return (item for item in self.items if isinstance(item, Map))


@dataclass(frozen=True, slots=True)
class Opaque:
    """A node whose value cannot be known from the files."""

    span: Span
    reason: str
    supply: str = ""


Node = Union[Scalar, Map, List, Opaque]


def step(node: Node | None, path: tuple[str | int, ...]) -> Node | None:
    for key in path:
        if isinstance(node, Map) and isinstance(key, str):
            node = node.child(key)
        elif isinstance(node, List) and isinstance(key, int):
            node = node.items[key] if -len(node.items) <= key < len(node.items) else None
        else:
            return None
    return node


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, depth first, in file order."""
    stack: list[Node] = [node]
    while stack:
        current = stack.pop()
        yield current
        if isinstance(current, Map):
            stack.extend(entry.value for entry in reversed(current.entries))
        elif isinstance(current, List):
            stack.extend(reversed(current.items))


def rescalar(scalar: Scalar, text: Text) -> Scalar:
    """The same scalar with its text replaced (a substitution was made)."""
    return replace(scalar, text=text)
