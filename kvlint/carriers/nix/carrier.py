"""Nix: the services, agents, containers, scripts and files of NixOS, nix-darwin and home-manager configurations.

What an option means is the module's of that name in nixpkgs, nix-darwin or home-manager; conditional content is read as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvlint import engines
from kvlint.carriers.base import Finding, Item
from kvlint.carriers.embedded import Around
from kvlint.carriers.embedded import read as read_embedded
from kvlint.carriers.launch import Launch, launches, of_script
from kvlint.carriers.nix import engines as nix_engines
from kvlint.carriers.nix import proxies, services
from kvlint.carriers.nix.services import File
from kvlint.carriers.nix.store import NO_SHELL, store
from kvlint.carriers.scripts import Files
from kvlint.carriers.written import claimed, document, is_object
from kvlint.formats import nix, shell
from kvlint.formats.nix import Attribute, ShellText
from kvlint.formats.nix.modules import Steps
from kvlint.patterns import regex
from kvlint.project import COMMAND, Project
from kvlint.source import Span
from kvlint.subjects import Admission, Process
from kvlint.tree import List, Map, Node, Scalar

Reader = Callable[[File, str, Span, Map], Iterator[Finding]]

# What stands below an option, by the last steps of its path; the last one is the name.
_NAMED: dict[tuple[str, ...], Reader] = {
    ("systemd", "services"): services.unit,
    ("systemd", "user", "services"): services.unit,
    ("launchd", "agents"): services.agent,
    ("launchd", "daemons"): services.agent,
    ("launchd", "user", "agents"): services.agent,
    ("virtualisation", "oci-containers", "containers"): services.container,
    ("virtualisation", "quadlet", "containers"): services.quadlet,
}
_FILES = (
    ("home", "file"),
    ("xdg", "configFile"),
    ("xdg", "dataFile"),
    ("environment", "etc"),
    ("environment", "launchAgents"),
    ("environment", "launchDaemons"),
    ("environment", "userLaunchAgents"),
)
_LLAMA = frozenset({"llama-cpp", "llama-server"})
_LLAMA_KEYS = ("extraFlags", "model", "modelsDir", "modelsPreset", "settings")
_LLAMA_FLAGS = ("extraFlags", "extraArgs")  # of one of several servers, in modules of people's own
_PROSE = frozenset({"description", "Description", "longDescription", "comment", "example", "name", "Documentation"})
_GENERIC = frozenset(
    {"cmd", "command", "script", "exec", "args", "text", "ExecStart", "initExtra", "shellAliases", "body"}
)


_NOT_PLAIN = regex(r"\|>|<\||\{\{|\{%|@[A-Za-z_][A-Za-z0-9_]*@")


class Nix:
    name = "nix"

    def claims(self, item: Item) -> bool:
        return item.kind == "nix"

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        own: list[Finding] = []
        imported: list[Finding] = []
        for item in items:
            for each in _file(item, files):
                (own if _path(each) in (None, item.path) else imported).append(each)
        yield from own
        yield from _unlike(imported, own)


CARRIER = Nix()


def _path(found: Finding) -> str | None:
    if isinstance(found, Process):
        return found.site.place.path
    return found.place.path if isinstance(found, Admission) else None


def _unlike(imported: list[Finding], own: list[Finding]) -> Iterator[Finding]:
    """What an importing file makes of another, unless that is what the other says by itself."""
    known = {services.identity(each) for each in own if isinstance(each, Process)}
    places = {each.place for each in own if isinstance(each, Admission)}
    left: list[Process] = []
    for each in imported:
        if isinstance(each, Process) and services.identity(each) in known:
            left.append(each)
        elif isinstance(each, Admission) and each.place in places and not _new(each, left):
            continue
        else:
            yield each


def _new(found: Admission, left: list[Process]) -> bool:
    """Whether a limit stands before a process that its own file does not have."""
    return isinstance(found.target, Process) and not any(found.target is each for each in left)


def _file(item: Item, files: Files) -> Iterator[Finding]:
    reading = nix.read(item.source, resolve=files.project.text)
    yield from _refused(item, files.project, reading)
    file = File(item.source, files, services.by_span(reading.scripts), store(reading))
    attributes = [each for each in reading.entries() if "options" not in each.path]
    for each in attributes:
        yield from file.once(_option(file, each, reading.root))
    for generated in reading.generated:
        yield from file.once(_configuration(file, generated.node, ()))
    for script in reading.scripts:
        if script.span.source is item.source and script.span not in file.followed:
            yield from file.once(_script(file, script))
    for each in attributes:
        yield from file.plainly(_plain(file, each))
    yield from claimed(file.objects, file.writer("objects"))


def _refused(item: Item, project: Project, reading: nix.Reading) -> Iterator[Finding]:
    """What Nix would stop at.  Pipes are an experimental feature, and a placeholder is filled in before Nix reads it."""
    first = min(reading.problems, key=lambda each: each.span.start, default=None)
    if first is None or item.path not in project.seeds:
        return
    text = item.source.text
    doubt = "what is not plain Nix may be understood, or filled in, elsewhere" if _NOT_PLAIN.search(text) else None
    found = project.cannot_read(text, first.span, first.message, doubt)
    if found is not None:
        yield found


def _option(file: File, found: Attribute, root: Node) -> Iterator[Finding]:
    """What one option says, if it is one that starts something or writes a configuration."""
    path, node = found.path, found.node
    if not isinstance(node, Map) or not isinstance(path[-1], str):
        return
    name, place = path[-1], found.key.span if found.key is not None else node.span
    for steps, reader in _NAMED.items():
        if path[-len(steps) - 1 : -1] == steps:
            yield from reader(file, name, place, node)
            return
    text = node.text("text")
    if text is not None and any(path[-3:-1] == steps for steps in _FILES):
        yield from document(text, found.key.text if found.key is not None else None, file.writer(name))
    elif path[-2:] == ("services", "nginx"):
        yield from proxies.nginx(node, file.path, file.unit)
    elif path[-2:] == ("services", "ollama"):
        yield from nix_engines.ollama(file, name, place, node)
    elif path[-2:] == ("launchd", "envVariables") or path[-3:] == ("launchd", "user", "envVariables"):
        yield from nix_engines.app(file, name, place, node)
    elif _of_llama(path, node):
        yield from nix_engines.llama_server(file, name, place, node)
    else:
        yield from _configuration(file, node, _ports(root, path))


def _of_llama(path: Steps, node: Map) -> bool:
    """The options of one server of llama.cpp: nixpkgs' module, or one of several in a module of somebody's own."""
    if path[-1] in _LLAMA:
        return any(key in node for key in _LLAMA_KEYS)
    inside = any(step in _LLAMA for step in path[-4:-1])
    return inside and "model" in node and any(key in node for key in _LLAMA_FLAGS)


def _ports(root: Node, path: tuple[str | int, ...]) -> tuple[int, ...]:
    """The `port` beside a `settings`: where the service that reads them listens."""
    above = root.map(*path[:-1]) if isinstance(root, Map) and path[-1] == "settings" else None
    port = above.string("port") if above is not None else None
    return (int(port),) if port is not None and port.isdigit() else ()


def _configuration(file: File, node: Node, ports: tuple[int, ...]) -> Iterator[Finding]:
    """A proxy's configuration, or a Kubernetes object, written as Nix."""
    if isinstance(node, Map) and is_object(node):
        file.objects.append(Item(file.source, "yaml", node, node.span, len(file.objects)))
    else:
        yield from read_embedded(node, Around(file.path, file.unit, ports=ports))


def _script(file: File, script: ShellText) -> Iterator[Finding]:
    """A text that no unit of the file starts."""
    name = script.name.value if script.name is not None and script.name.known else "script"
    if script.function in NO_SHELL:
        yield from document(script.text, script.name, file.writer(name))
        return
    launch = Launch((), script.span, {}, shell=True, scripts=file.script, following=(script.text.home,))
    for line in of_script(shell.commands(services.spread(script.text, file)), launch):
        yield from file.process(line, name, script.name.span if script.name is not None else script.span)


def _plain(file: File, found: Attribute) -> Iterator[Process]:
    """A string or a list of an option that we do not know, which plainly starts an engine."""
    words = [step for step in found.path if isinstance(step, str)]
    if not words or words[-1] in _PROSE:
        return
    named = [step for step in words if step not in _GENERIC]
    name = named[-1] if named else words[-1]
    if isinstance(found.node, Scalar) and found.node.tag == "str" and COMMAND.search(found.node.value):
        text = services.spread(found.node.text, file)
        launch = Launch((), found.node.span, {}, shell=True, scripts=file.script)
        lines = [*of_script(shell.commands(text), launch)]
    elif isinstance(found.node, List) and found.node.items:
        arguments, openings = services.words(found.node)
        if not arguments or not any(COMMAND.search(word.value) for word in arguments[:4]):
            return
        lines = [*launches(Launch(arguments, found.node.span, {}, open=openings, scripts=file.script))]
    else:
        return
    for line in lines:
        engine = engines.named_by(line)
        starts = engine is not None and engines.engine(engine).recognise(line) is not None
        if starts and any(word.value.startswith("-") for word in line.args):
            yield from file.process(line, name, found.node.span)
