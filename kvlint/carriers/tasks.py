"""Task runners that keep their commands in a tree: go-task, npm, mise, pixi, poe, PDM, Hatch, taskipy.

Only a file's name says that its `tasks` or `scripts` are commands; a Taskfile may have any, but says its version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kvlint.carriers.base import Finding, Item, directory
from kvlint.carriers.filling import Filler
from kvlint.carriers.host import contained
from kvlint.carriers.launch import Launch, launches, of_script
from kvlint.carriers.scripts import Files
from kvlint.carriers.shell import place
from kvlint.command import Opening
from kvlint.formats import shell
from kvlint.formats.shell.text import Slicer, unknown
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass, field
from kvlint.source import Text
from kvlint.subjects import Process, Site
from kvlint.tree import List, Map, Node, Scalar

MAX_DEPTH = 8  # of tasks inside of tasks
_TASKFILE = regex(r"(?:.*/)?[Tt]askfile(?:\.[\w-]+)?\.ya?ml")
_MISE = regex(r"(?:.*/)?(?:\.?mise(?:\.[\w-]+)?\.toml|\.?mise/config(?:\.[\w-]+)?\.toml)")
_GO = regex(
    r"""\{\{-?\s*(?:\.(?P<name>\w+)(?:\s*\|\s*default\s+(?P<default>"[^"\\]*"|`[^`]*`))?"""
    r"""|default\s+(?P<default_first>"[^"\\]*"|`[^`]*`)\s+\.(?P<name_last>\w+))\s*-?\}\}"""
)
_BRACES = regex(r"\{\{(?:(?!\{\{|\}\}).)*\}\}|\{%(?:(?!\{%|%\}).)*%\}")  # Tera, MiniJinja
_ARGUMENTS = regex(r"\{[a-z_]+(?::[^{}]*)?\}")  # what PDM, Hatch and taskipy fill in
_SHELL = regex(r"#!.*?\b(?:ba|da|k|z|a)?sh\b")
Variables = Mapping[str, "Text | None"]


@dataclass(frozen=True, slots=True)
class Task:
    """One command of a task.  `words`: written as a list, which no shell reads.  `open`: what else sets variables."""

    name: str
    script: Text | None
    words: tuple[Text, ...] = ()
    env: Mapping[str, Text] = field(default_factory=dict)
    open: tuple[Opening, ...] = ()
    assumed: tuple[shell.Assumption, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """How a runner writes its tasks.  `keys`: those that hold a command.  `listed`: what a list is, the words of one command,
    or commands; None for names of other tasks.  `filled`: what the runner puts in itself.  `joined`: line ends are blanks.
    """

    keys: tuple[str, ...]
    listed: str | None = None
    filled: object = None
    joined: bool = False


_PIXI = Kind(("cmd",), "words", _BRACES)
_POE = Kind(("cmd", "shell"), None, None, joined=True)
_PDM = Kind(("cmd", "shell"), "words", _ARGUMENTS)
_HATCH = Kind((), "commands", _ARGUMENTS)
_TASKIPY = Kind(("cmd",), None, _ARGUMENTS)
_OF_MISE = Kind(("run",), "commands", _BRACES)
_NPM = Kind(())


class Tasks:
    name = "tasks"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, Map) and _reader(item.path, item.node) is not None

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        for item in items:
            reader = _reader(item.path, item.node) if isinstance(item.node, Map) else None
            if reader is not None and isinstance(item.node, Map):
                for task in reader(item.node, item.path, files):
                    yield from _task(task, item, files)


CARRIER = Tasks()
Reader = Callable[[Map, str, Files], Iterator[Task]]


def is_named(path: str) -> bool:
    """Whether a file's name says that it holds tasks: one that names no engine may start a script that does."""
    return _of_name(path) is not None


def _of_name(path: str) -> Reader | None:
    name = path.rpartition("/")[2]
    if name in _BY_NAME:
        return _BY_NAME[name]
    if _TASKFILE.fullmatch(path):
        return _taskfile
    return _mise if _MISE.fullmatch(path) else None


def _reader(path: str, node: Map) -> Reader | None:
    reader = _of_name(path)
    if reader is not None or not path.endswith((".yml", ".yaml")):
        return reader
    tasks = node.map("tasks") if (node.string("version") or "")[:1] in ("2", "3") else None
    return _taskfile if tasks is not None and any(_is_go(each.value) for each in tasks) else None


def _is_go(node: Node) -> bool:
    return isinstance(node, Map) and ("cmds" in node or "cmd" in node)


def _task(task: Task, item: Item, files: Files) -> Iterator[Process]:
    whole = item.source.span(0, len(item.source.text))
    launch = Launch(
        task.words,
        task.script.span if task.script is not None else whole,
        task.env,
        env_open=task.open,
        shell=task.script is not None,
        scripts=files.scripts(item.path),
        assumed=task.assumed,
    )
    found = launches(launch) if task.script is None else of_script(shell.commands(task.script, task.env), launch)
    for line in found:
        site = Site("procfile", f"host {directory(item.path)}", task.name, place(line, whole))
        yield Process(contained(site, line), line)


def _package(root: Map, path: str, files: Files) -> Iterator[Task]:
    yield from _listed(root.map("scripts"), _NPM, {})


def _mise(root: Map, path: str, files: Files) -> Iterator[Task]:
    env, unseen = _mise_environment(root.map("env"))
    yield from _listed(root.map("tasks"), _OF_MISE, env, unseen)


def _mise_environment(node: Map | None) -> tuple[dict[str, Text], tuple[Opening, ...]]:
    env = _environment(node, _OF_MISE)
    other = node.entry("_") if node is not None else None
    unseen = Opening(0, other.key.span, "mise reads more variables from elsewhere") if other is not None else None
    return env, (unseen,) if unseen is not None else ()


def _pixi(root: Map, path: str, files: Files) -> Iterator[Task]:
    env = _environment(root.map("activation", "env"), _PIXI)
    yield from _listed(root.map("tasks"), _PIXI, env)
    for key in ("target", "feature"):
        for entry in root.map(key) or ():
            if isinstance(entry.value, Map):
                inner = {**env, **_environment(entry.value.map("activation", "env"), _PIXI)}
                yield from _listed(entry.value.map("tasks"), _PIXI, inner)
                for target in entry.value.map("target") or ():
                    if isinstance(target.value, Map):
                        yield from _listed(target.value.map("tasks"), _PIXI, inner)


def _pyproject(root: Map, path: str, files: Files) -> Iterator[Task]:
    tool = root.map("tool")
    if tool is None:
        return
    pixi = tool.map("pixi")
    if pixi is not None:
        yield from _pixi(pixi, path, files)
    yield from _listed(tool.map("poe", "tasks"), _POE, _environment(tool.map("poe", "env"), _POE))
    pdm = tool.map("pdm", "scripts")
    yield from _listed(pdm, _PDM, _environment(pdm.map("_", "env") if pdm is not None else None, _PDM))
    yield from _listed(tool.map("rye", "scripts"), _PIXI, {})
    yield from _listed(tool.map("taskipy", "tasks"), _TASKIPY, {})
    for entry in tool.map("hatch", "envs") or ():
        if isinstance(entry.value, Map):
            env = _environment(entry.value.map("env-vars"), _HATCH)
            yield from _listed(entry.value.map("scripts"), _HATCH, env)


def _poe(root: Map, path: str, files: Files) -> Iterator[Task]:
    """`poe_tasks.toml`, whose tables may stand under `tool.poe`."""
    poe = root.map("tool", "poe") or root
    yield from _listed(poe.map("tasks"), _POE, _environment(poe.map("env"), _POE))


def _listed(tasks: Map | None, kind: Kind, env: Mapping[str, Text], unseen: tuple[Opening, ...] = ()) -> Iterator[Task]:
    for entry in tasks or ():
        yield from _plain(entry.key.value, entry.value, kind, env, unseen, 0)


def _plain(
    name: str, node: Node, kind: Kind, env: Mapping[str, Text], unseen: tuple[Opening, ...], depth: int
) -> Iterator[Task]:
    """The commands of one task: a string, a list, or a table with its command and variables."""
    if isinstance(node, Scalar):
        if node.text.value:
            yield from _script(name, _filled(node.text, kind), kind, env, unseen)
    elif isinstance(node, List):
        words = [_filled(each.text, kind) for each in node if isinstance(each, Scalar)]
        if kind.listed == "words" and len(words) == len(node.items):
            yield Task(name, None, tuple(words), env, unseen)
        for word in words if kind.listed == "commands" else ():
            yield from _script(name, word, kind, env, unseen)
    elif isinstance(node, Map) and depth < MAX_DEPTH:
        own = {**env, **_environment(node.map("env"), kind)}
        for key in kind.keys:
            found = node.get(key)
            if found is not None:
                as_shell = kind if key != "shell" else Kind(kind.keys, None, kind.filled)
                yield from _plain(name, found, as_shell, own, unseen, depth + 1)
        for each in node.list("sequence") or ():
            if isinstance(each, Map):
                yield from _plain(name, each, kind, own, unseen, depth + 1)


def _script(name: str, text: Text, kind: Kind, env: Mapping[str, Text], unseen: tuple[Opening, ...]) -> Iterator[Task]:
    head = text.value.lstrip()[:128]
    if head.startswith("#!") and not _SHELL.match(head):
        return
    yield Task(name, _one_line(text) if kind.joined else text, (), env, unseen)


def _one_line(text: Text) -> Text:
    """Without comments, line ends as blanks: poe's `cmd` is one command."""
    cut = Slicer(text)
    parts: list[Text] = []
    at = 0
    for line in text.value.splitlines(keepends=True):
        bare = line.partition(" #")[0].rstrip("\r\n")
        if not bare.lstrip().startswith("#") and bare:
            parts += [cut(at, at + len(bare)), Text(" ")]
        at += len(line)
    return Text.join(parts) if parts else text


def _environment(node: Map | None, kind: Kind) -> dict[str, Text]:
    """Variables; one that is written as a table is set by a rule of the runner's own."""
    env: dict[str, Text] = {}
    for entry in node or ():
        if isinstance(entry.value, Scalar):
            env[entry.key.value] = _filled(entry.value.text, kind)
        elif entry.key.value != "_":
            env[entry.key.value] = _unseen(entry.key)
    return env


def _unseen(key: Scalar) -> Text:
    return Text.unknown(key.span, f"{key.value} is set where the task runs", f"the value of {key.value}")


def _filled(text: Text, kind: Kind) -> Text:
    """A text with holes for what the runner puts in."""
    pattern = kind.filled
    if pattern is None or "{" not in text.value:
        return text
    cut = Slicer(text)
    parts: list[Text] = []
    at = 0
    for match in pattern.finditer(text.value):  # type: ignore[attr-defined]
        hole = unknown(cut.span(*match.span()), f"{match[0]} is filled in where the task runs", splice=True)
        parts += [cut(at, match.start()), hole]
        at = match.end()
    return Text.join([*parts, cut(at, len(text.value))]) if parts else text


def _taskfile(root: Map, path: str, files: Files) -> Iterator[Task]:
    """go-task: a task's own variables win over a caller's, and these over the file's (taskfile.dev, Templating Reference)."""
    tasks = root.map("tasks")
    if tasks is None:
        return
    shared = Filler(_GO)
    shared.add(root.map("vars"))
    called = _called(tasks)
    env, unseen = _go_environment(root, shared, path, files)
    for entry in tasks:
        node = entry.value
        values = {**shared.values, **dict.fromkeys(called.get(entry.key.value, ()))}
        known = Filler(_GO, values, [*shared.assumed], shared.left)
        own, more = dict(env), unseen
        if isinstance(node, Map):
            known.add(node.map("vars"))
            inner, opened = _go_environment(node, known, path, files)
            own, more = {**env, **inner}, (*unseen, *opened)
        for command in _commands(node):
            text = known.text(command)
            yield Task(entry.key.value, text, (), own, more, tuple(known.assumed))


def _called(tasks: Map) -> dict[str, set[str]]:
    """For each task the variables that another one of the file gives it."""
    found: dict[str, set[str]] = {}
    for entry in tasks:
        node = entry.value
        lists = [node.list(key) for key in ("cmds", "deps")] if isinstance(node, Map) else [node]
        for listed in lists:
            for each in listed.maps() if isinstance(listed, List) else ():
                given = each.map("vars")
                if given is not None:
                    names = {variable.key.value for variable in given}
                    found.setdefault((each.string("task") or "").lstrip(":"), set()).update(names)
    return found


def _commands(node: Node) -> Iterator[Text]:
    if isinstance(node, Scalar) and node.tag != "null":
        yield node.text
    elif isinstance(node, List):
        for each in node:
            if isinstance(each, Scalar) and each.tag != "null":
                yield each.text
            elif isinstance(each, Map) and (text := each.text("cmd")) is not None:
                yield text
    elif isinstance(node, Map):
        for key in ("cmds", "cmd"):
            found = node.get(key)
            if isinstance(found, (Scalar, List)):
                yield from _commands(found)


def _go_environment(node: Map, known: Filler, path: str, files: Files) -> tuple[dict[str, Text], tuple[Opening, ...]]:
    """`dotenv`, of which the first file wins, then `env`."""
    env: dict[str, Text] = {}
    unseen: list[Opening] = []
    for each in node.list("dotenv") or ():
        if isinstance(each, Scalar):
            found = files.variables(known.text(each.text), path, "dotenv")
            if isinstance(found, Opening):
                unseen.append(found)
            else:
                env = {**found, **env}
    for entry in node.map("env") or ():
        value = entry.value
        plain = isinstance(value, Scalar)
        env[entry.key.value] = known.text(value.text) if isinstance(value, Scalar) and plain else _unseen(entry.key)
    return env, tuple(unseen)


_BY_NAME: dict[str, Reader] = {
    "package.json": _package,
    "pixi.toml": _pixi,
    "pyproject.toml": _pyproject,
    "poe_tasks.toml": _poe,
}
