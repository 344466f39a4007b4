"""Values of known charts, in a file of their own or inside a release: read as the containers that the chart renders."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MappingProxyType

from kvlint import engines
from kvlint.admission import system
from kvlint.carriers import nodes
from kvlint.carriers.arguments import option, options_of, started, truth, whose
from kvlint.carriers.base import Finding, Item, count_of, directory
from kvlint.carriers.embedded import Around, in_values
from kvlint.carriers.kubernetes.cluster import Cluster
from kvlint.carriers.kubernetes.kubelet import arguments
from kvlint.carriers.kubernetes.pods import Pod, image_of, joined_image, of_container
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass, replace
from kvlint.source import Span, Text
from kvlint.subjects import Problem, Process
from kvlint.tree import List, Map, Node, Opaque, Scalar

MAX_DEPTH = 12
_MODEL = regex(r"--?(?:model|hf)(?:[-_](?:path|id|repo|tag|url))?(?:=|$)|-mu?$|serve$")
EXTRA = ("args", "extraArgs", "arguments", "extraCmdArgs", "extra_args")  # keys under which charts take more arguments


class HelmValues:
    name = "helm-values"

    def claims(self, item: Item) -> bool:
        node = item.node
        if not isinstance(node, Map) or "apiVersion" in node or "services" in node:
            return False
        return chart_of(node) is not None or _is_values(item.path) or _of_litellm(node)

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        cluster = Cluster(project)
        for item in items:
            if isinstance(item.node, Map):
                release = Release(item, f"helm {directory(item.path)}", "")
                yield from values(item.node, release, cluster)


CARRIER = HelmValues()


@dataclass(frozen=True, slots=True)
class Release:
    """Where values are given: `name` is the release's, empty for a values file alone."""

    item: Item
    unit: str
    name: str


Chart = Callable[[Map, Release, Cluster], Iterator[Finding]]


def _of_litellm(node: Map) -> bool:
    """The values of LiteLLM's own chart: `proxy_config` is the proxy's whole file."""
    return node.list("proxy_config", "model_list") is not None


def _is_values(path: str) -> bool:
    return "values" in path.rpartition("/")[2].lower()


def chart_of(node: Map) -> Chart | None:
    """The chart that values are plainly written for, by the keys that only it has."""
    if node.list("servingEngineSpec", "modelSpec") is not None:
        return _production_stack
    if "modelArtifacts" in node and any(node.map(role) is not None for role in ("decode", "prefill")):
        return _modelservice
    if any(isinstance(each.value, Map) and "resourceProfile" in each.value for each in node.map("catalog") or ()):
        return _kubeai_models
    controllers = node.map("controllers")
    if controllers is not None and any(_has_containers(entry.value) for entry in controllers):
        return _app_template
    if node.list("servingRuntime", "args") is not None or node.list("servingRuntime", "command") is not None:
        return _serving_runtime
    if node.map("model") is not None and any(key in node for key in ("kvCacheDtype", "maxNumBatchedTokens")):
        return _castai
    return None


def _has_containers(node: Node) -> bool:
    return isinstance(node, Map) and node.map("containers") is not None


def values(node: Map, release: Release, cluster: Cluster) -> Iterator[Finding]:
    """What a chart starts with these values; of an unknown chart, every image that stands with a command or arguments."""
    chart = chart_of(node)
    yield from (chart or _anything)(node, release, cluster)
    yield from in_values(node, _served(node, release))


def _served(node: Map, release: Release) -> Around:
    """Where the files among a chart's values are served from; app-template says under which names."""
    from kvlint.carriers.kubernetes.app_template import service_names

    controllers = [entry.key.value for entry in node.map("controllers") or ()]
    hosts = dict.fromkeys(name for each in controllers for name in service_names(node, release.name, each))
    return Around(release.item.path, release.unit, tuple(hosts), contained=True)


def pod_of(release: Release, workload: str, place: Span, spec: Map, hosts: tuple[str, ...] = ()) -> Pod:
    return Pod(
        release.item,
        spec,
        workload,
        place,
        carrier="helm",
        unit=release.unit,
        hosts=hosts,
        data=MappingProxyType({"kind": "Deployment", "release": release.name}),
    )


def _kubeai_models(node: Map, release: Release, cluster: Cluster) -> Iterator[Finding]:
    from kvlint.carriers.kubernetes.kubeai import catalogue

    yield from catalogue(release.item, node.map("catalog") or Map((), node.span), cluster)


def _production_stack(node: Map, release: Release, cluster: Cluster) -> Iterator[Finding]:
    spec = node.map("servingEngineSpec")
    for model in (node.list("servingEngineSpec", "modelSpec") or List((), node.span)).maps():
        if spec is not None:
            yield from _model_spec(spec, model, release, cluster)


def _model_spec(spec: Map, model: Map, release: Release, cluster: Cluster) -> Iterator[Finding]:
    """`vllm serve MODEL` with the keys of `vllmConfig`; a key beside it is rendered by nobody."""
    about = system("production-stack")
    name, address = model.scalar("name"), model.text("modelURL")
    config = model.map("vllmConfig")
    yield from _misplaced(model, config)
    if address is None or name is None:
        return
    port = spec.scalar("containerPort")
    where = port.span if port is not None else name.span
    number = port.text if port is not None else Text.at(str(about["port"]), where)
    words = [*started("vllm", address.span), address, Text.at("--port", where), number]
    words += options_of(model, about["before"])
    if config is not None:
        words += _prefix_caching(config)
        words += options_of(config, about["flags"])
    words += _ray(model)
    args = config.get("extraArgs") if config is not None else None
    container = nodes.mapping(
        model.span,
        {
            "name": nodes.key("vllm", name.span),
            "image": _image(model.text("repository"), model.text("tag"), model),
            "command": nodes.words(words, address.span, nodes.joined(args, _connector(model, config), model.span)),
            "env": model.get("env"),
            "resources": nodes.limits(model.span, model.get("requestGPU"), model.get("limitMemory")),
            "volumeMounts": _mounted(model, config),
        },
    )
    pod_spec = nodes.mapping(
        model.span,
        {
            "nodeSelector": model.get("nodeSelector"),
            "nodeSelectorTerms": model.get("nodeSelectorTerms"),
            "volumes": _volume(model, about["shared_memory"]),
        },
    )
    prefix = f"{release.name}-" if release.name else ""
    hosts = (f"{prefix}{name.value}-engine-service", f"{prefix}engine-service")
    pod = pod_of(release, name.value, name.span, pod_spec, hosts)
    replicas = count_of(model.get("replicaCount"), "replicas", "a literal replicaCount")
    yield from of_container(replace(pod, replicas=replicas), container, cluster)


def _prefix_caching(config: Map) -> list[Text]:
    on, off = system("production-stack")["prefix_caching"]
    entry = config.entry("enablePrefixCaching")
    where = entry.key.span if entry is not None else config.span
    return [Text.at(on if entry is not None and truth(entry.value) else off, where)]


def _connector(model: Map, config: Map | None) -> List | None:
    """LMCache's connector, which the chart adds where `lmcacheConfig` is enabled."""
    cache = model.map("lmcacheConfig")
    if cache is None or not truth(cache.get("enabled")):
        return None
    entry = cache.entry("enabled")
    where = entry.key.span if entry is not None else cache.span
    role = cache.string("kvRole") or "kv_both"
    old = config is not None and config.string("v0") == "1"
    connector = "LMCacheConnector" if old else "LMCacheConnectorV1"
    text = f'{{"kv_connector":"{connector}","kv_role":"{role}"}}'
    return nodes.words((Text.at("--kv-transfer-config", where), Text.at(text, where)), where)


def _ray(model: Map) -> list[Text]:
    """What the chart's script for a RayCluster adds where `raySpec` is enabled."""
    entry = model.entry("raySpec")
    if entry is None or not truth(model.get("raySpec", "enabled")):
        return []
    return [Text.at(word, entry.key.span) for word in ("--distributed-executor-backend", "ray")]


def _mounted(model: Map, config: Map | None) -> List | None:
    """The chart mounts /dev/shm only where `vllmConfig` has `tensorParallelSize`."""
    entry = config.entry("tensorParallelSize") if config is not None else None
    if entry is None:
        return None
    span = entry.key.span
    mount = nodes.mapping(span, {"name": nodes.key("shm", span), "mountPath": nodes.key("/dev/shm", span)})
    return List((mount,), span)


def _volume(model: Map, default: str) -> List:
    size = model.scalar("shmSize")
    span = size.span if size is not None else model.span
    limit = size if size is not None else nodes.key(default, span)
    empty = nodes.mapping(span, {"medium": nodes.key("Memory", span), "sizeLimit": limit})
    return List((nodes.mapping(span, {"name": nodes.key("shm", span), "emptyDir": empty}),), span)


def _misplaced(model: Map, config: Map | None) -> Iterator[Problem]:
    """Keys of `vllmConfig` that stand beside it: the chart's template does not read them there."""
    known = (*system("production-stack")["flags"], "extraArgs", "enablePrefixCaching")
    for entry in model:
        if entry.key.value in known:
            data = {"engine": "vllm", "flag": entry.key.value, "expected": f"vllmConfig.{entry.key.value}"}
            data |= {"suggestion": f"vllmConfig.{entry.key.value}", "system": "production-stack"}
            related = (("counterpart", config.span, "where the chart looks for it"),) if config is not None else ()
            yield Problem("ineffective-flag", entry.key.span, data, related)


def _image(repository: Text | None, tag: Text | None, node: Map) -> Scalar | None:
    found = joined_image(repository, tag, Map((), node.span))
    return nodes.scalar(found) if found is not None else None


def _modelservice(node: Map, release: Release, cluster: Cluster) -> Iterator[Finding]:
    """llm-d's model service: `modelCommand` decides whether the chart writes the command."""
    for role in ("decode", "prefill"):
        entry = node.entry(role)
        section = entry.value if entry is not None else None
        if not isinstance(section, Map) or entry is None or section.string("create") == "false":
            continue
        pod = pod_of(release, role, entry.key.span, section)
        replicas = count_of(section.get("replicas"), "replicas", "a literal number of replicas")
        data = MappingProxyType({**pod.data, "role": role})
        for container in (section.list("containers") or List((), section.span)).maps():
            made = _modelservice_container(node, section, container, role)
            yield from of_container(replace(pod, replicas=replicas, data=data), made, cluster)


def _modelservice_container(node: Map, section: Map, container: Map, role: str) -> Map:
    from kvlint.carriers.kubernetes import patches

    command = container.scalar("modelCommand")
    if command is None or command.value not in ("vllmServe", "imageDefault"):
        return container
    serve = command.value == "vllmServe"
    words = [*_artifacts(node, command.span, not serve), *_service_port(node, command.span, role)]
    words += options_of(
        section.map("parallelism"),
        {"tensor": "--tensor-parallel-size", "data": "--data-parallel-size", "dataLocal": "--data-parallel-size-local"},
    )
    name = node.text("modelArtifacts", "name")
    if name is not None:
        words += [Text.at("--served-model-name", name.span), name]
    if serve:
        container = patches.with_value(
            container, ("command",), nodes.words(started("vllm", command.span), command.span)
        )
    return patches.with_value(container, ("args",), nodes.words(words, command.span, container.get("args")))


def _artifacts(node: Map, span: Span, flag: bool) -> list[Text]:
    """The model by the scheme of `modelArtifacts.uri`; a template in it stands for `modelArtifacts.name`."""
    address = node.text("modelArtifacts", "uri")
    if address is None:
        return []
    scheme, separator, _ = address.value.partition("://")
    rest = address.slice(len(scheme) + len(separator))
    name = node.text("modelArtifacts", "name")
    if scheme == "hf" and rest.holes and name is not None:
        rest = name.seen_from(rest.span)
    elif scheme == "pvc":
        rest = Text.at("/model-cache/" + rest.value.partition("/")[2], address.span)
    elif scheme == "pvc+hf":
        rest = rest.slice(len(rest.value) - len("/".join(rest.value.split("/")[-2:])))
    return [*((Text.at("--model", span),) if flag else ()), rest]


def _service_port(node: Map, span: Span, role: str) -> list[Text]:
    """Prefill listens on the service's port; decode behind the routing proxy on the proxy's target port."""
    about = system("modelservice")
    proxied = role == "decode" and node.string("routing", "proxy", "enabled") != "false"
    port = node.text("routing", "proxy", "targetPort") if proxied else node.text("routing", "servicePort")
    default = about["proxy_port"] if proxied else about["service_port"]
    return [Text.at("--port", span), port if port is not None else Text.at(str(default), span)]


def _serving_runtime(node: Map, release: Release, cluster: Cluster) -> Iterator[Finding]:
    """A chart that makes a ServingRuntime and an InferenceService: the arguments of both, in that order."""
    runtime = node.map("servingRuntime") or Map((), node.span)
    model = node.map("model") or Map((), node.span)
    entry = node.entry("servingRuntime")
    place = entry.key.span if entry is not None else node.span
    image = node.map("image") or Map((), node.span)
    container = nodes.mapping(
        node.span,
        {
            "name": nodes.key("kserve-container", place),
            "image": _image(image.text("image") or image.text("repository"), image.text("tag"), node),
            "command": runtime.get("command"),
            "args": nodes.joined(runtime.get("args"), model.get("args"), place),
            "env": nodes.joined(runtime.get("env"), model.get("env"), place),
            "resources": node.get("resources"),
            "volumeMounts": _shm_mount(runtime),
        },
    )
    spec = nodes.mapping(node.span, {"nodeSelector": node.get("nodeSelector"), "volumes": _volume(runtime, "2Gi")})
    workload = node.string("inferenceService", "name") or release.name or "servingRuntime"
    replicas = count_of(node.get("scaling", "minReplicas"), "replicas", "a literal scaling.minReplicas")
    pod = replace(pod_of(release, workload, place, spec), replicas=replicas)
    yield from of_container(pod, container, cluster)


def _shm_mount(runtime: Map) -> List | None:
    size = runtime.scalar("shmSize")
    if size is None:
        return None
    mount = nodes.mapping(
        size.span, {"name": nodes.key("shm", size.span), "mountPath": nodes.key("/dev/shm", size.span)}
    )
    return List((mount,), size.span)


def _castai(node: Map, release: Release, cluster: Cluster) -> Iterator[Finding]:
    """Settings as keys at the top; without a model the values are a chart's own defaults and start nothing."""
    name = node.scalar("model", "name")
    if name is None or name.tag == "null" or not name.value:
        return
    image = node.map("image") or Map((), node.span)
    port = node.scalar("container", "port")
    words = [*started("vllm", name.span), Text.at("--model", name.span), name.text]
    served = node.text("model", "servedName")
    words += [Text.at("--served-model-name", served.span), served] if served is not None and served.value else []
    words += option("--port", port.span, port) if port is not None else []
    words += options_of(node, system("castai")["flags"])
    container = nodes.mapping(
        node.span,
        {
            "name": nodes.key("vllm", name.span),
            "image": _image(image.text("repository"), image.text("tag"), node),
            "command": nodes.words(words, name.span, node.get("extraArgs")),
            "env": node.get("env"),
            "resources": node.get("resources"),
        },
    )
    replicas = count_of(node.get("replicaCount"), "replicas", "a literal replicaCount")
    pod = replace(pod_of(release, release.name or "model", name.span, node), replicas=replicas)
    yield from of_container(pod, container, cluster)


def _app_template(node: Map, release: Release, cluster: Cluster) -> Iterator[Finding]:
    from kvlint.carriers.kubernetes.app_template import pods

    for pod, container in pods(node, release):
        yield from of_container(pod, container, cluster)


def _anything(node: Map, release: Release, cluster: Cluster) -> Iterator[Finding]:
    """Every map of an unknown chart that has an engine's image, or an image with words that start one."""
    for path, each in _with_images(node, (), 0):
        yield from _one(path, each, release, cluster)


def _with_images(node: Map, path: tuple[Scalar, ...], depth: int) -> Iterator[tuple[tuple[Scalar, ...], Map]]:
    if depth > MAX_DEPTH:
        return
    if "image" in node and image_of(node) is not None:
        yield path, node
    for entry in node:
        if isinstance(entry.value, Map):
            yield from _with_images(entry.value, (*path, entry.key), depth + 1)
        elif isinstance(entry.value, List):
            for each in entry.value.maps():
                name = each.scalar("name") or entry.key
                yield from _with_images(each, (*path, entry.key, name), depth + 1)


def _one(path: tuple[Scalar, ...], node: Map, release: Release, cluster: Cluster) -> Iterator[Process]:
    image = image_of(node)
    command = node.get("command") or node.get("image", "command")
    extra = next((node.get(key) for key in EXTRA if node.get(key) is not None), None)
    if image is None or (command is None and extra is None and engines.of_image(image.value) is None):
        return
    words, _ = arguments(extra, {})
    engine = None
    if command is None and engines.of_image(image.value) is None:
        engine = whose(words)
        if engine is None and not (words and not words[0].value.startswith("-")):
            return
    place = path[-1].span if path else image.span
    name = path[-1].value if path else release.name or "values"
    if command is None and not any(_MODEL.match(word.value) for word in words):
        rest = Opaque(place, "the chart names the model, and may write more", "the chart's template")
        extra = nodes.opened(extra if isinstance(extra, List) else List((), place), rest)
    container = nodes.mapping(
        node.span,
        {
            "name": nodes.key(name, place),
            "image": nodes.scalar(image),
            "command": command,
            "args": extra,
            "env": node.get("env") or node.get("extraEnv") or node.get("envs"),
            "resources": node.get("resources"),
        },
    )
    replicas = count_of(node.get("replicaCount") or node.get("replicas"), "replicas", "a literal replicaCount")
    pod = replace(pod_of(release, release.name or name, place, node), engine=engine, replicas=replicas)
    yield from of_container(pod, container, cluster)
