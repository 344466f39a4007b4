"""Releases that hold a chart's values: Flux, Argo CD, k3s, and a kustomization's `helmCharts`."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Finding, Item
from kvlint.carriers.embedded import documents
from kvlint.carriers.kubernetes.cluster import Cluster, namespace
from kvlint.carriers.kubernetes.helm_values import Release, values
from kvlint.tree import List, Map, Node, Scalar


def objects(item: Item, cluster: Cluster) -> Iterator[Finding]:
    root = item.node
    assert isinstance(root, Map)
    for name, space, node in _given(root, item, cluster):
        release = Release(item, f"namespace {space}", name)
        yield from values(node, release, cluster)


def _given(root: Map, item: Item, cluster: Cluster) -> Iterator[tuple[str, str, Map]]:
    """Release name, namespace and values, once for each chart of the object."""
    kind = root.string("kind")
    name = root.string("metadata", "name") or "release"
    if kind == "HelmRelease":
        space = root.string("spec", "targetNamespace") or namespace(item)
        release = root.string("spec", "releaseName") or name
        yield from ((release, space, node) for node in _flux(root, item, cluster))
    elif kind in ("Application", "ApplicationSet"):
        spec = root.map("spec") if kind == "Application" else root.map("spec", "template", "spec")
        space = spec.string("destination", "namespace") or "" if spec is not None else ""
        yield from ((name, space, node) for node in (_argo(spec) if spec is not None else ()))
    elif kind in ("HelmChart", "HelmChartConfig"):
        space = root.string("spec", "targetNamespace") or namespace(item)
        yield from ((name, space, node) for node in _maps(root.get("spec", "valuesContent")))
    else:
        for chart in (root.list("helmCharts") or List((), root.span)).maps():
            space = chart.string("namespace") or root.string("namespace") or ""
            release = chart.string("releaseName") or chart.string("name") or name
            yield from ((release, space, node) for node in _maps(chart.get("valuesInline")))


def _flux(root: Map, item: Item, cluster: Cluster) -> Iterator[Map]:
    """`values` over what `valuesFrom` names."""
    from kvlint.carriers.kubernetes import patches

    own = root.map("spec", "values")
    below: Node | None = None
    for reference in (root.list("spec", "valuesFrom") or List((), root.span)).maps():
        data = cluster.config_map(reference.string("name"), item) if reference.string("kind") == "ConfigMap" else None
        text = data.text(reference.string("valuesKey") or "values.yaml") if data is not None else None
        for node in documents(text) if text is not None else ():
            below = patches.overlaid(below, node) if below is not None else node
    if own is None:
        yield from _maps(below)
    elif isinstance(below, Map):
        yield from _maps(patches.overlaid(below, own))
    else:
        yield own


def _argo(spec: Map) -> Iterator[Map]:
    """`source.helm.valuesObject`, or the string `values`; `parameters` set single paths."""
    sources = [spec.map("source"), *(spec.list("sources") or List((), spec.span)).maps()]
    for source in sources:
        helm = source.map("helm") if source is not None else None
        if helm is None:
            continue
        found = list(_maps(helm.get("valuesObject"))) or list(_maps(helm.get("values")))
        node = found[0] if found else Map((), helm.span)
        for parameter in (helm.list("parameters") or List((), helm.span)).maps():
            node = _with_parameter(node, parameter)
        if tuple(node):
            yield node


def _with_parameter(node: Map, parameter: Map) -> Map:
    """`a.b.c: value`; a path into a list is not followed."""
    from kvlint.carriers.kubernetes import patches

    name, value = parameter.string("name"), parameter.scalar("value")
    if name is None or value is None or "[" in name or not all(name.split(".")):
        return node
    return patches.with_value(node, name.split("."), value)


def _maps(node: Node | None) -> Iterator[Map]:
    """A mapping itself, or those of a string that is YAML."""
    if isinstance(node, Map):
        yield node
    elif isinstance(node, Scalar) and node.tag == "str":
        yield from (each for each in documents(node.text) if isinstance(each, Map))
