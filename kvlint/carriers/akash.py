"""Akash's deployments (SDL): services whose `command` takes the place of the image's entrypoint, as in Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.arguments import told
from kvlint.carriers.base import Finding, Item, count_of
from kvlint.carriers.host import narrowed
from kvlint.carriers.launch import Launch, launches
from kvlint.carriers.scripts import Files
from kvlint.command import Opening
from kvlint.facts import Fact, Value, Written
from kvlint.project import Project
from kvlint.source import Text
from kvlint.subjects import Process, Product, Site
from kvlint.tree import List, Map, Node, Scalar
from kvlint.units import parse_quantity


def is_deployment(node: Node | None) -> bool:
    """`profiles` of what is asked for and where, and a `deployment` that joins services with them."""
    return isinstance(node, Map) and node.map("profiles", "compute") is not None and node.map("deployment") is not None


class Akash:
    name = "akash"

    def claims(self, item: Item) -> bool:
        return is_deployment(item.node) and isinstance(item.node, Map) and item.node.map("services") is not None

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        for item in items:
            if not isinstance(item.node, Map):
                continue
            for entry in item.node.map("services") or ():
                if isinstance(entry.value, Map):
                    yield from _service(item, entry.key, entry.value, files)


CARRIER = Akash()


def _service(item: Item, key: Scalar, service: Map, files: Files) -> Iterator[Finding]:
    image, command = service.text("image"), service.get("command")
    words, openings = _words(command)
    more, later = _words(service.get("args"))
    openings += [Opening(each.index + len(words), each.span, each.reason) for each in later]
    if image is None and not words:
        return
    launch = Launch(
        words=tuple(words + more),
        place=key.span,
        env=dict(_environment(service.get("env"))),
        open=tuple(openings),
        image=image,
        entrypoint=not words,
        scripts=files.scripts(item.path),
        sources=files.sources,
    )
    for line in told(launches(launch)):
        yield Process(narrowed(_site(item, key, service), line, own=False), line)


def _words(node: Node | None) -> tuple[list[Text], list[Opening]]:
    words: list[Text] = []
    openings: list[Opening] = []
    for each in node if isinstance(node, List) else ():
        if isinstance(each, Scalar):
            words.append(each.text)
        else:
            openings.append(Opening(len(words), each.span, "an argument that is no text"))
    return words, openings


def _environment(node: Node | None) -> Iterator[tuple[str, Text]]:
    for each in node if isinstance(node, List) else ():
        if isinstance(each, Scalar):
            name, equals, _ = each.value.partition("=")
            what = f"{name} is filled in where the deployment is made"
            yield (
                name,
                each.text.slice(len(name) + 1) if equals else Text.unknown(each.span, what, f"the value of {name}"),
            )


def _site(item: Item, key: Scalar, service: Map) -> Site:
    placed = item.node.map("deployment", key.value) if isinstance(item.node, Map) else None
    given = [entry.value for entry in placed or () if isinstance(entry.value, Map)]
    one = given[0] if len(given) == 1 else None
    profile = one.string("profile") if one is not None else None
    wanted = (
        item.node.map("profiles", "compute", profile, "resources") if profile and isinstance(item.node, Map) else None
    )
    gpu = wanted.map("gpu") if wanted is not None else None
    return Site(
        carrier="akash",
        unit=f"akash {item.path}",
        name=key.value,
        place=key.span,
        hosts=(key.value,),
        published=dict(_published(service)),
        replicas=count_of(one.get("count"), "replicas", "a literal count") if one is not None else None,
        gpus=count_of(gpu.get("units"), "hardware.count", "a literal number") if gpu is not None else None,
        product=tuple(_product(gpu)),
        memory_limit=_size(wanted.text("memory", "size")) if wanted is not None else None,
        shared_memory=_shared(service, wanted),
    )


def _product(gpu: Map | None) -> Iterator[Product]:
    """The model that is asked for, where it is one: bids of several leave open which device it will be."""
    models = [
        model
        for vendor in (gpu.map("attributes", "vendor") if gpu is not None else None) or ()
        for each in (vendor.value.maps() if isinstance(vendor.value, List) else ())
        if (model := each.text("model")) is not None
    ]
    if len(models) == 1:
        yield Product("accelerator", models[0])


def _published(service: Map) -> Iterator[tuple[int, Fact[int]]]:
    for each in service.list("expose") or ():
        port = each.text("port") if isinstance(each, Map) else None
        if isinstance(each, Map) and port is not None and port.value.isdigit():
            outer = each.string("as") or port.value
            if outer.isdigit():
                yield int(outer), Fact(int(port.value), Written(port.span, port.via))


def _shared(service: Map, wanted: Map | None) -> Value[int] | None:
    """The storage in memory that is mounted where processes look for shared memory."""
    names = [
        entry.key.value
        for entry in service.map("params", "storage") or ()
        if isinstance(entry.value, Map) and entry.value.string("mount") == "/dev/shm"
    ]
    storage = wanted.list("storage") if wanted is not None else None
    for each in storage.maps() if storage is not None else ():
        if each.string("name") in names:
            return _size(each.text("size"))
    return None


def _size(text: Text | None) -> Value[int] | None:
    size = parse_quantity(text.value) if text is not None and text.known else None
    return Fact(size, Written(text.span, text.via)) if size is not None and text is not None else None
