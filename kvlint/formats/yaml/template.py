"""What the actions of a template do to the tree around them: maps and lists that they may add to, values that they replace,
parts of a text that they write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvlint.formats.helm import REASON, SUPPLY, Action, Template
from kvlint.formats.yaml.graph import Branch, Leaf, Veiled, end_of, is_blank
from kvlint.records import dataclass, field
from kvlint.source import Piece, Source, Span, Text

BRANCHES = "a template chooses between several values"
OPTIONAL = "a template may leave this out"


class Tracker:
    """Follows a document's events beside its template's actions, and marks in the graph what an action may change."""

    def __init__(self, template: Template, base: int, end: int) -> None:
        self.base = base
        self.actions = template.within(base, end)
        self.next = 0
        self.ends = _ends(self.actions, end)
        self.regions: list[int] = []  # where the branches of control that are open here began
        self.leading: list[Action] = []
        self.early: dict[Branch, int] = {}  # collections that began inside a branch of control, and where that ends

    def before(self, event: Any, stack: list[Branch]) -> None:
        """Apply the actions that stand between the last event and this one."""
        at = event.start_mark.index + self.base
        while self.next < len(self.actions) and self.actions[self.next].start < at:
            action = self.actions[self.next]
            self.next += 1
            if action.control:
                self._control(action)
            elif action.kind == "output" and action.alone:
                self._splice(action, stack)

    def added(self, leaf: Leaf, stack: list[Branch]) -> None:
        """A scalar was added: the actions inside it are its own; judge whether it is there at all."""
        end = leaf.end + self.base
        while self.next < len(self.actions) and self.actions[self.next].start < end:
            action = self.actions[self.next]
            self.next += 1
            if action.control:
                self._control(action)
            if stack and stack[-1].wants_value:
                _open(stack[-1], self._veil(action.start, action.end))
        if not stack:
            return
        index = len(stack[-1].children) - 1
        if self.leading and stack[-1].mapping and index % 2 == 1:
            action = self.leading.pop()
            stack[-1].children[index] = self._veil(action.start, action.end)
        else:
            self._conditional(stack[-1], leaf.start, index)

    def began(self, branch: Branch, stack: list[Branch]) -> None:
        """A collection begins, and is about to be added to the one above it."""
        while self.leading:
            action = self.leading.pop()
            if action.column >= branch.column:
                _open(branch, self._veil(action.start, action.end))
        if stack:
            self._conditional(stack[-1], branch.start, len(stack[-1].children), branch)

    def _control(self, action: Action) -> None:
        if action.kind != "open" and self.regions:
            self.regions.pop()
        if action.kind != "close":
            self.regions.append(action.start)

    def _splice(self, action: Action, stack: list[Branch]) -> None:
        """An action that writes whole lines: the value that is due, or entries of the map or list that it lines up with."""
        veil = self._veil(action.start, action.end)
        owners = [branch for branch in stack if branch.flow or branch.column <= action.column]
        owner = owners[-1] if owners else None
        if stack and stack[-1].wants_value:
            self.leading = [action]
        elif owner is None:
            self.leading.append(action)
        else:
            last = len(owner.children) - 1
            if last >= 0 and owner is stack[-1] and is_blank(owner.children[last]):
                owner.children[last] = veil
                if action.column > owner.column:
                    return
            _open(owner, veil)

    def finished(self, branch: Branch) -> None:
        """A collection ends: what it has from inside a branch of control that it outlasts may be absent."""
        end = self.early.pop(branch, None)
        if end is None or branch.mapping or not branch.children or branch.children[-1].start < end:
            return
        for index, child in enumerate(branch.children):
            if isinstance(child, Leaf) and child.start < end:
                branch.children[index] = Veiled(child.start, child.end, OPTIONAL, SUPPLY)

    def _conditional(self, parent: Branch, at: int, index: int, branch: Branch | None = None) -> None:
        """Mark the parent, the value or the item, when a branch of control began after its owner did."""
        if not self.regions:
            return
        began = self.regions[-1] - self.base
        value = parent.mapping and index % 2 == 1
        if value and parent.children[index - 1].start < began:
            if branch is not None:
                _open(branch, self._region())
                self.early[branch] = self.ends[self.regions[-1]] - self.base
            elif at > began:
                parent.children[index] = Veiled(at, end_of(parent.children[index]), BRANCHES, SUPPLY)
        elif parent.start < began and not value:
            _open(parent, self._region())
            if branch is None and not parent.mapping and at > began:
                parent.children[index] = Veiled(at, end_of(parent.children[index]), OPTIONAL, SUPPLY)

    def _region(self) -> Veiled:
        start = self.regions[-1]
        return self._veil(start, self.ends[start])

    def _veil(self, start: int, end: int) -> Veiled:
        return Veiled(start - self.base, end - self.base, REASON, SUPPLY)


def _ends(actions: list[Action], end: int) -> dict[int, int]:
    """Where each branch of control ends with its `end`, by where it begins."""
    ends: dict[int, int] = {}
    stack: list[list[int]] = []
    for action in actions:
        if action.kind == "open":
            stack.append([action.start])
        elif action.kind == "else":
            stack = stack or [[]]
            stack[-1].append(action.start)
        elif action.kind == "close" and stack:
            ends.update(dict.fromkeys(stack.pop(), action.end))
    for starts in stack:
        ends.update(dict.fromkeys(starts, end))
    return ends


def _open(branch: Branch, veil: Veiled) -> None:
    if not branch.open or branch.open[-1].start != veil.start:
        branch.open.append(veil)


@dataclass(frozen=True, slots=True)
class Blot:
    """Characters of the file that a template replaces.  `splice`: by several words, or none.  `gone`: by nothing."""

    start: int
    end: int
    splice: bool
    alone: bool
    gone: bool = False


@dataclass(slots=True)
class _Region:
    start: int
    depth: int = 1
    alone: bool = field(default=False)


def blots(actions: list[Action], end: int) -> Iterator[Blot]:
    """What the actions inside one scalar replace: each output, and everything from an `if` to its `end` as a whole."""
    region: _Region | None = None
    for action in actions:
        if region is not None:
            region.depth += (action.kind == "open") - (action.kind == "close")
            if region.depth == 0:
                yield Blot(region.start, action.end, True, region.alone and action.alone)
                region = None
        elif action.kind == "open":
            region = _Region(action.start, 1, action.alone)
        else:
            splice = action.alone or action.structural or action.control
            yield Blot(action.start, action.end, splice, action.alone)
    if region is not None:
        yield Blot(region.start, end, True, region.alone)


def without(marks: list[Blot], gone: list[tuple[int, int]], start: int, end: int) -> list[Blot]:
    """The blots of a scalar, with those for the lines in it that are left out."""
    more = [Blot(max(a, start), min(b, end), False, True, True) for a, b in gone if a < end and start < b]
    return sorted([*marks, *more], key=lambda blot: blot.start)


def veil_text(text: Text, marks: list[Blot], source: Source, folded: bool) -> Text:
    """The text with each blot as one hole.  Both pieces and blots are in file order."""
    parts: list[Text] = []
    waiting = iter(marks)
    blot = next(waiting, None)
    glue = False
    for piece in text.pieces:
        at, stop = piece.span.start, piece.span.end
        cursor = at
        while blot is not None and blot.start < stop:
            if cursor < blot.start:
                glue = _keep(parts, text, piece, cursor, blot.start, glue)
            if blot.start >= at or cursor == at:
                glue = _hole(parts, source, blot, folded) if not _same(parts, blot) else glue
            cursor = max(cursor, min(blot.end, stop))
            if blot.end > stop:
                break
            blot = next(waiting, None)
        if cursor < stop:
            glue = _keep(parts, text, piece, cursor, stop, glue)
    while blot is not None:
        if not _same(parts, blot):
            _hole(parts, source, blot, folded)
        blot = next(waiting, None)
    return Text.join(parts) if parts else text


def _same(parts: list[Text], blot: Blot) -> bool:
    return bool(parts and parts[-1].holes and parts[-1].holes[0].span.start == blot.start)


def _hole(parts: list[Text], source: Source, blot: Blot, folded: bool) -> bool:
    """Add a hole; whether the line break after it only continues the line."""
    before = "".join(part.value for part in parts[-3:])
    place = source.span(blot.start, blot.end)
    if folded and blot.alone and before and not before[-1].isspace():
        parts.append(Text.at(" ", source.span(blot.start, blot.start)))
    if blot.gone:
        return folded
    parts.append(Text.unknown(place, REASON, SUPPLY, blot.splice))
    return blot.alone and (folded or before.rstrip(" \t").endswith("\\\n"))


def _keep(parts: list[Text], text: Text, piece: Piece, start: int, end: int, glue: bool) -> bool:
    """Add what a piece has between two offsets of the file."""
    span, value = piece.span, text.value[piece.at : piece.at + piece.length]
    if piece.literal:
        value = value[start - span.start : end - span.start]
        span = Span(span.source, ((start, end),))
    if glue and value[:1] == "\n":
        first = Span(span.source, ((span.start, span.start + 1),))
        parts.append(Text.at(" ", first))
        value = value[1:]
        span = Span(span.source, ((span.start + 1, span.end),)) if piece.literal else span
    if value:
        parts.append(Text(value, (Piece(0, len(value), span, piece.literal),), (), span))
    return False


def is_structural(actions: list[Action], start: int, end: int) -> bool:
    """Whether one action that may write a whole map or list is all that stands here."""
    return len(actions) == 1 and actions[0].structural and actions[0].start <= start and end <= actions[0].end
