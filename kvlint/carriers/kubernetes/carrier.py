"""Kubernetes objects: the pods of every workload, and what custom resources of known groups make of themselves.

An object whose group and kind have a handler goes there; under any other kind, every `containers` list is a pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import MappingProxyType

from kvlint.carriers import nodes
from kvlint.carriers.base import KUSTOMIZATIONS, Finding, Item, count_of, is_kustomization, is_object, nearest_paths
from kvlint.carriers.kubernetes.cluster import Cluster, group, namespace, texts
from kvlint.carriers.kubernetes.pods import Pod, processes
from kvlint.carriers.kubernetes.resources import devices_of, group_devices
from kvlint.facts import Default, Fact, Value, Written
from kvlint.parsing import kind_of
from kvlint.project import Project
from kvlint.source import Text
from kvlint.subjects import Admission, Problem, Process
from kvlint.tree import List, Map, Node

AIBRIX_NAME = "model.aibrix.ai/name"  # vllm-project/aibrix@e3e10f9e:pkg/constants/model.go#L25
TEMPLATE = ("spec", "template", "spec")
POD_PATHS: dict[str, tuple[tuple[str, ...], ...]] = {
    "Pod": (("spec",),),
    "CronJob": (("spec", "jobTemplate", "spec", "template", "spec"),),
    "LeaderWorkerSet": (
        ("spec", "leaderWorkerTemplate", "leaderTemplate", "spec"),
        ("spec", "leaderWorkerTemplate", "workerTemplate", "spec"),
    ),
}
# API group and kind to the module that reads such objects, in place of the walk for pods.
HANDLERS: dict[tuple[str, str], str] = {
    ("", "ConfigMap"): "embedded",
    ("", "Secret"): "embedded",
    ("serving.kserve.io", "InferenceService"): "kubernetes.kserve",
    ("serving.kserve.io", "ServingRuntime"): "kubernetes.kserve",
    ("serving.kserve.io", "ClusterServingRuntime"): "kubernetes.kserve",
    ("serving.kserve.io", "LLMInferenceService"): "kubernetes.kserve_llm",
    ("serving.kserve.io", "LLMInferenceServiceConfig"): "kubernetes.kserve_llm",
    ("serving.knative.dev", "Service"): "kubernetes.gateways",
    ("ray.io", "RayService"): "ray",
    ("ray.io", "RayCluster"): "ray",
    ("ray.io", "RayJob"): "ray",
    ("kubeai.org", "Model"): "kubernetes.kubeai",
    ("production-stack.vllm.ai", "VLLMRuntime"): "kubernetes.operators",
    ("inference.llmkube.dev", "InferenceService"): "kubernetes.operators",
    ("kaito.sh", "Workspace"): "kubernetes.operators",
    ("kaito.sh", "InferenceSet"): "kubernetes.operators",
    ("workload.serving.volcano.sh", "ModelBooster"): "kubernetes.operators",
    ("litellm.home-operations.com", "LiteLLMModel"): "proxies.litellm",
    ("helm.toolkit.fluxcd.io", "HelmRelease"): "kubernetes.helmrelease",
    ("argoproj.io", "Application"): "kubernetes.helmrelease",
    ("argoproj.io", "ApplicationSet"): "kubernetes.helmrelease",
    ("helm.cattle.io", "HelmChart"): "kubernetes.helmrelease",
    ("helm.cattle.io", "HelmChartConfig"): "kubernetes.helmrelease",
    ("kustomize.config.k8s.io", "Kustomization"): "kubernetes.helmrelease",
    ("keda.sh", "ScaledObject"): "kubernetes.gateways",
    ("autoscaling", "HorizontalPodAutoscaler"): "kubernetes.gateways",
    ("networking.k8s.io", "Ingress"): "kubernetes.gateways",
    ("networking.istio.io", "DestinationRule"): "kubernetes.gateways",
    ("gateway.envoyproxy.io", "BackendTrafficPolicy"): "kubernetes.gateways",
    ("traefik.io", "Middleware"): "kubernetes.gateways",
    ("traefik.containo.us", "Middleware"): "kubernetes.gateways",
}
# Kinds that stand in front of servers and often in files that name no engine, with the words without which they say nothing.
CONTEXT_KINDS = {
    "ScaledObject": "scaleTargetRef",
    "Ingress": "nginx.org/max-conns",
    "DestinationRule": "connectionPool",
    "BackendTrafficPolicy": "circuitBreaker",
    "Middleware": "inFlightReq",
}
WITHOUT_PODS = (
    "Service",
    "Secret",
    "CustomResourceDefinition",
    "ConfigMap",
)  # of Kubernetes itself; Knative has another Service
SINGLE = ("runner", "mainContainer", "container")  # keys under which an operator's object has one container and no list
_NO_TEXTS: dict[str, Text] = {}
MAX_DEPTH = 24


class Kubernetes:
    name = "kubernetes"

    def claims(self, item: Item) -> bool:
        return is_object(item) or is_kustomization(item)

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        builds, fragments = _builds(items, project)
        covered = {path for build in builds for path in build.paths}
        plain = Cluster(project, paths=set(covered))
        for item in items:
            if item.path not in covered:
                plain.add(fragments.get((item.path, item.ordinal), item))
        for kind, word in CONTEXT_KINDS.items():
            plain.search(word, kind)
        for kind, name in tuple(plain.objects):
            if kind not in WITHOUT_PODS:
                plain.search(name, "HorizontalPodAutoscaler")
        for cluster in (plain, *builds):
            yield from _cluster(cluster)


CARRIER = Kubernetes()


def _builds(items: list[Item], project: Project) -> tuple[list[Cluster], dict[tuple[str, int], Item]]:
    """What the kustomizations of the project make of the items, and the patches among these whose object is not in view."""
    files = any(kind_of(item.path) in ("yaml", "json") for item in items)  # others hold documents as texts
    if not files or {path.rpartition("/")[2] for path in project.all_paths}.isdisjoint(KUSTOMIZATIONS):
        return [], {}
    from kvlint.carriers.kubernetes import kustomize

    made = kustomize.builds(items, project)
    named = {path: span for path, span in made.patches.items() if path not in made.applied}
    return made.clusters, {
        (item.path, item.ordinal): kustomize.fragment(item, named[item.path]) for item in items if item.path in named
    }


def _cluster(cluster: Cluster) -> Iterator[Finding]:
    started: list[Process] = []
    scalers: list[Admission] = []
    pickers: list[Admission] = []
    for item in (*cluster.items, None):
        for each in read_object(item, cluster) if item is not None else _generated(cluster):
            if isinstance(each, Process):
                started.append(each)
                _note_build(each, cluster)
            elif isinstance(each, Admission):
                each.build = cluster.overlay
                scalers += [each] if each.system in ("keda", "hpa") else []
                pickers += [each] if each.system == "llm-d" else []
            yield each
    for scaler in scalers:
        scaler.target = _scaled(scaler, started)
    if pickers:
        from kvlint.carriers.kubernetes import picker

        cluster.search("InferencePool")
        for each in pickers:
            each.target = picker.target(each, started, cluster)
    yield from _service_links(started, cluster)


def _note_build(process: Process, cluster: Cluster) -> None:
    """A process that a file in a ConfigMap starts is its overlay's, as a container's is."""
    site = process.site
    if cluster.overlay and "build" not in site.data and isinstance(site.data, dict):
        site.data.setdefault("identity", f"{site.place.path}@{cluster.overlay}")
        site.data["build"] = cluster.overlay


def _generated(cluster: Cluster) -> Iterator[Finding]:
    if not cluster.generated:
        return
    from kvlint.carriers import embedded

    yield from embedded.generated(cluster)


def _scaled(scaler: Admission, started: list[Process]) -> Process | None:
    """The one server of the workload that an autoscaler names."""
    found = [
        each for each in started if each.site.unit == scaler.unit and each.site.name.partition("/")[0] in scaler.names
    ]
    close = nearest_paths(scaler.place.path, (each.site.place.path for each in found))
    found = [each for each in found if each.site.place.path in close]
    return found[0] if len(found) == 1 else None


def read_object(item: Item, cluster: Cluster) -> Iterator[Finding]:
    """Everything that one object says, by its handler or by its pods."""
    node = item.node
    if not isinstance(node, Map):
        return
    kind = node.string("kind") or ""
    handler = "kubernetes.helmrelease" if is_kustomization(item) else HANDLERS.get((group(node), kind))
    if handler is not None:
        yield from import_module(f"kvlint.carriers.{handler}").objects(item, cluster)
    elif kind not in WITHOUT_PODS or group(node) not in ("", "apiextensions.k8s.io"):
        for pod in pods_of(item):
            yield from processes(pod, cluster)


def pods_of(item: Item) -> Iterator[Pod]:
    """Every pod of an object: where its kind has it, else wherever a `containers` list stands."""
    root = item.node
    assert isinstance(root, Map)
    kind = root.string("kind") or ""
    name_node = root.scalar("metadata", "name") or root.scalar("metadata", "generateName")
    name = name_node.value if name_node and name_node.text.known else kind.lower()
    place = name_node.span if name_node else root.span
    data = MappingProxyType({"kind": kind, **(_group(root) if kind == "LeaderWorkerSet" else {})})
    found = False
    for path in POD_PATHS.get(kind, (TEMPLATE,)):
        spec = root.map(*path)
        if spec is None or spec.list("containers") is None:
            continue
        found = True
        labels = root.map(*path[:-1], "metadata", "labels")
        yield Pod(
            item,
            spec,
            name,
            place,
            texts(labels),
            replicas=_replicas(root),
            size=_group_size(root) if kind == "LeaderWorkerSet" else None,
            env=_group_variables(root) if kind == "LeaderWorkerSet" else _NO_TEXTS,
            data=MappingProxyType({**data, **_routed(labels)}),
        )
    if found:
        return
    walked = MappingProxyType({"kind": kind, "walked": True})
    for path, owners, spec in _find_pods(root, (), (), 0):
        around = owners[-1].map("metadata", "labels") if owners else None
        inner = path[-3] if len(path) > 2 and path[-1] == "spec" else path[-1] if path else ""
        workload = f"{name}/{inner}" if inner not in ("", "spec", "template", "predictor", "model") else name
        replicas = _nearest_replicas(root, owners)
        given = MappingProxyType({**walked, **_routed(around)})
        yield Pod(item, spec, workload, place, texts(around), replicas=replicas, data=given)


def _routed(labels: Map | None) -> dict[str, Fact[str]]:
    """The name by which AIBrix's gateway finds the pods of a model."""
    text = labels.text(AIBRIX_NAME) if labels is not None else None
    if text is None or not text.known or text.value.startswith("<"):  # `<model-name>` is still to be filled in
        return {}
    return {"routed_name": Fact(text.value, Written(text.span, text.via))}


Found = tuple[tuple[str, ...], tuple[Map, ...], Map]


def _find_pods(node: Map, path: tuple[str, ...], owners: tuple[Map, ...], depth: int) -> Iterator[Found]:
    """Each `containers` list: its path by names, the maps around it, outermost first, and the map that holds it."""
    if depth > MAX_DEPTH:
        return
    containers = node.list("containers")
    if containers is not None and any("name" in each or "image" in each for each in containers.maps()):
        yield path, owners, node
        return
    for entry in node:
        if isinstance(entry.value, Map) and entry.key.value in SINGLE and "image" in entry.value:
            alone = {
                **{each.key.value: each.value for each in node},
                "containers": List((entry.value,), entry.value.span),
            }
            yield (*path, entry.key.value), owners, nodes.mapping(node.span, alone)
        elif isinstance(entry.value, Map):
            yield from _find_pods(entry.value, (*path, entry.key.value), (*owners, node), depth + 1)
        elif isinstance(entry.value, List):
            for each in entry.value.maps():
                name = each.string("name") or entry.key.value
                yield from _find_pods(each, (*path, entry.key.value, name), (*owners, node), depth + 1)


def _replicas(root: Map) -> Value[int] | None:
    found = count_of(root.get("spec", "replicas"), "replicas", "a literal spec.replicas")
    if found is None and root.string("kind") in ("Deployment", "StatefulSet", "ReplicaSet"):
        return Fact(1, Default("kubernetes", (), "spec.replicas"))
    return found


def _nearest_replicas(root: Map, owners: tuple[Map, ...]) -> Value[int] | None:
    """The number that the innermost map around a pod states."""
    for owner in reversed(owners):
        if owner is not root and "replicas" in owner:
            return count_of(owner.get("replicas"), "replicas", "a literal number of replicas")
    return _replicas(root)


def _group_size(root: Map) -> Value[int] | None:
    return count_of(root.get("spec", "leaderWorkerTemplate", "size"), "size", "a literal leaderWorkerTemplate.size")


def _group(root: Map) -> dict[str, Value[int]]:
    """The devices of all pods of a group, where both templates ask for some and nothing joins them to a cluster outside."""
    worker = root.map("spec", "leaderWorkerTemplate", "workerTemplate", "spec")
    leader = root.map("spec", "leaderWorkerTemplate", "leaderTemplate", "spec") or worker
    size = _group_size(root)
    if worker is None or leader is None or size is None:
        return {}
    env = (each for spec in (leader, worker) for container in spec.list("containers") or () for each in _env(container))
    first, others = devices_of(leader), devices_of(worker)
    if first is None or others is None or any(name == "RAY_ADDRESS" for name in env):
        return {}
    return {"group_devices": group_devices(first, others, size)}


def _env(container: Node) -> Iterator[str | None]:
    listed = container.list("env") if isinstance(container, Map) else None
    return (each.string("name") for each in (listed.maps() if listed is not None else ()))


def _group_variables(root: Map) -> dict[str, Text]:
    """What the LeaderWorkerSet controller sets in every container (kubernetes-sigs/lws: pkg/utils/pod)."""
    size = root.scalar("spec", "leaderWorkerTemplate", "size")
    span = size.span if size is not None else root.span
    reason = "set by the LeaderWorkerSet controller"
    variables = {
        name: Text.unknown(span, f"{name} is {reason}", f"the value of {name}", whole=True)
        for name in ("LWS_LEADER_ADDRESS", "LWS_WORKER_INDEX")
    }
    return variables | ({"LWS_GROUP_SIZE": size.text} if size is not None else {})


def _service_links(started: list[Process], cluster: Cluster) -> Iterator[Problem]:
    """A Service whose name makes the kubelet set a variable that an engine beside it reads as its own.

    `NAME_PORT=tcp://…` goes into every pod of the namespace that starts later, unless `enableServiceLinks` is false there or the
    container sets the variable itself.  Services without a cluster address are left out.
    """
    from kvlint import engines
    from kvlint.engines.options import options

    readers = [(each, engines.named_by(each.line)) for each in started if each.site.data.get("service_links")]
    for item in cluster.of_kind("Service") if readers else ():
        node = item.node
        name = node.scalar("metadata", "name") if isinstance(node, Map) and group(node) == "" else None
        if name is None or not name.text.known or not isinstance(node, Map) or _headless(node):
            continue
        variable = name.value.upper().replace("-", "_") + "_PORT"
        for process, engine in readers:
            if engine is None or process.site.unit != f"namespace {namespace(item)}" or variable in process.line.env:
                continue
            if variable in options(engine).environment:
                data = {"engine": engine, "variable": variable, "value": name.value}
                related = (("counterpart", process.site.place, "reads it"),)
                yield Problem("service-link-collision", name.span, data, related)
                break


def _headless(service: Map) -> bool:
    return service.string("spec", "clusterIP") == "None" or service.string("spec", "type") == "ExternalName"
