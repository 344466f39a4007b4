"""Operators whose resources name settings by keys of their own: VLLMRuntime, llmkube, KAITO, Kthena's ModelBooster."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from kvlint.admission import system
from kvlint.carriers import nodes
from kvlint.carriers.arguments import option, options_of, started, truth
from kvlint.carriers.base import Finding, Item, count_of
from kvlint.carriers.kubernetes.carrier import pods_of
from kvlint.carriers.kubernetes.cluster import Cluster, group, texts
from kvlint.carriers.kubernetes.pods import Pod, joined_image, of_container, processes
from kvlint.facts import Fact, Value, Written
from kvlint.source import Span, Text
from kvlint.subjects import Product
from kvlint.tree import Entry, Map, Opaque, Scalar


def objects(item: Item, cluster: Cluster) -> Iterator[Finding]:
    root = item.node
    assert isinstance(root, Map)
    reader = {
        "production-stack.vllm.ai": _vllm_runtime,
        "inference.llmkube.dev": _llmkube,
        "kaito.sh": _kaito,
        "workload.serving.volcano.sh": _model_booster,
    }
    yield from reader[group(root)](item, root, cluster)


def _named(root: Map) -> tuple[str, Span]:
    name = root.scalar("metadata", "name")
    known = name is not None and name.text.known
    return (name.value if name is not None and known else "server"), (name.span if name is not None else root.span)


def _pod(item: Item, root: Map, spec: Map, **about: Any) -> Pod:
    name, place = _named(root)
    kind = root.string("kind") or ""
    data = {"kind": kind, **about.pop("data", {})}
    return Pod(
        item,
        spec,
        name,
        place,
        texts(root.map("metadata", "labels")),
        hosts=(name,),
        data=MappingProxyType(data),
        **about,
    )


def _vllm_runtime(item: Item, root: Map, cluster: Cluster) -> Iterator[Finding]:
    """`vllm serve MODEL`, each key of `model` and `vllmConfig` as the operator spells it, then `extraArgs`."""
    spec = root.map("spec")
    model = spec.map("model") if spec is not None else None
    address = model.text("modelURL") if model is not None else None
    if spec is None or model is None or address is None:
        return
    about, name = system("vllmruntime"), _named(root)
    config = spec.map("vllmConfig") or Map((), spec.span)
    words = [*started("vllm", address.span), address]
    words += options_of(config, {"port": "--port"})
    words += options_of(model, about["model"])
    for key, (on, off) in about["switches"].items():
        entry = config.entry(key)
        where = entry.key.span if entry is not None else config.span
        words.append(Text.at(on if entry is not None and truth(entry.value) else off, where))
    words += options_of(config, about["config"])
    deployment = spec.map("deploymentConfig") or Map((), spec.span)
    resources = deployment.map("resources") or Map((), spec.span)
    image = joined_image(deployment.text("image", "name"), None, deployment.map("image") or deployment)
    container = nodes.mapping(
        spec.span,
        {
            "name": nodes.key("vllm", name[1]),
            "image": nodes.scalar(image) if image is not None else None,
            "command": nodes.words(words, address.span, config.get("extraArgs")),
            "env": config.get("env"),
            "resources": nodes.limits(
                spec.span,
                resources.get("gpu"),
                resources.get("memory"),
                resources.string("gpuType") or "nvidia.com/gpu",
            ),
        },
    )
    replicas = count_of(deployment.get("replicas"), "replicas", "a literal deploymentConfig.replicas")
    yield from of_container(_pod(item, root, deployment, replicas=replicas), container, cluster)


def _llmkube(item: Item, root: Map, cluster: Cluster) -> Iterator[Finding]:
    """The arguments of the runtime's builder: model, port, typed keys, tensor parallelism from the count, `extraArgs`."""
    spec = root.map("spec")
    runtime = (spec.string("runtime") or "llamacpp") if spec is not None else ""
    engine = {"vllm": "vllm", "llamacpp": "llama-server"}.get(runtime)
    if spec is None or engine is None or "modelRef" not in spec:
        return
    about, (_, place) = system("llmkube"), _named(root)
    model = _llmkube_model(item, spec, cluster)
    where = spec.scalar("runtime")
    span = where.span if where is not None else place
    port = spec.text("endpoint", "port")
    words = [*started(engine, span), *_source(model, engine)]
    words += [Text.at("--port", port.span if port is not None else span)]
    words += [port if port is not None else Text.at(str(about["ports"][engine]), span)]
    config = spec.map("vllmConfig") or Map((), spec.span)
    typed = config if engine == "vllm" else spec
    words += options_of(typed, about[engine])
    gpus = _llmkube_gpus(spec, model)
    if engine == "vllm":
        words += _slots(spec, span)
        if gpus is not None and gpus.value.isdigit() and int(gpus.value) > 1 and "tensorParallelSize" not in config:
            words += [Text.at("--tensor-parallel-size", gpus.span), gpus.text]
    elif truth(spec.get("flashAttention")):
        words += [Text.at("--flash-attn", span), Text.at("on", span)]
    container = nodes.mapping(
        spec.span,
        {
            "name": nodes.key(runtime, place),
            "image": spec.scalar("image"),
            "command": nodes.words(words, span, spec.get("extraArgs")),
            "env": spec.get("env"),
            "volumeMounts": spec.get("extraVolumeMounts"),
            "resources": nodes.limits(spec.span, gpus, spec.get("resources", "memory")),
        },
    )
    pod_spec = nodes.mapping(spec.span, {"nodeSelector": spec.get("nodeSelector"), "volumes": spec.get("extraVolumes")})
    replicas = count_of(spec.get("replicas"), "replicas", "a literal spec.replicas")
    data = {"service_links": about["service_links"], **_memory(model)}
    yield from of_container(_pod(item, root, pod_spec, replicas=replicas, data=data), container, cluster)


def _llmkube_model(item: Item, spec: Map, cluster: Cluster) -> Map | None:
    name = spec.string("modelRef") or spec.string("modelRef", "name")
    found = [each for each in cluster.find("Model", name, item) if isinstance(each.node, Map)] if name else []
    found = [each for each in found if isinstance(each.node, Map) and group(each.node) == "inference.llmkube.dev"]
    node = found[0].node if len(found) == 1 else None
    return node.map("spec") if isinstance(node, Map) else None


def _source(model: Map | None, engine: str) -> list[Text]:
    """The repository of a `hf://repository@revision` source; the revision is a flag of its own for nobody."""
    source = model.text("source") if model is not None else None
    if source is None:
        return []
    start = len("hf://") if source.value.startswith("hf://") else 0
    end = source.value.find("@")
    text = source.slice(start, end if end > 0 else None)
    return [text] if engine == "vllm" else [Text.at("--model", source.span), text]


def _slots(spec: Map, span: Span) -> list[Text]:
    """`parallelSlots` is the width, unless `extraArgs` gives it."""
    extra = spec.list("extraArgs")
    words = [each.value for each in extra if isinstance(each, Scalar)] if extra is not None else []
    if any(word.partition("=")[0] == "--max-num-seqs" for word in words):
        return []
    return option("--max-num-seqs", span, spec.get("parallelSlots"))


def _llmkube_gpus(spec: Map, model: Map | None) -> Scalar | None:
    own = spec.scalar("resources", "gpu")
    return own if own is not None or model is None else model.scalar("hardware", "gpu", "count")


def _memory(model: Map | None) -> dict[str, Value[int]]:
    """What the model resource says of the device and of the budget."""
    from kvlint.carriers.kubernetes.resources import quantity_of

    found: dict[str, Value[int]] = {}
    for key, path in (("device_memory", ("hardware", "gpu", "memory")), ("budget", ("hardware", "memoryBudget"))):
        value = quantity_of(model.get(*path)) if model is not None else None
        if value is not None:
            found[key] = value
    return found


def _kaito(item: Item, root: Map, cluster: Cluster) -> Iterator[Finding]:
    """A preset with the vLLM settings of its ConfigMap, or a template of the user's own."""
    inference = root.map("inference") or root.map("spec", "template", "inference")
    preset = inference.text("preset", "name") if inference is not None else None
    if inference is None or preset is None:
        for pod in pods_of(item):
            yield from processes(pod, cluster)
        return
    name, place = _named(root)
    config = cluster.config_map(inference.string("config"), item)
    text = config.text("inference_config.yaml") if config is not None else None
    settings = _vllm_settings(text)
    words = [*started("vllm", preset.span), Text.at("--model", preset.span), preset, *settings]
    resource = root.map("resource") or root.map("spec", "resource") or Map((), root.span)
    instance = resource.text("instanceType")
    own = Opaque(preset.span, "KAITO adds the preset's own arguments and sets the parallelism")
    command = nodes.opened(nodes.words(words, preset.span), own)
    container = nodes.mapping(root.span, {"name": nodes.key(name, place), "command": command})
    products = (Product("node.kubernetes.io/instance-type", instance),) if instance is not None else ()
    size = count_of(resource.get("count"), "count", "a literal resource.count")
    pod = _pod(item, root, Map((), root.span), products=products, gpus=_per_node(instance), size=size)
    yield from of_container(pod, container, cluster)


def _vllm_settings(text: Text | None) -> list[Text]:
    """The `vllm` keys of an `inference_config.yaml`, which the start script turns into flags."""
    from kvlint.carriers.embedded import documents

    words: list[Text] = []
    for node in documents(text) if text is not None else ():
        settings = node.map("vllm") if isinstance(node, Map) else None
        for entry in settings or ():
            words += option("--" + entry.key.value.lstrip("-"), entry.key.span, entry.value)
    return words


def _per_node(instance: Text | None) -> Value[int] | None:
    from kvlint.hardware.devices import instance as machine

    found = machine(instance.value) if instance is not None else None
    if found is None or instance is None or found.gpus.denominator != 1:
        return None
    return Fact(int(found.gpus), Written(instance.span, instance.via))


def _model_booster(item: Item, root: Map, cluster: Cluster) -> Iterator[Finding]:
    """Each worker of a backend: the model, what the engine's template adds, then each key of `config` as a flag."""
    spec, about = root.map("spec"), system("kthena")
    one = spec.map("backend") if spec is not None else None
    several = spec.list("backends") if spec is not None else None
    for backend in (one,) if one is not None else several.maps() if several is not None else ():
        engine = about["types"].get(backend.string("type"))
        source = backend.text("modelURI")
        workers = backend.list("workers")
        for worker in workers.maps() if engine is not None and source is not None and workers is not None else ():
            role = worker.scalar("type")
            if role is None or role.value not in about["roles"] or source is None or engine is None:
                continue
            start = [Text.at(word, source.span) for word in about["started"].get(engine, ())]
            words = [
                *(start or started(engine, source.span)),
                Text.at(about["model"][engine], source.span),
                _address(source),
            ]
            words += [Text.at(word, source.span) for word in about["added"][engine]]
            words += [word for entry in worker.map("config") or () for word in _flag(entry)]
            env = nodes.joined(backend.get("env"), worker.get("env"), worker.span)
            container = nodes.mapping(
                worker.span,
                {
                    "name": nodes.key(role.value, role.span),
                    "image": worker.scalar("image"),
                    "command": nodes.words(words, source.span),
                    "env": env,
                    "resources": worker.get("resources"),
                },
            )
            size = count_of(worker.get("pods"), "count", "a literal pods")
            pod = _pod(item, root, worker, size=size if engine == "vllm" else None)
            yield from of_container(pod, container, cluster)


def _address(source: Text) -> Text:
    """The repository of `hf://owner/name`; other places hold a copy of nobody knows what."""
    return source.slice(len("hf://")) if source.value.startswith("hf://") else source


def _flag(entry: Entry) -> list[Text]:
    """`--key value`; an empty value gives the flag alone, true and false are written out."""
    flag = Text.at("--" + entry.key.value.replace("_", "-"), entry.key.span)
    value = entry.value
    if isinstance(value, Scalar):
        return [flag, value.text] if value.value else [flag]
    return [flag, Text.unknown(value.span, "no text and no number", "a literal value")]
