"""SGLang's router: `--max-concurrent-requests` before all of its workers, found wherever its command line is.

Facts: sglang_router==0.3.2:sglang_router/router_args.py#L66-73,L479-502.  -1, which is the default, limits nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kvlint.admission import system
from kvlint.carriers.proxies.served import OWN_HOSTS
from kvlint.carriers.proxies.upstreams import GENERAL, endpoint, number
from kvlint.command import CommandLine
from kvlint.engines import basename
from kvlint.facts import Fact, Value, Written
from kvlint.links import CLUSTER, share
from kvlint.records import replace
from kvlint.source import Text
from kvlint.subjects import Admission, Endpoint, Process, Site

MAX_BEFORE = 4  # words of an image's command before the module: `python3 -u -m`


def starts(line: CommandLine) -> bool:
    """Whether a command line is the router's; an image's own entrypoint may be what runs it."""
    return _arguments(line) is not None


def _arguments(line: CommandLine) -> tuple[Text, ...] | None:
    """What the router is given."""
    words = line.words if line.program is None else line.words[:1]
    for at, word in enumerate(words[:MAX_BEFORE]):
        if "router" in word.value and basename(word.value) in system("sglang-router")["programs"]:
            return line.words[at + 1 :]
    return None


def admissions(process: Process) -> Iterator[Admission]:
    """The router's limit before each of its workers; with roles apart, before those that decode."""
    site, line = process.site, process.line
    words = _options(_arguments(line) or ())
    written = next(iter(words.get("--max-concurrent-requests", ())), None)
    addresses = words.get("--decode") or words.get("--worker-urls") or ()
    targets = [found for each in addresses if (found := _seen(endpoint(each), site)) is not None]
    port = number(next(iter(words.get("--port", ())), None))
    settings: dict[str, Value[Any]] = {"general": GENERAL}
    settings |= {"port": port} if port is not None else {}
    settings |= {"hosts": Fact(site.hosts, Written(site.place))} if site.hosts else {}
    settings |= {"copies": site.replicas} if site.replicas is not None else {}
    for target in targets:
        yield Admission(
            id="",
            system="sglang-router",
            unit=site.unit,
            name=site.name if len(targets) == 1 else f"{site.name} {target.host}",
            place=written.span if written is not None else site.place,
            limit=share(number(written), len(addresses)),
            per="router",
            excess="reject",
            target=target,
            names=(site.name,),
            settings=settings,
            build=site.data.get("build", ""),
        )


def _options(args: Sequence[Text]) -> dict[str, list[Text]]:
    """The values behind each option, up to the next one; an option that is repeated adds to them."""
    found: dict[str, list[Text]] = {}
    at: list[Text] = []
    for word in args:
        if word.value.startswith("--"):
            name, equals, _ = word.value.partition("=")
            at = found.setdefault(name, [])
            at += [word.slice(len(name) + 1)] if equals else []
        else:
            at.append(word)
    return found


def _seen(target: Endpoint | None, site: Site) -> Endpoint | None:
    """An address as the router's process sees it: in a container its own host is the container, in a pod all of the pod."""
    if target is None or target.host not in OWN_HOSTS:
        return target
    if site.unit.startswith(CLUSTER):
        return replace(target, pod=site.name.partition("/")[0])
    return None if site.unit.startswith("compose ") else target
