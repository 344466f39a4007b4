"""docker compose: services with their command, environment, devices and names."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kvlint.carriers import compose_files
from kvlint.carriers.akash import is_deployment
from kvlint.carriers.arguments import declared, told
from kvlint.carriers.base import COMPOSE_FILE, Finding, Item, directory
from kvlint.carriers.host import narrowed
from kvlint.carriers.launch import Launch, launches
from kvlint.carriers.scripts import Files
from kvlint.command import Opening
from kvlint.facts import Fact, Unknown, Value, Written
from kvlint.formats import shell
from kvlint.formats.shell import Assumption
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass, field, replace
from kvlint.source import Span, Text
from kvlint.subjects import Process, Site
from kvlint.tree import List, Map, Node, Opaque, Scalar
from kvlint.units import parse_compose_size

if TYPE_CHECKING:
    from kvlint.carriers.dockerfile import Image

_BASE = regex(
    r"^[._]|(?:^|[-_.])(?:base|common|defaults?|template)(?:[-_.]|$)"
)  # names of services that only lend their keys
_PORT = regex(r"(?:(?P<ip>[^:]*|\[[^\]]*\]):)?(?P<host>\d+):(?P<container>\d+)(?:/\w+)?")
MAX_EXTENDS = 8


class Compose:
    name = "compose"

    def claims(self, item: Item) -> bool:
        if not isinstance(item.node, Map) or "apiVersion" in item.node:
            return False
        services = item.node.map("services")
        if services is None or is_deployment(item.node):
            return False
        if COMPOSE_FILE.fullmatch(item.path.rpartition("/")[2]):
            return True
        return any(
            isinstance(each.value, Map) and ("image" in each.value or "build" in each.value) for each in services
        )

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        claimed = {item.path for item in items}
        for item in items:
            found = [each for each in compose_files.overridden(item, project) if each.path not in claimed]
            for each in (*found, item):
                if isinstance(each.node, Map):
                    yield from _file(each, project)


CARRIER = Compose()


def _file(item: Item, project: Project) -> Iterator[Finding]:
    """The services of a file, each with what an override beside it says of it."""
    file = opened(item, project)
    services = _services(item)
    over = [opened(each, project) for each in compose_files.overrides(item, project)]
    under = {entry.key.value for each in compose_files.overridden(item, project) for entry in _services(each)}
    extended = {name for entry in services if (name := _extended(entry.value)) is not None}
    for entry in services:
        base = entry.key.value in extended and _BASE.search(entry.key.value)
        if isinstance(entry.value, Map) and not base and entry.key.value not in under:
            others = [(each, node) for each in over if (node := _services(each.item).map(entry.key.value)) is not None]
            yield from _service(file, entry.key, entry.value, others)


def _services(item: Item) -> Map:
    return (item.node.map("services") if isinstance(item.node, Map) else None) or Map((), item.span)


def opened(item: Item, project: Project) -> _File:
    """A file with the variables that compose fills in: those of its directory, and of the project that includes it."""
    base, outer = directory(item.path), compose_files.including(item.path, project)
    env = _dotenv(base, project)
    return _File(item, project, {**env, **_dotenv(outer, project)} if outer != base else env, f"compose {outer}")


def _extended(service: Node) -> str | None:
    """The service of this file whose keys another takes."""
    if not isinstance(service, Map) or "file" in (service.map("extends") or ()):
        return None
    return service.string("extends") or service.string("extends", "service")


@dataclass(slots=True)
class _File:
    item: Item
    project: Project
    env: Mapping[str, Text]
    unit: str
    assumed: list[Assumption] = field(default_factory=list)

    def text(self, text: Text) -> Text:
        """A value after compose's own interpolation."""
        found = shell.compose_interpolate(text, self.env)
        self.assumed += found.assumed
        return found.text

    def written(self, *texts: Text) -> Written:
        """Where a value stands; in doubt where it is a variable's default, which the outside may set."""
        doubt = any(shell.assumed_in(text, tuple(self.assumed)) for text in texts)
        return Written(texts[0].span, texts[0].via, "default" if doubt else None)

    def scalar(self, node: Node | None) -> Text | None:
        return self.text(node.text) if isinstance(node, Scalar) and node.tag != "null" else None


def _dotenv(base: str, project: Project) -> Mapping[str, Text]:
    return env_file(f"{base}/.env" if base else ".env", project) or {}


def env_file(path: str, project: Project) -> dict[str, Text] | None:
    """The variables of an env file; None where it is not in the project."""
    if not project.files.exists(path):
        return None
    source = project.text(path)
    if source is None:
        return None
    from kvlint.formats import env

    return {each.name.value: each.value for each in env.parse(source).assignments}


def _service(file: _File, key: Scalar, node: Map, others: list[tuple[_File, Map]]) -> Iterator[Finding]:
    file.assumed = []
    layers = [*(layer for over, each in others for layer in _layers(over, each)), *_layers(file, node)]
    image = file.scalar(_first(layers, "image"))
    env, env_open = _environment(file, layers)
    entrypoint, command = _first(layers, "entrypoint"), _first(layers, "command")
    words, openings = _words(file, entrypoint)
    more, later = _words(file, command)
    openings += [Opening(each.index + len(words), each.span, each.reason) for each in later]
    build = _build(file, layers)
    if image is None and not words and not more and build is None:
        return
    own_entry = entrypoint is None
    files = Files(file.project)
    launch = Launch(
        words=tuple(words + more),
        place=key.span,
        env=env,
        env_open=tuple(env_open),
        open=tuple(openings),
        image=image,
        entrypoint=own_entry,
        assumed=tuple(file.assumed),
        scripts=files.scripts(file.item.path),
        sources=files.sources,
        engine=declared(file.project.config, f"{file.item.path}#{key.value}", words + more),
    )
    site = _site(file, key, layers)
    lines = told(launches(build.launch(launch, command is not None))) if build is not None else []
    if lines and build is not None:
        site = replace(site, ports=build.image.ports, data={"built": (build.path, build.target)})
    for line in lines or told(launches(launch)):
        yield Process(narrowed(site, line, own=True), line)


@dataclass(frozen=True, slots=True)
class _Build:
    """The image that a service is built as: the Dockerfile's path, its stage, and what it makes."""

    path: str
    target: str
    image: Image

    def launch(self, service: Launch, commanded: bool) -> Launch:
        """What the container starts: the service's own entrypoint and command where it has them, else the image's."""
        from kvlint.carriers.dockerfile import started

        image = self.image if service.entrypoint else replace(self.image, entrypoint=None, command=None)
        image = replace(image, command=None) if commanded else image
        words: tuple[Text, ...] = ()
        openings: tuple[Opening, ...] = ()
        takes = image.entrypoint is None or image.entrypoint.words is not None
        if image.entrypoint is not None or image.command is not None:
            words, openings = started(image)
        if takes:
            given = tuple(replace(each, index=each.index + len(words)) for each in service.open)
            openings = given if commanded else (*openings, *given)
            words = (*words, *service.words)
        return replace(
            service,
            words=words,
            open=openings,
            env={**image.env, **service.env},
            image=image.base,
            entrypoint=service.entrypoint and image.entrypoint is None,
            assumed=(*image.assumed, *service.assumed),
            pins=image.pins,
        )


def _build(file: _File, layers: list[Map]) -> _Build | None:
    """The Dockerfile of this repository that a service is built from."""
    node = _first(layers, "build")
    if not isinstance(node, (Scalar, Map)) or (isinstance(node, Map) and "dockerfile_inline" in node):
        return None
    context = file.scalar(node if isinstance(node, Scalar) else node.get("context"))
    name = file.scalar(node.get("dockerfile")) if isinstance(node, Map) else None
    target = file.scalar(node.get("target")) if isinstance(node, Map) else None
    if not all(each is None or each.known for each in (context, name, target)):
        return None
    where = context.value if context is not None else "."
    path = posixpath.normpath(
        posixpath.join(directory(file.item.path), where, name.value if name is not None else "Dockerfile")
    )
    source = file.project.text(path) if "://" not in where and file.project.files.exists(path) else None
    if source is None:
        return None
    from kvlint.carriers.dockerfile import built

    given: dict[str, Text] = {}
    if isinstance(node, Map):
        _add_environment(file, node.get("args"), given)
    stage = target.value if target is not None else ""
    image = built(source, stage, given)
    return _Build(path, stage, image) if image is not None else None


def _layers(file: _File, node: Map) -> Iterator[Map]:
    """The service, then what it extends, nearest first."""
    for _ in range(MAX_EXTENDS):
        yield node
        extends = node.get("extends")
        name = extends.value if isinstance(extends, Scalar) else node.string("extends", "service")
        other = node.string("extends", "file")
        root = file.item.node if other is None else _other(file, other)
        base = root.map("services", name) if isinstance(root, Map) and name else None
        if base is None or base is node:
            return
        node = base


def _other(file: _File, name: str) -> Node | None:
    base = directory(file.item.path)
    path = f"{base}/{name.removeprefix('./')}" if base else name.removeprefix("./")
    items = file.project.items(path) if file.project.files.exists(path) else []
    return items[0].node if items else None


def _first(layers: list[Map], key: str) -> Node | None:
    return next((layer.get(key) for layer in layers if key in layer), None)


def _words(file: _File, node: Node | None) -> tuple[list[Text], list[Opening]]:
    """A command as string (split as a shell would, nothing expanded) or as list."""
    if isinstance(node, Opaque):
        return [], [Opening(0, node.span, node.reason)]
    if isinstance(node, Scalar) and node.tag != "null":
        return list(shell.split(file.text(node.text))), []
    words: list[Text] = []
    openings: list[Opening] = []
    if isinstance(node, List):
        for item in node:
            if isinstance(item, Scalar):
                words.append(file.text(item.text))
            else:
                openings.append(Opening(len(words), item.span, "an argument that is no text"))
    return words, openings


def environment(item: Item, service: Map, project: Project) -> dict[str, Text]:
    """The variables of one service."""
    file = opened(item, project)
    return _environment(file, list(_layers(file, service)))[0]


def _environment(file: _File, layers: list[Map]) -> tuple[dict[str, Text], list[Opening]]:
    """`env_file` first, then `environment`; a service's own win over those it extends."""
    env: dict[str, Text] = {}
    open_: list[Opening] = []
    for layer in reversed(layers):
        for text in _env_files(layer.get("env_file")):
            base = directory(file.item.path)
            name = text.value.removeprefix("./")
            found = env_file(f"{base}/{name}" if base else name, file.project) if text.known else None
            if found is None:
                open_.append(Opening(0, text.span, f"{text.value} is not in these files", f"the file {text.value}"))
            env.update(found or {})
        _add_environment(file, layer.get("environment"), env)
    return env, open_


def _env_files(node: Node | None) -> Iterator[Text]:
    if isinstance(node, Scalar):
        yield node.text
    elif isinstance(node, List):
        for item in node:
            if isinstance(item, Scalar):
                yield item.text
            elif isinstance(item, Map) and (path := item.text("path")) is not None:
                yield path


def _add_environment(file: _File, node: Node | None, env: dict[str, Text]) -> None:
    if isinstance(node, Map):
        for entry in node:
            value = file.scalar(entry.value)
            env[entry.key.value] = value if value is not None else _outside(entry.key.value, entry.key.span)
    elif isinstance(node, List):
        for item in node:
            if not isinstance(item, Scalar):
                continue
            text = file.text(item.text)
            name, equals, _ = text.value.partition("=")
            env[name] = text.slice(len(name) + 1) if equals else _outside(name, text.span)


def _outside(name: str, span: Span) -> Text:
    return Text.unknown(span, f"{name} comes from the environment of docker compose", f"the value of {name}")


def _site(file: _File, key: Scalar, layers: list[Map]) -> Site:
    count, ids = _devices(file, layers)
    container = file.scalar(_first(layers, "container_name"))
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
            file, _first(layers, "mem_limit") or _deep(layers, "deploy", "resources", "limits", "memory")
        ),
        shared_memory=_size(file, _first(layers, "shm_size")),
        host_ipc=(text := file.scalar(_first(layers, "ipc"))) is not None and text.value in ("host", "shareable"),
        resident_with=None if _first(layers, "profiles") is not None else f"compose {file.item.path}",
    )


def _replicas(file: _File, layers: list[Map]) -> Value[int] | None:
    """Containers of a service, between which compose's own name service shares requests out."""
    text = file.scalar(_deep(layers, "deploy", "replicas") or _first(layers, "scale"))
    if text is None:
        return None
    if text.known and text.value.isdigit():
        return Fact(int(text.value), file.written(text))
    return Unknown("replicas", "the number of replicas is filled in elsewhere", "literal replicas")


def _deep(layers: list[Map], *path: str) -> Node | None:
    return next((found for layer in layers if (found := layer.get(*path)) is not None), None)


def _aliases(layer: Map) -> Iterator[Scalar]:
    for entry in layer.map("networks") or ():
        if isinstance(entry.value, Map):
            yield from (item for item in entry.value.list("aliases") or () if isinstance(item, Scalar))


def _published(file: _File, layers: list[Map]) -> Iterator[tuple[int, Fact[int]]]:
    """Host port: container port."""
    listed = (layer.list("ports") for layer in reversed(layers))
    for item in (each for ports in listed if ports is not None for each in ports):
        if isinstance(item, Scalar):
            text = file.text(item.text)
            match = _PORT.fullmatch(text.value)
            if match:
                inner = text.slice(*match.span("container"))
                yield int(match["host"]), Fact(int(match["container"]), Written(inner.span, inner.via))
        elif isinstance(item, Map):
            host, target = item.string("published"), item.text("target")
            if host and host.isdigit() and target is not None and target.value.isdigit():
                yield int(host), Fact(int(target.value), Written(target.span, target.via))


def _devices(file: _File, layers: list[Map]) -> tuple[Value[int] | None, tuple[Text, ...]]:
    """Devices that are reserved, and their literal ids."""
    node = _deep(layers, "deploy", "resources", "reservations", "devices")
    for item in node.maps() if isinstance(node, List) else ():
        ids = item.list("device_ids")
        if ids is not None:
            texts = tuple(part for each in ids if isinstance(each, Scalar) for part in _split(file.text(each.text)))
            if not all(text.known for text in texts):
                return Unknown("hardware.count", "the devices are filled in elsewhere", "[[hardware]] count"), texts
            return Fact(len(texts), replace(file.written(*texts), span=ids.span) if texts else Written(ids.span)), texts
        count = file.scalar(item.get("count"))
        if count is not None and count.value.isdigit():
            return Fact(int(count.value), file.written(count)), ()
        return Unknown("hardware.count", "all devices of the host are reserved", "[[hardware]] count"), ()
    return None, ()


def _split(text: Text) -> Iterator[Text]:
    """`"0,1"` in one item is two devices."""
    at = 0
    for part in text.value.split(","):
        yield text.slice(at, at + len(part))
        at += len(part) + 1


def _size(file: _File, node: Node | None) -> Value[int] | None:
    text = file.scalar(node)
    if text is None:
        return None
    size = parse_compose_size(text.value) if text.known else None
    if size is None:
        return Unknown("resources", "a size that is filled in elsewhere", "a literal size")
    return Fact(size, file.written(text))
