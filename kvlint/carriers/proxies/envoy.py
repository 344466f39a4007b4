"""Envoy: `circuit_breakers` of a static cluster, one count for all of its endpoints.

Facts: envoyproxy.io/docs/envoy/v1.20.3/api-v3/config/cluster/v3/circuit_breaker.proto.  What is not set is 1024.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.admission import system
from kvlint.carriers.base import Finding, Item
from kvlint.carriers.embedded import Around
from kvlint.carriers.proxies import served
from kvlint.carriers.proxies.upstreams import admission, number, settings
from kvlint.facts import Default, Fact, Value
from kvlint.links import share
from kvlint.project import Project
from kvlint.subjects import Endpoint
from kvlint.tree import List, Map, Node

DEFAULT = (None, "DEFAULT", "0")  # a threshold of another priority is for routes that ask for it


class Envoy:
    name = "envoy"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, Map) and is_config(item.node)

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        for item in items:
            if isinstance(item.node, Map):
                yield from config(item.node, served.around(item.path, project))


CARRIER = Envoy()


def is_config(node: Map) -> bool:
    """A bootstrap with clusters of its own."""
    return node.list("static_resources", "clusters") is not None


def config(root: Map, around: Around) -> Iterator[Finding]:
    """Every cluster, with a share of its limit for each of its endpoints."""
    for cluster in (root.list("static_resources", "clusters") or List((), root.span)).maps():
        yield from _cluster(cluster, around)


def _cluster(cluster: Map, around: Around) -> Iterator[Finding]:
    name = cluster.scalar("name")
    if name is None:
        return
    listed = (cluster.list("circuit_breakers", "thresholds") or List((), cluster.span)).maps()
    threshold = next((each for each in listed if each.string("priority") in DEFAULT), None)
    entry = threshold.entry("max_requests") if threshold is not None else None
    limit: Value[int] | None = number(threshold.text("max_requests")) if threshold is not None else None
    if entry is None:
        limit = Fact(system("envoy")["default_requests"], Default("envoy", (), "max_requests"))
    waiting = number(threshold.text("max_pending_requests")) if threshold is not None else None
    targets = list(_endpoints(cluster))
    for target in targets:
        yield admission(
            around,
            "envoy",
            name.value if len(targets) == 1 else f"{name.value} {target.host}",
            entry.value.span if entry is not None else name.span,
            share(limit, len(targets)),
            target,
            per="backend",
            excess="reject",
            settings=settings(around, None, pending=waiting),
        )


def _endpoints(cluster: Map) -> Iterator[Endpoint]:
    for group in (cluster.list("load_assignment", "endpoints") or List((), cluster.span)).maps():
        for each in (group.list("lb_endpoints") or List((), group.span)).maps():
            found = _address(each.get("endpoint", "address", "socket_address"))
            if found is not None:
                yield found


def _address(node: Node | None) -> Endpoint | None:
    host = node.text("address") if isinstance(node, Map) else None
    port = node.text("port_value") if isinstance(node, Map) else None
    if host is None or port is None or not host.known or not port.value.isdigit():
        return None
    return Endpoint(host.value, int(port.value), host.span)
