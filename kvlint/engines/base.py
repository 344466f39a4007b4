"""What every engine's module provides, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from kvlint.command import CommandLine
from kvlint.facts import Assumed, Fact, Unknown, Value, Written
from kvlint.records import dataclass, field
from kvlint.source import Span, Text
from kvlint.subjects import Problem, Process

if TYPE_CHECKING:
    from kvlint.engines.argparse import Reading
    from kvlint.models.lookup import Model
    from kvlint.sizing.server import Sizing


@dataclass(frozen=True, slots=True)
class Program:
    """An engine's program found in a command line.

    `entry` names the parser that `args` go to; where it depends on the release (an image's entrypoint) it is a function of it.
    `args_at`: index of `args[0]` in the line's arguments, to place openings.  `span`: the word that names the program.
    """

    entry: str | Callable[[str], str]
    args: tuple[Text, ...]
    span: Span
    args_at: int = 0
    problems: tuple[Problem, ...] = ()

    def entry_at(self, release: str) -> str:
        return self.entry if isinstance(self.entry, str) else self.entry(release)


def repeated_command(engine: str, word: Text) -> Problem:
    """The engine's own command among the arguments of an image that starts it already."""
    return Problem("repeated-command", word.span, {"engine": engine, "value": word.value, "refuses": True})


@dataclass(frozen=True, slots=True)
class World:
    """What a server's settings are read from: one class of releases, the arguments as that class reads them, the surroundings."""

    engine: str
    releases: tuple[str, ...]
    process: Process
    reading: Reading
    env: Mapping[str, Text]
    model: Callable[[Text], Model]
    hardware: Mapping[str, Value[Any]]
    workload: Mapping[str, Value[Any]]
    coefficient: Callable[[str], Value[Any]]
    exact: str | None = None

    @property
    def release(self) -> str:
        """The version itself where it is known exactly, read or not; else the newest of the class, which all mean the same."""
        return self.exact or self.releases[-1]


# Kinds whose controllers may run one engine over several pods: lws, kuberay, rbgs, aibrix, grove, dynamo, kubeflow, jobset.
GROUPS = frozenset(
    (
        *(
            "LeaderWorkerSet",
            "RayCluster",
            "RayService",
            "RayJob",
            "RoleBasedGroup",
            "RoleBasedGroupSet",
            "StormService",
        ),
        *("RayClusterFleet", "PodCliqueSet", "DynamoGraphDeployment", "MPIJob", "PyTorchJob", "TrainJob", "JobSet"),
    )
)


def grouped(world: World) -> Value[str] | None:
    """Other nodes may hold devices of this engine: its object starts groups of pods, or its script joins a Ray cluster.

    What the controller of an object makes of the pods in it is not known where its kind is not.
    """
    process = world.process
    if any(wrapper.name == "ray" for wrapper in process.line.wrappers):
        return Fact("ray", Assumed("the script starts Ray, whose other nodes may have devices"))
    if process.site.data.get("kind") in GROUPS or any(name.startswith("LWS_") for name in world.env):
        return Fact("a leader-worker set", Assumed("the object has several nodes"))
    if process.site.data.get("walked"):
        kind = process.site.data.get("kind")
        return Unknown("multi_node", f"a {kind} may run one engine in several pods", "the pods that one engine runs in")
    return None


def read_once(world: World, pooling: Mapping[str, tuple[Any, ...]]) -> Value[str] | None:
    """What embeds, ranks or classifies holds no conversations: each text is read for itself, unless the owner says otherwise.

    `pooling`: the values, by option, that make such a server of the engine.
    """
    if "reuse" in world.workload:
        return None
    asked = (each for each in world.reading.options if each.typed in pooling.get(each.dest, ()))
    first = next(asked, None)
    return Fact("none", Written(first.name.span, first.name.via)) if first is not None else None


@dataclass(frozen=True, slots=True)
class Settings:
    """What an engine made of a world: settings by contract name, the names it serves, problems of its own."""

    values: dict[str, Value[Any]]
    names: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    model: Model | None = None


class Engine(Protocol):
    """One module an engine: an object of this shape named `ENGINE`."""

    name: str
    distribution: str  # as pinned in requirement files and `uvx --from`
    images: tuple[str, ...]  # repositories whose tag is the engine's version

    def recognise(self, line: CommandLine) -> Program | None:
        """The engine's server in this line; None for anything else, its other subcommands included."""

    def semantics(self, release: str) -> Hashable:
        """Releases with the same value mean the same by the same settings; a tuple of several is one of them, not known which."""

    def settled(self, release: str) -> bool:
        """Whether one meaning is known for exactly this version; else it is the worlds of its neighbours."""

    def settings(self, world: World) -> Settings: ...

    def sizing(self) -> type[Sizing]:
        """The memory model, imported when a derived value is asked for."""


@dataclass(frozen=True, slots=True)
class EngineData:
    """Which words lead to which module: read before any engine is imported."""

    name: str
    module: str
    programs: tuple[str, ...]
    modules: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    markers: tuple[str, ...] = field(default=())
