"""The carriers, and everything that they find in a project."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import cast

from kvlint.carriers.base import (
    COMPOSE_FILE,
    PRESETS_FLAG,
    PRESETS_VARIABLE,
    Carrier,
    Finding,
    Item,
    Names,
    directory,
    is_object,
)
from kvlint.carriers.launch import forget, routes
from kvlint.command import CommandLine
from kvlint.diagnostics import Unchecked
from kvlint.facts import Fact, Written
from kvlint.links import CLUSTER
from kvlint.parsing import kind_of
from kvlint.project import Project
from kvlint.records import dataclass, field
from kvlint.source import Span
from kvlint.subjects import Admission, Problem, Process

# In the order in which they are asked; a document may be claimed by several.
_TREES = (
    "kubernetes.carrier",
    "compose",
    "akash",
    "llama_swap.carrier",
    "proxies.litellm",
    "kubernetes.helm_values",
    "ray",
    "jobs",
    "tasks",
    "ansible",
    "workflows",
    "proxies.clients",
    "proxies.traefik",
    "proxies.envoy",
)
MODULES: dict[str, tuple[str, ...]] = {
    "yaml": _TREES,
    "json": tuple(module for module in _TREES if module not in ("workflows", "ansible")),
    "toml": ("proxies.traefik", "proxies.clients", "tasks"),
    "shell": ("shell",),
    "modelfile": ("modelfile",),
    "nix": ("nix.carrier",),
    "systemd": ("systemd",),
    "plist": ("launchd",),
    "dockerfile": ("dockerfile",),
    "conf": ("proxies.nginx", "proxies.haproxy", "supervisor"),
    "caddy": ("proxies.caddy",),
    "ini": ("presets", "supervisor"),
    "procfile": ("procfile",),
    "makefile": ("procfile",),
    "justfile": ("procfile",),
}

# Who reads objects of Kubernetes.  The others read documents that are none, and need not be imported to say so.
OBJECTS = ("kubernetes.carrier",)

# Kinds of files that start scripts.  A script's name that is as short as `run` stands in too many of them.
STARTERS = frozenset(
    {"systemd", "plist", "nix", "shell", "script", "dockerfile", "procfile", "makefile", "justfile", "conf", "ini"}
)
SHORTEST_NAME = 6
MAX_STARTERS = 5000


@dataclass(slots=True)
class Findings:
    """What the carriers found.  `processes` carry the identity (`path#name`) that their server gets."""

    processes: list[tuple[str, Process]] = field(default_factory=list)
    admissions: list[Admission] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)
    recognized: set[str] = field(default_factory=set)
    internal: list[str] = field(default_factory=list)


def find(project: Project) -> Findings:
    """Pass two: every seed's documents go to the carriers that claim them."""
    found, names = Findings(), Names()
    claimed: dict[str, list[Item]] = {}
    for path in (*project.seeds, *_starters(project)):
        try:
            for module, item in _claims(path, project):
                claimed.setdefault(module, []).append(item)
        except Exception as error:
            found.internal.append(f"{path}: {type(error).__name__}: {error}")
    for module, items in claimed.items():
        _collect(found, names, module, items, project)
    found.problems += project.unreadable
    _serve_once(found)
    _start_once(found)
    _route(found, names, project)
    for path in project.seeds:
        _declare(found, path, project)
    found.processes.sort(key=lambda each: (each[1].site.place.path, each[1].site.place.start))
    forget()
    return found


def _claims(path: str, project: Project) -> Iterator[tuple[str, Item]]:
    """Each carrier that claims a document of a file."""
    parsed = project.parsed(path)
    if parsed is None:
        return
    for item in project.items(path):
        for module in OBJECTS if is_object(item) else MODULES.get(parsed.kind, ()):
            if _carrier(module).claims(item):
                yield module, item


def _starters(project: Project) -> Iterator[str]:
    """Files that name no engine, but a script or an image that does, or one that leads to it."""
    seen = set(project.seeds)
    for path in _building(project):
        if path not in seen and project.parsed(path) is not None:
            seen.add(path)
            yield path
    leading = [path for path in project.seeds if (parsed := project.parsed(path)) and parsed.kind == "shell"]
    for script in leading:
        name = script.rpartition("/")[2]
        if "." not in name and len(name) < SHORTEST_NAME:
            continue
        for path in project.search(name):
            parsed = None if path in seen or not _may_start(path) else project.parsed(path)
            if parsed is not None:
                seen.add(path)
                yield path
                if parsed.kind == "shell" and len(seen) < MAX_STARTERS:
                    leading.append(path)


def _may_start(path: str) -> bool:
    from kvlint.carriers.tasks import is_named

    return kind_of(path) in STARTERS or is_named(path)


def _building(project: Project) -> Iterator[str]:
    """Compose files that may build one of the Dockerfiles that name an engine: those in directories above it."""
    above: set[str] = set()
    for path in project.seeds:
        if kind_of(path) == "dockerfile":
            steps = path.split("/")[:-1]
            above.update("/".join(steps[:number]) for number in range(len(steps) + 1))
    for path in sorted(project.all_paths) if above else ():
        if COMPOSE_FILE.fullmatch(path.rpartition("/")[2]) and directory(path) in above:
            yield path


def _collect(found: Findings, names: Names, module: str, items: list[Item], project: Project) -> None:
    """One carrier's findings; where it fails, by a fault of ours, those of the other documents are kept."""
    try:
        made = list(_carrier(module).read(items, project))
    except Exception as error:
        if len(items) == 1:
            found.internal.append(f"{items[0].path}: {module}: {type(error).__name__}: {error}")
            return
        for item in items:
            _collect(found, names, module, [item], project)
        return
    for each in made:
        _add(found, names, each)


def _route(found: Findings, names: Names, project: Project) -> None:
    """In place of a router the processes that it starts; those of a file that a router in view names are its own."""
    if not any(process.site.carrier == "presets" or _lists_models(process.line) for _, process in found.processes):
        return
    from kvlint.carriers import presets
    from kvlint.carriers.scripts import Files

    files = Files(project)
    own = {process.site.place: identity for identity, process in found.processes if process.site.carrier == "presets"}
    kept: list[tuple[str, Process]] = []
    routed: set[Span] = set()
    for identity, process in found.processes:
        started = [] if process.site.carrier == "presets" else list(presets.children(process, files))
        for each in started:
            place = each.site.place
            given = own.get(place) if place not in routed else None
            kept.append((given or names.unique(place.path, each.site.name), each))
            routed.add(place)
        if not started:
            kept.append((identity, presets.unseen(process)))
    found.processes = [each for each in kept if each[1].site.carrier != "presets" or each[1].site.place not in routed]


def _lists_models(line: CommandLine) -> bool:
    return PRESETS_VARIABLE in line.env or PRESETS_FLAG in [word.value for word in line.args]


def _serve_once(found: Findings) -> None:
    """A file that a kustomization puts into a ConfigMap is served in its cluster, and on no host besides."""
    own = {process.site.place: name for name, process in found.processes if _on_host(process.site.unit)}
    inside = {process.site.place for _, process in found.processes if process.site.unit.startswith(CLUSTER)}
    kept: list[tuple[str, Process]] = []
    for name, process in found.processes:
        if process.site.unit.startswith(CLUSTER) and "build" not in process.site.data:
            name = own.pop(process.site.place, name)
        if process.site.place not in inside or not _on_host(process.site.unit):
            kept.append((name, process))
    found.processes = kept
    known = {(each.system, each.place): each.id for each in found.admissions if _on_host(each.unit)}
    served = {(each.system, each.place) for each in found.admissions if each.unit.startswith(CLUSTER)}
    for each in found.admissions:
        if each.unit.startswith(CLUSTER) and not each.build:
            each.id = known.get((each.system, each.place), each.id)
    found.admissions = [
        each for each in found.admissions if (each.system, each.place) not in served or not _on_host(each.unit)
    ]


def _on_host(unit: str) -> bool:
    return unit.startswith("host ")


def _start_once(found: Findings) -> None:
    """A script that something in view starts is that one's server, with its arguments, and none of its own besides.

    So is an image that something in view builds.
    """
    started = {
        process.line.program.span
        for _, process in found.processes
        if process.line.program is not None and not process.site.data.get("alone")
    }
    built = {process.site.data["built"] for _, process in found.processes if "built" in process.site.data}
    found.processes = [
        (identity, process)
        for identity, process in found.processes
        if not any((process.site.place.path, stage) in built for stage in process.site.data.get("stages", ()))
    ]
    found.processes = [
        (identity, process)
        for identity, process in found.processes
        if not process.site.data.get("alone")
        or process.line.program is None
        or process.line.program.span not in started
    ]


def _declare(found: Findings, path: str, project: Project) -> None:
    """`# kvlint: window=… streams=…`: said of the server it stands in, else of the first below, else of the last above."""
    parsed = project.parsed(path)
    if parsed is None or "kvlint:" not in parsed.source.text:
        return
    from kvlint import config, directives

    own = sorted(
        (process for _, process in found.processes if process.site.place.source is parsed.source),
        key=lambda process: process.site.place.start,
    )
    for directive in directives.of(parsed):
        lost = directive.kind == "unknown" or any(directives.misplaced(directive, each) for _, each in found.processes)
        if lost:
            found.problems.append(Problem("misplaced-directive", directive.span, {"value": directive.span.text}))
        if lost or directive.kind != "settings" or not own:
            continue
        declared = _meant(own, directive.line).site.data.setdefault("declared", {})
        for name, (text, span) in directive.settings.items():
            value = config.workload_value(name, text)
            if value is not None:
                declared[name] = Fact(value, Written(span))
            else:
                found.problems.append(Problem("misplaced-directive", span, {"value": f"{name}={text}"}))


def _meant(own: list[Process], line: int) -> Process:
    """The process of a file that a comment on `line` speaks of."""
    for process in own:
        source = process.site.place.source
        places = [process.site.place, *(word.span for word in process.line.words if word.pieces)]
        lines = [place for place in places if place.source is source]
        if min(place.line for place in lines) <= line <= max(place.end_line for place in lines):
            return process
    return next((process for process in own if process.site.place.line >= line), own[-1])


def _add(found: Findings, names: Names, each: Finding) -> None:
    if isinstance(each, Process) and routes(each.line):
        from kvlint.carriers.proxies import sglang_router

        for limit in sglang_router.admissions(each):
            _add(found, names, limit)
    elif isinstance(each, Process):
        path = each.site.place.path
        found.recognized.add(path)
        found.processes.append((names.unique(each.site.data.get("identity", path), each.site.name), each))
    elif isinstance(each, Admission):
        found.recognized.add(each.place.path)
        path = f"{each.place.path}@{each.build}" if each.build else each.place.path
        each.id = names.unique(path, f"{each.system}:{each.name}")
        found.admissions.append(each)
    elif isinstance(each, Unchecked):
        if each.span is not None:
            found.recognized.add(each.span.path)
        found.unchecked.append(each)
    else:
        found.recognized.add(each.span.path)
        found.problems.append(each)


@cache
def _carrier(module: str) -> Carrier:
    return cast(Carrier, import_module(f"kvlint.carriers.{module}").CARRIER)


def carriers() -> Iterator[Carrier]:
    for module in dict.fromkeys(module for modules in MODULES.values() for module in modules):
        yield _carrier(module)
