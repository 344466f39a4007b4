"""Limits and scaling targets of the platforms in front of pods: Knative, KEDA, Istio, Envoy Gateway, Traefik.

A scaling target chooses how many replicas run and bounds nothing: it is `settings["target"]`, with no limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kvlint.admission import system
from kvlint.carriers.base import Finding, Item, count_of
from kvlint.carriers.kubernetes.carrier import pods_of
from kvlint.carriers.kubernetes.cluster import Cluster, group, namespace, unit
from kvlint.carriers.kubernetes.pods import processes
from kvlint.facts import Default, Fact, Value, Written
from kvlint.patterns import regex
from kvlint.source import Span
from kvlint.subjects import Admission, Endpoint, Process
from kvlint.tree import List, Map, Node, Scalar

ANNOTATIONS = "autoscaling.knative.dev/"
_DEVICE = regex(r"DCGM_FI_\w*UTIL|gpu_util|duty_cycle|container_cpu|container_memory", re.IGNORECASE)
_WAITING = regex(r"waiting|queue", re.IGNORECASE)
_RUNNING = regex(r"running|flight", re.IGNORECASE)
_REQUESTS = regex(r"num_requests_(?:waiting|running)|running_requests|requests_in_flight|inflight", re.IGNORECASE)


def objects(item: Item, cluster: Cluster) -> Iterator[Finding]:
    root = item.node
    assert isinstance(root, Map)
    readers = {
        "serving.knative.dev": _knative,
        "keda.sh": _keda,
        "autoscaling": _horizontal,
        "networking.k8s.io": _ingress,
        "networking.istio.io": _istio,
        "gateway.envoyproxy.io": _envoy,
    }
    yield from readers.get(group(root), _traefik)(item, root, cluster)


def annotated_target(annotations: Map | None) -> dict[str, Value[Any]]:
    """What Knative's annotations on a revision say of its scaling."""
    found: dict[str, Value[Any]] = {}
    metric = annotations.string(f"{ANNOTATIONS}metric") if annotations is not None else None
    for key, name in (("target", "target"), ("minScale", "min_replicas"), ("maxScale", "max_replicas")):
        dashed = "-".join(part.lower() for part in re.findall(r"[A-Z]?[a-z]+", key))
        node = None
        if annotations is not None:
            node = annotations.get(ANNOTATIONS + key) or annotations.get(ANNOTATIONS + dashed)
        value = count_of(node, key, f"a literal {key}")
        if value is not None and (name != "target" or metric in (None, "concurrency")):
            found[name] = value
    if "target" in found:
        share = annotations.get(f"{ANNOTATIONS}target-utilization-percentage") if annotations is not None else None
        known = Fact(
            system("knative")["utilization_percentage"], Default("knative", (), "target-utilization-percentage")
        )
        found["share"] = count_of(share, "utilization", "a literal target-utilization-percentage") or known
    return found


def scale_settings(section: Map) -> dict[str, Value[Any]]:
    """KServe's own keys: a target counts requests only where its metric does."""
    found: dict[str, Value[Any]] = {}
    if section.string("scaleMetric") == "concurrency":
        target = count_of(section.get("scaleTarget"), "scaleTarget", "a literal scaleTarget")
        if target is not None:
            found["target"] = target
    metric = section.scalar("scaleMetric")
    if metric is not None and metric.value in ("cpu", "memory"):
        found["utilization"] = Fact(metric.value, Written(metric.span))
    for key, name in (("minReplicas", "min_replicas"), ("maxReplicas", "max_replicas")):
        value = count_of(section.get(key), key, f"a literal {key}")
        if value is not None:
            found[name] = value
    return found if "target" in found or "utilization" in found else {}


def _name(root: Map) -> tuple[str, Span]:
    name = root.scalar("metadata", "name")
    known = name is not None and name.text.known
    return (name.value if name is not None and known else "unnamed"), (name.span if name is not None else root.span)


def _admission(item: Item, root: Map, system_: str, place: Span, **about: Any) -> Admission:
    name, _ = _name(root)
    return Admission(id="", system=system_, unit=unit(item), name=name, place=place, **about)


def _knative(item: Item, root: Map, cluster: Cluster) -> Iterator[Finding]:
    started: list[Process] = []
    for pod in pods_of(item):
        started += processes(pod, cluster)
    yield from started
    template = root.map("spec", "template")
    spec = template.map("spec") if template is not None else None
    if template is None or spec is None or not started:
        return
    entry = spec.entry("containerConcurrency")
    limit = count_of(entry.value if entry else None, "containerConcurrency", "a literal containerConcurrency")
    if isinstance(limit, Fact) and limit.value == system("knative")["unlimited"]:
        limit = None
    yield _admission(
        item,
        root,
        "knative",
        entry.key.span if entry is not None else _name(root)[1],
        limit=limit,
        per="pod",
        excess="wait",
        target=started[0] if len(started) == 1 else None,
        settings=annotated_target(template.map("metadata", "annotations")),
    )


def _keda(item: Item, root: Map, cluster: Cluster) -> Iterator[Finding]:
    """A Prometheus trigger on a count of requests: its threshold is what one replica should have."""
    target = root.scalar("spec", "scaleTargetRef", "name")
    yield from _utilized(item, root, "keda", [_trigger(each) for each in (root.list("spec", "triggers") or ()) if each])
    for trigger in (root.list("spec", "triggers") or List((), root.span)).maps():
        metadata = trigger.map("metadata")
        query = metadata.string("query") if metadata is not None else None
        threshold = metadata.scalar("threshold") if metadata is not None else None
        if threshold is None or query is None or not _REQUESTS.search(query):
            continue
        settings: dict[str, Value[Any]] = {}
        value = count_of(threshold, "threshold", "a literal threshold")
        if value is not None:
            settings["target"] = value
        if _WAITING.search(query) and not _RUNNING.search(query):
            settings["waiting"] = Fact(True, Written(threshold.text.span))
        for key, name in (("minReplicaCount", "min_replicas"), ("maxReplicaCount", "max_replicas")):
            bound = count_of(root.get("spec", key), key, f"a literal {key}")
            if bound is not None:
                settings[name] = bound
        names = (target.value,) if target is not None else ()
        yield _admission(
            item, root, "keda", threshold.text.span, per="pod", excess="wait", names=names, settings=settings
        )


def _trigger(trigger: Node) -> tuple[str, Span] | None:
    """What a trigger measures, where that is use of a processor or of memory."""
    if not isinstance(trigger, Map):
        return None
    kind, query = trigger.scalar("type"), trigger.text("metadata", "query")
    if kind is not None and kind.value in ("cpu", "memory"):
        return kind.value, kind.span
    return ("gpu", query.span) if query is not None and _DEVICE.search(query.value) else None


def _horizontal(item: Item, root: Map, cluster: Cluster) -> Iterator[Finding]:
    """A HorizontalPodAutoscaler, of which only what it measures is of interest: it bounds nothing."""
    listed = [_resource(each) for each in root.list("spec", "metrics") or ()]
    spec = root.map("spec")
    entry = spec.entry("targetCPUUtilizationPercentage") if spec is not None else None
    if entry is not None:
        listed.append(("cpu", entry.key.span))
    yield from _utilized(item, root, "hpa", listed)


def _resource(metric: Node) -> tuple[str, Span] | None:
    name = None
    if isinstance(metric, Map):
        name = metric.scalar("resource", "name") or metric.scalar("containerResource", "name")
    return (name.value, name.span) if name is not None and name.value in ("cpu", "memory") else None


def _utilized(item: Item, root: Map, system_: str, listed: list[tuple[str, Span] | None]) -> Iterator[Admission]:
    """An autoscaler that measures use alone: of several measures the one that asks for most replicas counts."""
    target = root.scalar("spec", "scaleTargetRef", "name")
    known = [each for each in listed if each is not None]
    if target is None or not known or len(known) < len(listed):
        return
    what, place = known[0]
    settings: dict[str, Value[Any]] = {"utilization": Fact(what, Written(place))}
    yield _admission(item, root, system_, place, per="pod", names=(target.value,), settings=settings)


def _istio(item: Item, root: Map, cluster: Cluster) -> Iterator[Finding]:
    """`connectionPool.http` of a destination: a limit for each client's sidecar."""
    host = root.scalar("spec", "host")
    policies = [root.map("spec", "trafficPolicy")]
    policies += [each.map("trafficPolicy") for each in (root.list("spec", "subsets") or List((), root.span)).maps()]
    for policy in policies:
        pool = policy.map("connectionPool", "http") if policy is not None else None
        if pool is None or host is None:
            continue
        entry = pool.entry("http2MaxRequests")
        waiting = count_of(pool.get("http1MaxPendingRequests"), "pending", "a literal http1MaxPendingRequests")
        if entry is None and waiting is None:
            continue
        settings: dict[str, Value[Any]] = {"pending": waiting} if waiting is not None else {}
        yield _admission(
            item,
            root,
            "istio",
            entry.key.span if entry is not None else host.span,
            limit=count_of(entry.value, "http2MaxRequests", "a literal http2MaxRequests")
            if entry is not None
            else None,
            per="client",
            excess="reject",
            target=Endpoint(host.value, None, host.span),
            settings=settings,
        )


def _envoy(item: Item, root: Map, cluster: Cluster) -> Iterator[Finding]:
    """`circuitBreaker` of a BackendTrafficPolicy: each unset threshold is 1024."""
    breaker = root.map("spec", "circuitBreaker")
    if breaker is None:
        return
    entry = breaker.entry("maxParallelRequests")
    limit = count_of(entry.value if entry else None, "maxParallelRequests", "a literal maxParallelRequests")
    if limit is None:
        limit = Fact(system("envoy")["default_requests"], Default("envoy", (), "maxParallelRequests"))
    names = tuple(name for each in _target_refs(root) if (name := each.string("name")) is not None)
    settings: dict[str, Value[Any]] = {}
    for key in ("maxPendingRequests", "maxConnections"):
        value = count_of(breaker.get(key), key, f"a literal {key}")
        if value is not None:
            settings["pending" if key == "maxPendingRequests" else "connections"] = value
    yield _admission(
        item,
        root,
        "envoy",
        entry.key.span if entry is not None else _name(root)[1],
        limit=limit,
        per="backend",
        excess="reject",
        target=_of_route(item, names, cluster),
        names=names,
        settings=settings,
    )


def _target_refs(root: Map) -> Iterator[Map]:
    single = root.map("spec", "targetRef")
    if single is not None:
        yield single
    yield from (root.list("spec", "targetRefs") or List((), root.span)).maps()


def _of_route(item: Item, names: tuple[str, ...], cluster: Cluster) -> Endpoint | None:
    """The one Service that the route of that name sends to."""
    found: dict[str, Endpoint] = {}
    for name in names:
        for kind in ("HTTPRoute", "GRPCRoute"):
            for route in cluster.find(kind, name, item):
                if isinstance(route.node, Map):
                    found |= {each.host or "": each for each in _backends(route.node)}
    return next(iter(found.values())) if len(found) == 1 else None


def _backends(route: Map) -> Iterator[Endpoint]:
    for rule in (route.list("spec", "rules") or List((), route.span)).maps():
        yield from _referred(rule, "backendRefs")


def _traefik(item: Item, root: Map, cluster: Cluster) -> Iterator[Finding]:
    """`inFlightReq.amount`: for each source, which is the whole route where no criterion is set."""
    limiter = root.map("spec", "inFlightReq")
    entry = limiter.entry("amount") if limiter is not None else None
    if limiter is None or entry is None:
        return
    criterion = limiter.map("sourceCriterion")
    per = next((each.key.value for each in criterion), None) if criterion is not None else None
    limit = count_of(entry.value, "amount", "a literal inFlightReq.amount")
    yield _admission(
        item,
        root,
        "traefik",
        entry.key.span,
        limit=None if isinstance(limit, Fact) and limit.value == 0 else limit,
        per=per or system("traefik")["default_source"],
        excess="reject",
        target=_of_ingress_route(item, cluster),
        settings=_written({"source": criterion}),
    )


def _of_ingress_route(item: Item, cluster: Cluster) -> Endpoint | None:
    """The one Service to which the routes that use a middleware send."""
    name, _ = _name(item.node) if isinstance(item.node, Map) else ("", None)
    cluster.search("IngressRoute", "IngressRoute")
    found: dict[tuple[str, int | None], Endpoint] = {}
    for route in cluster.of_kind("IngressRoute"):
        if not isinstance(route.node, Map) or namespace(route) != namespace(item):
            continue
        for rule in (route.node.list("spec", "routes") or List((), route.span)).maps():
            used = {each.string("name") for each in (rule.list("middlewares") or List((), rule.span)).maps()}
            for each in _referred(rule, "services") if name in used else ():
                found[each.host or "", each.port] = each
    return next(iter(found.values())) if len(found) == 1 else None


def _referred(rule: Map, key: str) -> Iterator[Endpoint]:
    """The Services that a rule's list of references names."""
    for service in (rule.list(key) or List((), rule.span)).maps():
        name, port = service.scalar("name"), service.string("port")
        if name is not None and service.string("kind") in (None, "Service"):
            yield Endpoint(name.value, int(port) if port and port.isdigit() else None, name.span)


def _ingress(item: Item, root: Map, cluster: Cluster) -> Iterator[Finding]:
    """`nginx.org/max-conns` of an Ingress: connections to each pod behind it."""
    annotations = root.map("metadata", "annotations")
    entry = annotations.entry("nginx.org/max-conns") if annotations is not None else None
    limit = count_of(entry.value if entry is not None else None, "max-conns", "a literal nginx.org/max-conns")
    if entry is None or limit is None or (isinstance(limit, Fact) and limit.value == 0):
        return
    for rule in (root.list("spec", "rules") or List((), root.span)).maps():
        for path in (rule.list("http", "paths") or List((), rule.span)).maps():
            name, port = path.scalar("backend", "service", "name"), path.string("backend", "service", "port", "number")
            if name is not None:
                target = Endpoint(name.value, int(port) if port and port.isdigit() else None, name.span)
                yield _admission(
                    item, root, "nginx", entry.key.span, limit=limit, per="pod", excess="reject", target=target
                )


def _written(nodes: Mapping[str, Node | None]) -> dict[str, Value[Any]]:
    found: dict[str, Value[Any]] = {}
    for key, node in nodes.items():
        if isinstance(node, Map):
            found[key] = Fact(tuple(entry.key.value for entry in node), Written(node.span))
        elif isinstance(node, Scalar):
            found[key] = Fact(node.value, Written(node.span))
    return found
