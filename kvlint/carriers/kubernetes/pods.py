"""Containers of a pod: their words after the kubelet, their environment, devices and names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kvlint.carriers.arguments import declared, started, told
from kvlint.carriers.base import Item
from kvlint.carriers.host import narrowed
from kvlint.carriers.kubernetes.cluster import Cluster, texts, unit
from kvlint.carriers.launch import SCRIPT_ENDINGS, Launch, Scripts, launches
from kvlint.command import CommandLine, Opening
from kvlint.facts import Assumed, Fact, Unknown, Value, Written, quantity
from kvlint.formats.shell import invocation, kubelet_expand
from kvlint.parsing import kind_of
from kvlint.patterns import regex
from kvlint.records import dataclass, field, replace
from kvlint.source import HOLE, Span, Text
from kvlint.subjects import Process, Product, Site
from kvlint.tree import List, Map, Node, Opaque, Scalar
from kvlint.units import parse_quantity

GPU_RESOURCES = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "gpu.intel.com/xe",
    "gpu.intel.com/i915",
    "google.com/tpu",
    "habana.ai/gaudi",
)
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
# `${X}` where no shell runs: envsubst or a GitOps controller fills it in before the file is applied.
# What a pod's `fieldRef` gives without a blank in it (its annotations are free text).
_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs"),
)
_UNRENDERED = regex(
    r"(?<!\$)\$(?:\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::?[-=?+][^{}]*)?\}|\((?P<variable>[A-Za-z_][A-Za-z0-9_.-]*)\))"
)
_REQUIRED = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod as its object, chart or operator makes it.

    `size`: pods of one replica, where several work together.  `hosts`: None asks for the Services that select `labels`.
    `engine`: what the container runs where no command says so.  `env`: what the controller sets.
    """

    item: Item
    spec: Map
    workload: str
    place: Span
    labels: Mapping[str, str] = field(default_factory=dict)
    carrier: str = "kubernetes"
    unit: str | None = None
    hosts: tuple[str, ...] | None = None
    replicas: Value[int] | None = None
    size: Value[int] | None = None
    gpus: Value[int] | None = None
    products: tuple[Product, ...] = ()
    engine: str | None = None
    env: Mapping[str, Text] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


@quantity(
    "group_gpus",
    unit="count",
    formula="gpus of a pod x pods of a group",
    source="kubernetes-sigs/lws@060ab4da:api/leaderworkerset/v1/leaderworkerset_types.go#L67-75",
)
def group_gpus(gpus: int, size: int) -> int:
    """Devices that one replica has over all its pods."""
    return gpus * size


@quantity(
    "group_devices",
    unit="devices",
    formula="devices of the leader + (pods - 1) x devices of a worker",
    source="kubernetes-sigs/lws@060ab4da:api/leaderworkerset/v1/leaderworkerset_types.go#L67-75",
)
def group_devices(leader: int, worker: int, size: int) -> int:
    """All that one group of pods may have between its containers."""
    return leader + worker * (size - 1)


@quantity("pod_devices", unit="devices", formula="devices of all containers", source="arithmetic")
def pod_devices(**asked: int) -> int:
    return sum(asked.values())


def devices_of(spec: Map) -> Value[int] | None:
    """Devices that the containers of a pod ask for together; None where none asks."""
    asked: dict[str, Value[int]] = {}
    for container in (spec.list("containers") or List((), spec.span)).maps():
        found = gpus_of(container.map("resources", "limits"), container.map("resources", "requests"))
        if found is not None:
            asked[f"container_{len(asked)}"] = found
    return pod_devices(**asked) if asked else None


def processes(pod: Pod, cluster: Cluster) -> Iterator[Process]:
    """Every engine that the containers of a pod start."""
    for section in ("initContainers", "containers"):
        for container in (pod.spec.list(section) or List((), pod.place)).maps():
            yield from of_container(pod, container, cluster)


def of_container(pod: Pod, container: Map, cluster: Cluster) -> Iterator[Process]:
    found = list(_started(pod, container, cluster))
    yield from _branches(pod, container, cluster, bool(found)) or found


def _branches(pod: Pod, container: Map, cluster: Cluster, seen: bool) -> list[Process]:
    """What each branch of a chart's template starts, where its branches write the command.

    Of an `if` without `else` the line without it says enough, if there is one (`seen`).  Nobody knows which branch is taken, or
    with which values: a line from inside of one is open at its end.
    """
    written = [container.get(key) for key in ("command", "args")]
    if not any(_touched(node) for node in written) or kind_of(pod.item.path) != "yaml":
        return []
    from kvlint.formats import yaml

    known = [_said(node) for node in written]
    found: list[Process] = []
    told_: set[tuple[str, ...]] = set()
    for nodes in yaml.alternatives(pod.item.source, pod.item.span, container.span):
        if seen and len(nodes) < 2:
            continue
        for node in nodes:
            if [_said(node.get(key)) for key in ("command", "args")] == known:
                continue
            for process in _started(pod, node, cluster):
                words = tuple(word.value for word in process.line.words)
                if words not in told_:
                    told_.add(words)
                    found.append(replace(process, line=_opened(process.line, node.span)))
    return found


def _touched(node: Node | None) -> bool:
    """Whether a template writes a part of a node."""
    if isinstance(node, List):
        return bool(node.open) or any(_touched(item) for item in node)
    return isinstance(node, Opaque) or (isinstance(node, Scalar) and not node.text.known)


def _said(node: Node | None) -> list[str]:
    items = node.items if isinstance(node, List) else (node,)
    return [item.value for item in items if isinstance(item, Scalar)]


def _opened(line: CommandLine, place: Span) -> CommandLine:
    opening = Opening(len(line.args), place, "a template chooses between several values", "render the template")
    return replace(line, open=(*line.open, opening))


def _started(pod: Pod, container: Map, cluster: Cluster) -> Iterator[Process]:
    command, args = container.get("command"), container.get("args") or hidden(container, "args")
    image = image_of(container)
    if command is None and args is None and image is None and pod.engine is None:
        return
    env, env_open = environment(container, pod.item, cluster, pod.env)
    words, openings = arguments(command, env)
    more, later = arguments(args, env)
    if command is None and pod.engine is not None:
        start = image.span if image is not None else pod.place
        words = [*started(pod.engine, start)]
    openings += [replace(opening, index=opening.index + len(words)) for opening in later]
    words += more
    if invocation(words) is None:
        words = [unrendered(word) for word in words]
    place = container.scalar("name")
    identity = f"{pod.item.path}#{pod.workload}/{container.string('name') or 'container'}"
    launch = Launch(
        words=tuple(words),
        entrypoint=command is None and pod.engine is None,
        image=unrendered(image) if image is not None else None,
        env=env,
        env_open=tuple(env_open),
        open=tuple(openings),
        place=place.span if place else container.span,
        scripts=_scripts(pod, cluster),
        engine=declared(cluster.project.config, identity, words),
    )
    site = site_of(pod, container, cluster)
    for line in told(launches(launch)):
        yield Process(narrowed(site, line, own=False) if site.gpus is not None else site, line)


def _scripts(pod: Pod, cluster: Cluster) -> Scripts:
    """The script that a word names: a key of a ConfigMap that the pod mounts, else a file of the project."""
    from kvlint.carriers.scripts import Files

    in_files = Files(cluster.project).scripts(pod.item.path)

    def script(word: Text, given: Iterable[Text] = ()) -> Text | None:
        found = mounted(pod, word.value, cluster) if word.value.endswith(SCRIPT_ENDINGS) else None
        return found if found is not None else in_files(word, given)

    return script


def mounted(pod: Pod, path: str, cluster: Cluster) -> Text | None:
    """The text of a file that a ConfigMap brings into the pod, by its name."""
    for volume in (pod.spec.list("volumes") or List((), pod.place)).maps():
        name = volume.string("configMap", "name")
        data = cluster.config_map(name, pod.item) if name else None
        text = data.text(path.rpartition("/")[2]) if data is not None else None
        if text is not None:
            return text
    return None


def image_of(container: Map) -> Text | None:
    """`image: name`, or the `repository` and `tag` that charts write."""
    node = container.get("image")
    if not isinstance(node, Map):
        return container.text("image")
    found = node.text("repository") or node.text("name")
    tag = node.text("tag") or node.text("digest")
    if found is not None and tag is None and ":" not in found.value.rpartition("/")[2]:
        tag = Text.unknown(found.span, "the chart has a tag of its own", "a literal tag")
    return joined_image(found, tag, node)


def joined_image(repository: Text | None, tag: Text | None, node: Node) -> Text | None:
    if repository is None:
        return None
    registry = node.text("registry") if isinstance(node, Map) else None
    if registry is not None and registry.value:
        repository = Text.join((registry, Text.at("/", registry.span), repository))
    if tag is None or not tag.value:
        return repository
    colon = Text.at("@" if tag.value.startswith("sha256:") else ":", tag.span)
    return Text.join((repository, colon, tag))


def unrendered(text: Text) -> Text:
    """The text with `${X}` as holes: outside a shell nobody expands it, so a template is meant.

    A `$(X)` that the container's own variables leave is set by a controller, a webhook or an `envFrom` out of view.
    """
    if "${" not in text.value and "$(" not in text.value:
        return text
    parts, at = [], 0
    for match in _UNRENDERED.finditer(text.value):
        name = match["name"] or match["variable"]
        span = text.slice(*match.span()).span
        hole = Text.unknown(span, f"{match[0]} is filled in before this file is applied", f"the value of {name}")
        parts += [text.slice(at, match.start()), hole]
        at = match.end()
    return Text.join((*parts, text.slice(at))) if parts else text


def arguments(node: object, env: Mapping[str, Text]) -> tuple[list[Text], list[Opening]]:
    """The items of `command` or `args` after the kubelet's `$(VAR)`; unseen items are openings."""
    words: list[Text] = []
    openings: list[Opening] = []
    if isinstance(node, Opaque):
        return [], [Opening(0, node.span, node.reason, node.supply)]
    if isinstance(node, Scalar) and node.tag != "null":
        return [kubelet_expand(node.text, env)], []
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


def environment(
    container: Map, near: Item, cluster: Cluster, given: Mapping[str, Text] | None = None
) -> tuple[dict[str, Text], list[Opening]]:
    """A container's environment: `envFrom` first, then `env` in order, values after the kubelet's `$(VAR)` of earlier ones."""
    env: dict[str, Text] = dict(given or {})
    open_: list[Opening] = []
    for each in (container.list("envFrom") or List((), container.span)).maps():
        name = each.string("configMapRef", "name")
        data = cluster.config_map(name, near)
        if data is None:
            open_.append(Opening(0, each.span, "an environment that is not in these files"))
            continue
        prefix = each.string("prefix") or ""
        for entry in data:
            if isinstance(entry.value, Scalar):
                env[prefix + entry.key.value] = unrendered(entry.value.text.seen_from(each.span))
    node = container.get("env")
    if isinstance(node, List):
        for variable in node.maps():
            _set(env, variable, near, cluster)
        open_ += [Opening(0, each.span, each.reason, each.supply) for each in node.open]
    elif isinstance(node, Map):
        _set_all(env, node, near, cluster)
    elif (unseen := hidden(container, "env")) is not None:
        open_.append(Opening(0, unseen.span, unseen.reason, unseen.supply))
    return env, open_


def _set(env: dict[str, Text], variable: Map, near: Item, cluster: Cluster) -> None:
    name = variable.string("name")
    if name is None:
        return
    value = variable.text("value")
    env[name] = (
        unrendered(kubelet_expand(value, env)) if value is not None else _value_from(variable, name, near, cluster)
    )


def _set_all(env: dict[str, Text], node: Map, near: Item, cluster: Cluster) -> None:
    """Charts and operators that write `env` as a mapping."""
    for entry in node:
        name, value = entry.key.value, entry.value
        if isinstance(value, Scalar):
            env[name] = unrendered(kubelet_expand(value.text, env)) if value.text.value else value.text
        elif isinstance(value, Map):
            text = value.text("value")
            env[name] = text if text is not None else _value_from(value, name, near, cluster)
        else:
            env[name] = Text.unknown(value.span, "set from elsewhere", f"the value of {name}")


def _value_from(variable: Map, name: str, near: Item, cluster: Cluster) -> Text:
    reference = variable.map("valueFrom", "configMapKeyRef") or variable.map("configMapKeyRef")
    if reference is not None:
        key = reference.string("key")
        data = cluster.config_map(reference.string("name"), near)
        value = data.text(key) if data is not None and key else None
        if value is not None:
            return unrendered(value.seen_from(variable.span))
    if "value" in variable and variable.get("valueFrom") is None and isinstance(variable.get("value"), Scalar):
        return Text("", (), (), variable.span)
    field_ = variable.string("valueFrom", "fieldRef", "fieldPath") or ""
    return Text.unknown(
        variable.span,
        f"{name} is set from a place that is not in these files",
        f"the value of {name}",
        # names and addresses of the pod, never several words
        whole=field_ in _FIELDS or field_.startswith("metadata.labels"),
    )


def site_of(pod: Pod, container: Map, cluster: Cluster) -> Site:
    limits = container.map("resources", "limits")
    requests = container.map("resources", "requests")
    place = container.scalar("name")
    ports = ports_of(container)
    services = [] if pod.hosts is not None else cluster.services(pod.labels, pod.item)
    hosts = tuple(each.string("metadata", "name") or "" for each in services)
    data: dict[str, Any] = {
        "service_links": pod.spec.string("enableServiceLinks") != "false",
        "services": hosts,
        "service_ports": tuple(number for each in services for number in _service_ports(each, ports)),
        "called": {
            name: found for each, name in zip(services, hosts, strict=True) if (found := _listed(each)) is not None
        },
        "mig": _mig(limits, requests),
        "spread": bool(services) and not _kept_together(services, pod, cluster),
        "mounted": lambda path: mounted(pod, path, cluster),
        **pod.data,
    }
    claimed = _claims(pod, container)
    together = claimed[0] if claimed else f"pod {pod.item.path}#{pod.workload}"
    if claimed:
        data["claims"] = claimed
    if cluster.overlay:
        data["identity"] = f"{pod.item.path}@{cluster.overlay}"
        data["build"] = cluster.overlay
    if pod.size is not None:
        data["group_size"] = pod.size
    gpus = gpus_of(limits, requests)
    gpus = pod.gpus if gpus is None else gpus
    if gpus is not None and pod.size is not None:
        gpus = group_gpus(gpus, pod.size)
    name = container.string("name") or "container"
    return Site(
        carrier=pod.carrier,
        unit=pod.unit or unit(pod.item),
        name=f"{pod.workload}/{name}",
        place=place.span if place else pod.place,
        labels=pod.labels,
        hosts=hosts if pod.hosts is None else pod.hosts,
        ports=ports,
        replicas=pod.replicas,
        gpus=gpus,
        product=(*_slice(data["mig"]), *products_of(pod.spec), *pod.products),
        memory_limit=quantity_of(limits.get("memory") if limits else None),
        shared_memory=_shared_memory(pod.spec, container),
        host_ipc=pod.spec.string("hostIPC") == "true",
        resident_with=together if _stays(pod, container) else None,
        data=data,
    )


def _claims(pod: Pod, container: Map) -> tuple[str, ...]:
    """Devices that the container claims by name: of a ResourceClaim of the namespace, or of one that its pod alone is made.

    A request within a claim is a device of its own.
    """
    made = {each.string("name"): each for each in (pod.spec.list("resourceClaims") or List((), pod.place)).maps()}
    found = []
    for each in (container.list("resources", "claims") or List((), container.span)).maps():
        name = each.string("name")
        if name is None or name not in made:
            continue
        shared, request = made[name].string("resourceClaimName"), each.string("request")
        owner = f"{pod.unit or unit(pod.item)} {shared}" if shared else f"{pod.item.path}#{pod.workload} {name}"
        found.append(f"{owner}/{request}" if request else owner)
    return tuple(found)


def _stays(pod: Pod, container: Map) -> bool:
    """Whether the container runs as long as its pod does: an init container ends, and zero replicas are none."""
    first = any(each is container for each in (pod.spec.list("initContainers") or List((), pod.place)).maps())
    return not first and not (isinstance(pod.replicas, Fact) and pod.replicas.value == 0)


def _kept_together(services: list[Map], pod: Pod, cluster: Cluster) -> bool:
    from kvlint.carriers.kubernetes.affinity import kept_together

    return kept_together(services, pod.labels, pod.item, cluster)


def ports_of(container: Map) -> dict[str, Fact[int]]:
    ports: dict[str, Fact[int]] = {}
    for port in (container.list("ports") or List((), container.span)).maps():
        number = port.text("containerPort")
        if number is not None and number.value.isdigit():
            ports[port.string("name") or number.value] = Fact(int(number.value), Written(number.span, number.via))
    return ports


def _service_ports(service: Map, ports: Mapping[str, Fact[int]]) -> Iterator[int]:
    """The ports of a Service that lead to one of the container's, or may."""
    numbers = {str(fact.value) for fact in ports.values()}
    for port in (service.list("spec", "ports") or List((), service.span)).maps():
        number = port.string("port")
        target = port.string("targetPort") or number
        if number is not None and number.isdigit() and (not ports or target in numbers or target in ports):
            yield int(number)


def _listed(service: Map) -> tuple[Fact[int], ...] | None:
    """The ports of a Service, and no others behind its name; None where the name leads to the pods themselves."""
    ports = service.list("spec", "ports")
    if ports is None or ports.open or service.string("spec", "clusterIP") == "None":
        return None
    texts_ = [each.text("port") for each in ports.maps()]
    if len(texts_) != len(ports.items) or not all(text is not None and text.value.isdigit() for text in texts_):
        return None
    return tuple(Fact(int(text.value), Written(text.span, text.via)) for text in texts_ if text is not None)


def count_of(node: Node | None, missing: str, supply: str) -> Value[int] | None:
    """A whole number as written; None where nothing stands there."""
    if node is None or (isinstance(node, Scalar) and node.tag == "null"):
        return None
    if isinstance(node, Scalar) and node.value.isdigit():
        return Fact(int(node.value), Written(node.text.span, node.text.via))
    return Unknown(missing, f"{missing} is filled in elsewhere", supply)


def gpus_of(limits: Map | None, requests: Map | None) -> Value[int] | None:
    for section in (limits, requests):
        for entry in section or ():
            if entry.key.value.strip() in GPU_RESOURCES:
                return quantity_of(entry.value)
    return None


def _mig(limits: Map | None, requests: Map | None) -> Text | None:
    for section in (limits, requests):
        for entry in section or ():
            if entry.key.value.startswith("nvidia.com/mig-"):
                return entry.key.text
    return None


def _slice(mig: Text | None) -> Iterator[Product]:
    """A slice of a device that is asked for has the slice's memory, whatever device the node has."""
    if mig is not None and mig.known:
        yield Product(mig.value, mig)


def quantity_of(node: object) -> Value[int] | None:
    if node is None or (isinstance(node, Scalar) and node.tag == "null"):
        return None
    if isinstance(node, Scalar) and node.text.known:
        number = parse_quantity(node.value)
        if number is not None:
            return Fact(number, Written(node.text.span, node.text.via))
    return Unknown("resources", "a quantity that is filled in elsewhere", "a literal quantity")


def products_of(spec: Map) -> Iterator[Product]:
    """What names a device: node selectors, and required node affinity with one value."""
    labels: dict[str, Text] = {}
    for entry in spec.map("nodeSelector") or ():
        if isinstance(entry.value, Scalar):
            labels[entry.key.value] = entry.value.text
    terms = spec.list(*_REQUIRED) or spec.list("nodeSelectorTerms")
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
                size = quantity_of(volume.get("emptyDir", "sizeLimit"))
                return size or Fact(0, Assumed("a mounted /dev/shm without sizeLimit takes half of the node's memory"))
        return Unknown("shared_memory", "the volume at /dev/shm is not in these files", "the volume's definition")
    unseen = hidden(container, "volumeMounts")
    return Unknown("shared_memory", unseen.reason, unseen.supply or "the volumeMounts") if unseen is not None else None


def hidden(node: Map, key: str) -> Opaque | None:
    """What may stand under a key, or among its items, without being seen."""
    found = node.get(key)
    if isinstance(found, Opaque):
        return found
    unseen = node.open if found is None else found.open if isinstance(found, (Map, List)) else ()
    items = found.items if isinstance(found, List) else ()
    return next((each for each in (*unseen, *items) if isinstance(each, Opaque)), None)


def labels_of(node: Map | None) -> dict[str, str]:
    return texts(node)
