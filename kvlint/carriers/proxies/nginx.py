"""nginx: `limit_conn` of the places that pass requests on, `max_conns` of the servers that they go to.

A limit by the caller's address bounds nobody's total.  `max_conns` is counted by each worker unless the upstream has a `zone`.
Facts: nginx.org/r/limit_conn; nginx/documentation@76d29060: http-load-balancer.md#L269-283.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from kvlint.carriers.base import Finding, Item
from kvlint.carriers.embedded import Around
from kvlint.carriers.proxies import served
from kvlint.carriers.proxies.upstreams import address, admission, number, settings, unknown_workers, whole
from kvlint.facts import Fact, Value
from kvlint.formats.nginx import Directive, all_named, parse
from kvlint.formats.shell.text import Slicer
from kvlint.links import share
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass, field
from kvlint.source import Text

CLAIM = regex(r"^[ \t]*(?:[^#\n]*[{;][ \t]*)?(?:proxy_pass|grpc_pass|upstream)[ \t]", re.MULTILINE)
PASSING = ("proxy_pass", "grpc_pass")
# Variables that are the same for every caller of a server.
SAME_FOR_ALL = ("$server_name", "$server_port", "$server_addr", "$host")
CONTEXTS = ("http", "server", "location", "if", "limit_except")
_VARIABLE = regex(r"\$(?:\{(\w+)\}|(\w+))")
REQUESTED = ("request_uri", "uri", "document_uri")  # what the caller asks for: a path, with its slash


class Nginx:
    name = "nginx"

    def claims(self, item: Item) -> bool:
        return item.kind == "conf" and CLAIM.search(item.source.text) is not None

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        yield from config([(whole(item), served.around(item.path, project)) for item in items])


CARRIER = Nginx()


def config(texts: list[tuple[Text, Around]]) -> Iterator[Finding]:
    """The limits of files that are read together: an upstream or a zone may stand in another than its use."""
    files = [(around, parse(text)) for text, around in texts]
    together = _Shared()
    for _, directives in files:
        _collect(directives, together)
    for around, directives in files:
        yield from _Reader(around, together, _workers(directives)).context(directives, _Context())


@dataclass(slots=True)
class _Shared:
    """What all files of an installation share: upstreams by name, and the key of each zone."""

    upstreams: dict[str, Directive] = field(default_factory=dict)
    zones: dict[str, Text] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Context:
    """What a block inherits: its limits, the port and the name of its server, the path of its location, its variables."""

    limits: tuple[Directive, ...] = ()
    port: Text | None = None
    name: str = "server"
    variables: Mapping[str, Text | None] = field(default_factory=dict)


def _collect(directives: Iterable[Directive], found: _Shared) -> None:
    for each in directives:
        if each.name == "upstream" and each.args:
            found.upstreams.setdefault(each.args[0].value, each)
        elif each.name == "limit_conn_zone" and len(each.args) > 1:
            for word in each.args[1:]:
                if word.value.startswith("zone="):
                    found.zones.setdefault(word.value[5:].partition(":")[0], each.args[0])
        elif each.name in CONTEXTS and each.block is not None:
            _collect(each.block, found)


def _workers(directives: tuple[Directive, ...]) -> Value[int] | None:
    """Worker processes; None for one.  A fragment does not say how many, and `auto` is not known here."""
    stated = next((each.args[0] for each in all_named(directives, "worker_processes") if each.args), None)
    if stated is not None:
        return number(stated) or unknown_workers()
    return None if any(all_named(directives, "events")) else unknown_workers()


@dataclass(frozen=True, slots=True)
class _Reader:
    around: Around
    shared: _Shared
    workers: Value[int] | None

    def context(self, directives: tuple[Directive, ...], context: _Context) -> Iterator[Finding]:
        """Every place of a block that passes requests on, with the limits that hold there."""
        limits = tuple(each for each in all_named(directives, "limit_conn") if len(each.args) > 1) or context.limits
        port, name = context.port, context.name
        variables = {**context.variables, **_set(directives)}
        for each in directives:
            if each.name == "listen" and each.args and port is None:
                port = _port(each.args[0])
            elif each.name == "server_name" and each.args:
                name = each.args[0].value
        for each in directives:
            if each.name in PASSING and each.args:
                yield from self.passing(_resolved(each.args[0], variables), _Context(limits, port, name))
            elif each.name in CONTEXTS and each.block is not None:
                inner = f"{name} {each.args[-1].value}" if each.name == "location" and each.args else name
                port_inside = None if each.name == "server" else port
                yield from self.context(each.block, _Context(limits, port_inside, inner, variables))

    def passing(self, target: Text, context: _Context) -> Iterator[Finding]:
        per, total = self.limit(context.limits)
        host = target.value.partition("://")[2].partition("/")[0]
        upstream = self.shared.upstreams.get(host)
        if upstream is None:
            found = settings(self.around, context.port)
            place = total[0].span if total is not None else target.span
            limit = total[1] if total is not None else None
            yield admission(
                self.around,
                "nginx",
                context.name,
                place,
                limit,
                address(target),
                per=per,
                excess="reject",
                settings=found,
            )
            return
        servers = [each for each in all_named(upstream.block or (), "server") if each.args and not _unused(each)]
        for server in servers:
            yield from self.server(server, upstream, context, per, total, len(servers))

    def server(
        self,
        server: Directive,
        upstream: Directive,
        context: _Context,
        per: str,
        total: tuple[Text, Fact[int]] | None,
        count: int,
    ) -> Iterator[Finding]:
        """One server of an upstream: its own limit, else its share of the place's."""
        own = next((word.slice(10) for word in server.args if word.value.startswith("max_conns=")), None)
        limit: Value[int] | None = number(own)
        zoned = any(all_named(upstream.block or (), "zone"))
        copies = None if zoned or limit is None else self.workers
        if limit is not None:
            assert own is not None
            per, place = "pod", own.span
        elif total is not None:
            place = total[0].span
            limit = share(total[1], count)
        else:
            place = server.args[0].span
        yield admission(
            self.around,
            "nginx",
            context.name if count == 1 else f"{context.name} {server.args[0].value}",
            place,
            limit,
            address(server.args[0]),
            per=per,
            excess="reject",
            settings=settings(self.around, context.port, copies=copies),
        )

    def limit(self, limits: tuple[Directive, ...]) -> tuple[str, tuple[Text, Fact[int]] | None]:
        """The smallest limit that counts all callers together, else one by the caller."""
        found: dict[str, tuple[Text, Fact[int]]] = {}
        for each in limits:
            key, value = self.shared.zones.get(each.args[0].value), number(each.args[1])
            if key is None or value is None:
                continue
            per = "server" if "$" not in key.value or key.value in SAME_FOR_ALL else "address"
            if per not in found or value.value < found[per][1].value:
                found[per] = (each.args[1], value)
        per = "server" if "server" in found or not found else "address"
        return per, found.get(per)


def _set(directives: tuple[Directive, ...]) -> dict[str, Text | None]:
    """What `set` gives each variable; None for one that is set in more than one way."""
    found: dict[str, Text | None] = {}
    for each in _everywhere(directives):
        name = each.args[0].value.lstrip("$") if each.args else ""
        if each.name == "set" and len(each.args) > 1:
            found[name] = each.args[1] if name not in found else None
    return found


def _everywhere(directives: tuple[Directive, ...]) -> Iterator[Directive]:
    """Directives of a block and of the conditions in it."""
    for each in directives:
        yield each
        if each.name == "if" and each.block is not None:
            yield from _everywhere(each.block)


def _resolved(target: Text, variables: Mapping[str, Text | None]) -> Text:
    """An address with its variables filled in: one in a variable is looked up anew for each request."""
    if "$" not in target.value:
        return target
    cut = Slicer(target)
    parts, at = [], 0
    for match in _VARIABLE.finditer(target.value):
        name = match[1] or match[2]
        value = variables.get(name)
        path = name in REQUESTED or "/" in target.value[: match.start()].rpartition("://")[2]
        parts += [cut(at, match.start()), value or Text.at("/" if path else match[0], target.span)]
        at = match.end()
    return Text.join([*parts, cut(at, len(target.value))])


def _unused(server: Directive) -> bool:
    return any(word.value in ("down", "backup") for word in server.args)


def _port(text: Text) -> Text:
    """The port of `listen 8080`, `listen 0.0.0.0:8080`, `listen [::]:80`."""
    return text.slice(text.value.rfind(":") + 1)
