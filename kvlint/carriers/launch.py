"""From words to the engine's command line: through shells, scripts and wrappers, never running anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kvlint import engines
from kvlint.command import CommandLine, Opening, Pin
from kvlint.source import Span, Text

if TYPE_CHECKING:
    from kvlint.formats.shell import Script

MAX_NESTING = 4


@dataclass(frozen=True, slots=True)
class Launch:
    """Words as a carrier found them.

    `entrypoint`: the words are arguments to the image's own entrypoint.  `open`: where unseen words may be spliced in.
    """

    words: tuple[Text, ...]
    place: Span
    env: Mapping[str, Text]
    env_open: tuple[Opening, ...] = ()
    open: tuple[Opening, ...] = ()
    image: Text | None = None
    entrypoint: bool = False
    shell: bool = False
    assumed: tuple[Any, ...] = ()
    pins: tuple[Pin, ...] = ()


def launches(launch: Launch, depth: int = 0) -> Iterator[CommandLine]:
    """Every command line in `launch` that names an engine, in the order in which they would run."""
    if launch.entrypoint and launch.image is not None and engines.of_image(launch.image.value):
        yield _line(launch)
        return
    from kvlint.carriers import wrappers

    if not launch.words:
        return
    script = wrappers.nested(launch.words, launch.env) if depth < MAX_NESTING else None
    if script is not None:
        yield from of_script(script, launch, depth)
        return
    found = wrappers.unwrap(launch.words, launch.env, shell=launch.shell)
    line = replace(
        found.line,
        env_open=(*launch.env_open, *found.line.env_open),
        open=(*_shifted(launch, found.line), *found.line.open),
        image=found.line.image or launch.image,
        pins=(*launch.pins, *found.line.pins),
        shell=launch.shell,
        assumed=launch.assumed,
        container=found.container,
    )
    if line.program is not None and depth < MAX_NESTING and wrappers.nested(line.words, line.env) is not None:
        yield from launches(replace(launch, words=line.words, env=line.env, shell=True), depth + 1)
    elif engines.named_by(line):
        yield line


def of_script(script: Script, launch: Launch, depth: int = 0) -> Iterator[CommandLine]:
    """The engines that a script starts; what it installs before pins their versions."""
    from kvlint.carriers import wrappers

    pins = launch.pins
    for command in script.commands:
        if not command.words or command.nested:
            continue
        pins = (*pins, *wrappers.installs(command.words))
        inner = replace(
            launch,
            words=command.words,
            env={**launch.env, **command.env},
            env_open=(*launch.env_open, *command.env_open),
            entrypoint=False,
            open=(),
            shell=True,
            assumed=(*launch.assumed, *script.assumed),
            pins=pins,
        )
        yield from launches(inner, depth + 1)


def _line(launch: Launch) -> CommandLine:
    return CommandLine(
        program=None,
        args=launch.words,
        env=launch.env,
        open=launch.open,
        env_open=launch.env_open,
        image=launch.image,
        assumed=launch.assumed,
    )


def _shifted(launch: Launch, line: CommandLine) -> Iterator[Opening]:
    """Openings counted in the whole words, recounted in the arguments of the program that was found."""
    before = len(launch.words) - len(line.args)
    for opening in launch.open:
        yield replace(opening, index=max(0, opening.index - before))
