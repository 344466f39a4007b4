"""YAML, read document by document, every character of every value with its place.

Tags are resolved as YAML 1.1, which is what PyYAML and the readers of Kubernetes do; values keep their own spelling.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from kvlint.formats import helm
from kvlint.formats.document import Comment, Document, Unreadable, comment_at
from kvlint.formats.yaml.events import Failure, compose
from kvlint.formats.yaml.graph import Alias, Branch, Leaf, Raw, is_blank
from kvlint.formats.yaml.nodes import Frame, wrap
from kvlint.formats.yaml.stream import chunks, is_empty
from kvlint.formats.yaml.template import Tracker
from kvlint.patterns import regex
from kvlint.source import Source, Span
from kvlint.tree import Map, Opaque, walk

__all__ = ["Comment", "Document", "alternatives", "comments", "documents"]

MOST_CHOICES = 6  # that are followed in one node, and branches of one of them

_LINE = regex(r"[^\r\n]*")
# Schemas of tens of thousands of lines, which configure nothing.
_DEFINITION = regex(r"^kind:[ \t]*[\"']?CustomResourceDefinition[\"']?[ \t]*(?:#.*)?\r?$", re.MULTILINE)


def documents(source: Source, *, templated: bool = False) -> Iterator[Document]:
    """Every document of a stream.  One that cannot be read carries its problem and hides none of its neighbours.

    `templated`: the text is a Go or Jinja template; what its actions write is unknown, the rest is read as it stands.
    """
    template = helm.blank(source) if templated and helm.is_template(source.text) else None
    text = template.text if template is not None else source.text
    for start, end in chunks(text):
        yield _document(source, text, start, end, template)


def alternatives(source: Source, document: Span, within: Span) -> Iterator[list[Map]]:
    """For each `if` that begins inside a map of a templated document, the map as each branch makes it.

    `if` without `else` comes with the one branch that it has.  Where a branch cannot be read, nothing is said of its `if`.
    """
    template = helm.blank(source)
    for choice in islice(helm.choices(template, within.start, within.end), MOST_CHOICES):
        arms = range(len(choice.arms)) if len(choice.arms) <= MOST_CHOICES else ()
        found = [_within(source, document, helm.taken(template, choice, arm), within.start) for arm in arms]
        made = [node for node in found if node is not None]
        if made and len(made) == len(choice.arms):
            yield made


def _within(source: Source, document: Span, template: helm.Template, start: int) -> Map | None:
    root = _document(source, template.text, document.start, document.end, template).node
    for node in walk(root) if root is not None else ():
        if isinstance(node, Map) and node.span.start == start:
            return node
    return None


def comments(source: Source) -> list[Comment]:
    """The comments of a file that mention `kvlint:`."""
    if "kvlint:" not in source.text:
        return []
    return [comment for document in documents(source) for comment in document.comments]


def _document(source: Source, text: str, start: int, end: int, template: helm.Template | None) -> Document:
    span = source.span(start, end)
    directives = text.find("kvlint:", start, end) >= 0
    if is_empty(text, start, end):
        found = tuple(_comments(source, text, start, end, None)) if directives else ()
        return Document(_written(source, start, end, template), None, span, found)
    base = start + text.startswith("\ufeff", start)
    tracker = Tracker(template, base, end) if template is not None else None
    chunk = text if base == 0 and end == len(text) else text[base:end]
    if not directives and "CustomResourceDefinition" in chunk and _DEFINITION.search(chunk):
        return Document(None, None, span, ())
    try:
        raw = compose(chunk, tracker)
    except Failure as failure:
        if template is not None and _is_plain(source.text[base:end]):
            return _document(source, source.text, start, end, None)
        problem = Unreadable(failure.message, source.span(base + failure.start, base + failure.end))
        found = tuple(_comments(source, text, start, end, None)) if directives else ()
        return Document(None, problem, span, found)
    node = wrap(Frame(source, text, base, template), raw) if raw is not None and not is_blank(raw) else None
    found = tuple(_comments(source, text, base, end, raw)) if directives else ()
    return Document(node, None, span, found)


def _is_plain(text: str) -> bool:
    """Whether a text reads as it stands: braces in its quotes are another program's templates, not this file's."""
    try:
        compose(text, None)
    except Failure:
        return False
    return True


def _written(source: Source, start: int, end: int, template: helm.Template | None) -> Opaque | None:
    """A document that a template writes whole."""
    for action in template.within(start, end) if template is not None else ():
        if action.kind == "output":
            return Opaque(source.span(action.start, action.end), helm.REASON, helm.SUPPLY)
    return None


def _comments(source: Source, text: str, start: int, end: int, raw: Raw | None) -> Iterator[Comment]:
    """Comments that mention `kvlint:`; a `#` inside a scalar begins none."""
    scalars = sorted(_scalars(text, raw, start)) if raw is not None else []
    starts = [a for a, _ in scalars]
    at = start
    while (found := text.find("kvlint:", at, end)) >= 0:
        line = max(start, source.line_starts[bisect_right(source.line_starts, found) - 1])
        match = _LINE.match(text, found, end)
        at = match.end() if match else found + 1
        for place in range(line, at):
            if text[place] != "#" or (place > line and text[place - 1] not in " \t\ufeff"):
                continue
            index = bisect_right(starts, place) - 1
            if index >= 0 and place < scalars[index][1]:
                continue
            if "kvlint:" in text[place:at]:
                yield comment_at(source, place, at, " \t\ufeff-")
            break


def _scalars(text: str, raw: Raw, base: int) -> Iterator[tuple[int, int]]:
    """Where the characters of scalars stand; the header of a block scalar may have a comment and is left out."""
    stack: list[Raw] = [raw]
    while stack:
        node = stack.pop()
        if isinstance(node, Branch):
            stack.extend(node.children)
        elif isinstance(node, Leaf):
            start, end = node.start + base, node.end + base
            if node.style in ("|", ">"):
                match = _LINE.match(text, start, end)
                start = match.end() if match else start
            if end > start:
                yield start, end
        elif isinstance(node, Alias):
            yield node.start + base, node.end + base
