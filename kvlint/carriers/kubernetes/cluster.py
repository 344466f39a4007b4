"""The objects of one cluster or one kustomize build, by kind and name, and what they say of one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kvlint.carriers.base import Item, directory, is_object, nearest
from kvlint.project import Project
from kvlint.records import dataclass, field, replace
from kvlint.tree import Map, Scalar

GROUPS_WITHOUT_NAMESPACE = ("ClusterServingRuntime", "ClusterRole", "Namespace", "GatewayClass")


@dataclass(slots=True)
class Cluster:
    """Objects by kind and name; those that nobody has read yet are searched in the project when they are asked for.

    `overlay`: the directory of the kustomization that rendered them, empty where they stand as they are written.
    `generated`: ConfigMaps that its generators make.
    """

    project: Project
    overlay: str = ""
    generated: Mapping[str, Map] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    objects: dict[tuple[str, str], list[Item]] = field(default_factory=dict)
    kinds: dict[str, list[Item]] = field(default_factory=dict)
    searched: set[tuple[str, str]] = field(default_factory=set)
    selectors: dict[str, list[tuple[Item, dict[str, str]]]] = field(default_factory=dict)
    paths: set[str] = field(default_factory=set)

    def add(self, item: Item) -> None:
        self.paths.add(item.path)
        for each in members(item):
            if isinstance(each.node, Map):
                self.items.append(each)
                kind, name = each.node.string("kind"), each.node.string("metadata", "name")
                if kind and name:
                    self.objects.setdefault((kind, name), []).append(each)
                    self.kinds.setdefault(kind, []).append(each)
                    selector = texts(each.node.map("spec", "selector")) if kind == "Service" else {}
                    if selector:
                        self.selectors.setdefault(namespace(each), []).append((each, selector))

    def find(self, kind: str, name: str, near: Item) -> list[Item]:
        """The objects of that kind and name in `near`'s namespace, in the nearest files.

        Else those of which, or of `near`, no namespace is written: it is the one that they are applied with.
        """
        self.search(name)
        found: Iterable[Item] = self.objects.get((kind, name), ())
        if kind not in GROUPS_WITHOUT_NAMESPACE:
            found = [item for item in found if same_space(item, near)] or [
                item for item in found if not (namespace(item) and namespace(near))
            ]
        return nearest(near.path, list(found))

    def of_kind(self, kind: str) -> tuple[Item, ...]:
        return tuple(self.kinds.get(kind, ()))

    def search(self, name: str, kind: str = "") -> None:
        """Read the files that hold `name`; with `kind`, only those that hold such an object too."""
        if not name or (name, kind) in self.searched:
            return
        self.searched.add((name, kind))
        for path in self.project.search(name, kind):
            if path in self.paths:
                continue
            self.paths.add(path)
            for item in self.project.items(path):
                if is_object(item):
                    self.add(item)

    def config_map(self, name: str | None, near: Item) -> Map | None:
        """The data of the one ConfigMap of that name; None where it is not in the files, or not one."""
        if not name:
            return None
        if name in self.generated:
            return self.generated[name]
        found = self.find("ConfigMap", name, near)
        if len(found) == 1 and isinstance(found[0].node, Map):
            return found[0].node.map("data")
        if found:
            return None
        from kvlint.carriers.kubernetes.generators import generated_config_map

        return generated_config_map(name, directory(near.path), self.project)

    def services(self, labels: Mapping[str, str], near: Item) -> list[Map]:
        """Services whose selector the labels satisfy, in the namespace of `near`; of those of one name the nearest."""
        for value in labels.values():
            if len(value) > 2 and value not in ("true", "false"):
                self.search(value, "Service")
        found: dict[str, list[Item]] = {}
        for item, selector in self.selectors.get(namespace(near), ()):
            if isinstance(item.node, Map) and all(labels.get(key) == value for key, value in selector.items()):
                found.setdefault(item.node.string("metadata", "name") or "", []).append(item)
        close = (each for items in found.values() for each in nearest(near.path, items))
        return [each.node for each in close if isinstance(each.node, Map)]


def namespace(item: Item) -> str:
    return (item.node.string("metadata", "namespace") if isinstance(item.node, Map) else None) or ""


def same_space(one: Item, other: Item) -> bool:
    """Whether two objects are in one namespace, where nothing but their files says so."""
    return (namespace(one) or "default") == (namespace(other) or "default")


def unit(item: Item) -> str:
    """The deployment unit of an object: names resolve inside its namespace."""
    return f"namespace {namespace(item)}"


def group(node: Map) -> str:
    """The API group of an object; empty for the core group."""
    version = node.string("apiVersion") or ""
    return version.rpartition("/")[0]


def members(item: Item) -> Iterator[Item]:
    """The document itself, or the members of a `List`."""
    if isinstance(item.node, Map) and (item.node.string("kind") or "").endswith("List") and item.node.list("items"):
        for member in item.node.list("items") or ():
            if isinstance(member, Map):
                yield replace(item, node=member)
        return
    yield item


def texts(node: Map | None) -> dict[str, str]:
    """The entries of a mapping whose values are known."""
    if node is None:
        return {}
    pairs = ((entry.key.value, entry.value) for entry in node)
    return {key: value.value for key, value in pairs if isinstance(value, Scalar) and value.text.known}
