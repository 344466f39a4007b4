"""KServe's InferenceService and ServingRuntime: a runtime's container, completed by the service that names it."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from kvlint.admission import system
from kvlint.carriers import nodes
from kvlint.carriers.arguments import whose
from kvlint.carriers.base import Finding, Item, count_of
from kvlint.carriers.kubernetes import patches
from kvlint.carriers.kubernetes.carrier import pods_of
from kvlint.carriers.kubernetes.cluster import Cluster, texts, unit
from kvlint.carriers.kubernetes.kubelet import arguments
from kvlint.carriers.kubernetes.pods import Pod, of_container, processes
from kvlint.facts import Default, Fact, Value
from kvlint.records import replace
from kvlint.source import HOLE, Text
from kvlint.subjects import Admission, Problem, Process
from kvlint.tree import List, Map, Node, Opaque, Scalar

RUNTIMES = ("ServingRuntime", "ClusterServingRuntime")
CONTAINER = "kserve-container"
_MODEL_PATH = "/mnt/models"


def objects(item: Item, cluster: Cluster) -> Iterator[Finding]:
    node = item.node
    assert isinstance(node, Map)
    if node.string("kind") in RUNTIMES:
        if not _in_use(item, cluster):
            yield from _runtime_alone(item, cluster)
        return
    found: list[Process] = []
    for part in ("predictor", "transformer"):
        section = node.map("spec", part)
        if section is not None:
            found += _component(item, section, cluster)
    yield from found
    yield from _admissions(item, found)


def _in_use(item: Item, cluster: Cluster) -> bool:
    """Whether an InferenceService of the project names this runtime: then it is judged with that service."""
    assert isinstance(item.node, Map)
    name = item.node.string("metadata", "name") or ""
    return any(
        isinstance(each.node, Map) and each.node.string("spec", "predictor", "model", "runtime") == name
        for each in cluster.of_kind("InferenceService")
    )


def _runtime_alone(item: Item, cluster: Cluster) -> Iterator[Process]:
    """A runtime that nobody in view uses: its arguments, to which services may add theirs."""
    for pod in pods_of(item):
        for container in (pod.spec.list("containers") or List((), pod.place)).maps():
            args = container.list("args")
            if args is not None:
                why = Opaque(args.span, "an InferenceService adds its own arguments", "the InferenceService")
                container = patches.with_value(container, ("args",), nodes.opened(args, why))
            yield from of_container(pod, container, cluster)


def _component(item: Item, section: Map, cluster: Cluster) -> Iterator[Process]:
    """The container that a predictor's `model` completes, else its own containers."""
    root = item.node
    assert isinstance(root, Map)
    name = root.scalar("metadata", "name")
    workload = name.value if name is not None and name.text.known else "inferenceservice"
    pod = Pod(
        item,
        section,
        workload,
        name.span if name is not None else root.span,
        texts(root.map("metadata", "labels")),
        hosts=(workload, f"{workload}-predictor"),
        replicas=_replicas(section),
        data=MappingProxyType({"kind": "InferenceService"}),
    )
    model = section.map("model")
    if model is None:
        yield from processes(pod, cluster)
        return
    container, engine = _completed(item, model, name, cluster)
    if container is not None:
        yield from of_container(replace(pod, engine=engine), container, cluster)


def _completed(item: Item, model: Map, name: Scalar | None, cluster: Cluster) -> tuple[Map | None, str | None]:
    """The container of the named runtime with the service's own settings, or what the service alone tells of one."""
    runtime = model.scalar("runtime")
    found: list[Item] = []
    for kind in RUNTIMES if runtime is not None and runtime.text.known else ():
        found = cluster.find(kind, runtime.value, item) if runtime is not None else []
        if found:
            break
    span = runtime.span if runtime is not None else model.span
    base = _runtime_container(found[0].node) if len(found) == 1 and isinstance(found[0].node, Map) else None
    if base is not None:
        return _finished(patches.merge(base, _own(model)), base.get("args"), model, name), None
    args = model.list("args")
    known = {"name": nodes.key(CONTAINER, span), "resources": model.get("resources"), "env": model.get("env")}
    words, _ = arguments(args, {})
    engine = whose(words) or _named_engine(runtime)
    if engine is None:
        return None, None
    why = Opaque(span, "the arguments of the runtime are not in these files", "the ServingRuntime")
    at_model = [Text.at("--model", span), _model_text(model, Text.at(_MODEL_PATH, span))] if engine == "vllm" else []
    listed = nodes.opened(nodes.words(at_model, span, args), why)
    return nodes.mapping(model.span, {**known, "args": listed}), engine


def _named_engine(runtime: Scalar | None) -> str | None:
    """A runtime that is not in view, and whose name is an engine's: its start is taken to be that engine's."""
    words = (runtime.value if runtime is not None else "").lower().replace("_", "-").split("-")
    for engine in system("engines")["started"]:
        if engine in words or engine.replace("-", "") in words:
            return str(engine)
    return None


def _runtime_container(runtime: Map) -> Map | None:
    containers = runtime.list("spec", "containers")
    for container in containers.maps() if containers is not None else ():
        if container.string("name") == CONTAINER:
            return container
    return next(iter(containers.maps()), None) if containers is not None else None


def _own(model: Map) -> Map:
    """What an InferenceService's `model` says as a container; its arguments are added, not merged."""
    kept = ("image", "env", "envFrom", "resources", "volumeMounts", "ports")
    return nodes.mapping(model.span, {key: model.get(key) for key in kept})


def _finished(merged: Node, base: Node | None, model: Map, name: Scalar | None) -> Map:
    assert isinstance(merged, Map)
    args = nodes.joined(base, model.get("args"), model.span)
    filled = tuple(_filled(each, model, name) if isinstance(each, Scalar) else each for each in args)
    return patches.with_value(merged, ("args",), List(filled, args.span, args.open))


def _filled(word: Scalar, model: Map, name: Scalar | None) -> Scalar:
    """An argument of a runtime with `{{.Name}}` and the place of the model filled in, as the controller does."""
    text = word.text
    if name is not None:
        for hole in reversed(text.holes):
            if hole.span.text.replace(" ", "") == "{{.Name}}":
                text = Text.join((text.slice(0, hole.at), name.text.seen_from(hole.span), text.slice(hole.at + 1)))
    at = text.value.find(_MODEL_PATH)
    if at >= 0 and text.value.endswith(_MODEL_PATH):
        text = Text.join((text.slice(0, at), _model_text(model, text.slice(at))))
    return Scalar(text, word.span, word.tag, word.quoted)


def _model_text(model: Map, path: Text) -> Text:
    """The repository that a `hf://` address fetches to the mounted path; the path itself for other places."""
    address = model.text("storageUri")
    if address is None or not address.value.startswith("hf://") or HOLE in address.value:
        return path
    end = address.value.find(":", len("hf://"))
    return address.slice(len("hf://"), end if end > 0 else None).seen_from(path.span)


def _replicas(section: Map) -> Value[int] | None:
    """The least number of replicas: KS:pkg/apis/serving/v1beta1/component.go#L83-98, 1 where nothing says one."""
    found = count_of(section.get("minReplicas"), "replicas", "a literal minReplicas")
    return Fact(1, Default("kserve", (), "minReplicas")) if found is None else found


def _admissions(item: Item, found: list[Process]) -> Iterator[Finding]:
    """`containerConcurrency`, which only the Knative mode reads, and scaling targets."""
    from kvlint.carriers.kubernetes.gateways import annotated_target, scale_settings

    root = item.node
    assert isinstance(root, Map)
    section = root.map("spec", "predictor")
    name = root.scalar("metadata", "name")
    if section is None or name is None:
        return
    entry = section.entry("containerConcurrency")
    mode = root.text("metadata", "annotations", system("kserve")["mode_annotation"])
    knative = mode is not None and mode.value in system("kserve")["knative_modes"]
    limit = count_of(entry.value if entry else None, "containerConcurrency", "a literal containerConcurrency")
    if entry is not None and isinstance(limit, Fact) and limit.value > 0 and not knative:
        stated = mode is not None and mode.value in system("kserve")["standard_modes"]
        yield _ineffective(entry.key, mode, stated)
    settings = {**scale_settings(section), **annotated_target(root.map("metadata", "annotations"))}
    if isinstance(limit, Fact) and (not knative or limit.value == 0):
        limit = None
    if limit is None and not settings:
        return
    yield Admission(
        id="",
        system="kserve",
        unit=unit(item),
        name=name.value,
        place=entry.key.span if entry is not None else name.span,
        limit=limit,
        per="pod",
        excess="wait",
        target=found[0] if len(found) == 1 else None,
        names=(name.value,),
        settings=settings,
    )


def _ineffective(key: Scalar, mode: Text | None, stated: bool) -> Problem:
    data = {"engine": "kserve", "flag": key.value, "expected": "the Knative mode"}
    related = (("cause", mode.span, "the mode that is set"),) if mode is not None else ()
    doubt = None if stated else "the cluster's default mode decides, which is Standard unless it was changed"
    return Problem("admission-ineffective", key.span, data, related, doubt)
