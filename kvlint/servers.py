"""From processes to servers: which engine, which releases, and one `Server` for each class of releases that differ."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kvlint import engines
from kvlint.coefficients import Coefficients
from kvlint.contradictions import contradictions
from kvlint.engines import adapters
from kvlint.engines.base import Engine, Program, Settings, World
from kvlint.engines.claims import claim
from kvlint.engines.options import options
from kvlint.engines.updates import breaking
from kvlint.facts import Assumed, Fact, Unknown, Value
from kvlint.hardware.resolve import hardware
from kvlint.records import dataclass
from kvlint.source import Text
from kvlint.subjects import Problem, Process, Server, ServerGroup, VersionClaim

if TYPE_CHECKING:
    from kvlint.engines.argparse import Load, Reading
    from kvlint.models.lookup import Models
    from kvlint.project import Project

QUESTIONS, SUBCOMMANDS = {"--help", "-h", "--version"}, {"serve", "server", "api_server"}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every server of a run is built with."""

    project: Project
    models: Models
    coefficients: Coefficients


def build(
    process: Process, identity: str, around: Surroundings, measured: Mapping[str, Fact[Any]] | None = None
) -> ServerGroup | None:
    """The server that a process is, in all its worlds; None where its command line is no engine's server.

    `measured`: figures of a log of it, which [[hardware]] overrules; one that is a setting fills in where that is unknown.
    """
    name = engines.named_by(process.line)
    if name is None or _only_asks(process, name):
        return None
    engine = engines.engine(name)
    program = engine.recognise(process.line)
    if program is None:
        return None
    config = around.project.config
    declared = config.matching("engine", identity, name).get("version")
    version = claim(process, name, declared, around.project)
    placed = options(name).neighbours(version.text if version is not None else "")
    if version is not None and placed.beyond is not None:
        version = VersionClaim(version.text, version.origin, placed.beyond)
    exact = version.text.lstrip("v=") if version is not None and placed.kind in ("exact", "between") else None
    exact = exact if exact is not None and placed.version is not None and engine.settled(exact) else None
    stated = {**(measured or {}), **config.matching("hardware", identity)}
    devices = hardware(process.site, stated, around.coefficients)
    workload = _workload(config.matching("workload", identity), process)
    worlds = _servers(
        engine,
        program,
        [
            World(
                engine=name,
                releases=members,
                process=process,
                reading=reading,
                env=process.line.env,
                model=lambda text: around.models.find(text, process.site.place.path),
                hardware=devices,
                workload=workload,
                coefficient=around.coefficients.get,
                exact=exact,
            )
            for members, reading in _classes(
                engine, program, process, placed.releases, exact, _loader(process, around.project)
            )
        ],
        identity,
        version,
    )
    for server in worlds:
        for setting, figure in (measured or {}).items():
            if isinstance(server.settings.get(setting), Unknown):
                server.settings[setting] = figure
    adapters.attach(worlds, _loader(process, around.project))
    accepted = next((server for server in worlds if not server.refused), worlds[0] if worlds else None)
    if accepted is not None:
        said = config.matching("workload", identity)
        against = tuple(contradictions(process, accepted, declared, config.matching("hardware", identity), said))
        for server in worlds if against else ():
            server.problems = (*server.problems, *against)
    breaks = breaking(worlds)
    if breaks is not None:
        for server in worlds:
            server.problems = (*server.problems, breaks)
    return ServerGroup(identity, tuple(worlds))


def _only_asks(process: Process, engine: str) -> bool:
    """Whether a script, or an image that waits for arguments, asks the program to print something and nothing else."""
    if not (process.line.shell or process.site.carrier == "dockerfile"):
        return False
    asked = {word.value for word in process.line.args} - SUBCOMMANDS
    return bool(asked) and all(word in QUESTIONS or _prints(word, engine) for word in asked)


def _prints(word: str, engine: str) -> bool:
    return any(option.action == "help" for option in options(engine).known(word))


def _servers(
    engine: Engine, program: Program, worlds: list[World], identity: str, version: VersionClaim | None
) -> list[Server]:
    """The server in each world; the settings of one whose parser refuses the line are read only where no world takes it."""
    objections = [tuple(_objections(engine, program, world, version)) for world in worlds]

    def made(number: int, asked: bool) -> Server:
        world = worlds[number]
        settings = engine.settings(world) if asked else Settings({})
        return _server(engine, program, world, settings, objections[number], identity, version)

    refused = [any(each.data.get("refuses") for each in found) for found in objections]
    servers = [made(number, not each) for number, each in enumerate(refused)]
    if all(server.refused for server in servers):
        return [made(number, True) if refused[number] else server for number, server in enumerate(servers)]
    return servers


def _server(
    engine: Engine,
    program: Program,
    world: World,
    made: Settings,
    objections: tuple[Problem, ...],
    identity: str,
    version: VersionClaim | None,
) -> Server:
    settings: dict[str, Value[Any]] = {**world.workload, **made.values}
    if world.process.site.replicas is not None:
        settings.setdefault("replicas", world.process.site.replicas)
    if "declared_max_output" in settings:
        settings.setdefault("max_output", settings["declared_max_output"])
    server = Server(
        id=identity,
        engine=engine.name,
        releases=world.releases,
        process=world.process,
        program=program.span,
        settings=settings,
        given=world.reading.options,
        problems=(*objections, *_problems(program, world, made.problems, version)),
        names=made.names,
        hardware=world.hardware,
        version=version,
        coefficient=world.coefficient,
    )
    if made.model is not None:
        server.architecture = made.model.architecture
        server.model = made.model
    server.sizing = engine.sizing()(server)
    return server


def _objections(engine: Engine, program: Program, world: World, version: VersionClaim | None) -> Iterator[Problem]:
    """The parser's problems, capped where the version lies beyond the data or the build is another one."""
    from kvlint.engines.problems import of_reading

    doubt = None
    if version is not None and version.beyond:
        edge = options(engine.name).releases[-1 if version.beyond == "newer" else 0]
        doubt = f"kvlint's data {'ends' if version.beyond == 'newer' else 'begins'} at {edge}"
    named = world.process.line.program
    if named is not None and engines.of_variant(named.value):
        doubt = doubt or f"{engines.basename(named.value)} is another build of {engine.name}, or a wrapper"
    return of_reading(engine.name, world, program.span, version, doubt)


def _problems(
    program: Program, world: World, own: tuple[Problem, ...], version: VersionClaim | None
) -> Iterator[Problem]:
    """What is wrong with the words, with what is installed beside the engine, and the program's and the engine's own."""
    from kvlint.engines import words
    from kvlint.engines.conflicts import conflicts

    yield from words.problems(world)
    yield from conflicts(world.engine, world.release, version, world.process.line.pins)
    yield from program.problems
    yield from own


def _classes(
    engine: Engine, program: Program, process: Process, releases: tuple[str, ...], exact: str | None, load: Load
) -> Iterator[tuple[tuple[str, ...], Reading]]:
    """Releases grouped by how they read the line and by what they mean by it; an exact version means one thing."""
    from kvlint.engines.argparse import classes

    for alike, reading in classes(engine.name, program.args, releases, entry=program.entry_at, load=load):
        meanings: dict[Hashable, list[str]] = {}
        for release in alike:
            meanings.setdefault(None if exact else engine.semantics(release), []).append(release)
        for same in _settled(meanings):
            yield tuple(same), reading


def _settled(meanings: dict[Hashable, list[str]]) -> Iterator[list[str]]:
    """Releases by meaning; what means one of several things, each of which another release means, is with the newest of these."""
    joined: dict[Hashable, list[str]] = {}
    for meaning, releases in meanings.items():
        several = meaning if isinstance(meaning, tuple) else ()
        known = len(several) > 1 and all((each,) in meanings for each in several)
        joined.setdefault((several[-1],) if known else meaning, []).extend(releases)
    yield from joined.values()


def _loader(process: Process, project: Project) -> Load:
    """Configuration files named on the line, beside the file that names them or at the root."""

    def load(name: Text) -> Text | None:
        if not name.known or ".." in name.value.split("/"):
            return None
        stem = name.value.removeprefix("./").lstrip("/")
        directory = process.site.place.path.rpartition("/")[0]
        for path in (f"{directory}/{stem}" if directory else stem, stem):
            if project.files.exists(path):
                source = project.text(path)
                return Text.of(source, 0, len(source.text)) if source else None
        return None

    return load


def _workload(declared: dict[str, Fact[Any]], process: Process) -> dict[str, Value[Any]]:
    """`[[workload]]` and `# kvlint: window=… streams=…` at the server; streams are 1 where nobody says."""
    stated: dict[str, Value[Any]] = {}
    for key in ("window", "streams", "tokens", "max_output", "reuse", "shared_prefix"):
        if key in declared:
            stated["declared_" + key if key in ("window", "max_output") else key] = declared[key]
    for key, fact in process.site.data.get("declared", {}).items():
        stated["declared_window" if key == "window" else key] = fact
    stated.setdefault("streams", Fact(1, Assumed("no streams are declared")))
    return stated
