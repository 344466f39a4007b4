"""Kustomize's changes to the objects that a kustomization has collected: patches, images, replicas, names, namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvlint.carriers.base import Item, resolve
from kvlint.carriers.kubernetes import patches
from kvlint.carriers.kubernetes.cluster import namespace, texts
from kvlint.project import Project
from kvlint.records import dataclass, replace
from kvlint.source import Text
from kvlint.tree import Entry, List, Map, Node, Opaque, Scalar

NOT_FOLLOWED = ("transformers", "replacements", "vars", "patchesTransformers")


@dataclass(frozen=True, slots=True)
class Transform:
    """One change, to the objects that its target names; `node` is the patch, a list for JSON 6902, `path` the file of it."""

    kind: str
    node: Node
    target: Map | None = None
    path: str = ""


def deletes(transform: Transform) -> bool:
    """Whether a patch says `$patch: delete`: the object itself goes."""
    return transform.kind == "merge" and isinstance(transform.node, Map) and transform.node.string("$patch") == "delete"


def transforms(node: Map, at: str, project: Project) -> list[Transform]:
    """What a kustomization changes in what it has collected, in kustomize's order."""
    return [*_patches(node, at, project), *_settings(node)]


def _patches(node: Map, at: str, project: Project) -> Iterator[Transform]:
    for item in node.list("patchesStrategicMerge") or ():
        if isinstance(item, Scalar):
            yield from (Transform("merge", each, None, path) for path, each in _patch_nodes(item.text, at, project))
    for key in ("patches", "patchesJson6902"):
        for each in (node.list(key) or List((), node.span)).maps():
            yield from _one_patch(each, at, project)
        for item in node.list(key) or ():
            if isinstance(item, Scalar):
                yield from (Transform("merge", each, None, path) for path, each in _patch_nodes(item.text, at, project))


def _one_patch(each: Map, at: str, project: Project) -> Iterator[Transform]:
    text = each.text("patch") or each.text("path")
    for path, patch in _patch_nodes(text, at, project) if text is not None else ():
        kind = "operations" if isinstance(patch, List) else "merge"
        yield Transform(kind, patch, each.map("target"), path)


def _patch_nodes(text: Text, at: str, project: Project) -> list[tuple[str, Node]]:
    """A patch written in place, or the documents of the file that is named, each with the file's path."""
    from kvlint.carriers.embedded import documents

    if "\n" in text.value or text.value.lstrip().startswith(("[", "{")):
        return [("", node) for node in documents(text)]
    path = resolve(at, text.value)
    if path not in project.all_paths:
        return []
    return [(path, item.node) for item in project.items(path) if item.node is not None]


def _settings(node: Map) -> Iterator[Transform]:
    for key in ("images", "replicas"):
        for each in (node.list(key) or List((), node.span)).maps():
            yield Transform(key, each)
    for key in ("namespace", "namePrefix", "nameSuffix"):
        value = node.scalar(key)
        if value is not None and value.tag != "null":
            yield Transform(key, value)
    for key in NOT_FOLLOWED:
        entry = node.entry(key)
        if entry is not None:
            yield Transform("unseen", Opaque(entry.key.span, f"{key} of a kustomization may change it"))


def applied(item: Item, transform: Transform) -> Item:
    """The object after a change; the same one where it is not the target."""
    root = item.node
    if not isinstance(root, Map):
        return item
    if transform.kind == "merge":
        return replace(item, node=patches.merge(root, transform.node)) if hits(item, transform) else item
    if transform.kind == "operations":
        return replace(item, node=_operated(root, transform)) if hits(item, transform) else item
    if transform.kind == "images" and isinstance(transform.node, Map):
        return replace(item, node=_with_image(root, transform.node, 0))
    if transform.kind == "replicas" and isinstance(transform.node, Map):
        count = transform.node.get("count")
        named = transform.node.string("name") == root.string("metadata", "name") and "replicas" in (
            root.map("spec") or {}
        )
        return replace(item, node=patches.with_value(root, ("spec", "replicas"), count)) if named and count else item
    if transform.kind == "namespace":
        return replace(item, node=patches.with_value(root, ("metadata", "namespace"), transform.node))
    if transform.kind in ("namePrefix", "nameSuffix"):
        return replace(item, node=_renamed(root, transform))
    assert isinstance(transform.node, Opaque)
    return replace(item, node=patches.opened(root, transform.node, ("args", "command", "env", "limits")))


def _operated(root: Map, transform: Transform) -> Node:
    assert isinstance(transform.node, List)
    try:
        return patches.operate(root, transform.node)
    except patches.Unpatchable as error:
        why = Opaque(transform.node.span, f"a patch that is not followed: {error}")
        return patches.opened(root, why, ("args", "command", "env", "limits"))


def _renamed(root: Map, transform: Transform) -> Map:
    """Services are renamed, so that the names by which others call them are right; other objects keep theirs."""
    name = root.scalar("metadata", "name")
    if name is None or root.string("kind") != "Service" or not isinstance(transform.node, Scalar):
        return root
    parts = (transform.node.text, name.text) if transform.kind == "namePrefix" else (name.text, transform.node.text)
    return patches.with_value(root, ("metadata", "name"), Scalar(Text.join(parts), name.span))


def hits(item: Item, transform: Transform) -> bool:
    """Whether an object is the target: by the target's selectors, else by the patch's own kind and name."""
    root = item.node
    assert isinstance(root, Map)
    if transform.target is None:
        patch = transform.node
        if not isinstance(patch, Map):
            return False
        spaces = (patch.string("metadata", "namespace"), namespace(item))
        return (
            patch.string("kind") == root.string("kind")
            and patch.string("metadata", "name") == root.string("metadata", "name")
            and (spaces[0] is None or spaces[0] == spaces[1])
        )
    target = transform.target
    version = (root.string("apiVersion") or "").rpartition("/")
    found = {
        "kind": root.string("kind"),
        "name": root.string("metadata", "name"),
        "namespace": namespace(item),
        "group": version[0],
        "version": version[2],
    }
    for key, value in found.items():
        wanted = target.string(key)
        if wanted and not _matches(wanted, value or ""):
            return False
    selector = target.string("labelSelector")
    return selector is None or _selected(selector, texts(root.map("metadata", "labels")))


def _matches(pattern: str, value: str) -> bool:
    """Kustomize anchors the regular expressions of targets."""
    if len(pattern) > 200:
        return False
    try:
        return re.fullmatch(pattern, value) is not None
    except re.error:
        return pattern == value


def _selected(selector: str, labels: dict[str, str]) -> bool:
    for part in selector.split(","):
        key, equals, value = part.replace("==", "=").partition("=")
        if key.endswith("!"):
            if labels.get(key[:-1].strip()) == value.strip():
                return False
        elif not equals or labels.get(key.strip()) != value.strip():
            return False
    return True


def _with_image(node: Map, change: Map, depth: int) -> Map:
    """Every container's image of that name with the new name, tag or digest."""
    entries = []
    for entry in node:
        value = entry.value
        if depth < patches.MAX_DEPTH and isinstance(value, Map):
            value = _with_image(value, change, depth + 1)
        elif depth < patches.MAX_DEPTH and isinstance(value, List):
            items = tuple(_with_image(each, change, depth + 1) if isinstance(each, Map) else each for each in value)
            value = List(items, value.span, value.open)
        elif entry.key.value == "image" and isinstance(value, Scalar):
            value = _new_image(value, change)
        entries.append(Entry(entry.key, value))
    return Map(tuple(entries), node.span, node.open)


def _new_image(image: Scalar, change: Map) -> Scalar:
    from kvlint.engines import tag

    name = image.value.partition("@")[0]
    written = tag(image.value)
    bare = name.removesuffix(f":{written}") if written is not None else name
    if change.string("name") != bare:
        return image
    start = change.text("newName") or image.text.slice(0, len(bare))
    new = change.text("digest") or change.text("newTag")
    if new is None:
        return Scalar(Text.join((start, image.text.slice(len(bare)))), image.span)
    separator = "@" if change.text("digest") is not None else ":"
    return Scalar(Text.join((start, Text.at(separator, new.span), new)), image.span)
