"""Kustomize's generators: the ConfigMaps that a kustomization makes of files and literals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kvlint.carriers.base import KUSTOMIZATIONS, Item, resolve
from kvlint.project import Project
from kvlint.source import Text
from kvlint.tree import Entry, List, Map, Scalar


def generated_config_map(name: str, base: str, project: Project) -> Map | None:
    """The ConfigMap that a `configMapGenerator` of the kustomization in `base` makes under `name`."""
    for file in KUSTOMIZATIONS:
        path = f"{base}/{file}" if base else file
        if path not in project.all_paths:
            continue
        for item in project.items(path):
            if isinstance(item.node, Map):
                found = dict(generated(item.node, base, project, {}, ()))
                if name in found:
                    return found[name]
    return None


def generated(
    node: Map, at: str, project: Project, before: Mapping[str, Map], items: Sequence[Item]
) -> Iterator[tuple[str, Map]]:
    """The ConfigMaps that a kustomization makes, where `before` were made and `items` collected so far."""
    for generator in (node.list("configMapGenerator") or List((), node.span)).maps():
        name = generator.string("name")
        if not name:
            continue
        entries = list(_entries(generator, at, project))
        data = Map(tuple(entries), generator.span)
        base = before.get(name) or _written(name, items)
        if generator.string("behavior") == "merge" and base is not None:
            kept = {entry.key.value: entry for entry in (*base, *data)}
            data = Map(tuple(kept.values()), generator.span)
        yield name, data


def _written(name: str, items: Sequence[Item]) -> Map | None:
    """The data of a ConfigMap that stands among the objects."""
    for item in items:
        node = item.node if isinstance(item.node, Map) else Map((), item.span)
        if (node.string("kind"), node.string("metadata", "name")) == ("ConfigMap", name):
            return node.map("data")
    return None


def _entries(generator: Map, base: str, project: Project) -> Iterator[Entry]:
    from kvlint.carriers.compose_services import env_file

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
