"""Whether something chooses the replica of a server by its caller or by the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvlint.carriers.base import Item
from kvlint.carriers.kubernetes.cluster import Cluster, namespace, texts
from kvlint.tree import Map


def kept_together(services: list[Map], labels: Mapping[str, str], near: Item, cluster: Cluster) -> bool:
    """A Service's session affinity, a pool with an endpoint picker, or a hash by a header or cookie."""
    if any(service.string("spec", "sessionAffinity") == "ClientIP" for service in services):
        return True
    if any(_picks(pool, labels) for pool in _beside(near, "InferencePool", cluster)):
        return True
    hashed = ("spec", "trafficPolicy", "loadBalancer", "consistentHash")
    return any(rule.map(*hashed) is not None for rule in _beside(near, "DestinationRule", cluster))


def _beside(near: Item, kind: str, cluster: Cluster) -> Iterator[Map]:
    """The objects of a kind in the namespace of `near`."""
    cluster.search(kind, kind)
    for item in cluster.of_kind(kind):
        if isinstance(item.node, Map) and namespace(item) == namespace(near):
            yield item.node


def _picks(pool: Map, labels: Mapping[str, str]) -> bool:
    selector = texts(pool.map("spec", "selector", "matchLabels") or pool.map("spec", "selector"))
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())
