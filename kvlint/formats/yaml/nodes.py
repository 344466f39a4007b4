"""The located tree over a document's graph, each node made when it is first asked for.

Most of a manifest is never looked at; what is not looked at costs one small object or none.  A changed copy (`replace`) of
such a node is a plain one of `kvlint.tree`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from kvlint.formats.helm import REASON, SUPPLY, Template
from kvlint.formats.yaml import template as templates
from kvlint.formats.yaml.graph import Alias, Branch, Leaf, Raw, Veiled, end_of
from kvlint.formats.yaml.scalars import scalar_text
from kvlint.patterns import regex
from kvlint.source import HOLE, Source, Span, Text
from kvlint.tree import Entry, List, Map, Node, Opaque, Scalar

_RESOLVERS: Any = yaml.SafeLoader.yaml_implicit_resolvers
_STANDARD = "tag:yaml.org,2002:"
_TAGS = {_STANDARD + name: name for name in ("str", "int", "float", "bool", "null")}
# Tags that leave the value what it is: `!` marks a string, the others are Compose's words for how files combine.
_PLAIN_TAGS = frozenset({"!", "!override", "!reset"})
_PROPERTIES = regex(r"(?:(?:&[^\s,\[\]{}]+|!<[^>]*>|![^\s,\[\]{}]*)(?:\s+(?:#[^\n]*\n)?)*)*")


class Frame:
    """Where a graph's offsets count from, and the aliases it is seen through, outermost first."""

    __slots__ = ("base", "source", "template", "text", "via")

    def __init__(
        self, source: Source, text: str, base: int, template: Template | None = None, via: tuple[Span, ...] = ()
    ) -> None:
        self.source = source
        self.text = text
        self.base = base
        self.template = template
        self.via = via

    def span(self, start: int, end: int) -> Span:
        return Span(self.source, ((start + self.base, end + self.base),))

    def through(self, alias: Alias) -> Frame:
        return Frame(self.source, self.text, self.base, self.template, (*self.via, self.span(alias.start, alias.end)))

    def opaque(self, veil: Veiled) -> Opaque:
        return Opaque(self.span(veil.start, veil.end), veil.reason, veil.supply)


def wrap(frame: Frame, raw: Raw) -> Node:
    if isinstance(raw, Alias):
        return wrap(frame.through(raw), raw.target)
    if isinstance(raw, Veiled):
        return frame.opaque(raw)
    tag = raw.tag
    if tag is not None and tag[0] == "!" and tag not in _PLAIN_TAGS:
        return Opaque(frame.span(raw.start, end_of(raw)), f"the tag {tag} stands for something made elsewhere")
    if isinstance(raw, Branch):
        return _Map._over(frame, raw) if raw.mapping else _List._over(frame, raw)
    if frame.template is not None and HOLE in raw.value:
        return _templated(frame, raw)
    return _Scalar._over(frame, raw)


def _templated(frame: Frame, leaf: Leaf) -> Node:
    """A value that is one action which may write a map or a list is no scalar that we know."""
    scalar = _Scalar._over(frame, leaf)
    template = frame.template
    if template is None or not leaf.plain:
        return scalar
    start, end = scalar.span.start, scalar.span.end
    if templates.is_structural(template.within(start, end), start, end):
        return Opaque(scalar.span, REASON, SUPPLY)
    return scalar


class _Scalar(Scalar):
    __slots__ = ("_frame", "_leaf", "_text")
    _leaf: Leaf
    _frame: Frame
    _text: Text | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Scalar:  # type: ignore[misc]
        return Scalar(*args, **kwargs)

    @classmethod
    def _over(cls, frame: Frame, leaf: Leaf) -> _Scalar:
        made: _Scalar = object.__new__(cls)
        made._frame = frame
        made._leaf = leaf
        made._text = None
        return made

    @property
    def value(self) -> str:
        if self._frame.template is not None:
            return self.text.value
        return self._leaf.value

    @property
    def known(self) -> bool:
        return self._frame.template is None or self.text.known

    @property
    def span(self) -> Span:
        return self._frame.span(*self._place())

    @property
    def quoted(self) -> bool:
        return bool(self._leaf.style)

    @property
    def tag(self) -> str:
        return resolve(self._leaf)

    @property
    def text(self) -> Text:
        if self._text is None:
            self._text = self._read()
        return self._text

    def _place(self) -> tuple[int, int]:
        """Start and end of the token itself: no anchor, no tag, no blank lines after a block scalar."""
        leaf, frame = self._leaf, self._frame
        start, end = leaf.start, leaf.end
        if leaf.anchor is not None or leaf.tag is not None:
            match = _PROPERTIES.match(frame.text, start + frame.base, end + frame.base)
            start = match.end() - frame.base if match else start
        if leaf.style in ("|", ">"):
            written = frame.text[start + frame.base : end + frame.base].rstrip()
            end = start + len(written)
        return start, max(start, end)

    def _read(self) -> Text:
        leaf, frame = self._leaf, self._frame
        start, end = self._place()
        if leaf.style in ("|", ">"):
            end = leaf.end
        start, end = start + frame.base, end + frame.base
        text = scalar_text(frame.source, frame.text, start, end, leaf.value, leaf.style)
        if frame.template is not None:
            found = list(templates.blots(frame.template.within(start, end), end))
            if frame.template.gone:
                found = templates.without(found, frame.template.gone, start, end)
            if found:
                text = templates.veil_text(text, found, frame.source, leaf.style == ">")
        for use in reversed(frame.via):
            text = text.seen_from(use)
        return text


class _List(List):
    __slots__ = ("_branch", "_frame", "_made")
    _branch: Branch
    _frame: Frame
    _made: tuple[Node, ...] | None

    def __new__(cls, *args: Any, **kwargs: Any) -> List:  # type: ignore[misc]
        return List(*args, **kwargs)

    @classmethod
    def _over(cls, frame: Frame, branch: Branch) -> _List:
        made: _List = object.__new__(cls)
        made._frame = frame
        made._branch = branch
        made._made = None
        return made

    @property
    def items(self) -> tuple[Node, ...]:
        if self._made is None:
            self._made = tuple(wrap(self._frame, child) for child in self._branch.children)
        return self._made

    @property
    def span(self) -> Span:
        return _branch_span(self._frame, self._branch)

    @property
    def open(self) -> tuple[Opaque, ...]:
        return tuple(self._frame.opaque(veil) for veil in self._branch.open)


class _Map(Map):
    """Most values of a file are asked for by nobody: each is made when it is, as long as all keys are plain words."""

    __slots__ = ("_branch", "_children", "_frame", "_made", "_places")
    _branch: Branch
    _children: dict[str, Node]
    _frame: Frame
    _made: _Entries | None
    _places: dict[str, int] | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Map:  # type: ignore[misc]
        return Map(*args, **kwargs)

    @classmethod
    def _over(cls, frame: Frame, branch: Branch) -> _Map:
        made: _Map = object.__new__(cls)
        made._frame = frame
        made._branch = branch
        made._made = made._places = None
        made._children = {}
        return made

    def child(self, key: str) -> Node | None:
        found = self._children.get(key)
        if found is not None:
            return found
        if self._places is None:
            self._places = _places(self._frame, self._branch)
        if self._made is not None or not self._places:
            entry = self.made.index.get(key)
            return entry.value if entry is not None else None
        place = self._places.get(key)
        if place is None:
            return None
        found = self._children[key] = wrap(self._frame, self._branch.children[place])
        return found

    def __contains__(self, key: str) -> bool:
        return self.child(key) is not None

    @property
    def made(self) -> _Entries:
        if self._made is None:
            self._made = _Entries(self._frame, self._branch, self._children)
        return self._made

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self.made.entries)

    @property
    def _index(self) -> dict[str, Entry]:
        return self.made.index

    @property
    def span(self) -> Span:
        return _branch_span(self._frame, self._branch)

    @property
    def open(self) -> tuple[Opaque, ...]:
        return tuple(self._frame.opaque(veil) for veil in self._branch.open) + self.made.unknown

    @property
    def duplicates(self) -> tuple[Scalar, ...]:
        return tuple(self.made.duplicates)


class _Entries:
    """A mapping's entries with merge keys applied: its own keys win over merged ones, earlier maps over later ones."""

    __slots__ = ("duplicates", "entries", "index", "unknown")

    def __init__(self, frame: Frame, branch: Branch, known: dict[str, Node]) -> None:
        self.duplicates: list[Scalar] = []
        self.unknown: tuple[Opaque, ...] = ()
        self.entries: list[Entry] = []
        merges: list[Merge] = []
        place = -1
        for key, value in _pairs(branch):
            if _is_merge(key, value):
                place = len(self.entries) if place < 0 else place
                merges += _sources(frame, value)
            else:
                node = known.get(key.value) if known and isinstance(key, Leaf) else None
                self.entries.append(Entry(_key(frame, key), node if node is not None else wrap(frame, value)))
        self.index = {entry.key.value: entry for entry in self.entries}
        if len(self.index) < len(self.entries):
            self._settle(frame)
        if merges:
            merged = self._merged(merges)
            self.entries[place:place] = merged
            self.index = {entry.key.value: entry for entry in merged} | self.index

    def _settle(self, frame: Frame) -> None:
        """Keys given twice: in two branches of a template either may be the one, otherwise the last wins."""
        template = frame.template
        places: dict[str, int] = {}
        kept: list[Entry] = []
        for entry in self.entries:
            name = entry.key.value
            place = places.get(name)
            places[name] = len(kept)
            if place is None:
                kept.append(entry)
                continue
            first = kept[place]
            between = template.within(first.key.span.start, entry.key.span.start) if template is not None else ()
            if any(action.control for action in between):
                places[name] = place
                kept[place] = Entry(entry.key, Opaque(entry.key.span, templates.BRANCHES, SUPPLY))
            else:
                self.duplicates.append(first.key)
                kept.append(entry)
        self.entries = kept
        self.index = {name: kept[place] for name, place in places.items()}

    def _merged(self, waiting: list[Merge]) -> list[Entry]:
        """What other maps give, without the keys that stand here; nested merges are followed without recursion."""
        found: dict[str, Entry] = {}
        waiting.reverse()
        while waiting:
            frame, raw = waiting.pop()
            if not isinstance(raw, Branch) or not raw.mapping:
                self.unknown += (frame.opaque(raw),) if isinstance(raw, Veiled) else ()
                continue
            self.unknown += tuple(frame.opaque(veil) for veil in raw.open)
            inner: dict[str, Entry] = {}
            merges: list[Merge] = []
            for key, value in _pairs(raw):
                if _is_merge(key, value):
                    merges += _sources(frame, value)
                    continue
                name = _key(frame, key)
                if name.value not in self.index and name.value not in found:
                    inner[name.value] = Entry(name, wrap(frame, value))
            found |= inner
            waiting.extend(reversed(merges))
        return list(found.values())


Merge = tuple[Frame, Raw]


def _places(frame: Frame, branch: Branch) -> dict[str, int]:
    """Where the value of each key stands among the children; nothing where merges, templates or repeats need a closer look."""
    if frame.template is not None:
        return {}
    keys = branch.children[::2]
    names = [key.value for key in keys if type(key) is Leaf]
    found = {name: 2 * number + 1 for number, name in enumerate(names)}
    plain = len(found) == len(keys) == len(branch.children) / 2 and "<<" not in found
    return found if plain else {}


def _pairs(branch: Branch) -> Iterator[tuple[Raw, Raw]]:
    children = iter(branch.children)
    return zip(children, children, strict=False)


def _is_merge(key: Raw, value: Raw) -> bool:
    if not isinstance(key, Leaf) or key.value != "<<" or not key.plain or key.style:
        return False
    while isinstance(value, Alias):
        value = value.target
    return not isinstance(value, Leaf)


def _sources(frame: Frame, raw: Raw) -> list[Merge]:
    """The maps that a merge key names, aliases followed, first of them first."""
    while isinstance(raw, Alias):
        frame, raw = frame.through(raw), raw.target
    if isinstance(raw, Branch) and not raw.mapping:
        return [source for child in raw.children if not _is_list(child) for source in _sources(frame, child)]
    return [(frame, raw)]


def _is_list(raw: Raw) -> bool:
    while isinstance(raw, Alias):
        raw = raw.target
    return isinstance(raw, Branch) and not raw.mapping


def _key(frame: Frame, raw: Raw) -> Scalar:
    """A key as a scalar; a key that is a map or a list is known by how it is written."""
    if type(raw) is Leaf:
        return _Scalar._over(frame, raw)
    node = wrap(frame, raw)
    if isinstance(node, Scalar):
        return node
    start, end = raw.start + frame.base, end_of(raw) + frame.base
    return Scalar(Text.of(frame.source, start, max(start, end)), node.span)


def _branch_span(frame: Frame, branch: Branch) -> Span:
    start = branch.start
    if branch.anchor is not None or branch.tag is not None:
        match = _PROPERTIES.match(frame.text, start + frame.base)
        start = match.end() - frame.base if match else start
    end = end_of(branch)
    if not branch.flow:
        end = start + len(frame.text[start + frame.base : end + frame.base].rstrip())
    return frame.span(start, max(start, end))


def resolve(leaf: Leaf) -> str:
    """The tag of a scalar as PyYAML and YAML 1.1 readers see it: str, int, float, bool or null."""
    if leaf.tag is not None:
        return _TAGS.get(leaf.tag, "str")
    if not leaf.plain:
        return "str"
    value = leaf.value
    for tag, pattern in _RESOLVERS.get(value[:1], ()):
        if pattern.match(value):
            return _TAGS.get(tag, "str")
    return "str"
