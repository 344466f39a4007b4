"""docker compose: services with their command, environment, devices and names."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.carriers import compose_files
from kvlint.carriers.akash import is_deployment
from kvlint.carriers.arguments import declared, told
from kvlint.carriers.base import COMPOSE_FILE, Finding, Item, directory
from kvlint.carriers.compose_services import File, base_of, env_file, first, layers_of, opened, services_of
from kvlint.carriers.compose_site import site_of
from kvlint.carriers.host import narrowed
from kvlint.carriers.launch import Launch, launches
from kvlint.carriers.scripts import Files
from kvlint.carriers.unread import of_words
from kvlint.command import Opening
from kvlint.formats import shell
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass, replace
from kvlint.source import Span, Text
from kvlint.subjects import Process
from kvlint.tree import List, Map, Node, Opaque, Scalar

if TYPE_CHECKING:
    from kvlint.carriers.dockerfile import Image

_BASE = regex(
    r"^[._]|(?:^|[-_.])(?:base|common|defaults?|template)(?:[-_.]|$)"
)  # names of services that only lend their keys


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
    services = services_of(item)
    over = [opened(each, project) for each in compose_files.overrides(item, project)]
    under = {entry.key.value for each in compose_files.overridden(item, project) for entry in services_of(each)}
    extended = {name for entry in services if (name := base_of(entry.value)) is not None}
    for entry in services:
        base = entry.key.value in extended and _BASE.search(entry.key.value)
        if isinstance(entry.value, Map) and not base and entry.key.value not in under:
            others = [
                (each, node) for each in over if (node := services_of(each.item).map(entry.key.value)) is not None
            ]
            yield from _service(file, entry.key, entry.value, others)


def _service(file: File, key: Scalar, node: Map, others: list[tuple[File, Map]]) -> Iterator[Finding]:
    file.assumed = []
    layers = [*(layer for over, each in others for layer in layers_of(over, each)), *layers_of(file, node)]
    image = file.scalar(first(layers, "image"))
    env, env_open = _environment(file, layers)
    entrypoint, command = first(layers, "entrypoint"), first(layers, "command")
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
    site = site_of(file, key, layers)
    lines = told(launches(build.launch(launch, command is not None))) if build is not None else []
    if lines and build is not None:
        site = replace(site, ports=build.image.ports, data={"built": (build.path, build.target)})
    lines = lines or told(launches(launch))
    if not lines:
        of_words(launch.words, env, file.project)
    for line in lines:
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


def _build(file: File, layers: list[Map]) -> _Build | None:
    """The Dockerfile of this repository that a service is built from."""
    node = first(layers, "build")
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


def _words(file: File, node: Node | None) -> tuple[list[Text], list[Opening]]:
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
    return _environment(file, list(layers_of(file, service)))[0]


def _environment(file: File, layers: list[Map]) -> tuple[dict[str, Text], list[Opening]]:
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


def _add_environment(file: File, node: Node | None, env: dict[str, Text]) -> None:
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
