"""Kustomize: what a kustomization generates for the objects beside it."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Item
from kvlint.project import Project
from kvlint.source import Text
from kvlint.tree import Entry, List, Map, Scalar

FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")


def generated_config_map(name: str, base: str, project: Project) -> Map | None:
    """The ConfigMap that a `configMapGenerator` of the kustomization in `base` makes under `name`."""
    for item in _kustomizations(base, project):
        if not isinstance(item.node, Map):
            continue
        for generator in (item.node.list("configMapGenerator") or List((), item.span)).maps():
            if generator.string("name") == name:
                return Map(tuple(_entries(generator, base, project)), generator.span)
    return None


def _kustomizations(base: str, project: Project) -> Iterator[Item]:
    for name in FILES:
        path = f"{base}/{name}" if base else name
        if path in project.all_paths:
            yield from project.items(path)


def _entries(generator: Map, base: str, project: Project) -> Iterator[Entry]:
    from kvlint.carriers.compose import env_file

    for item in generator.list("literals") or ():
        if isinstance(item, Scalar) and "=" in item.value:
            cut = item.value.index("=")
            yield _entry(item.text.slice(0, cut), item.text.slice(cut + 1))
    named = generator.list("envs") or generator.list("env")
    paths = [item.value for item in named or () if isinstance(item, Scalar)]
    single = generator.string("env")
    for path in (*paths, *((single,) if single else ())):
        for key, value in (env_file(f"{base}/{path}" if base else path, project) or {}).items():
            yield _entry(Text.at(key, value.span), value)


def _entry(name: Text, value: Text) -> Entry:
    return Entry(Scalar(name, name.span), Scalar(value, value.span))
