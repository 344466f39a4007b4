"""Kustomize: what a kustomization makes of the objects that it names.

A file that some kustomization of the tree reaches is judged as the outermost ones render it.  What is not followed here
(transformers, replacements, Helm charts, remote bases) leaves what it may touch unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import KUSTOMIZATIONS, Item, directory, is_object, resolve
from kvlint.carriers.kubernetes import patches
from kvlint.carriers.kubernetes.cluster import Cluster
from kvlint.carriers.kubernetes.generators import generated
from kvlint.carriers.kubernetes.transforms import Transform, applied, deletes, hits, transforms
from kvlint.project import Project
from kvlint.records import dataclass, field, replace
from kvlint.source import Span
from kvlint.tree import Map, Opaque, Scalar

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
        for name, data in generated(node, at, self.project, made.generated, made.items):
            made.generated[name] = data
            made.changes = True
        changes = transforms(node, at, self.project)
        self._delete(made, [each for each in changes if deletes(each)])
        changes = [each for each in changes if not deletes(each)]
        for item, transform in ((number, each) for number in range(len(made.items)) for each in changes):
            before = made.items[item]
            made.items[item] = applied(before, transform)
            if made.items[item] is not before and transform.path:
                self.applied.add(transform.path)
                made.patched[before.path] = made.patched.get(before.path, frozenset()) | {transform.path}
                made.paths.add(transform.path)
        made.changes = made.changes or bool(changes)

    def _delete(self, made: _Rendered, deletions: list[Transform]) -> None:
        """Take out the objects of which a patch says `$patch: delete`."""
        for transform in deletions:
            kept = [each for each in made.items if not hits(each, transform)]
            if len(kept) < len(made.items):
                made.items, made.changes = kept, True
                self.applied |= {transform.path} - {""}
                made.paths |= {transform.path} - {""}
