"""bjw-s's app-template, which most home clusters deploy with: controllers with their containers, and Services by name."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from kvlint.carriers import nodes
from kvlint.carriers.base import count_of
from kvlint.carriers.kubernetes.helm_values import Release, pod_of
from kvlint.carriers.kubernetes.pods import Pod
from kvlint.records import replace
from kvlint.tree import Map


def pods(node: Map, release: Release) -> Iterator[tuple[Pod, Map]]:
    """Each container with its pod; the chart turns service links off itself."""
    for entry in node.map("controllers") or ():
        if not isinstance(entry.value, Map):
            continue
        controller = entry.value
        options = controller.map("pod") or node.map("defaultPodOptions") or Map((), controller.span)
        hosts = tuple(service_names(node, release.name, entry.key.value))
        pod = pod_of(release, entry.key.value, entry.key.span, options, hosts)
        replicas = count_of(controller.get("replicas"), "replicas", "a literal number of replicas")
        data = MappingProxyType({**pod.data, "service_links": False, "service_ports": _ports(node, entry.key.value)})
        for section in ("initContainers", "containers"):
            for each in controller.map(section) or ():
                if isinstance(each.value, Map):
                    named = {**{inner.key.value: inner.value for inner in each.value}, "name": each.key}
                    yield replace(pod, replicas=replicas, data=data), nodes.mapping(each.value.span, named)


def _ports(node: Map, controller: str) -> tuple[int, ...]:
    found = []
    for entry in node.map("service") or ():
        if isinstance(entry.value, Map) and entry.value.string("controller") in (None, controller):
            for port in entry.value.map("ports") or ():
                number = port.value.string("port") if isinstance(port.value, Map) else None
                if number is not None and number.isdigit():
                    found.append(int(number))
    return tuple(found)


def service_names(node: Map, release: str, controller: str) -> Iterator[str]:
    """The Services of app-template that lead to a controller: the release's name alone where there is one Service."""
    listed = [entry for entry in node.map("service") or () if isinstance(entry.value, Map)]
    for entry in listed:
        if not isinstance(entry.value, Map) or entry.value.string("controller") not in (None, controller):
            continue
        override = entry.value.string("forceRename") or entry.value.string("nameOverride")
        base = override or (release if len(listed) == 1 else f"{release}-{entry.key.value}")
        if base and release:
            yield base


def services(root: Map) -> Iterator[tuple[str, int | None]]:
    """Names and ports of the Services that a release of app-template makes."""
    node, release = root.map("spec", "values"), root.string("metadata", "name") or ""
    listed = list((node.map("service") if node is not None else None) or ())
    for entry in listed:
        if not isinstance(entry.value, Map):
            continue
        name = release if len(listed) == 1 else f"{release}-{entry.key.value}"
        numbers = [port.value.string("port") for port in entry.value.map("ports") or () if isinstance(port.value, Map)]
        for number in numbers or [None]:
            yield name, int(number) if number is not None and number.isdigit() else None
