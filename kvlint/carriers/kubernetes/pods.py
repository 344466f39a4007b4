"""Containers of a pod: what each of them starts, and the place where it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kvlint.carriers.arguments import declared, started, told
from kvlint.carriers.base import Item, hidden
from kvlint.carriers.host import narrowed
from kvlint.carriers.kubernetes.cluster import Cluster, unit
from kvlint.carriers.kubernetes.kubelet import arguments, environment, unrendered
from kvlint.carriers.kubernetes.resources import (
    gpus_of,
    group_gpus,
    mig_of,
    products_of,
    quantity_of,
    shared_memory_of,
    slice_of,
)
from kvlint.carriers.launch import SCRIPT_ENDINGS, Launch, Scripts, launches
from kvlint.carriers.unread import of_words
from kvlint.command import CommandLine, Opening
from kvlint.facts import Fact, Value, Written
from kvlint.formats.shell import invocation
from kvlint.parsing import kind_of
from kvlint.records import dataclass, field, replace
from kvlint.source import Span, Text
from kvlint.subjects import Process, Product, Site
from kvlint.tree import List, Map, Node, Opaque, Scalar


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
    lines = told(launches(launch))
    if not lines:
        of_words(launch.words, env, cluster.project)
    site = site_of(pod, container, cluster)
    for line in lines:
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
        "mig": mig_of(limits, requests),
        "spread": bool(services) and not _kept_together(services, pod, cluster),
        "mounted": lambda path: mounted(pod, path, cluster),
        **pod.data,
    }
    claimed = _claims(pod, container)
    together = claimed[0] if claimed else f"pod {_own(pod)}"
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
        product=(*slice_of(data["mig"]), *products_of(pod.spec), *pod.products),
        memory_limit=quantity_of(limits.get("memory") if limits else None),
        shared_memory=shared_memory_of(pod.spec, container),
        host_ipc=pod.spec.string("hostIPC") == "true",
        resident_with=together if _stays(pod, container) else None,
        data=data,
    )


def _own(pod: Pod) -> str:
    """What tells a pod from every other: pods of one object may go by one name, and so may objects of two namespaces."""
    return f"{pod.item.path}#{pod.workload}@{pod.spec.span.start}"


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
        owner = f"{pod.unit or unit(pod.item)} {shared}" if shared else f"{_own(pod)} {name}"
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
