"""Pipelines of continuous integration: the shell scripts of a job's steps, in order, and the services beside them.

GitHub and its likes (`jobs.*.steps[].run`, a composite action's `runs.steps`), CircleCI, Azure, Buildkite, Woodpecker, and
GitLab, where every top-level mapping with a `script` is a job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvlint.carriers.base import Finding, Item
from kvlint.carriers.host import contained
from kvlint.carriers.launch import Launch, launches, of_script
from kvlint.carriers.scripts import Files
from kvlint.carriers.shell import place
from kvlint.command import Pin
from kvlint.formats import shell
from kvlint.formats.shell.text import Slicer, unknown
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass
from kvlint.source import HOLE, Text
from kvlint.subjects import Process, Site
from kvlint.tree import List, Map, Node, Scalar

_GITLAB = regex(r"(?:.*/)?(?:[^/]*\.gitlab-ci[^/]*\.ya?ml|\.gitlab/.*\.ya?ml)")
_PIPELINE = regex(
    r"(?:.*/)?(?:\.(?:buildkite|circleci|woodpecker)/.*|azure-pipelines[^/]*|\.?(?:drone|woodpecker|buildkite)[^/]*)\.ya?ml"
)
_EXPRESSION = regex(r"\$(?:\{\{.*?\}\}|" + HOLE + ")")
_VARIABLE = regex(r"\{\{\s*env\.(?P<name>\w+)\s*\}\}")
SCRIPTS = ("run", "script", "bash", "commands", "command")
Variables = Mapping[str, Text]


class Workflows:
    name = "workflows"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, Map) and any(True for _ in _jobs(item, item.node))

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        for item in items:
            if isinstance(item.node, Map):
                for job in _jobs(item, item.node):
                    yield from _job(job, item, files)


CARRIER = Workflows()


@dataclass(frozen=True, slots=True)
class _Job:
    """`steps`: its scripts with their own variables; `services`: mappings that name an image."""

    name: str
    node: Map
    steps: tuple[tuple[Text, Map | None], ...]
    services: tuple[tuple[str, Map], ...]
    variables: tuple[Map | None, ...]


def _jobs(item: Item, root: Map) -> Iterator[_Job]:
    stem = item.path.rpartition("/")[2].partition(".")[0] or item.path.rpartition("/")[2].strip(".").partition(".")[0]
    if _GITLAB.fullmatch(item.path):
        yield from _gitlab(root)
        return
    listed = root.get("jobs")
    entries: list[tuple[str, Node | None]] = []
    entries += [(each.key.value, each.value) for each in listed] if isinstance(listed, Map) else []
    entries += [(each.string("job") or stem, each) for each in listed.maps()] if isinstance(listed, List) else []
    if "runs" in root:
        entries.append((stem, root.get("runs")))
    if _PIPELINE.fullmatch(item.path):
        entries.append((stem, root))
    for name, node in entries:
        if isinstance(node, Map) and (steps := tuple(_steps(node.get("steps")))):
            yield _Job(name, node, steps, tuple(_services(node.get("services"))), (root.map("env"), node.map("env")))


def _gitlab(root: Map) -> Iterator[_Job]:
    for entry in root:
        node = entry.value
        if isinstance(node, Map) and "script" in node:
            script = _joined([node.get(key) or root.get(key) for key in ("before_script", "script")])
            services = tuple(_services(node.get("services") or root.get("services")))
            if script is not None:
                variables = (root.map("variables"), node.map("variables"))
                yield _Job(entry.key.value, node, ((script, None),), services, variables)


def _steps(node: Node | None) -> Iterator[tuple[Text, Map | None]]:
    """Scripts of a list of steps, or of a mapping from their names."""
    steps: list[Node] = list(node) if isinstance(node, List) else []
    steps += [each.value for each in node] if isinstance(node, Map) else []
    for step in steps:
        if not isinstance(step, Map):
            continue
        for key in SCRIPTS:
            written = step.get(key)
            script = _joined([written.get("command") if isinstance(written, Map) else written])
            if script is not None:
                yield script, step.map("env")
        yield from _steps(step.get("steps"))  # a group of Buildkite


def _joined(nodes: list[Node | None]) -> Text | None:
    """Lines that run one after the other in one shell."""
    parts: list[Text] = []
    for node in nodes:
        for each in node.items if isinstance(node, List) else (node,):
            if isinstance(each, Scalar) and each.tag != "null":
                parts += [each.text, Text.at("\n", each.span)]
    return Text.join(parts) if parts else None


def _services(node: Node | None) -> Iterator[tuple[str, Map]]:
    if isinstance(node, Map):
        yield from ((each.key.value, each.value) for each in node if isinstance(each.value, Map))
    for each in node.maps() if isinstance(node, List) else ():
        yield each.string("alias") or each.string("name") or "service", each


def _job(job: _Job, item: Item, files: Files) -> Iterator[Process]:
    whole = item.source.span(0, len(item.source.text))
    shared: dict[str, Text] = {}
    for layer in job.variables:
        shared |= _environment(layer, shared)
    unit = f"workflow {item.path} {job.name}"
    for name, service in job.services:
        yield from _service(name, service, unit, shared)
    image = _image(job.node.get("container") or job.node.get("image"), shared)
    pins: tuple[Pin, ...] = ()
    for written, layer in job.steps:
        env = shared | _environment(layer, shared)
        script = shell.commands(_filled(written, env), env)
        start = Launch(
            (),
            written.span,
            env,
            image=image,
            shell=True,
            scripts=files.scripts(item.path),
            sources=files.sources,
            pins=pins,
        )
        for line in of_script(script, start):
            site = Site("workflow", unit, job.name, place(line, whole))
            yield Process(contained(site, line), line)
        pins = (*pins, *_installed(script))


def _installed(script: shell.Script) -> Iterator[Pin]:
    from kvlint.carriers.wrappers import programs as wrappers

    for command in script.commands:
        if command.words and not command.nested:
            yield from wrappers.installs(command.words)


def _service(name: str, node: Map, unit: str, shared: Variables) -> Iterator[Process]:
    """A container beside the job: what it is given are the image's own arguments."""
    image = _image(node, shared)
    if image is None:
        return
    env = _environment(node.map("env") or node.map("variables"), shared)
    words = [word for key in ("entrypoint", "command") for word in _words(node.get(key), shared)]
    launch = Launch(tuple(words), image.span, env, image=image, entrypoint="entrypoint" not in node)
    for line in launches(launch):
        yield Process(Site("workflow", unit, name, image.span, hosts=(name,)), line)


def _words(node: Node | None, env: Variables) -> Iterator[Text]:
    if isinstance(node, Scalar) and node.tag != "null":
        yield from shell.split(_filled(node.text, env))
    for each in node if isinstance(node, List) else ():
        if isinstance(each, Scalar):
            yield _filled(each.text, env)


def _image(node: Node | None, env: Variables) -> Text | None:
    text = (node.text("image") or node.text("name")) if isinstance(node, Map) else None
    text = node.text if isinstance(node, Scalar) and node.tag != "null" else text
    return _filled(text, env) if text is not None else None


def _environment(node: Map | None, known: Variables) -> dict[str, Text]:
    """Variables; GitLab's may stand under `value`, beside their description."""
    found: dict[str, Text] = {}
    for entry in node or ():
        value = entry.value.get("value") if isinstance(entry.value, Map) else entry.value
        if isinstance(value, Scalar) and value.tag != "null":
            found[entry.key.value] = _filled(value.text, {**known, **found})
    return found


def _filled(text: Text, env: Variables) -> Text:
    """A text with `${{ }}` filled in before anything runs: by a variable, else by what is not in these files."""
    if "$" not in text.value:
        return text
    cut = Slicer(text)
    parts, at = [], 0
    for match in _EXPRESSION.finditer(text.value):
        span = cut.span(*match.span())
        # where a file holds templates of others too, the expression is a hole already
        written = match[0] if HOLE not in match[0] or span is None else span.text
        named = _VARIABLE.search(written)
        value = env.get(named["name"]) if named is not None else None
        reason = f"{written} is filled in where the job runs"
        hole = unknown(span, reason, f"the value of {written}", splice=True)
        parts += [cut(at, match.start()), hole if value is None else value]
        at = match.end()
    return Text.join([*parts, cut(at, len(text.value))])
