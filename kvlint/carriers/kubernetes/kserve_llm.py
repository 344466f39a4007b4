"""KServe's LLMInferenceService: a role each, with the command of the controller's own templates where none is written.

config/llmisvcconfig of the release in data/admission.toml: `vllm serve` on the mounted model, the parallelism as flags, and
`VLLM_ADDITIONAL_ARGS` split by a shell at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from kvlint.admission import system
from kvlint.carriers import nodes
from kvlint.carriers.arguments import options_of
from kvlint.carriers.base import Finding, Item, count_of
from kvlint.carriers.kubernetes import patches
from kvlint.carriers.kubernetes.carrier import pods_of
from kvlint.carriers.kubernetes.cluster import Cluster, texts
from kvlint.carriers.kubernetes.kubelet import environment
from kvlint.carriers.kubernetes.pods import Pod, of_container, processes
from kvlint.facts import Default, Fact, Value, quantity
from kvlint.formats.shell import split
from kvlint.records import replace
from kvlint.source import Span, Text
from kvlint.subjects import Problem, Process
from kvlint.tree import List, Map, Node, Opaque, Scalar, walk

CONFIG = "LLMInferenceServiceConfig"
CONTAINER = "main"
ADDITIONAL = "VLLM_ADDITIONAL_ARGS"
# A group of pods is a LeaderWorkerSet, whose controller sets these.
GROUP = ("LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX")


@quantity(
    "group_size", unit="count", formula="data / dataLocal", source="config/llmisvcconfig, data-parallel templates"
)
def group_size(data: int, local: int) -> int:
    """Pods that share one data-parallel group."""
    return -(-data // local) if local > 0 else 1


def objects(item: Item, cluster: Cluster) -> Iterator[Finding]:
    root = item.node
    assert isinstance(root, Map)
    if root.string("kind") == CONFIG:
        if not _in_use(item, cluster):
            for pod in pods_of(item):
                yield from processes(replace(pod, data={**pod.data, **_router(root.map("spec"))}), cluster)
        return
    spec = _with_bases(item, cluster)
    if spec is None:
        return
    for role, section in (("decode" if spec.map("prefill") else "both", spec), ("prefill", spec.map("prefill"))):
        if section is not None:
            yield from _role(item, spec, section, role, cluster)
    yield from _ineffective(root)


def _in_use(item: Item, cluster: Cluster) -> bool:
    assert isinstance(item.node, Map)
    name = item.node.string("metadata", "name")
    return any(
        name == reference.string("name")
        for each in cluster.of_kind("LLMInferenceService")
        if isinstance(each.node, Map)
        for reference in (each.node.list("spec", "baseRefs") or List((), item.span)).maps()
    )


def _with_bases(item: Item, cluster: Cluster) -> Map | None:
    """The service's own specification over those of the configurations that it names."""
    root = item.node
    assert isinstance(root, Map)
    spec = root.map("spec")
    if spec is None:
        return None
    merged: Map | None = None
    for reference in (spec.list("baseRefs") or List((), spec.span)).maps():
        name = reference.string("name")
        found = cluster.find(CONFIG, name, item) if name else []
        base = found[0].node.map("spec") if len(found) == 1 and isinstance(found[0].node, Map) else None
        if base is not None:
            together = patches.merge(merged, base) if merged is not None else base
            merged = together if isinstance(together, Map) else merged
    if merged is None:
        return spec
    result = patches.merge(merged, spec)
    return result if isinstance(result, Map) else spec


def _role(item: Item, spec: Map, section: Map, role: str, cluster: Cluster) -> Iterator[Process]:
    root = item.node
    assert isinstance(root, Map)
    name = root.scalar("metadata", "name")
    workload = name.value if name is not None and name.text.known else "llminferenceservice"
    place = name.span if name is not None else root.span
    template = section.map("template") or Map((), section.span)
    size = _size(section.map("parallelism"))
    pod = Pod(
        item,
        template,
        f"{workload}/prefill" if role == "prefill" else workload,
        place,
        texts(root.map("metadata", "labels")),
        hosts=(f"{workload}-kserve-workload-svc",),
        replicas=_replicas(section),
        size=size,
        env={} if size is None else {name: Text.unknown(place, f"{name} is set by the controller") for name in GROUP},
        data=MappingProxyType({"kind": "LLMInferenceService", "role": role, **_router(spec)}),
    )
    listed = template.list("containers")
    containers = list(listed.maps()) if listed is not None else []
    if not any(each.string("name") == CONTAINER for each in containers):
        containers.append(nodes.mapping(section.span, {"name": nodes.key(CONTAINER, place)}))
    for container in containers:
        if container.string("name") == CONTAINER and container.get("command") is None:
            container = _started(item, spec, section, container, cluster)
        yield from of_container(pod, container, cluster)


def _started(item: Item, spec: Map, section: Map, container: Map, cluster: Cluster) -> Map:
    """The main container with the command of the controller's template."""
    env, env_open = environment(container, item, cluster)
    place = container.scalar("name")
    span = place.span if place is not None else container.span
    model = spec.scalar("model", "uri")
    at = model.span if model is not None else span
    words = [*(Text.at(word, span) for word in ("vllm", "serve")), _model(model, at)]
    name = spec.text("model", "name")
    if name is not None:
        words += [Text.at("--served-model-name", name.span), name]
    words += [Text.at("--port", span), Text.at(str(system("kserve")["port"]), span)]
    parallelism = section.map("parallelism")
    words += options_of(parallelism, system("kserve")["parallelism"])
    added = env.get(ADDITIONAL)
    if added is not None and added.known:
        words += split(added)
    command = nodes.words(words, span)
    if (added is not None and not added.known) or (added is None and env_open):
        where = added.span if added is not None else env_open[0].span
        command = nodes.opened(command, Opaque(where, f"{ADDITIONAL} is set elsewhere"))
    return patches.with_value(container, ("command",), command)


def _model(address: Scalar | None, span: Span) -> Text:
    if address is not None and address.value.startswith("hf://"):
        end = address.value.find(":", len("hf://"))
        return address.text.slice(len("hf://"), end if end > 0 else None)
    return Text.at(system("kserve")["model_path"], span)


def _router(spec: Map | None) -> dict[str, Value[int]]:
    """The block size by which the service's own scheduler counts cached prefixes."""
    scheduler = spec.map("router", "scheduler") if spec is not None else None
    for node in _with_texts(scheduler) if scheduler is not None else ():
        size = node.get("tokenProcessorConfig", "blockSize") if isinstance(node, Map) else None
        found = count_of(size, "blockSize", "a literal blockSize")
        if found is not None:
            return {"router_block_size": found}
    return {}


def _with_texts(scheduler: Map) -> Iterator[Node]:
    """The nodes of a scheduler, and of the configuration that one of its arguments is."""
    from kvlint.carriers.embedded import documents

    for node in walk(scheduler):
        yield node
        if isinstance(node, Scalar) and "tokenProcessorConfig" in node.value:
            for document in documents(node.text):
                yield from walk(document)


def _replicas(section: Map) -> Value[int] | None:
    found = count_of(section.get("replicas"), "replicas", "a literal spec.replicas")
    return Fact(1, Default("kserve", (), "replicas")) if found is None else found


def _size(parallelism: Map | None) -> Value[int] | None:
    """Pods of one replica: `data` over `dataLocal`, or a pod for each pipeline stage."""
    if parallelism is None:
        return None
    data = count_of(parallelism.get("data"), "data", "a literal parallelism.data")
    local = count_of(parallelism.get("dataLocal"), "dataLocal", "a literal parallelism.dataLocal")
    if data is not None and local is not None:
        return group_size(data, local)
    return count_of(parallelism.get("pipeline"), "pipeline", "a literal parallelism.pipeline")


def _ineffective(root: Map) -> Iterator[Problem]:
    """`containerConcurrency` is a key of InferenceService; nothing reads it here."""
    for path in ((), ("template",), ("prefill",)):
        section = root.map("spec", *path)
        entry = section.entry("containerConcurrency") if section is not None else None
        if entry is not None:
            data = {"engine": "kserve", "flag": entry.key.value, "expected": "an InferenceService in Knative mode"}
            yield Problem("admission-ineffective", entry.key.span, data)
