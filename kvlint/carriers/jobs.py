"""Jobs of dstack and SkyPilot, processes of process-compose: a shell script, the devices that it asks for, and variables."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Finding, Item, count_of, directory
from kvlint.carriers.host import contained
from kvlint.carriers.launch import Launch, of_script
from kvlint.carriers.scripts import Files
from kvlint.facts import Fact, Value, Written
from kvlint.formats import shell
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass
from kvlint.source import Text
from kvlint.subjects import Process, Product, Site
from kvlint.tree import List, Map, Node, Scalar
from kvlint.units import parse_size

_ACCELERATOR = regex(r"(?P<name>[A-Za-z][\w.-]*)(?::(?P<memory>\d+GB?(?:\.\.)?))?(?::(?P<count>\d+))?")
# What each platform sets to the number of devices of a node.
GPU_VARIABLES = {"dstack": "DSTACK_GPUS_NUM", "skypilot": "SKYPILOT_NUM_GPUS_PER_NODE"}


class Jobs:
    name = "jobs"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, Map) and _platform(item.node) is not None

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        for item in items:
            platform = _platform(item.node) if isinstance(item.node, Map) else None
            if platform == "process-compose" and isinstance(item.node, Map):
                yield from _processes(item, item.node, Files(project))
            elif platform is not None and isinstance(item.node, Map):
                yield from _job(item, item.node, platform)


CARRIER = Jobs()


def _platform(node: Map) -> str | None:
    """dstack's `type` and `commands`; SkyPilot's `run` with `resources` or `setup`; `processes` that have a command each."""
    if node.string("type") in ("service", "task") and node.get("commands") is not None:
        return "dstack"
    if isinstance(node.get("run"), Scalar) and ("resources" in node or "setup" in node) and "services" not in node:
        return "skypilot"
    started = node.map("processes") or ()
    if any(isinstance(entry.value, Map) and isinstance(entry.value.get("command"), Scalar) for entry in started):
        return "process-compose"
    return None


def _processes(item: Item, root: Map, files: Files) -> Iterator[Finding]:
    """process-compose gives each command to a shell (F1bonacc1/process-compose, src/types/process.go)."""
    common = dict(_assigned(root.get("environment")))
    for entry in root.map("processes") or ():
        command = entry.value.text("command") if isinstance(entry.value, Map) else None
        if command is None or not isinstance(entry.value, Map):
            continue
        env = {**common, **dict(_assigned(entry.value.get("environment")))}
        launch = Launch((), entry.key.span, env, shell=True, scripts=files.scripts(item.path), sources=files.sources)
        for line in of_script(shell.commands(command, env), launch):
            site = Site("procfile", f"host {directory(item.path)}", entry.key.value, entry.key.span)
            yield Process(contained(site, line), line)


def _assigned(node: Node | None) -> Iterator[tuple[str, Text]]:
    for each in node if isinstance(node, List) else ():
        name, equals, _ = each.value.partition("=") if isinstance(each, Scalar) else ("", "", "")
        if equals and isinstance(each, Scalar):
            yield name, each.text.slice(len(name) + 1)


@dataclass(frozen=True, slots=True)
class _Devices:
    count: Value[int] | None = None
    product: tuple[Product, ...] = ()
    number: Text | None = None


def _job(item: Item, root: Map, platform: str) -> Iterator[Finding]:
    name = root.scalar("name")
    place = name.span if name is not None else root.span
    devices = _devices(root)
    env = _environment(root.get("env") if platform == "dstack" else root.get("envs"))
    if devices.number is not None:
        env[GPU_VARIABLES[platform]] = devices.number
    script = _script(root, ("commands",) if platform == "dstack" else ("setup", "run"))
    if script is None:
        return
    site = Site(
        carrier=platform,
        unit=f"{platform} {item.path}",
        name=name.value if name is not None else item.path.rpartition("/")[2].lstrip(".").partition(".")[0],
        place=place,
        replicas=count_of(root.get("service", "replicas") or root.get("replicas"), "replicas", "a literal number"),
        gpus=devices.count,
        product=devices.product,
        shared_memory=_shared_memory(root.text("resources", "shm_size")),
    )
    read = shell.commands(script, env)
    launch = Launch(words=(), place=place, env=env, image=root.text("image"), shell=True, assumed=tuple(read.assumed))
    for line in of_script(read, launch):
        yield Process(site, line)


def _script(root: Map, keys: tuple[str, ...]) -> Text | None:
    """The commands as one script: they run one after the other in one shell."""
    parts: list[Text] = []
    for key in keys:
        node = root.get(key)
        items = node.items if isinstance(node, List) else (node,)
        for each in items:
            if isinstance(each, Scalar) and each.tag != "null":
                parts += [each.text, Text.at("\n", each.span)]
    return Text.join(parts) if parts else None


def _environment(node: Node | None) -> dict[str, Text]:
    """A mapping, or a list of `NAME=value`; a bare name comes from whoever starts the job."""
    env: dict[str, Text] = {}
    if isinstance(node, Map):
        for entry in node:
            if isinstance(entry.value, Scalar) and entry.value.tag != "null":
                env[entry.key.value] = entry.value.text
            else:
                env[entry.key.value] = _outside(entry.key.text)
    elif isinstance(node, List):
        for item in node:
            if isinstance(item, Scalar):
                name, equals, _ = item.value.partition("=")
                env[name] = item.text.slice(len(name) + 1) if equals else _outside(item.text)
    return env


def _outside(name: Text) -> Text:
    return Text.unknown(name.span, f"{name.value} is set where the job is started", f"the value of {name.value}")


def _devices(root: Map) -> _Devices:
    """`gpu: MI300X:8`, `accelerators: {H100: 8}`, or a mapping with a name and a count."""
    node = root.get("resources", "gpu") or root.get("resources", "accelerators")
    if isinstance(node, List) and len(node.items) == 1:
        node = node.items[0]
    if isinstance(node, Scalar):
        return _spelled(node.text)
    if not isinstance(node, Map):
        return _Devices()
    name, count = node.scalar("name"), node.scalar("count")
    entries = tuple(node)
    if name is None and len(entries) == 1 and isinstance(entries[0].value, Scalar):
        name, count = entries[0].key, entries[0].value
    products = (Product("accelerator", name.text),) if name is not None else ()
    return _Devices(count_of(count, "hardware.count", "a literal count"), products, count.text if count else None)


def _spelled(text: Text) -> _Devices:
    """`NAME`, `NAME:COUNT`, `NAME:MEMORY:COUNT`; a name without a count is one device."""
    match = _ACCELERATOR.fullmatch(text.value)
    if match is None:
        return _Devices()
    product = Product("accelerator", text.slice(*match.span("name")))
    if match["count"] is None:
        return _Devices(Fact(1, Written(text.span, text.via)), (product,), Text.at("1", text.span))
    number = text.slice(*match.span("count"))
    return _Devices(Fact(int(match["count"]), Written(number.span, number.via)), (product,), number)


def _shared_memory(text: Text | None) -> Value[int] | None:
    size = parse_size(text.value) if text is not None else None
    return Fact(size, Written(text.span, text.via)) if size is not None and text is not None else None
