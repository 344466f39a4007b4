"""Kubernetes objects: every `containers` list under any kind, its environment, what names its devices, and who reaches it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kvlint.carriers.base import Finding, Item, directory, nearest
from kvlint.carriers.launch import Launch, launches
from kvlint.command import Opening
from kvlint.facts import Assumed, Default, Fact, Unknown, Value, Written
from kvlint.project import Project
from kvlint.source import HOLE, Span, Text
from kvlint.subjects import Process, Product, Site
from kvlint.tree import Entry, List, Map, Opaque, Scalar
from kvlint.units import parse_quantity

GPU_RESOURCES = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "gpu.intel.com/xe",
    "gpu.intel.com/i915",
    "google.com/tpu",
    "habana.ai/gaudi",
)
POD_PATHS: dict[str, tuple[tuple[str, ...], ...]] = {
    "Pod": (("spec",),),
    "CronJob": (("spec", "jobTemplate", "spec", "template", "spec"),),
    "LeaderWorkerSet": (
        ("spec", "leaderWorkerTemplate", "leaderTemplate", "spec"),
        ("spec", "leaderWorkerTemplate", "workerTemplate", "spec"),
    ),
}
TEMPLATE = ("spec", "template", "spec")
# Node labels that name a device, in order of authority.
PRODUCT_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-accelerator-name",
    "amd.com/gpu.device-id",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
)
MEMORY_LABELS = ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory", "amd.com/gpu.vram")
MAX_DEPTH = 24


class Kubernetes:
    name = "kubernetes"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, Map) and "kind" in item.node and "apiVersion" in item.node

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        cluster = Cluster(project)
        for item in items:
            cluster.add(item)
        for item in items:
            for workload in _objects(item):
                yield from _workload(workload, cluster)


CARRIER = Kubernetes()


@dataclass(slots=True)
class Cluster:
    """Objects by kind and name, and those that seeds ask for by name and context files hold."""

    project: Project
    objects: dict[tuple[str, str], list[Item]] = field(default_factory=dict)
    searched: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)

    def add(self, item: Item) -> None:
        self.paths.add(item.path)
        for each in _objects(item):
            if isinstance(each.node, Map):
                kind, name = each.node.string("kind"), each.node.string("metadata", "name")
                if kind and name:
                    self.objects.setdefault((kind, name), []).append(each)

    def find(self, kind: str, name: str, near: Item) -> list[Item]:
        """The objects of that kind and name in `near`'s namespace, in the nearest files."""
        self._search(name)
        wanted = namespace(near)
        found = [item for item in self.objects.get((kind, name), ()) if namespace(item) == wanted]
        return nearest(near.path, found)

    def of_kind(self, kind: str) -> Iterator[Item]:
        return (item for (each, _), items in self.objects.items() if each == kind for item in items)

    def _search(self, name: str) -> None:
        if name in self.searched:
            return
        self.searched.add(name)
        for path in self.project.search(name):
            if path in self.paths:
                continue
            self.paths.add(path)
            for item in self.project.items(path):
                if CARRIER.claims(item):
                    self.add(item)


def namespace(item: Item) -> str:
    return (item.node.string("metadata", "namespace") if isinstance(item.node, Map) else None) or ""


def _objects(item: Item) -> Iterator[Item]:
    """The document itself, or the members of a `List`."""
    if isinstance(item.node, Map) and (item.node.string("kind") or "").endswith("List") and item.node.list("items"):
        for member in item.node.list("items") or ():
            if isinstance(member, Map):
                yield replace(item, node=member)
        return
    yield item


@dataclass(frozen=True, slots=True)
class _Pod:
    item: Item
    spec: Map
    workload: str
    labels: dict[str, str]
    place: Span


def _workload(item: Item, cluster: Cluster) -> Iterator[Finding]:
    if not isinstance(item.node, Map):
        return
    kind = item.node.string("kind") or ""
    if kind in ("Service", "ConfigMap", "Secret", "CustomResourceDefinition"):
        return
    for pod in _pods(item, kind):
        for section in ("initContainers", "containers"):
            for container in (pod.spec.list(section) or List((), pod.place)).maps():
                yield from _container(pod, container, cluster)


def _pods(item: Item, kind: str) -> Iterator[_Pod]:
    """Every pod specification of an object: where its kind has it, else wherever a `containers` list stands."""
    root = item.node
    assert isinstance(root, Map)
    name_node = root.scalar("metadata", "name") or root.scalar("metadata", "generateName")
    name = name_node.value if name_node and name_node.text.known else kind.lower()
    place = name_node.span if name_node else root.span
    paths = POD_PATHS.get(kind, (TEMPLATE,))
    found = False
    for path in paths:
        spec = root.map(*path)
        if spec is not None and spec.list("containers") is not None:
            found = True
            labels = root.map(*path[:-1], "metadata", "labels")
            yield _Pod(item, spec, name, _labels(labels), place)
    if not found:
        for path, spec in _find_pods(root, (), 0):
            parent = root.map(*path[:-1], "metadata", "labels") if path else None
            inner = path[-3] if len(path) > 2 and path[-1] == "spec" else path[-1] if path else ""
            suffix = f"{name}/{inner}" if inner not in ("", "spec", "template", "predictor", "model") else name
            yield _Pod(item, spec, suffix, _labels(parent), place)


def _find_pods(node: Map, path: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Map]]:
    if depth > MAX_DEPTH:
        return
    containers = node.list("containers")
    if containers is not None and any("name" in each or "image" in each for each in containers.maps()):
        yield path, node
        return
    for entry in node:
        if isinstance(entry.value, Map):
            yield from _find_pods(entry.value, (*path, entry.key.value), depth + 1)
        elif isinstance(entry.value, List):
            for each in entry.value.maps():
                name = each.string("name") or entry.key.value
                for inner, spec in _find_pods(each, (), depth + 1):
                    yield (*path, name, *inner), spec


def _labels(node: Map | None) -> dict[str, str]:
    if node is None:
        return {}
    pairs = ((entry.key.value, entry.value) for entry in node)
    return {key: value.value for key, value in pairs if isinstance(value, Scalar) and value.text.known}


def _container(pod: _Pod, container: Map, cluster: Cluster) -> Iterator[Finding]:
    command, args = container.get("command"), container.get("args")
    image = container.text("image")
    if command is None and args is None and image is None:
        return
    env, env_open = environment(container, pod.item, cluster)
    words, openings = _words(command, env)
    more, later = _words(args, env)
    openings += [replace(opening, index=opening.index + len(words)) for opening in later]
    name = container.string("name") or "container"
    site = _site(pod, container, f"{pod.workload}/{name}", cluster)
    place = container.scalar("name")
    launch = Launch(
        words=tuple(words + more),
        entrypoint=command is None,
        image=image,
        env=env,
        env_open=tuple(env_open),
        open=tuple(openings),
        place=place.span if place else container.span,
    )
    for line in launches(launch):
        yield Process(site, line)


def _words(node: object, env: dict[str, Text]) -> tuple[list[Text], list[Opening]]:
    """The items of `command` or `args` after the kubelet's `$(VAR)`; unseen items are openings."""
    from kvlint.formats.shell import kubelet_expand

    words: list[Text] = []
    openings: list[Opening] = []
    if isinstance(node, Opaque):
        return [], [Opening(0, node.span, node.reason, node.supply)]
    if not isinstance(node, List):
        return [], []
    for item in node:
        if isinstance(item, Scalar):
            words.append(kubelet_expand(item.text, env) if item.text.value else item.text)
        else:
            reason = item.reason if isinstance(item, Opaque) else "an argument that is no text"
            openings.append(Opening(len(words), item.span, reason))
    openings += [Opening(len(words), each.span, each.reason, each.supply) for each in node.open]
    return words, openings


def environment(container: Map, near: Item, cluster: Cluster) -> tuple[dict[str, Text], list[Opening]]:
    """A container's environment: `envFrom` first, then `env` in order, values after the kubelet's `$(VAR)` of earlier ones."""
    from kvlint.formats.shell import kubelet_expand

    env: dict[str, Text] = {}
    open_: list[Opening] = []
    for each in (container.list("envFrom") or List((), container.span)).maps():
        name = each.string("configMapRef", "name")
        data = _config_map(name, near, cluster) if name else None
        if data is None:
            open_.append(Opening(0, each.span, "an environment that is not in these files"))
            continue
        prefix = each.string("prefix") or ""
        for entry in data:
            if isinstance(entry.value, Scalar):
                env[prefix + entry.key.value] = entry.value.text.seen_from(each.span)
    if container.get("env") is not None and not isinstance(container.get("env"), List):
        open_ += _map_environment(container.get("env"), env)
        return env, open_
    for variable in (container.list("env") or List((), container.span)).maps():
        name = variable.string("name")
        if name is None:
            continue
        value = variable.text("value")
        env[name] = kubelet_expand(value, env) if value is not None else _value_from(variable, name, near, cluster)
    listed = container.list("env")
    if listed:
        open_ += [Opening(0, each.span, each.reason, each.supply) for each in listed.open]
    return env, open_


def _map_environment(node: object, env: dict[str, Text]) -> list[Opening]:
    """Charts and operators that write `env` as a mapping."""
    if not isinstance(node, Map):
        return [Opening(0, node.span, node.reason)] if isinstance(node, Opaque) else []
    for entry in node:
        if isinstance(entry.value, Scalar):
            env[entry.key.value] = entry.value.text
        else:
            span = entry.value.span
            env[entry.key.value] = Text.unknown(span, "set from elsewhere", f"the value of {entry.key.value}")
    return []


def _value_from(variable: Map, name: str, near: Item, cluster: Cluster) -> Text:
    reference = variable.map("valueFrom", "configMapKeyRef")
    if reference is not None:
        map_name, key = reference.string("name"), reference.string("key")
        data = _config_map(map_name, near, cluster) if map_name else None
        value = data.text(key) if data is not None and key else None
        if value is not None:
            return value.seen_from(variable.span)
    if "value" in variable and variable.get("valueFrom") is None and isinstance(variable.get("value"), Scalar):
        return Text("", (), (), variable.span)
    return Text.unknown(variable.span, f"{name} is set from a place that is not in these files", f"the value of {name}")


def _config_map(name: str | None, near: Item, cluster: Cluster) -> Map | None:
    found = cluster.find("ConfigMap", name, near) if name else []
    if len(found) == 1 and isinstance(found[0].node, Map):
        return found[0].node.map("data")
    if not found and name:
        return _generated(name, near, cluster)
    return None


def _generated(name: str, near: Item, cluster: Cluster) -> Map | None:
    """A `configMapGenerator` of a kustomization beside the object, with literals or env files."""
    from kvlint.carriers.kustomize import generated_config_map

    return generated_config_map(name, directory(near.path), cluster.project)


def _site(pod: _Pod, container: Map, name: str, cluster: Cluster) -> Site:
    limits = container.map("resources", "limits")
    requests = container.map("resources", "requests")
    place = container.scalar("name")
    root = pod.item.node
    assert isinstance(root, Map)
    hosts = tuple(_services(pod, cluster))
    return Site(
        carrier="kubernetes",
        unit=f"namespace {namespace(pod.item)}",
        name=name,
        place=place.span if place else pod.place,
        labels=pod.labels,
        hosts=hosts,
        ports=_ports(container),
        replicas=_replicas(root),
        gpus=_gpus(limits, requests),
        product=tuple(_products(pod.spec)),
        memory_limit=_quantity(limits.get("memory") if limits else None),
        shared_memory=_shared_memory(pod.spec, container),
        host_ipc=pod.spec.string("hostIPC") == "true",
        data={
            "kind": root.string("kind"),
            "service_links": pod.spec.string("enableServiceLinks") != "false",
            "services": hosts,
            "mig": _mig(limits, requests),
        },
    )


def _ports(container: Map) -> dict[str, Fact[int]]:
    ports: dict[str, Fact[int]] = {}
    for port in (container.list("ports") or List((), container.span)).maps():
        number = port.text("containerPort")
        if number is not None and number.value.isdigit():
            ports[port.string("name") or number.value] = Fact(int(number.value), Written(number.span, number.via))
    return ports


def _replicas(root: Map) -> Value[int] | None:
    node = root.get("spec", "replicas")
    if node is None:
        kind = root.string("kind") or ""
        if kind in ("Deployment", "StatefulSet", "ReplicaSet"):
            return Fact(1, Default("kubernetes", (), "spec.replicas"))
        return None
    if isinstance(node, Scalar) and node.value.isdigit():
        return Fact(int(node.value), Written(node.text.span, node.text.via))
    return Unknown("replicas", "the number of replicas is filled in elsewhere", "a literal spec.replicas")


def _gpus(limits: Map | None, requests: Map | None) -> Value[int] | None:
    for section in (limits, requests):
        if section is None:
            continue
        for entry in section:
            if entry.key.value in GPU_RESOURCES:
                return _quantity(entry.value)
    return None


def _mig(limits: Map | None, requests: Map | None) -> Text | None:
    for section in (limits, requests):
        for entry in section or ():
            if entry.key.value.startswith("nvidia.com/mig-"):
                return entry.key.text
    return None


def _quantity(node: object) -> Value[int] | None:
    if node is None:
        return None
    if isinstance(node, Scalar) and node.text.known:
        number = parse_quantity(node.value)
        if number is not None:
            return Fact(number, Written(node.text.span, node.text.via))
    return Unknown("resources", "a quantity that is filled in elsewhere", "a literal quantity")


def _products(spec: Map) -> Iterator[Product]:
    """What names a device: node selectors, required node affinity with one value, MIG resources."""
    labels: dict[str, Text] = {}
    for entry in spec.map("nodeSelector") or ():
        if isinstance(entry.value, Scalar):
            labels[entry.key.value] = entry.value.text
    required = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    terms = spec.list(*required)
    if terms is not None and len(terms.items) == 1 and isinstance(terms.items[0], Map):
        for expression in (terms.items[0].list("matchExpressions") or List((), spec.span)).maps():
            values = expression.list("values")
            if expression.string("operator") == "In" and values and len(values.items) == 1:
                value, key = values.items[0], expression.string("key")
                if isinstance(value, Scalar) and key:
                    labels.setdefault(key, value.text)
    for key in (*PRODUCT_LABELS, *MEMORY_LABELS):
        if key in labels and HOLE not in labels[key].value:
            yield Product(key, labels[key])


def _shared_memory(spec: Map, container: Map) -> Value[int] | None:
    """Bytes of a memory-backed `/dev/shm`; None where nothing is mounted there."""
    for mount in (container.list("volumeMounts") or List((), container.span)).maps():
        if mount.string("mountPath") not in ("/dev/shm", "/dev/shm/"):
            continue
        for volume in (spec.list("volumes") or List((), spec.span)).maps():
            if volume.string("name") == mount.string("name"):
                size = _quantity(volume.get("emptyDir", "sizeLimit"))
                return size or Fact(0, Assumed("a mounted /dev/shm without sizeLimit takes half of the node's memory"))
        return Unknown("shared_memory", "the volume at /dev/shm is not in these files", "the volume's definition")
    return None


def _services(pod: _Pod, cluster: Cluster) -> Iterator[str]:
    """Services whose selector the pod's labels satisfy, in its namespace."""
    for item in cluster.of_kind("Service"):
        if namespace(item) != namespace(pod.item) or not isinstance(item.node, Map):
            continue
        selector = _labels(item.node.map("spec", "selector"))
        if selector and all(pod.labels.get(key) == value for key, value in selector.items()):
            name = item.node.string("metadata", "name")
            if name:
                yield name


def entries(node: Map | None) -> tuple[Entry, ...]:
    return node.entries if node else ()
