"""Documents inside strings: a configuration file in a ConfigMap, a RayService's `serveConfigV2`, JSON in an annotation.

The string is read as YAML (of which JSON is a part), and every place in what comes out is one in the outer file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kvlint.carriers import nodes
from kvlint.carriers.base import Finding, Item
from kvlint.carriers.kubernetes.cluster import Cluster, namespace, same_space, unit
from kvlint.facts import Value
from kvlint.formats import yaml
from kvlint.formats.shell.text import NOWHERE, Slicer
from kvlint.patterns import regex
from kvlint.records import dataclass, field, replace
from kvlint.source import HOLE, Source, Span, Text
from kvlint.tree import Entry, List, Map, Node, Opaque, Scalar

MAX_CHARACTERS = 1 << 20
MAX_NODES = 20_000
MAX_VALUES = 12  # levels of a chart's values
_PROXY = regex(r"\.conf$|\.cfg$|^[Cc]addyfile")
_FILE = regex(
    r"^\s*[\"']?(?:models|model_list|applications|llm_configs|endpoints|provider|static_resources)[\"']?\s*:|^kind:\s*EndpointPickerConfig",
    re.MULTILINE,
)


def documents(text: Text) -> list[Node]:
    """The documents of a string that is YAML or JSON; those that cannot be read are left out."""
    if len(text.value) > MAX_CHARACTERS or not text.pieces:
        return []
    inner = _Inner(text)
    found = []
    for document in yaml.documents(Source("", text.value)):
        if document.node is not None:
            found.append(inner.node(document.node))
    return found


class _Inner:
    """Nodes of a virtual file with their places in the text that it is made of."""

    def __init__(self, text: Text) -> None:
        self.cut = Slicer(text)
        self.left = MAX_NODES

    def node(self, node: Node) -> Node:
        self.left -= 1
        if self.left < 0:
            return Opaque(self.span(node.span), "more nodes than are followed")
        if isinstance(node, Scalar):
            return Scalar(self.text(node.text), self.span(node.span), node.tag, node.quoted)
        if isinstance(node, Map):
            entries = tuple(Entry(self.scalar(entry.key), self.node(entry.value)) for entry in node.entries)
            duplicates = tuple(self.scalar(key) for key in node.duplicates)
            return Map(entries, self.span(node.span), self.open(node.open), duplicates)
        if isinstance(node, List):
            return List(tuple(self.node(item) for item in node), self.span(node.span), self.open(node.open))
        return self.opaque(node)

    def scalar(self, key: Scalar) -> Scalar:
        return Scalar(self.text(key.text), self.span(key.span), key.tag, key.quoted)

    def opaque(self, node: Opaque) -> Opaque:
        return Opaque(self.span(node.span), node.reason, node.supply)

    def open(self, unseen: tuple[Opaque, ...]) -> tuple[Opaque, ...]:
        return tuple(self.opaque(node) for node in unseen)

    def span(self, span: Span) -> Span:
        """From the first character to the last, as they stand in the outer file."""
        if span.start == span.end:
            return self.cut.span(span.start, span.end) or NOWHERE
        first = self.cut.span(span.start, span.start + 1) or NOWHERE
        last = self.cut.span(span.end - 1, span.end) or NOWHERE
        if first.source is not last.source or last.end < first.start:
            return first
        return first.source.span(first.start, last.end)

    def text(self, text: Text) -> Text:
        if not text.pieces:
            return Text(text.value, (), (), self.span(text.home) if text.home is not None else NOWHERE)
        parts = []
        for piece in text.pieces:
            value = text.value[piece.at : piece.at + piece.length]
            if piece.literal:
                part = Text.join(self.cut(start, end) for start, end in piece.span.pieces)
            elif HOLE in value:
                part = Text.unknown(self.span(piece.span), "filled in elsewhere")
            else:
                part = Text.at(value, self.span(piece.span))
            for use in reversed(piece.via):
                part = part.seen_from(self.span(use))
            parts.append(part)
        return Text.join(parts)


@dataclass(frozen=True, slots=True)
class Around:
    """Where an embedded file is served from: its deployment unit, the names and ports of what mounts it.

    `copies`: processes that read it, each for itself.  `contained`: in a network of its own.  `env`: its variables.
    `pod`: the workload in whose pods it is served.
    """

    path: str
    unit: str
    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    copies: Value[int] | None = None
    contained: bool = False
    env: Mapping[str, Text] = field(default_factory=dict)
    pod: str | None = None


def objects(item: Item, cluster: Cluster) -> Iterator[Finding]:
    """The configuration files in a ConfigMap, or in a Secret that is written in plain text."""
    assert isinstance(item.node, Map)
    yield from files(item.node.map("stringData" if item.node.string("kind") == "Secret" else "data"), item, cluster)


def generated(cluster: Cluster) -> Iterator[Finding]:
    """The configuration files of the ConfigMaps that a kustomization makes, in the namespace of what mounts them."""
    for name, data in cluster.generated.items():
        if not any(isinstance(entry.value, Scalar) and _is_file(entry.key.value, entry.value) for entry in data):
            continue
        near = next(
            (each for each in cluster.items if isinstance(each.node, Map) and _mentions(each.node, name, 0)), None
        )
        near = near or next(iter(cluster.items), None)
        if near is not None:
            space = nodes.key(namespace(near), data.span) if namespace(near) else None
            about = nodes.mapping(data.span, {"name": nodes.key(name, data.span), "namespace": space})
            made = nodes.mapping(data.span, {"metadata": about, "data": data})
            yield from files(data, replace(near, node=made), cluster)


def _is_file(key: str, value: Scalar) -> bool:
    return bool(_PROXY.search(key) or _FILE.search(value.value))


def files(data: Map | None, item: Item, cluster: Cluster) -> Iterator[Finding]:
    """What the files among the texts of a ConfigMap say."""
    around = None
    for entry in data or ():
        if isinstance(entry.value, Scalar) and _is_file(entry.key.value, entry.value):
            around = around or _around(item, cluster)
            yield from _file(entry.key.value, entry.value.text, around)


def _file(name: str, text: Text, around: Around) -> Iterator[Finding]:
    from kvlint.carriers.proxies.upstreams import embedded

    if _PROXY.search(name):
        yield from embedded(name, text, around)
        return
    for document in documents(text):
        yield from read(document, around)


def in_values(node: Node, around: Around, depth: int = 0) -> Iterator[Finding]:
    """The configuration files that stand in a chart's values, as texts or as they are."""
    from kvlint.carriers.llama_swap import carrier as llama_swap
    from kvlint.carriers.proxies import litellm

    if isinstance(node, Map) and (llama_swap.is_config(node) or litellm.is_config(node)):
        yield from read(node, around)
    elif depth < MAX_VALUES:
        for name, each in _inside(node):
            if not isinstance(each, Scalar):
                yield from in_values(each, around, depth + 1)
            elif _is_file(name, each):
                yield from _file(name, each.text, around)


def _inside(node: Node) -> Iterator[tuple[str, Node]]:
    if isinstance(node, Map):
        yield from ((entry.key.value, entry.value) for entry in node)
    elif isinstance(node, List):
        yield from (("", each) for each in node)


def read(node: Node, around: Around) -> Iterator[Finding]:
    """What an embedded file says, by the first reader that knows its shape."""
    from kvlint.carriers import ray
    from kvlint.carriers.kubernetes import picker
    from kvlint.carriers.llama_swap import carrier as llama_swap
    from kvlint.carriers.proxies import clients, envoy, litellm

    if not isinstance(node, Map):
        return
    if llama_swap.is_config(node):
        yield from llama_swap.config(node, around)
    elif litellm.is_config(node):
        yield from litellm.config(node, around)
    elif envoy.is_config(node):
        yield from envoy.config(node, around)
    elif node.string("kind") == picker.KIND:
        yield from picker.config(node, around)
    elif ray.is_config(node):
        yield from ray.config(node, around.path, around.unit)
    else:
        yield from clients.config(node, around)


def _around(item: Item, cluster: Cluster) -> Around:
    """The workloads that mount a ConfigMap, and how others reach them."""
    assert isinstance(item.node, Map)
    name = item.node.string("metadata", "name") or ""
    cluster.search(name)
    hosts: list[str] = []
    ports: list[int] = []
    mounting: list[Item] = []
    for other in cluster.items:
        if not isinstance(other.node, Map) or not same_space(other, item) or other.node is item.node:
            continue
        if other.node.string("kind") in ("ConfigMap", "Service", "Secret") or not _mentions(other.node, name, 0):
            continue
        mounting.append(other)
        for host, port in _addresses(other, cluster):
            hosts.append(host)
            ports += [port] if port else []
    around = Around(item.path, unit(item), tuple(dict.fromkeys(hosts)), tuple(dict.fromkeys(ports)), contained=True)
    return _in_pod(around, mounting[0], name, cluster) if len(mounting) == 1 else around


def _in_pod(around: Around, item: Item, name: str, cluster: Cluster) -> Around:
    """The surroundings in the one workload that mounts a ConfigMap: its processes over all replicas, their variables."""
    from kvlint.carriers.kubernetes.carrier import pods_of
    from kvlint.carriers.kubernetes.kubelet import arguments, environment
    from kvlint.carriers.proxies.served import together, worker_count

    pods = list(pods_of(item))
    if len(pods) != 1:
        return around
    containers = list((pods[0].spec.list("containers") or List((), pods[0].place)).maps())
    words: list[Text] = []
    for container in containers:
        words += (word for key in ("command", "args") for word in arguments(container.get(key), {})[0])
    reading = _reading(pods[0].spec, name, containers)
    return replace(
        around,
        copies=together(worker_count(words), pods[0].replicas),
        env=environment(reading[0], item, cluster)[0] if len(reading) == 1 else {},
        pod=pods[0].workload,
    )


def _reading(spec: Map, name: str, containers: list[Map]) -> list[Map]:
    """The containers of a pod that mount a volume of the ConfigMap."""
    volumes = {
        volume.string("name")
        for volume in (spec.list("volumes") or List((), spec.span)).maps()
        if _mentions(volume, name, 1)
    }
    return [
        container
        for container in containers
        if any(
            each.string("name") in volumes for each in (container.list("volumeMounts") or List((), spec.span)).maps()
        )
    ]


def _mentions(node: Node, name: str, depth: int) -> bool:
    """Whether a volume, a mount or a chart's persistence names the ConfigMap."""
    if depth > 24:
        return False
    if isinstance(node, Map):
        return any(
            (
                entry.key.value in ("name", "secretName")
                and isinstance(entry.value, Scalar)
                and entry.value.value == name
                and depth > 1
            )
            or _mentions(entry.value, name, depth + 1)
            for entry in node
        )
    return isinstance(node, List) and any(_mentions(each, name, depth + 1) for each in node)


def _addresses(item: Item, cluster: Cluster) -> Iterator[tuple[str, int | None]]:
    from kvlint.carriers.kubernetes.app_template import services as released
    from kvlint.carriers.kubernetes.carrier import pods_of

    assert isinstance(item.node, Map)
    if item.node.string("kind") == "HelmRelease":
        yield from released(item.node)
        return
    for pod in pods_of(item):
        for service in cluster.services(pod.labels, item):
            for port in (service.list("spec", "ports") or List((), service.span)).maps():
                number = port.string("port")
                yield service.string("metadata", "name") or "", int(number) if number and number.isdigit() else None
