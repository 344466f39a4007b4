"""Who stands before whom.  A link needs proof: a unique match inside one deployment unit; two candidates are no link.

Between units a port and a name together are taken for one, if nothing nearer has both: such a link is `supposed`, and what it
leads to is at most a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvlint.carriers.base import nearest_paths
from kvlint.facts import Fact, Value, quantity
from kvlint.records import dataclass, field
from kvlint.source import Span
from kvlint.subjects import Admission, Endpoint, Process, Promise, Server, ServerGroup

REMOTE = "ssh"  # what runs a command elsewhere
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1", "[::1]", "host.docker.internal"})


@dataclass(frozen=True, slots=True)
class Link:
    """A front and a server, with the hops between them, outermost first, the front first among them.

    `supposed`: one of the hops leads from one deployment unit to another.
    """

    hops: tuple[Admission, ...]
    group: ServerGroup
    supposed: bool = False

    @property
    def front(self) -> Admission:
        return self.hops[0]


@dataclass(slots=True)
class Chain:
    """The proven links of a run."""

    links: list[Link] = field(default_factory=list)
    ambiguous: list[tuple[Admission, tuple[str, ...]]] = field(default_factory=list)
    _by_group: dict[int, list[Link]] = field(default_factory=dict, repr=False)

    def add(self, links: Iterable[Link]) -> None:
        for link in links:
            self.links.append(link)
            self._by_group.setdefault(id(link.group), []).append(link)

    def of(self, group: ServerGroup) -> list[Link]:
        return self._by_group.get(id(group), [])

    def adjacent(self) -> Iterator[Link]:
        """Links without a hop between."""
        return (link for link in self.links if len(link.hops) == 1)


def connect(groups: Iterable[ServerGroup], admissions: Iterable[Admission]) -> Chain:
    """Prove what can be proved, and note each admission's servers."""
    admissions = list(admissions)
    known, chain = _Known(list(groups), admissions), Chain()
    for front in admissions:
        found = [*_reach(front, known, chain, ())]
        chain.add(found)
        front.servers = tuple(dict.fromkeys(link.group.id for link in found))
    return chain


class _Known:
    """What addresses may lead to, by where it stands and what it serves: a gateway may list thousands of models."""

    def __init__(self, groups: list[ServerGroup], admissions: list[Admission]) -> None:
        self.groups = groups
        self._started: dict[int, list[ServerGroup]] = {}
        self._within: dict[str, list[ServerGroup]] = {}
        for group in groups:
            self._started.setdefault(id(group.first.process), []).append(group)
            self._within.setdefault(group.first.site.unit, []).append(group)
        self._proxies = [each for each in admissions if "port" in each.settings or "hosts" in each.settings]
        self._general: dict[str, dict[int, Admission]] = {}  # by unit: they pass on whatever is asked for
        self._named: dict[str, dict[int, Admission]] = {}
        for number, proxy in enumerate(self._proxies):
            if "general" in proxy.settings:
                self._general.setdefault(proxy.unit, {})[number] = proxy
            else:
                for name in (proxy.name, *proxy.names):
                    self._named.setdefault(name, {})[number] = proxy

    def started_as(self, process: Process) -> list[ServerGroup]:
        return self._started.get(id(process), [])

    def within(self, unit: str) -> list[ServerGroup]:
        return self._within.get(unit, [])

    def named(self, target: Endpoint) -> list[Admission]:
        """The proxies of all units that hold a model that is asked for, in their order."""
        return self._in_order([self._named.get(name, {}) for name in target.names])

    def asked(self, unit: str, target: Endpoint) -> list[Admission]:
        """The proxies of a unit that listen to what is sent to an address, in their order."""
        named = [self._named.get(name, {}) for name in target.names]
        near = self._in_order([self._general.get(unit, {}), *named]) if target.names else self._proxies
        return [proxy for proxy in near if listens(proxy, target, unit)]

    def _in_order(self, found: list[dict[int, Admission]]) -> list[Admission]:
        return [self._proxies[number] for number in sorted({number for each in found for number in each})]


def _reach(front: Admission, known: _Known, chain: Chain, seen: tuple[Admission, ...]) -> Iterator[Link]:
    if front in seen or len(seen) > 8:
        return
    target = front.target
    if isinstance(target, Process):
        for group in known.started_as(target):
            yield Link((front,), group)
        return
    if not isinstance(target, Endpoint):
        return
    candidates, proxies = _inside(front, target, known)
    supposed = not candidates and not proxies
    if supposed:
        candidates, proxies = _elsewhere(front, target, known)
    if len(candidates) + len(proxies) > 1:
        ids = (*(group.id for group in candidates), *(each.id for each in proxies))
        chain.ambiguous.append((front, ids))
        return
    for group in candidates:
        yield Link((front,), group, supposed)
    for proxy in proxies:
        for link in _reach(proxy, known, chain, (*seen, front)):
            yield Link((front, *link.hops), link.group, supposed or link.supposed)


def _inside(front: Admission, target: Endpoint, known: _Known) -> tuple[list[ServerGroup], list[Admission]]:
    """What an address names in the unit that it leads to; of equal names those of the front's own build, then the nearest."""
    for unit in units_of(target, front.unit):
        candidates = _asked([group for group in known.within(unit) if answers(group, target, unit)], target)
        proxies = [each for each in known.asked(unit, target) if each is not front]
        if candidates or proxies:
            break
    else:
        return [], []
    if len(candidates) + len(proxies) < 2 or not front.unit.startswith(CLUSTER):
        return candidates, proxies
    builds = {id(each): each.first.site.data.get("build", "") for each in candidates}
    builds |= {id(each): each.build for each in proxies}
    if front.build in builds.values():
        near = {key for key, build in builds.items() if build == front.build}
        candidates = [each for each in candidates if id(each) in near]
        proxies = [each for each in proxies if id(each) in near]
    places = {id(each): _stands(builds[id(each)], each.first.site.place) for each in candidates}
    places |= {id(each): _stands(builds[id(each)], each.place) for each in proxies}
    close = nearest_paths(_stands(front.build, front.place), places.values())
    return (
        [each for each in candidates if places[id(each)] in close],
        [each for each in proxies if places[id(each)] in close],
    )


def _stands(build: str, place: Span) -> str:
    return f"{build}/{place.path.rpartition('/')[2]}" if build else place.path


# The units of Kubernetes: namespaces, with an empty name where it is the one that the objects are applied with.
CLUSTER = "namespace "


def units_of(target: Endpoint, unit: str) -> tuple[str, ...]:
    """The units in which a name is looked up, in their order: a Service may be called with its namespace."""
    if not unit.startswith(CLUSTER) or target.host is None or target.host in LOCAL_HOSTS:
        return (unit,)
    _, *more = target.host.rstrip(".").split(".")
    if len(more) > 1 and more[1] != "svc":
        return ()  # the name of another machine
    named = f"{CLUSTER}{more[0]}" if more else unit
    written = {f"{CLUSTER}default": CLUSTER, CLUSTER: f"{CLUSTER}default"}
    return tuple(dict.fromkeys((named, written.get(named, CLUSTER) if more else written.get(named, named))))


# Units whose processes are on one machine: what a scheduler places has no port there.
_MACHINES = ("host ", "compose ", "nix ")


def _elsewhere(front: Admission, target: Endpoint, known: _Known) -> tuple[list[ServerGroup], list[Admission]]:
    """What an address may name in other units: of all that has its port and the model that is asked for, the nearest.

    A file that no service of a compose project mounts is supposed to be for the one whose service it names; else, and where a
    chart's values stand by themselves, for the namespace whose Service it names.
    """
    if target.host is None or target.port is None or not front.unit.startswith((*_MACHINES, "helm ")):
        return [], []
    local = target.host in LOCAL_HOSTS
    if not local and not front.unit.startswith(("host ", "helm ")):
        return [], []
    if not local and ("." in target.host or front.unit.startswith("helm ")):
        return _in_some_namespace(front, target, known.groups), []
    other = [each for each in known.groups if each.first.site.unit not in ("", front.unit)]
    found: list[ServerGroup] = []
    for group in other:
        server = group.first
        if local:
            at = target.port in local_ports(server) and _named(server.names, target) is True
            matches = at and server.site.unit.startswith(_MACHINES)
        else:
            matches = answers(group, target, server.site.unit) and server.site.unit.startswith("compose ")
            matches = matches and (server.engine not in CHECKS_NAMES or _named(server.names, target) is not False)
        found += [group] if matches else []
    units = _MACHINES if local else ("compose ",)
    proxies = [
        each
        for each in known.named(target)
        if each.unit.startswith(units) and each.unit != front.unit and listens(each, target, each.unit)
    ]
    places = {id(each): each.first.site.place.path for each in found} | {id(each): each.place.path for each in proxies}
    if not found and not proxies and not local:
        return _in_some_namespace(front, target, known.groups), []
    near = nearest_paths(front.place.path, places.values())
    return (
        [each for each in found if places[id(each)] in near],
        [each for each in proxies if places[id(each)] in near],
    )


def _in_some_namespace(front: Admission, target: Endpoint, groups: list[ServerGroup]) -> list[ServerGroup]:
    """The servers of the nearest Service of that name, in the namespace that the address has, if it has one."""
    short = "." not in (target.host or "")
    found = [
        group
        for group in groups
        if (unit := group.first.site.unit).startswith(CLUSTER)
        and (short or unit in units_of(target, CLUSTER))
        and answers(group, target, unit)
        and (group.first.engine not in CHECKS_NAMES or _named(group.first.names, target) is not False)
    ]
    places = {id(each): _stands(each.first.site.data.get("build", ""), each.first.site.place) for each in found}
    near = nearest_paths(front.place.path, places.values())
    return [each for each in found if places[id(each)] in near]


# Engines that refuse a request for a model that they do not serve.
CHECKS_NAMES = frozenset({"vllm"})


def _named(names: Iterable[str], target: Endpoint) -> bool | None:
    """Whether one of the names is asked for; None where nothing is asked for, or no name is known."""
    known = {*names}
    return bool(known & {*target.names}) if known and target.names else None


def _asked(candidates: list[ServerGroup], target: Endpoint) -> list[ServerGroup]:
    """Of the processes that one router starts, the one that serves the model that is asked for."""
    starters = {_starter(group) for group in candidates}
    if len(candidates) < 2 or len(starters) > 1 or None in starters:
        return candidates
    named = [group for group in candidates if {group.first.site.name, *group.first.names} & {*target.names}]
    return named if len(named) == 1 else candidates


def _starter(group: ServerGroup) -> str | None:
    site = group.first.site
    router: str | None = site.data.get("router")
    return router if router is not None or site.carrier != "llama-swap" else site.place.path


def answers(group: ServerGroup, target: Endpoint, unit: str) -> bool:
    """Whether a server is what an address names, seen from `unit`."""
    server = group.first
    site = server.site
    if site.unit != unit or target.host is None:
        return False
    if target.pod is not None:
        return site.name.partition("/")[0] == target.pod and target.port in known_ports(server, services=False)
    if target.host in LOCAL_HOSTS:
        return target.port is not None and target.port in local_ports(server)
    if not _called(target.host, unit, site.hosts):
        return False
    ports = known_ports(server)
    listed = site.data.get("called", {}).get(target.host.partition(".")[0])
    if listed is not None and target.port not in (None, *(each.value for each in listed)):
        return False
    return target.port is None or not ports or target.port in ports


def _called(host: str, unit: str, hosts: Iterable[str]) -> bool:
    """Whether a host is one of those names; a cluster's and a host's may have a domain behind it."""
    return host in hosts or (not unit.startswith("compose ") and host.partition(".")[0] in hosts)


def listens(proxy: Admission, target: Endpoint, unit: str) -> bool:
    """Whether an admission system is what an address names, and holds the model that is asked for."""
    if proxy.unit != unit or target.host is None or target.pod is not None:
        return False
    port = proxy.settings.get("port")
    hosts = proxy.settings.get("hosts")
    named = isinstance(hosts, Fact) and _called(target.host, unit, hosts.value)
    local = target.host in LOCAL_HOSTS and isinstance(port, Fact) and port.value == target.port
    if not (named or local):
        return False
    if "general" in proxy.settings:
        return not isinstance(port, Fact) or port.value == target.port  # it passes on whatever model is asked for
    return not target.names or any(name in (proxy.name, *proxy.names) for name in target.names)


def known_ports(server: Server, *, services: bool = True) -> set[int]:
    ports = {fact.value for fact in server.site.ports.values()} | set(server.site.published)
    listening = server.settings.get("port")
    if isinstance(listening, Fact):
        ports.add(listening.value)
    return ports | set(server.site.data.get("service_ports") or ()) if services else ports


def elsewhere(server: Server) -> bool:
    """Whether a process runs on another machine than what starts it."""
    return any(each.name == REMOTE for each in server.process.line.wrappers)


def local_ports(server: Server) -> set[int]:
    """Ports on the host itself: published ones, or the process's own where it runs without a container."""
    if elsewhere(server):
        return set()
    if server.site.published:
        return set(server.site.published)
    listening = server.settings.get("port")
    return {listening.value} if isinstance(listening, Fact) else set()


# What counts for each caller bounds nobody's total; what counts in each pod needs no sharing out.
PER_CALLER = frozenset({"key", "client", "address", "ipStrategy", "requestHeaderName"})
PER_REPLICA = frozenset({"pod", "replica"})


@quantity(
    "admitted", unit="requests", formula="Σ over paths of the written limit", source="limits of several paths add up"
)
def total(**limits: int) -> int:
    return sum(limits.values())


@quantity("admitted", unit="requests", formula="limit × copies of the proxy", source="each process counts for itself")
def multiplied(limit: int, copies: int) -> int:
    return limit * copies


@quantity("admitted", unit="requests", formula="⌈limit ÷ replicas⌉", source="one limit before all replicas of a server")
def shared(limit: int, replicas: int) -> int:
    """Requests that reach one replica, if they are spread evenly."""
    return -(-limit // max(1, replicas))


def share(limit: Value[int] | None, count: int) -> Value[int] | None:
    """What a limit before `count` targets leaves for each of them."""
    return shared(limit, Fact(count, limit.origin)) if isinstance(limit, Fact) and count > 1 else limit


def admitted_to(links: Iterable[Link], *, written: bool = True) -> Value[int] | None:
    """Requests in flight that reach one replica of a server over every proven path.

    None where a path has no limit of its total (or none that is written).
    """
    fronts = {id(link.hops[-1]): (link.hops[-1], link.group) for link in links}
    limits: dict[str, Value[int]] = {}
    for number, (front, group) in enumerate(fronts.values(), 1):
        limit = reaching(front, group)
        if limit is None or (written and not is_written(front.limit)):
            return None
        limits[f"limit_{number}"] = limit
    if len(limits) == 1:
        return next(iter(limits.values()))
    return total(**limits) if limits else None


def is_written(limit: Value[int] | None) -> bool:
    """Whether somebody chose a limit: written outright, or worked out from what is."""
    return isinstance(limit, Fact) and limit.origin.kind in ("written", "derived")


def reaching(front: Admission, group: ServerGroup) -> Value[int] | None:
    """Requests that one front lets through to each replica of a server; None where it bounds no total."""
    if front.limit is None or front.per in PER_CALLER:
        return None
    limit = front.limit
    copies, replicas = front.settings.get("copies"), group.first.site.replicas
    if copies is not None and not (isinstance(copies, Fact) and copies.value == 1):
        limit = multiplied(limit, copies)
    if front.per in PER_REPLICA or replicas is None or (isinstance(replicas, Fact) and replicas.value <= 1):
        return limit
    return shared(limit, replicas)


@dataclass(frozen=True, slots=True)
class Reaching:
    """The promise that reaches a server: `enforced` somewhere on its path, or only claimed."""

    promise: Promise
    via: Admission


def largest_promise(links: Iterable[Link]) -> Reaching | None:
    """Along each path the smallest of the hops that enforce one, else the nearest claim; over paths the largest.

    A path begins at the outermost front: what stands behind another front is a part of that one's path.
    """
    links = list(links)
    whole = [each for each in links if not any(_ends_in(other, each) for other in links)]
    reaching = [found for link in whole if (found := _along(link)) is not None]
    return max(reaching, key=lambda each: each.promise.tokens.value) if reaching else None


def _ends_in(longer: Link, link: Link) -> bool:
    return len(longer.hops) > len(link.hops) and longer.hops[-len(link.hops) :] == link.hops


def _along(link: Link) -> Reaching | None:
    total = [(hop, promise) for hop in link.hops for promise in hop.promises if promise.kind == "total"]
    enforced = [(hop, promise) for hop, promise in total if promise.enforced]
    if enforced:
        hop, promise = min(enforced, key=lambda each: each[1].tokens.value)
        return Reaching(promise, hop)
    if total:
        hop, promise = total[-1]
        return Reaching(promise, hop)
    return None
