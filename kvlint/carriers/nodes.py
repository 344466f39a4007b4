"""Small trees that a carrier makes of what it read, so that charts and operators can be read as the containers they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kvlint.source import Span, Text
from kvlint.tree import Entry, List, Map, Node, Opaque, Scalar


def mapping(span: Span, entries: Mapping[str, Node | None]) -> Map:
    """A mapping of the entries that are there."""
    made = tuple(Entry(key(name, node.span), node) for name, node in entries.items() if node is not None)
    return Map(made, span)


def key(name: str, span: Span) -> Scalar:
    return Scalar(Text.at(name, span), span)


def scalar(text: Text) -> Scalar:
    return Scalar(text, text.span)


def words(texts: Iterable[Text], span: Span, after: Node | None = None) -> List:
    """Texts as a list of arguments, then the items of `after`."""
    items: tuple[Node, ...] = tuple(scalar(text) for text in texts)
    if isinstance(after, List):
        return List((*items, *after.items), span, after.open)
    if isinstance(after, Opaque):
        return List(items, span, (after,))
    if isinstance(after, Scalar) and after.tag != "null":
        return List((*items, after), span)
    return List(items, span)


def joined(first: Node | None, second: Node | None, span: Span) -> List:
    """Two lists, one after the other."""
    nodes = [node for node in (first, second) if node is not None]
    items = tuple(item for node in nodes if isinstance(node, List) for item in node.items)
    unseen = tuple(each for node in nodes for each in (node.open if isinstance(node, List) else _opaque(node)))
    return List(items, span, unseen)


def _opaque(node: Node) -> tuple[Opaque, ...]:
    return (node,) if isinstance(node, Opaque) else ()


def opened(node: List, why: Opaque) -> List:
    return List(node.items, node.span, (*node.open, why))


def limits(span: Span, gpus: Node | None, memory: Node | None, resource: str = "nvidia.com/gpu") -> Map:
    """`resources` with the limits that are stated."""
    return mapping(span, {"limits": mapping(span, {resource: gpus, "memory": memory})})
