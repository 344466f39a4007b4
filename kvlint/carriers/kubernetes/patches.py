"""Kustomize's two kinds of patches on located trees: strategic merge and JSON 6902."""

from __future__ import annotations

from collections.abc import Sequence

from kvlint.records import replace
from kvlint.source import Span, Text
from kvlint.tree import Entry, List, Map, Node, Opaque, Scalar

# Lists of these names are merged by the key of their items; every other list is replaced whole (Kubernetes API conventions).
MERGE_KEYS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "volumeMounts": ("mountPath",),
    "ports": ("containerPort", "port"),
    "hostAliases": ("ip",),
}
MAX_DEPTH = 60


class Unpatchable(Exception):
    """A patch that names what is not there, or an operation that is not followed."""


def merge(base: Node, patch: Node, name: str = "", depth: int = 0) -> Node:
    """The strategic merge of `patch` into `base`; null deletes, `$patch: replace` and `$patch: delete` are followed."""
    if depth > MAX_DEPTH:
        return patch
    if isinstance(base, Map) and isinstance(patch, Map):
        return _merge_maps(base, patch, depth)
    if isinstance(base, List) and isinstance(patch, List) and name in MERGE_KEYS:
        return _merge_lists(base, patch, MERGE_KEYS[name], depth)
    return patch


def overlaid(base: Node, over: Node, depth: int = 0) -> Node:
    """Helm's way: maps are merged, null deletes, everything else is replaced."""
    if depth > MAX_DEPTH or not (isinstance(base, Map) and isinstance(over, Map)):
        return over
    entries = {entry.key.value: entry for entry in base}
    for entry in over:
        key = entry.key.value
        if _is_null(entry.value):
            entries.pop(key, None)
        elif key in entries:
            entries[key] = Entry(entry.key, overlaid(entries[key].value, entry.value, depth + 1))
        else:
            entries[key] = entry
    return Map(tuple(entries.values()), base.span, (*base.open, *over.open))


def _merge_maps(base: Map, patch: Map, depth: int) -> Map:
    if patch.string("$patch") == "replace":
        return without(patch, "$patch")
    entries = {entry.key.value: entry for entry in base}
    for entry in patch:
        key = entry.key.value
        if key.startswith("$"):
            continue
        deleted = isinstance(entry.value, Map) and entry.value.string("$patch") == "delete"
        if deleted or _is_null(entry.value):
            entries.pop(key, None)
        elif key in entries:
            entries[key] = Entry(entry.key, merge(entries[key].value, entry.value, key, depth + 1))
        else:
            entries[key] = Entry(entry.key, cleaned(entry.value))
    return Map(tuple(entries.values()), base.span, (*base.open, *patch.open))


def _merge_lists(base: List, patch: List, keys: Sequence[str], depth: int) -> Node:
    if any(each.string("$patch") == "replace" and len(tuple(each)) == 1 for each in patch.maps()):
        kept = tuple(each for each in patch if not (isinstance(each, Map) and each.string("$patch") == "replace"))
        return List(kept, patch.span, patch.open)
    items = list(base.items)
    for each in patch:
        key = _key(each, keys)
        at = next((at for at, item in enumerate(items) if key is not None and _key(item, keys) == key), None)
        if isinstance(each, Map) and each.string("$patch") == "delete":
            if at is not None:
                del items[at]
        elif at is None:
            # An item that the base does not have goes first, as the API server's merge does.
            items.insert(0, cleaned(each))
        else:
            items[at] = merge(items[at], each, "", depth + 1)
    return List(tuple(items), base.span, (*base.open, *patch.open))


def _key(node: Node, keys: Sequence[str]) -> tuple[str, ...] | None:
    if not isinstance(node, Map):
        return None
    found = next((value for key in keys if (value := node.string(key)) is not None), None)
    protocol = node.string("protocol") or "TCP"
    return None if found is None else (found, protocol)


def cleaned(node: Node) -> Node:
    """A patch's own part without its directives."""
    if isinstance(node, Map):
        entries = tuple(
            Entry(entry.key, cleaned(entry.value))
            for entry in node
            if not entry.key.value.startswith("$") and not _is_null(entry.value)
        )
        return Map(entries, node.span, node.open)
    return node


def without(node: Map, key: str) -> Map:
    return Map(tuple(entry for entry in node if entry.key.value != key), node.span, node.open)


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.tag == "null"


def operate(root: Node, operations: List) -> Node:
    """JSON 6902 operations in order.  Raises `Unpatchable` for one that cannot be followed."""
    for operation in operations.maps():
        kind, path = operation.string("op"), operation.string("path")
        value = operation.get("value")
        if path is None or kind not in ("add", "replace", "remove", "test") or (kind != "remove" and value is None):
            raise Unpatchable(f"the operation {kind} is not followed")
        if kind != "test":
            root = _at(root, pointer(path), kind, value, 0)
    return root


def pointer(path: str) -> tuple[str, ...]:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:])


def _at(node: Node, path: tuple[str, ...], kind: str, value: Node | None, depth: int) -> Node:
    if not path:
        if value is None:
            raise Unpatchable("the whole document cannot be removed")
        return value
    if depth > MAX_DEPTH or isinstance(node, (Scalar, Opaque)):
        raise Unpatchable("the path leads into what is no map or list")
    step, rest = path[0], path[1:]
    if isinstance(node, Map):
        return _in_map(node, step, rest, kind, value, depth)
    return _in_list(node, step, rest, kind, value, depth)


def _in_map(node: Map, step: str, rest: tuple[str, ...], kind: str, value: Node | None, depth: int) -> Map:
    entry = node.entry(step)
    if rest:
        if entry is None:
            raise Unpatchable(f"there is no {step}")
        return with_entry(node, entry.key, _at(entry.value, rest, kind, value, depth + 1))
    if kind == "remove":
        return without(node, step)
    assert value is not None
    return with_entry(node, entry.key if entry is not None else key_at(step, value.span), value)


def _in_list(node: List, step: str, rest: tuple[str, ...], kind: str, value: Node | None, depth: int) -> List:
    items = list(node.items)
    if step == "-" and not rest and kind == "add" and value is not None:
        return replace_items(node, (*items, value))
    at = int(step) if step.isdigit() else -1
    if at < 0 or at > len(items) or (at == len(items) and (kind != "add" or rest)):
        raise Unpatchable(f"there is no item {step}")
    if rest:
        items[at] = _at(items[at], rest, kind, value, depth + 1)
    elif kind == "remove":
        del items[at]
    elif kind == "add" and value is not None:
        items.insert(at, value)
    elif value is not None:
        items[at] = value
    return replace_items(node, tuple(items))


def replace_items(node: List, items: tuple[Node, ...]) -> List:
    return List(items, node.span, node.open)


def with_entry(node: Map, key: Scalar, value: Node) -> Map:
    """The map with one entry set."""
    entries = {entry.key.value: entry for entry in node}
    entries[key.value] = Entry(key, value)
    return Map(tuple(entries.values()), node.span, node.open)


def with_value(node: Map, path: Sequence[str], value: Node) -> Map:
    """The map with the value at a path of keys set, maps made where there are none."""
    step, rest = path[0], path[1:]
    entry = node.entry(step)
    key = entry.key if entry is not None else key_at(step, value.span)
    if not rest:
        return with_entry(node, key, value)
    inner = entry.value if entry is not None and isinstance(entry.value, Map) else Map((), value.span)
    return with_entry(node, key, with_value(inner, rest, value))


def key_at(name: str, span: Span) -> Scalar:
    return Scalar(Text.at(name, span), span)


def fragment(node: Map, why: Opaque, depth: int = 0) -> Map:
    """A strategic merge patch as the object that it is a part of: what is absent in its maps is not known.

    Lists of words replace those of the object; others are merged with them.
    """
    if depth > MAX_DEPTH:
        return node
    entries = []
    for entry in node:
        value = entry.value
        if isinstance(value, Map):
            value = fragment(value, why, depth + 1)
        elif isinstance(value, List) and any(isinstance(item, Map) for item in value):
            items = tuple(fragment(item, why, depth + 1) if isinstance(item, Map) else item for item in value)
            value = replace_open(List(items, value.span, value.open), why)
        entries.append(Entry(entry.key, value))
    return Map(tuple(entries), node.span, (*node.open, why))


def opened(node: Node, why: Opaque, names: tuple[str, ...], depth: int = 0) -> Node:
    """The tree in which every list and map under one of `names` may hold more than is seen."""
    if depth > MAX_DEPTH or not isinstance(node, (Map, List)):
        return node
    if isinstance(node, List):
        return List(tuple(opened(item, why, names, depth + 1) for item in node), node.span, node.open)
    entries = []
    for entry in node:
        value = opened(entry.value, why, names, depth + 1)
        if entry.key.value in names and isinstance(value, (Map, List)):
            value = replace_open(value, why)
        entries.append(Entry(entry.key, value))
    return Map(tuple(entries), node.span, node.open)


def replace_open(node: Map | List, why: Opaque) -> Map | List:
    if isinstance(node, Map):
        return Map(node.entries, node.span, (*node.open, why))
    return replace(List(node.items, node.span, node.open), open=(*node.open, why))
