"""A command line as the operating system would hand it to a program, with every character's place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvlint.records import dataclass, field
from kvlint.source import Span, Text


@dataclass(frozen=True, slots=True)
class Opening:
    """Something unseen may be spliced in before argument `index` (`len(args)`: at the end, or nobody knows where)."""

    index: int
    span: Span
    reason: str
    supply: str = ""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A program that was passed through on the way: `uv run`, `taskset -c 0-7`, `docker run …`."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Pin:
    """A version that the command line itself fixes: `uvx --from vllm==0.11.0`, `pip install mlx-lm==0.31.3 &&`."""

    distribution: str
    version: Text


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A program and its arguments.

    `program` is None where an image's own entrypoint runs (`image` says which); then `args` follow that entrypoint.
    `env` holds what is set for the process, later settings already winning; `env_open`: more may be set unseen.
    `shell`: the words went through a shell, so `$X` and quotes were read by it.
    `assumed`: defaults of variables that were taken because nothing in view sets them; what rests on one is in doubt.
    """

    program: Text | None
    args: tuple[Text, ...]
    env: Mapping[str, Text] = field(default_factory=dict)
    open: tuple[Opening, ...] = ()
    env_open: tuple[Opening, ...] = ()
    image: Text | None = None
    wrappers: tuple[Wrapper, ...] = ()
    pins: tuple[Pin, ...] = ()
    shell: bool = False
    assumed: tuple[Any, ...] = ()
    container: Any = None  # carriers.wrappers.Container, where `docker run` started it

    def names(self, variable: str) -> bool:
        """Whether a word of the line is made of a variable: then it need not be the program that reads it."""
        return any(
            variable in use.text for word in self.words for piece in word.pieces for use in (piece.span, *piece.via)
        )

    @property
    def words(self) -> tuple[Text, ...]:
        return (self.program, *self.args) if self.program is not None else self.args
