"""Ray Serve LLM: `llm_configs` with vLLM's engine arguments as keys, in a RayService's string or a file of its own.

A RayService's own containers run Ray, not an engine; what they give a replica is its image, its environment and its devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvlint.admission import system
from kvlint.carriers.arguments import option
from kvlint.carriers.base import Finding, Item, count_of, directory
from kvlint.carriers.embedded import documents
from kvlint.carriers.kubernetes.carrier import pods_of
from kvlint.carriers.kubernetes.cluster import Cluster, unit
from kvlint.carriers.kubernetes.kubelet import environment
from kvlint.carriers.kubernetes.pods import processes
from kvlint.carriers.kubernetes.resources import products_of
from kvlint.command import CommandLine, Opening
from kvlint.facts import Default, Fact, Value
from kvlint.project import Project
from kvlint.records import dataclass, field
from kvlint.source import Span, Text
from kvlint.subjects import Admission, Process, Product, Site
from kvlint.tree import Entry, List, Map, Node, Scalar

# Booleans whose false says something in releases where true is the default; elsewhere false is what an absent flag means.
OFF = {
    "enable_prefix_caching": "--no-enable-prefix-caching",
    "enable_chunked_prefill": "--no-enable-chunked-prefill",
}
# Set from other keys, or none of the engine's.
NOT_FLAGS = ("model", "served_model_name")


class Ray:
    name = "ray"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, Map) and "apiVersion" not in item.node and is_config(item.node)

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        for item in items:
            if isinstance(item.node, Map):
                yield from config(item.node, item.path, f"ray {directory(item.path)}")


CARRIER = Ray()


@dataclass(frozen=True, slots=True)
class _Workers:
    """What the worker groups give a replica."""

    image: Text | None = None
    env: Mapping[str, Text] = field(default_factory=dict)
    env_open: tuple[Opening, ...] = ()
    products: tuple[Product, ...] = ()
    hosts: tuple[str, ...] = ()


def is_config(node: Map) -> bool:
    """A Serve configuration of which an application is an LLM application, or bare `llm_configs`."""
    return any(True for _ in _llm_configs(node))


def objects(item: Item, cluster: Cluster) -> Iterator[Finding]:
    """A RayService: its Serve string, else whatever its containers start."""
    root = item.node
    assert isinstance(root, Map)
    text = root.text("spec", "serveConfigV2")
    workers = _workers(item, root, cluster)
    for node in documents(text) if text is not None else ():
        if isinstance(node, Map):
            yield from config(node, item.path, unit(item), workers)
    for pod in pods_of(item):
        yield from processes(pod, cluster)


def config(node: Map, path: str, unit_: str, workers: _Workers | None = None) -> Iterator[Finding]:
    """The servers of a Serve configuration, and the limits of their deployments."""
    for application, each in _llm_configs(node):
        yield from _server(each, application, path, unit_, workers or _Workers())


def _llm_configs(node: Map) -> Iterator[tuple[Map | None, Map]]:
    for application in (node.list("applications") or List((), node.span)).maps():
        for each in (application.list("args", "llm_configs") or List((), node.span)).maps():
            if _is_llm(each):
                yield application, each
    for each in (node.list("llm_configs") or List((), node.span)).maps():
        if _is_llm(each):
            yield None, each


def _is_llm(node: Map) -> bool:
    return "model_loading_config" in node or "engine_kwargs" in node


def _server(node: Map, application: Map | None, path: str, unit_: str, workers: _Workers) -> Iterator[Finding]:
    loading = node.map("model_loading_config") or Map((), node.span)
    identifier = loading.scalar("model_id")
    place = identifier.span if identifier is not None else node.span
    name = identifier.value if identifier is not None and identifier.text.known else "llm"
    env = {**workers.env, **_variables(application), **_variables(node)}
    line = CommandLine(
        program=Text.at("vllm", place),
        args=tuple(_words(node, loading, place)),
        env=env,
        env_open=workers.env_open,
        image=workers.image,
    )
    deployment = node.map("deployment_config") or Map((), node.span)
    accelerator = node.text("accelerator_type")
    own = (Product("accelerator_type", accelerator),) if accelerator is not None else ()
    site = Site(
        carrier="ray",
        unit=unit_,
        name=name,
        place=place,
        hosts=workers.hosts,
        replicas=_replicas(deployment),
        product=(*own, *workers.products),
        host_ipc=True,  # Ray mounts /dev/shm for its object store itself
        data={"kind": "RayService", "service_links": False},
    )
    process = Process(site, line)
    yield process
    yield _admission(deployment, process, unit_, name)


def _words(node: Map, loading: Map, place: Span) -> Iterator[Text]:
    """`vllm serve MODEL` with each engine argument as the flag of that field."""
    yield Text.at("serve", place)
    source = loading.text("model_source") or loading.text("model_id")
    if source is not None:
        yield source
    identifier = loading.text("model_id")
    if identifier is not None:
        yield from (Text.at("--served-model-name", identifier.span), identifier)
    for entry in node.map("engine_kwargs") or ():
        key = entry.key.value
        if key not in NOT_FLAGS:
            yield from _option(entry)


def _option(entry: Entry) -> list[Text]:
    flag = "--" + entry.key.value.replace("_", "-")
    off = OFF.get(entry.key.value)
    return option((flag, off) if off is not None else flag, entry.key.span, entry.value)


def _variables(node: Map | None) -> dict[str, Text]:
    variables = node.map("runtime_env", "env_vars") if node is not None else None
    return {entry.key.value: entry.value.text for entry in variables or () if isinstance(entry.value, Scalar)}


def _replicas(deployment: Map) -> Value[int] | None:
    """The least number of replicas, 1 where nothing says one."""
    for path in (("num_replicas",), ("autoscaling_config", "min_replicas")):
        found = count_of(deployment.get(*path), "replicas", "a literal number of replicas")
        if found is not None:
            return None if isinstance(found, Fact) and found.value == 0 else found
    return Fact(1, Default("ray", (), "num_replicas"))


def _admission(deployment: Map, process: Process, unit_: str, name: str) -> Admission:
    """`max_ongoing_requests` is a limit for each replica; the autoscaler's figure is a target."""
    about = system("ray")
    entry = deployment.entry("max_ongoing_requests") or deployment.entry("max_concurrent_queries")
    limit = count_of(entry.value if entry else None, "max_ongoing_requests", "a literal max_ongoing_requests")
    if limit is None:
        limit = Fact(about["llm_max_ongoing"], Default("ray", (), "max_ongoing_requests"))
    settings: dict[str, Value[Any]] = {}
    scaling = deployment.map("autoscaling_config")
    for key in ("target_ongoing_requests", "target_num_ongoing_requests_per_replica"):
        target = count_of(scaling.get(key) if scaling is not None else None, "target", "a literal target")
        if target is not None:
            settings["target"] = target
    if scaling is not None and "target" not in settings:
        settings["target"] = Fact(about["default_target"], Default("ray", (), "target_ongoing_requests"))
    return Admission(
        id="",
        system="ray",
        unit=unit_,
        name=name,
        place=entry.key.span if entry is not None else process.site.place,
        limit=limit,
        per="replica",
        excess="wait",
        target=process,
        names=(name,),
        settings=settings,
    )


def _workers(item: Item, root: Map, cluster: Cluster) -> _Workers:
    """Image, environment and devices of the one worker group; nothing where several differ."""
    name = root.string("metadata", "name") or ""
    hosts = (f"{name}-serve-svc",) if name else ()
    groups = root.list("spec", "rayClusterConfig", "workerGroupSpecs") or root.list("spec", "workerGroupSpecs")
    listed = list(groups.maps()) if groups is not None else []
    if len(listed) != 1:
        return _Workers(hosts=hosts)
    spec = listed[0].map("template", "spec")
    containers: Node | None = spec.get("containers") if spec is not None else None
    first = next(containers.maps(), None) if isinstance(containers, List) else None
    if spec is None or first is None:
        return _Workers(hosts=hosts)
    env, env_open = environment(first, item, cluster)
    return _Workers(first.text("image"), env, tuple(env_open), tuple(products_of(spec)), hosts)
