"""What the carriers of processes on one machine share: what a container's options say of its surroundings, placeholders."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.wrappers.programs import Container
from kvlint.command import CommandLine
from kvlint.facts import Fact, Unknown, Value, Written
from kvlint.formats.shell.text import Slicer, unknown
from kvlint.patterns import regex
from kvlint.records import replace
from kvlint.source import Text
from kvlint.subjects import Problem, Site
from kvlint.units import parse_compose_size

_PLACEHOLDER = regex(r"\{\{.*?\}\}|\$\{[A-Za-z_]\w*\}|\$[A-Z_][A-Z0-9_]*|@[A-Za-z_]\w*@|__[A-Z][A-Z0-9_]*?__")
_REFERENCE = regex(r"\$\{[^}]*\}|\$[A-Z_][A-Z0-9_]*\b")
_PORT = regex(r"(?:(?:[^:]*|\[[^\]]*\]):)?(?P<host>\d+):(?P<container>\d+)(?:/\w+)?")
_DEVICES = regex(r"(?:\d+|GPU-[0-9a-f-]+)(?:,(?:\d+|GPU-[0-9a-f-]+))*")
_QUOTED_DEVICES = regex(r'"?device=([^"]+)"?')
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


def contained(site: Site, line: CommandLine) -> Site:
    """The site with what the command line itself says: the devices it sees, and the container that it runs in."""
    count, ids = _visible(line)
    container = line.container
    if not isinstance(container, Container):
        return replace(site, gpus=site.gpus or count, device_ids=site.device_ids or ids)
    if count is None:
        count, ids = _granted(container.gpus)
    return replace(
        site,
        gpus=site.gpus or count,
        device_ids=site.device_ids or ids,
        hosts=(*site.hosts, *([container.name.value] if container.name is not None and container.name.known else [])),
        published={**site.published, **dict(published(container.ports))},
        memory_limit=site.memory_limit or _size(container.memory),
        shared_memory=site.shared_memory or _size(container.shm_size),
        host_ipc=site.host_ipc or (container.ipc is not None and container.ipc.value in ("host", "shareable")),
    )


def narrowed(site: Site, line: CommandLine, *, own: bool) -> Site:
    """Of a container's devices those that its process may see; `own`: where all were given, they are the host's ids."""
    count, ids = _visible(line, _VISIBLE[:-1])
    if count is None or (isinstance(site.gpus, Fact) and isinstance(count, Fact) and site.gpus.value <= count.value):
        return site
    known = site.device_ids or isinstance(site.gpus, Fact) or not own
    return replace(site, gpus=count, device_ids=site.device_ids if known else ids)


def _visible(line: CommandLine, names: tuple[str, ...] = _VISIBLE) -> tuple[Value[int] | None, tuple[Text, ...]]:
    """Devices that the environment leaves visible; a list of none of ours says nothing."""
    for name in names:
        text = line.env.get(name)
        if text is not None and text.known and _DEVICES.fullmatch(text.value):
            return _listed(text)
    return None, ()


def _listed(text: Text) -> tuple[Value[int], tuple[Text, ...]]:
    ids = tuple(text.split(","))
    return Fact(len(ids), Written(text.span, text.via)), ids


def _granted(gpus: Text | None) -> tuple[Value[int] | None, tuple[Text, ...]]:
    """`--gpus all`, `--gpus 2`, `--gpus '"device=0,1"'`."""
    if gpus is None or not gpus.known:
        return None, ()
    if gpus.value.isdigit():
        return Fact(int(gpus.value), Written(gpus.span, gpus.via)), ()
    devices = _QUOTED_DEVICES.fullmatch(gpus.value)
    if devices and _DEVICES.fullmatch(devices[1]):
        return _listed(gpus.slice(*devices.span(1)))
    return Unknown("hardware.count", "all devices of the host are given", "[[hardware]] count"), ()


def published(ports: tuple[Text, ...]) -> Iterator[tuple[int, Fact[int]]]:
    """`-p host:container` as pairs of the two, those that are written so."""
    for port in ports:
        match = _PORT.fullmatch(port.value)
        if match:
            inner = port.slice(*match.span("container"))
            yield int(match["host"]), Fact(int(match["container"]), Written(inner.span, inner.via))


def _size(text: Text | None) -> Value[int] | None:
    if text is None:
        return None
    size = parse_compose_size(text.value) if text.known else None
    if size is None:
        return Unknown("resources", "a size that is filled in elsewhere", "a literal size")
    return Fact(size, Written(text.span, text.via))


def memory(text: Text | None) -> Value[int] | None:
    """`MemoryMax=64G`: units are binary; systemd.resource-control(5)."""
    if text is None or text.value == "infinity":
        return None
    size = parse_compose_size(text.value) if text.known else None
    if size is None:
        return Unknown("resources", "a share of the machine's memory", "a literal MemoryMax")
    return Fact(size, Written(text.span, text.via))


def unexpanded(text: Text, carrier: str) -> Iterator[Problem]:
    """References to variables in a text of which `carrier` replaces none."""
    for match in _REFERENCE.finditer(text.value) if text.pieces else ():
        yield Problem("unexpanded-variable", text.slice(*match.span()).span, {"carrier": carrier, "value": match[0]})


def template(text: Text, *, splice: bool) -> Text:
    """A text of a template, with a hole for each placeholder; `splice`: a placeholder may stand for several words."""
    if not _PLACEHOLDER.search(text.value):
        return text
    cut = Slicer(text)
    parts, at = [], 0
    for match in _PLACEHOLDER.finditer(text.value):
        reason = f"{match[0]} is filled in before the file is installed"
        parts += [cut(at, match.start()), unknown(cut.span(*match.span()), reason, f"the value of {match[0]}", splice)]
        at = match.end()
    return Text.join([*parts, cut(at, len(text.value))])
