"""Where a proxy's configuration file is served from: the compose service that mounts it, else the host of its directory.

Names and ports of that service are what others of the unit call; its replicas and worker processes each count for themselves.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import zip_longest

from kvlint.carriers.base import Item, directory
from kvlint.carriers.embedded import Around
from kvlint.facts import Fact, Unknown, Value, Written, quantity
from kvlint.parsing import kind_of
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import replace
from kvlint.source import Text
from kvlint.subjects import Endpoint
from kvlint.tree import List, Map, Node, Scalar

WORKERS = ("--num_workers", "--num-workers")  # litellm==1.110.2:litellm/proxy/proxy_cli.py
MAX_LEVELS = 4  # a file, and the directories above it that may be mounted in its place
# A proxy's command: the line with what continues it, or the strings behind it in a property list.
_STARTED = regex(
    r"(?P<program>llama-swap|litellm)(?:(?P<plist></string>(?:\s*<string>[^<]*</string>){1,40})"
    r"|(?P<line>[\"']?(?=[\s\"'])[^\n\\]*(?:\\\r?\n[^\n\\]*){0,40}))"
)
_GAP = r"(?:</string>\s*<string>|[\s\\\"',=]+)"
_PORTS = {
    "llama-swap": regex(rf"--?listen{_GAP}[^\s<\"',]*?:([0-9]{{2,5}})\b"),
    "litellm": regex(rf"--port{_GAP}([0-9]{{2,5}})\b"),
}
STARTERS = frozenset({"shell", "script", "systemd", "plist", "makefile", "justfile", "procfile", "nix"})
_DEFAULT = regex(r"\$\{\w+:?-([^{}]*)\}")
OWN_HOSTS = ("localhost", "127.0.0.1", "0.0.0.0", "::1")


@quantity("copies", unit="count", formula="workers x replicas", source="each process counts its own requests")
def copies(workers: int, replicas: int) -> int:
    return workers * replicas


def around(path: str, project: Project) -> Around:
    """The surroundings of a configuration file; of several services that mount it none is chosen."""
    found = list(_mounting(path, project))
    if len({(directory(item.path), key.value) for item, key, _ in found}) != 1:
        return Around(path, f"host {directory(path)}", ports=_told(path, project))
    return _merged([_service(path, project, *each) for each in sorted(found, key=lambda each: len(each[0].path))])


def _told(path: str, project: Project) -> tuple[int, ...]:
    """The port that the one command which starts the proxy with this file names; none where it keeps its default."""
    name = path.rpartition("/")[2]
    found: set[int | None] = set()
    for other in project.search(name) if name.endswith((".yaml", ".yml", ".json")) else ():
        source = project.text(other) if kind_of(other) in STARTERS else None
        for match in _STARTED.finditer(source.text) if source is not None else ():
            line = match["plist"] or match["line"]
            if not _word(name).search(line):
                continue
            told = _PORTS[match["program"]].search(line)
            found.add(int(told[1]) if told is not None else None)
    return tuple(each for each in found if each is not None) if len(found) == 1 else ()


def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|[\s/\"'=>]){re.escape(name)}(?:$|[\s\"'<;&|])")


def _merged(files: list[Around]) -> Around:
    """What several compose files of a directory say of one service: each adds to it, and the base comes first."""
    counts = [each.copies for each in files if each.copies is not None]
    known = {each.value for each in counts if isinstance(each, Fact)}
    doubt = Unknown("copies", "compose files beside each other state different numbers", "one number of processes")
    return Around(
        files[0].path,
        files[0].unit,
        tuple(dict.fromkeys(host for each in files for host in each.hosts)),
        tuple(dict.fromkeys(port for each in files for port in each.ports)),
        counts[0] if len(known) == 1 and len(counts) == len(files) else doubt if counts else None,
        contained=all(each.contained for each in files),
        env={name: value for each in files for name, value in each.env.items()},
    )


def reached(target: Endpoint | None, around: Around) -> Endpoint | None:
    """An address as the proxy's own process sees it: in a container, its own host is the container."""
    if target is not None and around.contained and target.host in OWN_HOSTS:
        return replace(target, pod=around.pod) if around.pod is not None else None
    return target


def worker_count(words: list[Text]) -> Value[int] | None:
    """The processes that a proxy's command starts; None where it does not say."""
    for word, following in zip_longest(words, words[1:]):
        name, equals, _ = word.value.partition("=")
        if name not in WORKERS:
            continue
        value = word.slice(len(name) + 1) if equals else following
        if value is not None and value.value.isdigit():
            return Fact(int(value.value), Written(value.span, value.via))
    return None


def together(workers: Value[int] | None, replicas: Value[int] | None) -> Value[int] | None:
    """Processes of all replicas; None where neither number is stated."""
    if workers is None or replicas is None:
        return workers if workers is not None else replicas
    return copies(workers, replicas)


def _mounting(path: str, project: Project) -> Iterator[tuple[Item, Scalar, Map]]:
    """Every compose service that mounts the file."""
    composed = set(project.search("services:"))
    mentioned = dict.fromkeys(other for name in path.split("/")[-MAX_LEVELS:] for other in project.search(name))
    for other in mentioned:
        if other not in composed or not other.endswith((".yaml", ".yml")) or other == path:
            continue
        for item in project.items(other):
            services = item.node.map("services") if isinstance(item.node, Map) else None
            for entry in services or ():
                if isinstance(entry.value, Map) and any(_holds(each, path) for each in _mounted(item, entry.value)):
                    yield item, entry.key, entry.value


def _holds(mounted: str, path: str) -> bool:
    """A file, or a directory of its configuration; a whole project is mounted by whatever is developed in it."""
    return path == mounted or (mounted not in ("", ".") and path.startswith(f"{mounted}/"))


def _mounted(item: Item, service: Map) -> set[str]:
    """Paths, from the project's root, of what a service mounts as volumes or configs."""
    assert isinstance(item.node, Map)
    sources = []
    for volume in service.list("volumes") or ():
        if isinstance(volume, Scalar):
            sources.append(_DEFAULT.sub(r"\1", volume.value).partition(":")[0])
        elif isinstance(volume, Map):
            sources.append(volume.string("source") or "")
    for config in service.list("configs") or ():
        name = (
            config.value if isinstance(config, Scalar) else config.string("source") if isinstance(config, Map) else None
        )
        sources.append((item.node.string("configs", name, "file") or "") if name else "")
    base = directory(item.path)
    local = (source for source in sources if source and not source.startswith(("/", "~", "$")))
    return {posixpath.normpath(posixpath.join(base, source)) for source in local}


def _service(path: str, project: Project, item: Item, key: Scalar, node: Map) -> Around:
    from kvlint.carriers import compose, compose_files

    container = node.string("container_name")
    aliases = [
        each.value
        for entry in node.map("networks") or ()
        if isinstance(entry.value, Map)
        for each in entry.value.list("aliases") or ()
        if isinstance(each, Scalar)
    ]
    replicas = _count(node.get("deploy", "replicas"))
    return Around(
        path,
        compose_files.unit(item.path, project),
        (key.value, *((container,) if container else ()), *aliases),
        tuple(_ports(node.list("ports"))),
        together(worker_count(list(_words(node.get("command")))), replicas),
        contained=node.string("network_mode") != "host",
        env=compose.environment(item, node, project),
    )


def _ports(listed: List | None) -> Iterator[int]:
    """Container ports of a service."""
    for each in listed or ():
        text = each.value if isinstance(each, Scalar) else each.string("target") if isinstance(each, Map) else None
        last = (text or "").partition("/")[0].rpartition(":")[2]
        if last.isdigit():
            yield int(last)


def _words(node: Node | None) -> Iterator[Text]:
    from kvlint.formats import shell

    if isinstance(node, Scalar) and node.tag != "null":
        yield from shell.split(node.text)
    for each in node if isinstance(node, List) else ():
        if isinstance(each, Scalar):
            yield each.text


def _count(node: Node | None) -> Value[int] | None:
    if isinstance(node, Scalar) and node.value.isdigit():
        return Fact(int(node.value), Written(node.text.span, node.text.via))
    return None
