"""Images whose entrypoint runs the words that it is given: the engine's own command line among them."""

from __future__ import annotations

from kvlint import engines
from kvlint.command import CommandLine


def inside(line: CommandLine, engine: str) -> CommandLine:
    """The engine's line inside what an image's entrypoint is given; the line itself where it names a program already."""
    if line.program is not None or line.image is None:
        return line
    from kvlint.carriers.launch import Launch, launches

    launch = Launch(
        line.args,
        line.image.span,
        line.env,
        line.env_open,
        line.open,
        shell=line.shell,
        assumed=line.assumed,
        pins=line.pins,
    )
    found = (each for each in launches(launch) if each.program is not None and engines.named_by(each) == engine)
    return next(found, line)


def offset(line: CommandLine, args: tuple[object, ...]) -> int:
    """Where `args` begin among the arguments of `line`."""
    return max(0, len(line.args) - len(args))
