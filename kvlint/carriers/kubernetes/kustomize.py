"""Kustomize: what a kustomization makes of the objects that it names.

A file that some kustomization of the tree reaches is judged as the outermost ones render it.  What is not followed here
(transformers, replacements, Helm charts, remote bases) leaves what it may touch unknown.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from kvlint.carriers.base import KUSTOMIZATIONS, Item, directory, is_object
from kvlint.carriers.kubernetes import patches
from kvlint.carriers.kubernetes.cluster import Cluster, namespace, texts
from kvlint.project import Project
from kvlint.records import dataclass, field, replace
from kvlint.source import Span, Text
from kvlint.tree import Entry, List, Map, Node, Opaque, Scalar

NOT_FOLLOWED = ("transformers", "replacements", "vars", "patchesTransformers")
PATCHES = ("patches", "patchesStrategicMerge", "patchesJson6902")
MAX_DEPTH = 12
MAX_FILES = 400


@dataclass(frozen=True, slots=True)
class Builds:
    """One cluster for each outermost kustomization that reaches a file of `items` through another directory or a change.

    `applied`: files of patches that some object in view gets.  `patches`: all of them, with what names each.
    """

    clusters: list[Cluster]
    applied: set[str]
    patches: dict[str, Span]


def builds(items: list[Item], project: Project) -> Builds:
    found = _Tree(project)
    return Builds(_clusters(found, items, project), found.applied, dict(found.patches()))


def fragment(item: Item, named: Span) -> Item:
    """A patch of an object that is not in view, of which it says a part only."""
    why = Opaque(named, "the object that this patches is not in these files", "the object that is patched")
    return replace(item, node=patches.fragment(item.node, why)) if isinstance(item.node, Map) else item


def _clusters(found: _Tree, items: list[Item], project: Project) -> list[Cluster]:
    wanted = {item.path for item in items}
    inner = {base for at in found.directories for base in found.bases(at)}
    made = []
    for at in sorted(found.directories - inner):
        rendered = found.render(at, 0)
        if rendered is None or not wanted & rendered.paths or not rendered.changes:
            continue
        cluster = Cluster(project, overlay=at if rendered.elsewhere(at, wanted) else "", generated=rendered.generated)
        for item in rendered.items:
            cluster.add(item)
        cluster.paths |= rendered.paths
        made.append(cluster)
    return made


@dataclass(slots=True)
class _Rendered:
    """The objects of one kustomization so far.

    `changes`: something other than collecting them was done.  `patched`: the files of objects with those that patch them.
    """

    items: list[Item] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    generated: dict[str, Map] = field(default_factory=dict)
    patched: dict[str, frozenset[str]] = field(default_factory=dict)
    changes: bool = False

    def elsewhere(self, at: str, wanted: set[str]) -> bool:
        """Whether the objects that matter stand in another directory than the kustomization."""
        objects = {item.path for item in self.items}
        matter = (path for path in objects if path in wanted or self.patched.get(path, frozenset()) & wanted)
        return any(directory(path) != at for path in matter)

    def add(self, other: _Rendered) -> None:
        self.items += other.items
        self.patched |= other.patched
        self.paths |= other.paths
        self.generated |= other.generated
        self.changes = True


class _Tree:
    """Every kustomization of a project, by directory, rendered once."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.files = {
            directory(path): path for path in sorted(project.all_paths) if path.rpartition("/")[2] in KUSTOMIZATIONS
        }
        self.directories = set(self.files)
        self._nodes: dict[str, Map | None] = {}
        self._rendered: dict[str, _Rendered | None] = {}
        self._read = 0
        self.applied: set[str] = set()

    def patches(self) -> Iterator[tuple[str, Span]]:
        """The files that kustomizations name as patches."""
        for at in sorted(self.directories):
            node = self.node(at)
            for key in PATCHES if node is not None else ():
                for item in node.list(key) or ():  # type: ignore[union-attr]
                    text = (
                        item.text if isinstance(item, Scalar) else item.text("path") if isinstance(item, Map) else None
                    )
                    path = resolve(at, text.value) if text is not None and "\n" not in text.value else ""
                    if text is not None and path in self.project.all_paths:
                        yield path, text.span

    def node(self, at: str) -> Map | None:
        if at not in self._nodes:
            items = self.project.items(self.files[at]) if at in self.files else []
            node = items[0].node if items else None
            self._nodes[at] = node if isinstance(node, Map) else None
        return self._nodes[at]

    def bases(self, at: str) -> Iterator[str]:
        """The directories whose kustomizations this one collects."""
        node = self.node(at)
        for key in ("resources", "bases", "components"):
            for item in (node.list(key) if node is not None else None) or ():
                if isinstance(item, Scalar) and (inner := resolve(at, item.value)) in self.directories and inner != at:
                    yield inner

    def render(self, at: str, depth: int) -> _Rendered | None:
        if at not in self._rendered:
            self._rendered[at] = None  # a kustomization that reaches itself collects nothing more
            self._rendered[at] = self._render(at, depth)
        return self._rendered[at]

    def _render(self, at: str, depth: int) -> _Rendered | None:
        node = self.node(at)
        if node is None or depth > MAX_DEPTH:
            return None
        made = _Rendered()
        for key in ("resources", "bases"):
            for item in node.list(key) or ():
                if isinstance(item, Scalar):
                    self._collect(made, resolve(at, item.value), depth)
        for item in node.list("components") or ():
            component = resolve(at, item.value) if isinstance(item, Scalar) else ""
            if component in self.directories:
                made.add(self.render(component, depth + 1) or _Rendered())
                self._change(made, component, self.node(component))
        self._change(made, at, node)
        return made

    def _collect(self, made: _Rendered, path: str, depth: int) -> None:
        if path in self.directories:
            inner = self.render(path, depth + 1)
            if inner is not None:
                made.add(_Rendered(list(inner.items), set(inner.paths), dict(inner.generated), dict(inner.patched)))
            return
        if path not in self.project.all_paths or self._read > MAX_FILES:
            return
        self._read += 1
        made.paths.add(path)
        made.items += [item for item in self.project.items(path) if is_object(item)]

    def _change(self, made: _Rendered, at: str, node: Map | None) -> None:
        """What the kustomization in `at` does to everything collected so far, in kustomize's order."""
        if node is None:
            return
        for name, data in _generated(node, at, self.project, made):
            made.generated[name] = data
            made.changes = True
        transforms = [*_patches(node, at, self.project), *_settings(node)]
        self._delete(made, [each for each in transforms if _deletes(each)])
        transforms = [each for each in transforms if not _deletes(each)]
        for item, transform in ((number, each) for number in range(len(made.items)) for each in transforms):
            before = made.items[item]
            made.items[item] = _applied(before, transform)
            if made.items[item] is not before and transform.path:
                self.applied.add(transform.path)
                made.patched[before.path] = made.patched.get(before.path, frozenset()) | {transform.path}
                made.paths.add(transform.path)
        made.changes = made.changes or bool(transforms)

    def _delete(self, made: _Rendered, transforms: list[_Transform]) -> None:
        """Take out the objects of which a patch says `$patch: delete`."""
        for transform in transforms:
            kept = [each for each in made.items if not _hits(each, transform)]
            if len(kept) < len(made.items):
                made.items, made.changes = kept, True
                self.applied |= {transform.path} - {""}
                made.paths |= {transform.path} - {""}


def resolve(at: str, name: str) -> str:
    """A path named in the kustomization of `at`, from the root; what leads out of the tree names nothing."""
    path = posixpath.normpath(posixpath.join(at, name)) if "://" not in name else ""
    return "" if path in (".", "..") or path.startswith(("../", "/")) else path


@dataclass(frozen=True, slots=True)
class _Transform:
    """One change, to the objects that its target names; `node` is the patch, a list for JSON 6902, `path` the file of it."""

    kind: str
    node: Node
    target: Map | None = None
    path: str = ""


def _deletes(transform: _Transform) -> bool:
    return transform.kind == "merge" and isinstance(transform.node, Map) and transform.node.string("$patch") == "delete"


def _patches(node: Map, at: str, project: Project) -> Iterator[_Transform]:
    for item in node.list("patchesStrategicMerge") or ():
        if isinstance(item, Scalar):
            yield from (_Transform("merge", each, None, path) for path, each in _patch_nodes(item.text, at, project))
    for key in ("patches", "patchesJson6902"):
        for each in (node.list(key) or List((), node.span)).maps():
            yield from _one_patch(each, at, project)
        for item in node.list(key) or ():
            if isinstance(item, Scalar):
                yield from (
                    _Transform("merge", each, None, path) for path, each in _patch_nodes(item.text, at, project)
                )


def _one_patch(each: Map, at: str, project: Project) -> Iterator[_Transform]:
    text = each.text("patch") or each.text("path")
    for path, patch in _patch_nodes(text, at, project) if text is not None else ():
        kind = "operations" if isinstance(patch, List) else "merge"
        yield _Transform(kind, patch, each.map("target"), path)


def _patch_nodes(text: Text, at: str, project: Project) -> list[tuple[str, Node]]:
    """A patch written in place, or the documents of the file that is named, each with the file's path."""
    from kvlint.carriers.embedded import documents

    if "\n" in text.value or text.value.lstrip().startswith(("[", "{")):
        return [("", node) for node in documents(text)]
    path = resolve(at, text.value)
    if path not in project.all_paths:
        return []
    return [(path, item.node) for item in project.items(path) if item.node is not None]


def _settings(node: Map) -> Iterator[_Transform]:
    for key in ("images", "replicas"):
        for each in (node.list(key) or List((), node.span)).maps():
            yield _Transform(key, each)
    for key in ("namespace", "namePrefix", "nameSuffix"):
        value = node.scalar(key)
        if value is not None and value.tag != "null":
            yield _Transform(key, value)
    for key in NOT_FOLLOWED:
        entry = node.entry(key)
        if entry is not None:
            yield _Transform("unseen", Opaque(entry.key.span, f"{key} of a kustomization may change it"))


def _applied(item: Item, transform: _Transform) -> Item:
    root = item.node
    if not isinstance(root, Map):
        return item
    if transform.kind == "merge":
        return replace(item, node=patches.merge(root, transform.node)) if _hits(item, transform) else item
    if transform.kind == "operations":
        return replace(item, node=_operated(root, transform)) if _hits(item, transform) else item
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


def _operated(root: Map, transform: _Transform) -> Node:
    assert isinstance(transform.node, List)
    try:
        return patches.operate(root, transform.node)
    except patches.Unpatchable as error:
        why = Opaque(transform.node.span, f"a patch that is not followed: {error}")
        return patches.opened(root, why, ("args", "command", "env", "limits"))


def _renamed(root: Map, transform: _Transform) -> Map:
    """Services are renamed, so that the names by which others call them are right; other objects keep theirs."""
    name = root.scalar("metadata", "name")
    if name is None or root.string("kind") != "Service" or not isinstance(transform.node, Scalar):
        return root
    parts = (transform.node.text, name.text) if transform.kind == "namePrefix" else (name.text, transform.node.text)
    return patches.with_value(root, ("metadata", "name"), Scalar(Text.join(parts), name.span))


def _hits(item: Item, transform: _Transform) -> bool:
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


def generated_config_map(name: str, base: str, project: Project) -> Map | None:
    """The ConfigMap that a `configMapGenerator` of the kustomization in `base` makes under `name`."""
    for file in KUSTOMIZATIONS:
        path = f"{base}/{file}" if base else file
        if path not in project.all_paths:
            continue
        for item in project.items(path):
            if isinstance(item.node, Map):
                found = dict(_generated(item.node, base, project, _Rendered()))
                if name in found:
                    return found[name]
    return None


def _generated(node: Map, at: str, project: Project, made: _Rendered) -> Iterator[tuple[str, Map]]:
    for generator in (node.list("configMapGenerator") or List((), node.span)).maps():
        name = generator.string("name")
        if not name:
            continue
        entries = list(_entries(generator, at, project))
        data = Map(tuple(entries), generator.span)
        before = made.generated.get(name) or _written(name, made)
        if generator.string("behavior") == "merge" and before is not None:
            kept = {entry.key.value: entry for entry in (*before, *data)}
            data = Map(tuple(kept.values()), generator.span)
        yield name, data


def _written(name: str, made: _Rendered) -> Map | None:
    """The data of a ConfigMap that stands among the objects."""
    for item in made.items:
        node = item.node if isinstance(item.node, Map) else Map((), item.span)
        if (node.string("kind"), node.string("metadata", "name")) == ("ConfigMap", name):
            return node.map("data")
    return None


def _entries(generator: Map, base: str, project: Project) -> Iterator[Entry]:
    from kvlint.carriers.compose import env_file

    named = generator.list("envs") or generator.list("env")
    paths = [item.value for item in named or () if isinstance(item, Scalar)]
    single = generator.string("env")
    for path in (*paths, *((single,) if single else ())):
        for key, value in (env_file(resolve(base, path), project) or {}).items():
            yield _entry(Text.at(key, value.span), value)
    for item in generator.list("files") or ():
        if isinstance(item, Scalar):
            yield from _file_entry(item.text, base, project)
    for item in generator.list("literals") or ():
        if isinstance(item, Scalar) and "=" in item.value:
            cut = item.value.index("=")
            yield _entry(item.text.slice(0, cut), item.text.slice(cut + 1))


def _file_entry(named: Text, base: str, project: Project) -> Iterator[Entry]:
    """`files: [key=path]` or `files: [path]`: the whole file under its key."""
    key, equals, path = named.value.rpartition("=")
    found = resolve(base, path)
    source = project.text(found) if found in project.all_paths else None
    if source is not None:
        name = key if equals else path.rpartition("/")[2]
        yield _entry(Text.at(name, named.span), Text.of(source, 0, len(source.text)))


def _entry(name: Text, value: Text) -> Entry:
    return Entry(Scalar(name, name.span), Scalar(value, value.span))
