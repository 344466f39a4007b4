"""Ansible: tasks of plays and roles that run a command or a container, write a unit, or apply an object of Kubernetes.

A variable is known where a play, a block or a task sets it; a role's default is taken, but stays one that anybody may replace.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Finding, Item, directory
from kvlint.carriers.filling import Filler, Values
from kvlint.carriers.host import contained
from kvlint.carriers.launch import Launch, launches, of_script
from kvlint.carriers.scripts import Files
from kvlint.carriers.shell import place, stem
from kvlint.carriers.written import Writer, claimed, document
from kvlint.formats import shell
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass
from kvlint.source import Span, Text
from kvlint.subjects import Process, Site
from kvlint.tree import List, Map, Node, Scalar

MAX_DEPTH = 16  # of blocks inside of blocks
_PREFIX = regex(
    r"(?:ansible\.(?:builtin|legacy)|community\.(?:docker|general|kubernetes)|containers\.podman|kubernetes\.core)\."
)
_COMMANDS = ("command", "shell", "raw")
_CONTAINERS = ("docker_container", "podman_container")
_WRITERS = ("copy", "blockinfile")
_OBJECTS = ("k8s",)
_MODULES = frozenset((*_COMMANDS, *_CONTAINERS, *_WRITERS, *_OBJECTS))
_LISTS = ("pre_tasks", "tasks", "post_tasks", "handlers", "block", "rescue", "always")
# What a task may have beside its module (docs.ansible.com, Playbook Keywords); a mapping with other keys is none.
_KEYWORD = regex(
    r"any_errors_fatal|args|async|become|become_exe|become_flags|become_method|become_user|changed_when|"
    r"check_mode|collections|connection|debugger|delay|delegate_facts|delegate_to|diff|environment|"
    r"failed_when|ignore_errors|ignore_unreachable|listen|local_action|loop|loop_control|module_defaults|"
    r"name|no_log|notify|poll|port|register|remote_user|retries|run_once|tags|throttle|timeout|until|vars|"
    r"when|with_\w+"
)
_ROLE = regex(r"(?P<role>(?:.*/)?(?P<name>[^/]+))/(?:tasks|handlers)/[^/]+\.ya?ml")
_VARIABLE = regex(
    r"""\{\{-?\s*(?P<name>[A-Za-z_]\w*)(?:\s*\|\s*(?:default|d)\(\s*(?P<default>'[^'\\]*'|"[^"\\]*"|[0-9.]+)\s*(?:,\s*true)?\s*\))?"""
    r"""(?:\s*\|\s*(?:string|int|quote|trim))?\s*-?\}\}"""
)
# Options of a container and those of `docker run` that say the same.
_OPTIONS = {
    "name": "--name",
    "published_ports": "--publish",
    "ports": "--publish",
    "publish": "--publish",
    "shm_size": "--shm-size",
    "memory": "--memory",
    "ipc_mode": "--ipc",
    "ipc": "--ipc",
    "runtime": "--runtime",
    "gpus": "--gpus",
    "device": "--device",
    "devices": "--device",
    "network_mode": "--network",
    "network": "--network",
}


class Ansible:
    name = "ansible"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, List) and any(_is_play(each) or _module(each) for each in item.node.maps())

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        for item in items:
            if isinstance(item.node, List):
                role = _ROLE.fullmatch(item.path)
                name = role["name"] if role else stem(item.path)
                filler = Filler(_VARIABLE)
                for defaults in _defaults(role["role"] if role else "", project):
                    filler.add(defaults, assumed=True)
                about = _About(item, name, files)
                yield from _tasks(item.node, about, filler, {}, 0)


CARRIER = Ansible()


@dataclass(frozen=True, slots=True)
class _About:
    """The file that tasks stand in, what its servers are called without a name of their own, and the files around it."""

    item: Item
    name: str
    files: Files


def _is_play(node: Map) -> bool:
    return "hosts" in node and any(isinstance(node.get(key), List) for key in _LISTS)


def _module(node: Map) -> tuple[str, Node] | None:
    """A task's module without its collection, and what it is given."""
    others = [entry for entry in node if not _KEYWORD.fullmatch(entry.key.value)]
    if len(others) != 1:
        return None
    name = _PREFIX.sub("", others[0].key.value, 1)
    return (name, others[0].value) if name in _MODULES else None


def _defaults(role: str, project: Project) -> Iterator[Map]:
    for path in (f"{role}/defaults/main.yml", f"{role}/defaults/main.yaml") if role else ():
        if project.files.exists(path):
            yield from (item.node for item in project.items(path) if isinstance(item.node, Map))


def _tasks(tasks: List, about: _About, filler: Filler, env: Values, depth: int) -> Iterator[Finding]:
    for task in tasks.maps() if depth < MAX_DEPTH else ():
        inner = filler.inside(task.map("vars"))
        own = {**env, **_environment(task.get("environment"), inner)}
        for key in _LISTS:
            listed = task.get(key)
            if isinstance(listed, List):
                yield from _tasks(listed, about, inner, own, depth + 1)
        found = _module(task)
        if found is not None:
            yield from _task(*found, about, inner, own)


def _task(module: str, given: Node, about: _About, filler: Filler, env: Values) -> Iterator[Finding]:
    if module in _COMMANDS:
        yield from _command(given, about, filler, env)
    elif isinstance(given, Map) and module in _CONTAINERS:
        yield from _container(given, about, filler)
    elif isinstance(given, Map):
        writer = Writer(about.item.source, about.name, _unit(about), about.files)
        content = given.text("content") or given.text("block")
        definition = given.get("definition")
        if module in _WRITERS and content is not None:
            yield from document(filler.text(content), given.text("dest") or given.text("path"), writer)
        for node in definition.items if isinstance(definition, List) else (definition,):
            if module in _OBJECTS and isinstance(node, Map):
                yield from claimed([Item(about.item.source, "yaml", node, node.span, about.item.ordinal)], writer)


def _unit(about: _About) -> str:
    return f"host {directory(about.item.path)}"


def _environment(node: Node | None, filler: Filler) -> dict[str, Text]:
    env = {}
    for entry in node if isinstance(node, Map) else ():
        if isinstance(entry.value, Scalar) and entry.value.tag != "null":
            env[entry.key.value] = filler.text(entry.value.text)
    return env


def _command(given: Node, about: _About, filler: Filler, env: Values) -> Iterator[Process]:
    written = given.get("cmd") or given.get("_raw_params") if isinstance(given, Map) else given
    argv = given.list("argv") if isinstance(given, Map) else None
    whole = about.item.source.span(0, len(about.item.source.text))
    words = tuple(filler.text(each.text) for each in argv or () if isinstance(each, Scalar))
    script = filler.text(written.text) if isinstance(written, Scalar) and written.tag != "null" else None
    launch = Launch(
        words,
        given.span,
        env,
        shell=script is not None,
        scripts=about.files.scripts(about.item.path),
        assumed=tuple(filler.assumed),
    )
    found = of_script(shell.commands(script, env), launch) if script is not None else launches(launch)
    for line in found:
        yield Process(contained(Site("ansible", _unit(about), about.name, place(line, whole)), line), line)


def _container(given: Map, about: _About, filler: Filler) -> Iterator[Process]:
    """The words of the `docker run` that a module's options amount to."""
    image = given.text("image")
    if image is None or given.string("state") in ("absent", "stopped"):
        return
    words = [Text.at("docker", image.span), Text.at("run", image.span)]
    for key, option in _OPTIONS.items():
        for value in _texts(given.get(key), filler):
            words += (Text.at(option, value.span if value.pieces else image.span), value)
    words += _devices(given)
    for key, value in _environment(given.get("env"), filler).items():
        words += (Text.at("--env", image.span), Text.join((Text.at(f"{key}=", image.span), value)))
    entrypoint = list(_texts(given.get("entrypoint"), filler))
    if entrypoint:
        words += (Text.at("--entrypoint", image.span), entrypoint[0])
    words += (filler.text(image), *entrypoint[1:])
    command = given.get("command")
    for text in _texts(command, filler):
        words += shell.split(text) if isinstance(command, Scalar) else [text]
    launch = Launch(
        tuple(words), image.span, {}, scripts=about.files.scripts(about.item.path), assumed=tuple(filler.assumed)
    )
    name = given.string("name") or about.name
    for line in launches(launch):
        yield Process(contained(Site("ansible", _unit(about), name, image.span), line), line)


def _texts(node: Node | None, filler: Filler) -> Iterator[Text]:
    for each in node.items if isinstance(node, List) else (node,):
        if isinstance(each, Scalar) and each.tag != "null":
            yield filler.text(each.text)


def _devices(given: Map) -> Iterator[Text]:
    """`device_requests` as `--gpus`."""
    for request in (given.list("device_requests") or List((), given.span)).maps():
        at: Span = request.span
        ids = [each.value for each in request.list("device_ids") or () if isinstance(each, Scalar)]
        count = request.text("count")
        if ids:
            first = request.list("device_ids")
            yield from (
                Text.at("--gpus", at),
                Text.at(f"device={','.join(ids)}", first.span if first is not None else at),
            )
        elif count is not None and count.value.isdigit():
            yield from (Text.at("--gpus", at), count)
        elif count is not None and count.value == "-1":
            yield from (Text.at("--gpus", at), Text.at("all", count.span))
