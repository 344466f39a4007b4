"""A document's events, as PyYAML's parser gives them, joined to a bare graph: no text is mapped and no tag resolved yet.

The parser is a state machine, so that depth costs no stack; aliases are kept as aliases, and what they would expand to is
counted here, so that reading the tree later is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from kvlint.formats.document import MAX_DEPTH
from kvlint.formats.yaml.graph import Alias, Branch, Leaf, Raw, Veiled
from kvlint.formats.yaml.template import Tracker
from kvlint.patterns import regex

# How many nodes all aliases of a document together may stand for.
MAX_ALIASED = 100_000

SCALAR, ALIAS = yaml.ScalarEvent, yaml.AliasEvent
MAPPING, SEQUENCE = yaml.MappingStartEvent, yaml.SequenceStartEvent
MAPPING_END, SEQUENCE_END = yaml.MappingEndEvent, yaml.SequenceEndEvent
DOCUMENT, END = yaml.DocumentStartEvent, yaml.StreamEndEvent
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FORBIDDEN = regex("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\ufeff")


class Failure(Exception):
    """The document cannot be read; `start` and `end` are offsets into the text that was given."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end


def compose(text: str, tracker: Tracker | None = None) -> Raw | None:
    """The graph of the one document in `text`; None where it is empty.  Raises `Failure`."""
    try:
        loader = _LOADER(text)
        try:
            return _Composer(text, loader.get_event, tracker).run()
        finally:
            loader.dispose()
    except UnicodeEncodeError as error:
        raise Failure("a lone surrogate is no character", error.start, error.start + 1) from error
    except yaml.reader.ReaderError as error:
        raise _unprintable(text) from error
    except yaml.MarkedYAMLError as error:
        raise _marked(text, error) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise Failure(str(error), 0, len(text)) from error


class _Composer:
    def __init__(self, text: str, get: Any, tracker: Tracker | None) -> None:
        self.text = text
        self.get = get
        self.tracker = tracker
        self.anchors: dict[str, Raw] = {}
        self.stack: list[Branch] = []
        self.count = 0
        self.aliased = 0

    def run(self) -> Raw | None:
        get, stack, anchors, tracker = self.get, self.stack, self.anchors, self.tracker
        new: Callable[..., Leaf] = tuple.__new__  # what a named tuple's own class would call
        roots: list[Raw] = []
        append = roots.append
        started = 0
        while True:
            event = get()
            kind = type(event)
            if tracker is not None:
                tracker.before(event, stack)
            if kind is SCALAR:
                self.count += 1
                start, end = event.start_mark.index, event.end_mark.index
                leaf = new(Leaf, (start, end, event.value, event.style, event.tag, event.anchor, event.implicit[0]))
                append(leaf)
                if leaf.anchor is not None:
                    anchors[leaf.anchor] = leaf
                if tracker is not None:
                    tracker.added(leaf, stack)
            elif kind is MAPPING or kind is SEQUENCE:
                branch = self.begin(event, kind is MAPPING)
                append(branch)
                stack.append(branch)
                append = branch.children.append
            elif kind is MAPPING_END or kind is SEQUENCE_END:
                self.finish(event)
                append = stack[-1].children.append if stack else roots.append
            elif kind is ALIAS:
                append(self.alias(event))
            elif kind is DOCUMENT:
                started += 1
                if started > 1:
                    at = event.start_mark.index
                    raise Failure("a second document begins without `---`", at, at + 1)
            elif kind is END:
                return roots[0] if roots else None

    def begin(self, event: Any, mapping: bool) -> Branch:
        mark = event.start_mark
        if len(self.stack) >= MAX_DEPTH:
            raise Failure(f"nested deeper than {MAX_DEPTH} levels", mark.index, mark.index + 1)
        branch = Branch(mapping, mark.index, mark.column, event.flow_style, event.tag, event.anchor, self.count)
        self.count += 1
        if event.anchor is not None:
            self.anchors[event.anchor] = branch
        if self.tracker is not None:
            self.tracker.began(branch, self.stack)
        return branch

    def finish(self, event: Any) -> None:
        branch = self.stack.pop()
        branch.end = event.end_mark.index
        branch.size = self.count - branch.first
        if self.tracker is not None:
            self.tracker.finished(branch)
        if self.stack:
            self.stack[-1].height = max(self.stack[-1].height, branch.height + 1)

    def alias(self, event: Any) -> Alias | Veiled:
        start, end = event.start_mark.index, event.end_mark.index
        target = self.anchors.get(event.anchor)
        self.count += 1
        if target is None:
            raise Failure(f"the alias *{event.anchor} has no anchor before it", start, end)
        if not isinstance(target, Branch):
            return Alias(start, end, target)
        if target.end < 0:
            return Veiled(start, end, f"*{event.anchor} stands inside what it repeats")
        self.aliased += target.size
        if self.aliased > MAX_ALIASED or len(self.stack) + target.height > MAX_DEPTH:
            return Veiled(start, end, f"*{event.anchor} repeats too much to be followed")
        self.count += target.size
        if self.stack:
            self.stack[-1].height = max(self.stack[-1].height, target.height + 1)
        return Alias(start, end, target)


def _unprintable(text: str) -> Failure:
    match = _FORBIDDEN.search(text)
    if match is None:
        return Failure("not text", 0, len(text))
    code = ord(match[0])
    what = "a NUL byte" if code == 0 else f"the control character U+{code:04X}"
    return Failure(f"{what} cannot stand in YAML", match.start(), match.end())


def _marked(text: str, error: yaml.MarkedYAMLError) -> Failure:
    mark = error.problem_mark or error.context_mark
    at = min(mark.index, len(text)) if mark is not None else 0
    message = ", ".join(str(part) for part in (error.problem, error.context) if part) or "not YAML"
    return Failure(message, at, min(at + 1, len(text)))
