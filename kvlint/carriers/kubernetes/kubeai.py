"""KubeAI's Model: one object that names the model, the engine, its arguments and how it is scaled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from kvlint.admission import system
from kvlint.carriers import nodes
from kvlint.carriers.base import Finding, Item, count_of
from kvlint.carriers.kubernetes.cluster import Cluster, texts, unit
from kvlint.carriers.kubernetes.pods import Pod, of_container
from kvlint.facts import Default, Fact, Value, Written
from kvlint.source import Text
from kvlint.subjects import Admission, Product
from kvlint.tree import Map, Node, Scalar

CONTAINER = "server"
HOST = "kubeai"


def objects(item: Item, cluster: Cluster) -> Iterator[Finding]:
    root = item.node
    assert isinstance(root, Map)
    spec, name = root.map("spec"), root.scalar("metadata", "name")
    if spec is not None and name is not None:
        yield from of_model(item, spec, name, texts(root.map("metadata", "labels")), cluster)


def catalogue(item: Item, models: Map, cluster: Cluster) -> Iterator[Finding]:
    """The values of the chart of models: each entry becomes an object of its name; one that only switches a known one on has
    nothing of its own.
    """
    for entry in models:
        if isinstance(entry.value, Map):
            yield from of_model(item, entry.value, entry.key, {}, cluster)


def of_model(item: Item, spec: Map, name: Scalar, labels: Mapping[str, str], cluster: Cluster) -> Iterator[Finding]:
    engine = system("kubeai")["engines"].get(spec.string("engine"))
    if engine is None:
        return
    profile = spec.scalar("resourceProfile")
    pod = Pod(
        item,
        spec,
        name.value,
        name.span,
        labels,
        hosts=(),
        replicas=_replicas(spec),
        gpus=_count(profile),
        products=tuple(_products(profile)),
        data=MappingProxyType({"kind": "Model", "operator": "kubeai"}),
    )
    started = list(of_container(pod, _container(spec, name, engine), cluster))
    yield from started
    target = count_of(spec.get("targetRequests"), "targetRequests", "a literal targetRequests")
    if target is None:
        target = Fact(system("kubeai")["default_target"], Default("kubeai", (), "targetRequests"))
    entry = spec.entry("targetRequests")
    yield Admission(
        id="",
        system="kubeai",
        unit=unit(item),
        name=name.value,
        place=entry.key.span if entry is not None else name.span,
        per="pod",
        excess="wait",
        target=started[0] if len(started) == 1 else None,
        names=(name.value,),
        settings={"target": target, "hosts": Fact((HOST,), Written(name.span)), **_bounds(spec)},
    )


def _container(spec: Map, name: Scalar, engine: str) -> Map:
    about = system("kubeai")
    where = spec.scalar("engine")
    span = where.span if where is not None else name.span
    args: list[Text] = []
    args += _spelled(about["model_flag"].get(engine), _model(spec))
    args += _spelled(about["name_flag"].get(engine), name.text)
    args += [Text.at(word, span) for word in about["fixed"].get(engine, ())]
    if spec.get("adapters") is not None and engine == "vllm":
        args.append(Text.at("--enable-lora", span))
    from kvlint.carriers.arguments import started

    module = "vllm.entrypoints.openai.api_server"
    command = (Text.at(module, span),) if engine == "vllm" else started(engine, span)
    entries: dict[str, Node | None] = {
        "name": nodes.key(CONTAINER, name.span),
        "image": spec.scalar("image"),
        "command": nodes.words(command, span),
        "args": nodes.words(args, span, spec.get("args")),
        "env": spec.get("env"),
    }
    return nodes.mapping(spec.span, entries)


def _spelled(flag: str | None, value: Text | None) -> list[Text]:
    """`--flag=value` in one word, or a flag and its value, as the operator writes it."""
    if flag is None or value is None:
        return []
    if flag.endswith("="):
        return [Text.join((Text.at(flag, value.span), value))]
    return [Text.at(flag, value.span), value]


def _model(spec: Map) -> Text | None:
    """`hf://repository`, `ollama://name`, and what is mounted for the rest."""
    url = spec.text("url")
    if url is None:
        return None
    scheme, separator, rest = url.value.partition("://")
    if not separator or scheme in ("pvc", "oci"):
        return Text.at("/model", url.span)
    if scheme == "s3":
        return url
    return url.slice(len(scheme) + 3, len(scheme) + 3 + len(rest.partition("?")[0]))


def _count(profile: Scalar | None) -> Value[int] | None:
    """`name:count`: units of a profile, each one device where the profile is of devices; others have none, or hide how many."""
    if profile is None or not profile.text.known:
        return None
    name, colon, number = profile.value.partition(":")
    if not any(word in name.lower() for word in ("gpu", "tpu", "gaudi")):
        return None
    if colon and number.isdigit():
        place = profile.text.slice(len(name) + 1)
        return Fact(int(number), Written(place.span, place.via))
    return None


def _products(profile: Scalar | None) -> Iterator[Product]:
    if profile is None:
        return
    name = profile.text.slice(0, len(profile.value.partition(":")[0]))
    device = system("kubeai")["profiles"].get(name.value)
    if device is not None:
        yield Product("kubeai.org/resource-profile", Text.at(device, name.span))


def _replicas(spec: Map) -> Value[int] | None:
    """The least number: a Model without `minReplicas` may have none, and is then sized as one."""
    found = count_of(spec.get("replicas") or spec.get("minReplicas"), "replicas", "a literal minReplicas")
    return None if isinstance(found, Fact) and found.value == 0 else found


def _bounds(spec: Map) -> dict[str, Value[Any]]:
    found = {
        "min_replicas": count_of(spec.get("minReplicas"), "minReplicas", "a literal minReplicas"),
        "max_replicas": count_of(spec.get("maxReplicas"), "maxReplicas", "a literal maxReplicas"),
    }
    return {key: value for key, value in found.items() if value is not None}
