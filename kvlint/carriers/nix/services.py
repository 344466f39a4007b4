"""Options of Nix modules that start a process, as the command line that the module makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kvlint.carriers import launchd
from kvlint.carriers.base import Finding, Item
from kvlint.carriers.host import contained, memory, unexpanded
from kvlint.carriers.launch import Launch, launches, of_script
from kvlint.carriers.nix.store import NO_SHELL, Store
from kvlint.carriers.scripts import Files
from kvlint.carriers.written import Writer
from kvlint.command import CommandLine, Opening
from kvlint.facts import Value
from kvlint.formats import shell, systemd
from kvlint.formats.nix import ShellText
from kvlint.formats.nix.sets import REPLACED
from kvlint.patterns import regex
from kvlint.records import dataclass, field, replace
from kvlint.source import HOLE, Source, Span, Text
from kvlint.subjects import Process, Site
from kvlint.tree import List, Map, Node, Opaque, Scalar

_PATH = regex(r"\$\{\s*(?P<path>\.{1,2}/[\w./+-]+)\s*\}")
_READ = ("OLLAMA_", "LLAMA_ARG_", "VLLM_", "SGLANG_")  # variables that engines read
_SUBCOMMANDS = frozenset({"serve", "server"})
_SERVES = frozenset({"ollama", "vllm", "sglang", "vllm-mlx"})  # programs whose server is `serve`


@dataclass(slots=True)
class File:
    """One Nix file.  `scripts`: the texts that it writes to the store, by the place of the hole that their path is.

    `kept`: other texts that it writes there.  `followed`: scripts that something in the file starts.  `told`: the processes found
    so far.
    """

    source: Source
    files: Files
    scripts: Mapping[Span, ShellText]
    kept: Store = field(default_factory=Store)
    followed: set[Span] = field(default_factory=set)
    objects: list[Item] = field(default_factory=list)
    told: set[tuple[Span, str, tuple[str, ...]]] = field(default_factory=set)
    programs: set[Span] = field(default_factory=set)

    @property
    def path(self) -> str:
        return self.source.path

    @property
    def unit(self) -> str:
        return f"nix {self.path}"

    def writer(self, name: str) -> Writer:
        return Writer(self.source, name, self.unit, self.files)

    def script(self, word: Text, given: Iterable[Text] = ()) -> Text | None:
        """The text of a script that the file writes, or that stands beside it, and that a word names."""
        for piece in word.pieces:
            found = self.scripts.get(piece.span)
            if found is not None and not piece.literal:
                self.followed.add(piece.span)
                return spread(found.text, self)
            beside = _PATH.fullmatch(piece.span.text)
            if beside is not None and not piece.literal:
                return self.beside(beside["path"], piece.span, given)
        return self.files.scripts(self.path)(word, given)

    def beside(self, path: str, place: Span, given: Iterable[Text] = ()) -> Text | None:
        return self.files.scripts(self.path)(Text.at(path, place), given)

    def store(self, place: Span) -> str | None:
        """A path for what an interpolation puts into the store, where that is in view."""
        script = self.scripts.get(place)
        if script is not None:
            return script.name.value if script.name is not None and script.name.known else "script"
        kept = self.kept.path(place)
        if kept is not None:
            return kept
        beside = _PATH.fullmatch(place.text)
        found = beside is not None and self.beside(beside["path"], place) is not None
        return beside["path"].rpartition("/")[2] if beside is not None and found else None

    def start(self, launch: Launch, name: str, place: Span, limit: Value[int] | None = None) -> Iterator[Process]:
        words = _named_after(tuple(self.kept.placed(word) for word in launch.words), name)
        for line in launches(replace(launch, words=words, scripts=self.script)):
            yield from self.process(line, name, place, limit)

    def process(self, line: CommandLine, name: str, place: Span, limit: Value[int] | None = None) -> Iterator[Process]:
        """The process, unless the line says nothing: a module that hands its options on is no configuration."""
        if _says_nothing(line):
            return
        program = line.program
        if program is not None and program.pieces and program.span.source is self.source:
            place = program.span
        site = Site("nix", self.unit, name, place, memory_limit=limit, data={"mounted": self.kept.read})
        yield Process(contained(site, line), line)

    def once(self, found: Iterable[Finding]) -> Iterator[Finding]:
        """Findings without those that were reached before by another path."""
        for each in found:
            if isinstance(each, Process):
                same = identity(each)
                self.programs.add(same[0])
                if same in self.told:
                    continue
                self.told.add(same)
            yield each

    def plainly(self, found: Iterable[Process]) -> Iterator[Finding]:
        """The same for what was found without knowing its option: one process for each place."""
        for each in found:
            program = each.line.program or each.line.image
            if program is not None and program.pieces and program.span not in self.programs:
                self.programs.add(program.span)
                yield each


def _named_after(words: tuple[Text, ...], name: str) -> tuple[Text, ...]:
    """The words of a unit called `ollama` that runs `serve` of a package which is not known: it is Ollama's."""
    unknown = len(words) > 1 and words[0].holes and not words[0].value.strip(HOLE)
    if not unknown or name not in _SERVES or words[1].value != "serve":
        return words
    return (Text.at(name, words[0].holes[0].span), *words[1:])


def identity(process: Process) -> tuple[Span, str, tuple[str, ...]]:
    """Where a process is written, and as what."""
    line = process.line
    program = line.program or line.image
    place = program.span if program is not None and program.pieces else process.site.place
    return place, process.site.name, tuple(word.value for word in (*line.args, *line.env.values()))


def by_span(scripts: tuple[ShellText, ...]) -> dict[Span, ShellText]:
    """Scripts by the place of their call; one that is written with several texts is none that a path tells apart."""
    found: dict[Span, list[ShellText]] = {}
    for script in scripts:
        found.setdefault(script.span, []).append(script)
    return {
        span: several[0] for span, several in found.items() if len(several) == 1 and several[0].function not in NO_SHELL
    }


def _says_nothing(line: CommandLine) -> bool:
    """Something is handed on, and nothing that the engine would read is written."""
    words = [word for word in line.args if word.value not in _SUBCOMMANDS]
    variables = [value for name, value in line.env.items() if name.startswith(_READ)]
    values = [word for word in words if word.value.strip(HOLE)] + [value for value in variables if _written(value)]
    handed_on = len(values) < len(words) + len(variables)
    return handed_on and all(word.value.startswith("-") and "=" not in word.value for word in values)


def _written(value: Text) -> bool:
    """A value that stands there, even one that another module may replace."""
    return value.known or any(hole.reason.startswith(REPLACED) for hole in value.holes)


def spread(text: Text, file: File) -> Text:
    """A text that is split into words later: an interpolation may be several of them, the path of a script is one."""
    parts, at = [], 0
    for hole in text.holes:
        name = file.store(hole.span)
        if name is not None:
            parts += [text.slice(at, hole.at), Text.at(f"/nix/store/{name}", hole.span)]
            at = hole.at + 1
    text = Text.join([*parts, text.slice(at)]) if parts else text
    return replace(text, holes=tuple(replace(hole, splice=True) for hole in text.holes))


def words(node: Node | None) -> tuple[tuple[Text, ...], tuple[Opening, ...]]:
    """The arguments of a list, and where unseen ones may stand."""
    found: list[Text] = []
    unseen: list[Opening] = []
    if isinstance(node, Opaque):
        return (), (Opening(0, node.span, node.reason, node.supply),)
    for item in node if isinstance(node, List) else ():
        if isinstance(item, Scalar):
            found.append(item.text)
        else:
            reason = item.reason if isinstance(item, Opaque) else "an argument that is no text"
            unseen.append(Opening(len(found), item.span, reason))
    return tuple(found), tuple(unseen)


def variables(node: Node | None) -> tuple[dict[str, Text], tuple[Opening, ...]]:
    """A set of variables; one that is null is not set."""
    if isinstance(node, Opaque):
        return {}, (Opening(0, node.span, node.reason, node.supply),)
    if not isinstance(node, Map):
        return {}, ()
    env: dict[str, Text] = {}
    for entry in node:
        name = entry.key.value
        if isinstance(entry.value, Scalar):
            if entry.value.tag != "null":
                env[name] = entry.value.text
        else:
            reason = entry.value.reason if isinstance(entry.value, Opaque) else "a value that is no text"
            env[name] = Text.unknown(entry.value.span, reason, f"the value of {name}")
    return env, tuple(Opening(0, each.span, each.reason, each.supply) for each in node.open)


def _texts(node: Node | None) -> Iterator[Text]:
    """One text or several; an empty one forgets those before it, as systemd does."""
    found: list[Text] = []
    for item in [node] if isinstance(node, Scalar) else list(node) if isinstance(node, List) else []:
        if isinstance(item, Scalar):
            found = [*found, item.text] if item.value else []
    yield from found


def unit(file: File, name: str, place: Span, node: Map) -> Iterator[Finding]:
    """`systemd.services.<name>` of NixOS (`serviceConfig`, `script`) and home-manager (`Service`)."""
    config = node.map("serviceConfig") or node.map("Service") or Map((), node.span)
    env, unseen = variables(node.get("environment"))
    for text in _texts(config.get("Environment")):
        env |= {key.value: value for key, value in systemd.assignments(text)}
    literal = list(env.values())
    for text in _texts(config.get("EnvironmentFile")):
        path = text.slice(1) if text.value.startswith("-") else text
        found = file.files.variables(path, file.path, "systemd")
        if isinstance(found, Opening):
            unseen = (*unseen, found)
        else:
            env.update(found)
    limit = memory(config.text("MemoryMax"))
    launch = Launch((), place, env, env_open=unseen)
    started: list[Process] = []
    for text in _texts(config.get("ExecStart")):
        for command in systemd.commands(spread(_continued(text), file), env):
            started += file.start(replace(launch, words=command.words), name, place, limit)
    started += _script(file, node.text("script"), launch, name, limit)
    yield from started
    for text in literal if started else ():
        yield from unexpanded(text, "systemd")


def _continued(text: Text) -> Text:
    """A setting whose lines a backslash joins, as the unit file that is made of it."""
    parts, at = [], 0
    while (end := text.value.find("\\\n", at)) >= 0:
        parts += [text.slice(at, end), Text(" ")]
        at = end + 2
    return Text.join([*parts, text.slice(at)]) if parts else text


def _script(
    file: File, text: Text | None, launch: Launch, name: str, limit: Value[int] | None = None
) -> Iterator[Process]:
    if text is None:
        return
    read = shell.commands(spread(text, file), launch.env)
    for line in of_script(read, replace(launch, shell=True, scripts=file.script)):
        yield from file.process(line, name, launch.place, limit)


def agent(file: File, name: str, place: Span, node: Map) -> Iterator[Finding]:
    """`launchd.user.agents.<name>` of nix-darwin (`command`, `script`, `serviceConfig`) and home-manager (`config`)."""
    config = node.map("serviceConfig") or node.map("config") or Map((), node.span)
    env, unseen = variables(node.get("environment"))
    more, unseen_too = variables(config.get("EnvironmentVariables"))
    launch = Launch((), place, {**env, **more}, env_open=(*unseen, *unseen_too))
    arguments, openings = words(config.get("ProgramArguments"))
    program = config.text("Program")
    if program is not None:
        arguments = (program, *arguments[1:])
    if arguments:
        started = [*file.start(replace(launch, words=arguments, open=openings), name, place)]
    else:
        started = [
            *_script(file, node.text("command"), launch, name),
            *_script(file, node.text("script"), launch, name),
        ]
    yield from started
    if started:
        yield from launchd.literal((*arguments, *launch.env.values()), started)


def container(file: File, name: str, place: Span, node: Map) -> Iterator[Process]:
    """`virtualisation.oci-containers.containers.<name>`: as the `podman run` that the module writes."""
    entrypoint = node.text("entrypoint")
    options = [
        *_repeated("--publish", node.get("ports")),
        *_repeated("--volume", node.get("volumes")),
        *((Text.at("--entrypoint", place), entrypoint) if entrypoint is not None else ()),
        *words(node.get("extraOptions"))[0],
    ]
    env, unseen = variables(node.get("environment"))
    for text in _texts(node.get("environmentFiles")):
        found = file.files.variables(text, file.path, "plain")
        unseen = (*unseen, found) if isinstance(found, Opening) else unseen
        env = env if isinstance(found, Opening) else {**found, **env}
    arguments, openings = words(node.get("cmd"))
    yield from _podman(file, name, place, node.text("image"), options, (env, unseen), arguments, openings)


def quadlet(file: File, name: str, place: Span, node: Map) -> Iterator[Process]:
    """`virtualisation.quadlet.containers.<name>.containerConfig` of quadlet-nix."""
    config = node.map("containerConfig")
    if config is None:
        return
    size = config.text("shmSize")
    options = [
        *_repeated("--publish", config.get("publishPorts")),
        *_repeated("--device", config.get("devices")),
        *((Text.at("--shm-size", place), size) if size is not None else ()),
        *words(config.get("podmanArgs"))[0],
    ]
    command = config.get("exec")
    arguments, openings = words(command)
    if isinstance(command, Scalar):
        arguments = tuple(systemd.split(spread(command.text, file)))
    env = variables(config.get("environments"))
    yield from _podman(file, name, place, config.text("image"), options, env, arguments, openings)


def _repeated(option: str, node: Node | None) -> Iterator[Text]:
    for text in _texts(node):
        yield Text.at(option, text.span)
        yield text


def _podman(
    file: File,
    name: str,
    place: Span,
    image: Text | None,
    options: list[Text],
    environment: tuple[dict[str, Text], tuple[Opening, ...]],
    arguments: tuple[Text, ...],
    openings: tuple[Opening, ...],
) -> Iterator[Process]:
    if image is None:
        return
    env, unseen = environment
    line = [Text.at("podman", place), Text.at("run", place), Text.at("--name", place), Text.at(name, place), *options]
    for key, value in env.items():
        at = value.span if value.pieces or value.home else place
        line += (Text.at("--env", at), Text.join((Text.at(f"{key}=", at), value)))
    line.append(image)
    shifted = tuple(replace(opening, index=opening.index + len(line)) for opening in openings)
    launch = Launch((*line, *arguments), place, {}, env_open=unseen, open=shifted)
    yield from file.start(launch, name, place)
