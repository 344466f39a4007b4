"""Where a service of a compose file runs, by its own keys and those of what it extends."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.compose_services import File, first, first_at
from kvlint.carriers.host import published
from kvlint.facts import Fact, Unknown, Value, Written
from kvlint.records import replace
from kvlint.source import Text
from kvlint.subjects import Site
from kvlint.tree import List, Map, Node, Scalar
from kvlint.units import parse_compose_size


def site_of(file: File, key: Scalar, layers: list[Map]) -> Site:
    """Where a service runs: its names, ports, replicas, devices and memory."""
    count, ids = _devices(file, layers)
    container = file.scalar(first(layers, "container_name"))
    aliases = [item.value for layer in layers for item in _aliases(layer)]
    return Site(
        carrier="compose",
        unit=file.unit,
        name=key.value,
        place=key.span,
        hosts=(key.value, *((container.value,) if container is not None else ()), *aliases),
        published=dict(_published(file, layers)),
        replicas=_replicas(file, layers),
        gpus=count,
        device_ids=ids,
        memory_limit=_size(
            file, first(layers, "mem_limit") or first_at(layers, "deploy", "resources", "limits", "memory")
        ),
        shared_memory=_size(file, first(layers, "shm_size")),
        host_ipc=(text := file.scalar(first(layers, "ipc"))) is not None and text.value in ("host", "shareable"),
        resident_with=None if first(layers, "profiles") is not None else f"compose {file.item.path}",
    )


def _replicas(file: File, layers: list[Map]) -> Value[int] | None:
    """Containers of a service, between which compose's own name service shares requests out."""
    text = file.scalar(first_at(layers, "deploy", "replicas") or first(layers, "scale"))
    if text is None:
        return None
    if text.known and text.value.isdigit():
        return Fact(int(text.value), file.written(text))
    return Unknown("replicas", "the number of replicas is filled in elsewhere", "literal replicas")


def _aliases(layer: Map) -> Iterator[Scalar]:
    for entry in layer.map("networks") or ():
        if isinstance(entry.value, Map):
            yield from (item for item in entry.value.list("aliases") or () if isinstance(item, Scalar))


def _published(file: File, layers: list[Map]) -> Iterator[tuple[int, Fact[int]]]:
    """Host port: container port."""
    listed = (layer.list("ports") for layer in reversed(layers))
    for item in (each for ports in listed if ports is not None for each in ports):
        if isinstance(item, Scalar):
            yield from published((file.text(item.text),))
        elif isinstance(item, Map):
            host, target = item.string("published"), item.text("target")
            if host and host.isdigit() and target is not None and target.value.isdigit():
                yield int(host), Fact(int(target.value), Written(target.span, target.via))


def _devices(file: File, layers: list[Map]) -> tuple[Value[int] | None, tuple[Text, ...]]:
    """Devices that are reserved, and their literal ids."""
    node = first_at(layers, "deploy", "resources", "reservations", "devices")
    for item in node.maps() if isinstance(node, List) else ():
        ids = item.list("device_ids")
        if ids is not None:
            texts = tuple(part for each in ids if isinstance(each, Scalar) for part in file.text(each.text).split(","))
            if not all(text.known for text in texts):
                return Unknown("hardware.count", "the devices are filled in elsewhere", "[[hardware]] count"), texts
            return Fact(len(texts), replace(file.written(*texts), span=ids.span) if texts else Written(ids.span)), texts
        count = file.scalar(item.get("count"))
        if count is not None and count.value.isdigit():
            return Fact(int(count.value), file.written(count)), ()
        return Unknown("hardware.count", "all devices of the host are reserved", "[[hardware]] count"), ()
    return None, ()


def _size(file: File, node: Node | None) -> Value[int] | None:
    text = file.scalar(node)
    if text is None:
        return None
    size = parse_compose_size(text.value) if text.known else None
    if size is None:
        return Unknown("resources", "a size that is filled in elsewhere", "a literal size")
    return Fact(size, file.written(text))
