"""Dockerfiles: the engine that an image starts by its own `ENTRYPOINT` and `CMD`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvlint.carriers.base import Finding, Item, directory
from kvlint.carriers.host import contained
from kvlint.carriers.launch import Launch, launches
from kvlint.carriers.scripts import Files
from kvlint.command import Opening, Pin
from kvlint.facts import Fact, Written
from kvlint.formats import dockerfile, shell
from kvlint.formats.dockerfile import Instruction, Stage
from kvlint.formats.shell import Assumption
from kvlint.parsing import without_ending
from kvlint.project import Project
from kvlint.records import dataclass, field, replace
from kvlint.source import Source, Text
from kvlint.subjects import Process, Site


class Dockerfile:
    name = "dockerfile"

    def claims(self, item: Item) -> bool:
        return item.kind == "dockerfile"

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        for item in items:
            yield from _file(item, files)


CARRIER = Dockerfile()


@dataclass(frozen=True, slots=True)
class Image:
    """What a stage hands on to those built from it.  `given`: arguments that whoever builds it sets."""

    base: Text
    entrypoint: Instruction | None = None
    command: Instruction | None = None
    env: dict[str, Text] = field(default_factory=dict)
    arguments: dict[str, Text] = field(default_factory=dict)
    assumed: tuple[Assumption, ...] = ()
    pins: tuple[Pin, ...] = ()
    ports: dict[str, Fact[int]] = field(default_factory=dict)
    given: Mapping[str, Text] = field(default_factory=dict)


def _file(item: Item, files: Files) -> Iterator[Process]:
    read = dockerfile.parse(item.source)
    stages = read.stages()
    images = _images(read, {})
    bases = {stage.image.value for stage in stages}
    for number, stage in enumerate(stages):
        starts = any(each.keyword in ("ENTRYPOINT", "CMD") for each in stage.instructions)
        last = number == len(stages) - 1
        if last or (starts and stage.name not in bases):
            stage_names = (stage.name, str(number), *(("",) if last else ()))
            for process in _processes(images[str(number)], item, files, stage.name or _name(item.path)):
                process.site.data["stages"] = stage_names
                yield process


def built(source: Source, target: str, given: Mapping[str, Text]) -> Image | None:
    """The image that a build of a Dockerfile makes: its last stage's where no `target` is named.  `given`: its arguments."""
    read = dockerfile.parse(source)
    return _images(read, given).get(target or str(len(read.stages()) - 1))


def _images(read: dockerfile.Dockerfile, given: Mapping[str, Text]) -> dict[str, Image]:
    """What each stage makes, by its number and its name."""
    start = Image(Text(""), given=given)
    for instruction in read.instructions:
        if instruction.keyword == "FROM":
            break
        start = _applied(start, instruction)
    images: dict[str, Image] = {}
    for number, stage in enumerate(read.stages()):
        image = _built(stage, start, images)
        images[str(number)] = image
        if stage.name is not None:
            images[stage.name] = image
    return images


def _built(stage: Stage, start: Image, images: dict[str, Image]) -> Image:
    interpolated = shell.compose_interpolate(stage.image, start.arguments).text
    parent = images.get(interpolated.value)
    image = replace(parent, arguments={}) if parent is not None else replace(start, base=interpolated, arguments={})
    if stage.last("ENTRYPOINT") is not None:
        image = replace(image, command=None)
    for instruction in stage.instructions:
        image = _applied(image, instruction, start)
    return image


def _applied(image: Image, instruction: Instruction, start: Image | None = None) -> Image:
    if instruction.keyword == "ENTRYPOINT":
        return replace(image, entrypoint=instruction)
    if instruction.keyword == "CMD":
        return replace(image, command=instruction)
    if instruction.keyword == "RUN":
        script = shell.commands(instruction.text, {**image.arguments, **image.env})
        return replace(image, pins=(*image.pins, *_installs(script)))
    if instruction.keyword == "EXPOSE":
        return replace(image, ports={**image.ports, **dict(_ports(instruction))})
    if instruction.keyword == "ENV":
        env = dict(image.env)
        known = {**image.arguments, **env}
        for name, value in dockerfile.pairs(instruction):
            if value is not None:
                env[name.value] = shell.compose_interpolate(value, known).text
        return replace(image, env=env)
    if instruction.keyword == "ARG":
        return _argument(image, instruction, start)
    return image


def _argument(image: Image, instruction: Instruction, start: Image | None) -> Image:
    """`ARG NAME=default`: the default holds unless the build is told otherwise."""
    arguments, assumed = dict(image.arguments), list(image.assumed)
    for name, value in dockerfile.pairs(instruction):
        if name.value in image.given:
            arguments[name.value] = image.given[name.value]
            continue
        given = value if value is not None else start.arguments.get(name.value) if start is not None else None
        if given is None:
            arguments.pop(name.value, None)
            continue
        arguments[name.value] = shell.compose_interpolate(given, {**arguments, **image.env}).text
        if given.pieces:
            assumed.append(Assumption(name.value, name.span, given.span))
    return replace(image, arguments=arguments, assumed=tuple(assumed))


def _installs(script: shell.Script) -> Iterator[Pin]:
    from kvlint.carriers.wrappers.programs import installs

    for command in script.commands:
        yield from installs(command.words)


def _ports(instruction: Instruction) -> Iterator[tuple[str, Fact[int]]]:
    for word in dockerfile.split(instruction.text):
        number = word.value.partition("/")[0]
        if number.isdigit():
            yield number, Fact(int(number), Written(word.slice(0, len(number)).span))


def _processes(image: Image, item: Item, files: Files, name: str) -> Iterator[Process]:
    first = image.entrypoint or image.command
    if first is None:
        return
    words, openings = started(image)
    launch = Launch(
        words=words,
        place=first.span,
        env=image.env,
        open=openings,
        image=image.base,
        entrypoint=image.entrypoint is None,
        assumed=image.assumed,
        pins=image.pins,
        scripts=files.scripts(item.path),
        sources=files.sources,
    )
    for line in launches(launch):
        place = line.program if line.program is not None and line.program.span.source is item.source else None
        site = Site(
            carrier="dockerfile",
            unit=f"image {item.path}",
            name=name,
            place=place.span if place is not None else first.text.span,
            ports=image.ports,
        )
        yield Process(contained(site, line), line)


def started(image: Image) -> tuple[tuple[Text, ...], tuple[Opening, ...]]:
    """`ENTRYPOINT` and `CMD` together; a shell form takes no arguments."""
    entrypoint, command = image.entrypoint, image.command
    if entrypoint is None:
        assert command is not None
        return command.words if command.words is not None else _shell(command), ()
    if entrypoint.words is None:
        return _shell(entrypoint), ()
    if command is None:
        later = Opening(
            len(entrypoint.words), entrypoint.text.span, "arguments are given when the container is started"
        )
        return entrypoint.words, (later,)
    more = command.words if command.words is not None else _shell(command)
    return (*entrypoint.words, *more), ()


def _shell(instruction: Instruction) -> tuple[Text, ...]:
    place = instruction.span
    return Text.at("/bin/sh", place), Text.at("-c", place), instruction.text


def _name(path: str) -> str:
    """`vllm` of `Dockerfile.vllm` and `vllm.Dockerfile`; else the directory's name."""
    name = without_ending(path.rpartition("/")[2])
    for file in ("dockerfile", "containerfile"):
        bare = name.lower()
        if bare.startswith(f"{file}."):
            return name[len(file) + 1 :]
        if bare.endswith(f".{file}"):
            return name[: -len(file) - 1]
    return directory(path).rpartition("/")[2] or name
