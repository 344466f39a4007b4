"""Traefik: `inFlightReq` of the middlewares that a router uses, from its dynamic files and from labels of compose services.

Without a criterion it counts by the host that is asked for, which is the whole route (traefik/traefik@fd5a576d:
pkg/config/dynamic/middlewares.go#L559-571).  Names may carry their provider behind an `@`; labels do not mind case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvlint.admission import system
from kvlint.carriers import compose_files
from kvlint.carriers.base import Finding, Item
from kvlint.carriers.embedded import Around
from kvlint.carriers.proxies import served
from kvlint.carriers.proxies.upstreams import admission, endpoint, number, settings
from kvlint.links import share
from kvlint.project import Project
from kvlint.records import dataclass
from kvlint.source import Text
from kvlint.subjects import Endpoint
from kvlint.tree import List, Map, Node, Scalar

PREFIX = "traefik.http."
CRITERIA = {"ipstrategy": "ipStrategy", "requestheadername": "requestHeaderName", "requesthost": "requestHost"}


class Traefik:
    name = "traefik"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, Map) and (_is_dynamic(item.node) or any(_labelled(item.node)))

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        for item in items:
            if isinstance(item.node, Map):
                if _is_dynamic(item.node):
                    yield from _dynamic(item.node, served.around(item.path, project))
                yield from _labels(item.node, Around(item.path, compose_files.unit(item.path, project)))


CARRIER = Traefik()


@dataclass(frozen=True, slots=True)
class _Limit:
    amount: Text
    per: str


def _is_dynamic(root: Map) -> bool:
    http = root.map("http")
    return http is not None and http.map("routers") is not None and http.map("services") is not None


def _bare(name: str) -> str:
    return name.strip().partition("@")[0].lower()


def _dynamic(root: Map, around: Around) -> Iterator[Finding]:
    http = root.map("http") or root
    limits = {
        _bare(entry.key.value): found for entry in http.map("middlewares") or () if (found := _limit(entry.value))
    }
    services = {_bare(entry.key.value): entry.value for entry in http.map("services") or ()}
    for router in http.map("routers") or ():
        node = router.value
        service = services.get(_bare(node.string("service") or "")) if isinstance(node, Map) else None
        if not isinstance(node, Map) or not isinstance(service, Map):
            continue
        names = [each.value for each in node.list("middlewares") or () if isinstance(each, Scalar)]
        servers = (service.list("loadBalancer", "servers") or List((), service.span)).maps()
        targets = [target for each in servers if (target := endpoint(each.text("url"))) is not None]
        yield from _route(router.key.text, _smallest(names, limits), targets, around)


def _limit(middleware: Node) -> _Limit | None:
    limiter = middleware.map("inFlightReq") if isinstance(middleware, Map) else None
    amount = limiter.text("amount") if limiter is not None else None
    if limiter is None or amount is None:
        return None
    criterion = limiter.map("sourceCriterion")
    per = next((each.key.value for each in criterion), None) if criterion is not None else None
    return _Limit(amount, per or system("traefik")["default_source"])


def _smallest(names: Iterable[str], limits: dict[str, _Limit]) -> _Limit | None:
    """The smallest limit of a route that counts all its callers, else one by the caller."""
    found = [limits[_bare(name)] for name in names if _bare(name) in limits]
    whole = [each for each in found if each.per == "requestHost"] or found
    return min(whole, key=lambda each: int(each.amount.value) if each.amount.value.isdigit() else 0, default=None)


def _route(name: Text, limit: _Limit | None, targets: list[Endpoint], around: Around) -> Iterator[Finding]:
    for target in targets:
        yield admission(
            around,
            "traefik",
            name.value if len(targets) == 1 else f"{name.value} {target.host}",
            limit.amount.span if limit is not None else target.span,
            share(number(limit.amount), len(targets)) if limit is not None else None,
            target,
            per=limit.per if limit is not None else "requestHost",
            excess="reject",
            settings=settings(around, None),
        )


def _labelled(root: Map) -> Iterator[tuple[Scalar, dict[str, Text]]]:
    """Compose services with labels of Traefik's: each service's name, and its labels without what they all begin with."""
    for entry in root.map("services") or ():
        if not isinstance(entry.value, Map):
            continue
        node = entry.value.get("labels") or entry.value.get("deploy", "labels")
        labels = {name.lower()[len(PREFIX) :]: text for name, text in _pairs(node) if name.lower().startswith(PREFIX)}
        if labels:
            yield entry.key, labels


def _pairs(node: Node | None) -> Iterator[tuple[str, Text]]:
    if isinstance(node, Map):
        yield from ((each.key.value, each.value.text) for each in node if isinstance(each.value, Scalar))
    for item in node if isinstance(node, List) else ():
        if isinstance(item, Scalar) and "=" in item.value:
            cut = item.value.index("=")
            yield item.value[:cut], item.text.slice(cut + 1)


def _labels(root: Map, around: Around) -> Iterator[Finding]:
    services = list(_labelled(root))
    limits = {name: limit for _, labels in services for name, limit in _of_labels(labels)}
    for service, labels in services:
        names = [
            name for key, text in labels.items() if _is(key, "routers", "middlewares") for name in text.value.split(",")
        ]
        port = next((text for key, text in labels.items() if key.endswith(".loadbalancer.server.port")), None)
        known = port is not None and port.value.isdigit()
        place = port.span if port is not None and known else service.span
        target = Endpoint(service.value, int(port.value) if port is not None and known else None, place)
        yield from _route(service.text, _smallest(names, limits), [target], around)


def _is(key: str, kind: str, what: str) -> bool:
    return key.startswith(f"{kind}.") and key.endswith(f".{what}")


def _of_labels(labels: dict[str, Text]) -> Iterator[tuple[str, _Limit]]:
    for key, text in labels.items():
        if not _is(key, "middlewares", "inflightreq.amount"):
            continue
        name = key[len("middlewares.") : -len(".inflightreq.amount")]
        criterion = f"middlewares.{name}.inflightreq.sourcecriterion."
        found = next(
            (
                CRITERIA.get(other[len(criterion) :].partition(".")[0])
                for other in labels
                if other.startswith(criterion)
            ),
            None,
        )
        yield name, _Limit(text, found or system("traefik")["default_source"])
