"""What the fronts of a server promise, fall back to, and leave open: the names of a link beside its limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kvlint.facts import Assumed, Fact, Value, Written, low
from kvlint.links import Link
from kvlint.records import replace
from kvlint.subjects import Admission, Endpoint, Promise
from kvlint.windows import doubted

if TYPE_CHECKING:
    from kvlint.evaluation import Evaluation


def of_link(evaluation: Evaluation, link: Link) -> Iterator[tuple[str, Any]]:
    """The facts of one front and one server that stand beside each other."""
    paths = [each for each in evaluation.chain.of(link.group) if each.hops[-1] is link.front]
    yield from _promised(paths)
    yield from _differing(evaluation, link)
    bypassed = _bypassed(evaluation, link)
    if bypassed is not None:
        yield "bypassed", bypassed
    yield from _fallback(evaluation, link)


def _promised(paths: list[Link]) -> Iterator[tuple[str, Any]]:
    """The largest of each kind that any hop of a path through this front states."""
    largest: dict[str, Fact[int]] = {}
    by: dict[str, str] = {}
    for hop, promise in _stated(paths):
        if promise.tokens.origin.kind != "written":
            continue
        if promise.kind not in largest or largest[promise.kind].value < promise.tokens.value:
            largest[promise.kind] = promise.tokens
            by[promise.kind] = hop.system
    for kind, name in (("total", "promise"), ("input", "promised_input"), ("output", "promised_output")):
        if kind in largest:
            yield name, largest[kind]
    windows = [kind for kind in ("total", "input") if kind in largest]
    if windows:
        longest = max(windows, key=lambda kind: largest[kind].value)
        yield "promised", largest[longest]
        yield "promiser", Fact(by[longest], Assumed("by whose file it is"))


def _stated(paths: Iterable[Link]) -> Iterator[tuple[Admission, Promise]]:
    """Every promise of every hop, once: those of a path that is proven before those of one that is supposed."""
    seen: list[Admission] = []
    for path in sorted(paths, key=lambda each: each.supposed):
        for hop in path.hops:
            if hop in seen:
                continue
            seen.append(hop)
            for each in hop.promises:
                tokens = doubted(each.tokens, "supposed") if path.supposed else each.tokens
                yield hop, replace(each, tokens=tokens)


def _differing(evaluation: Evaluation, link: Link) -> Iterator[tuple[str, Any]]:
    """The smallest and the largest total over all paths, said once, at the largest."""
    paths = evaluation.chain.of(link.group)
    totals = [(hop, promise.tokens) for hop, promise in _stated(paths) if promise.kind == "total"]
    if not totals:
        return
    least, greatest = (choose(totals, key=lambda each: each[1].value) for choose in (min, max))
    if any(greatest[0] in path.hops for path in paths if path.hops[-1] is link.front):
        yield "least_promise", least[1]
        yield "greatest_promise", greatest[1]


def _bypassed(evaluation: Evaluation, link: Link) -> Value[str] | None:
    """A proxy with a limit before the same server, which this front, that has none, goes past.

    What counts inside the server's own pod or at its caller has no address that could be gone past.
    """
    if link.front.limit is not None or not isinstance(link.front.target, Endpoint):
        return None
    for other in evaluation.chain.adjacent():
        proxy = other.front if other.group is link.group and other.front is not link.front else None
        if proxy is not None and "port" in proxy.settings and isinstance(proxy.limit, Fact):
            return Fact(proxy.system, Written(link.front.target.span))
    return None


def _fallback(evaluation: Evaluation, link: Link) -> Iterator[tuple[str, Any]]:
    """The smallest window that requests fall back to."""
    found: list[tuple[Fact[str], Value[Any]]] = []
    for key in ("context_window_fallbacks", "fallbacks"):
        names = link.front.settings.get(key)
        if not isinstance(names, Fact):
            continue
        for name in names.value:
            window = _window_of(evaluation, link.front, name)
            if isinstance(window, Fact):
                found.append((Fact(name, names.origin), window))
    if found:
        name, window = min(found, key=lambda each: low(each[1].value))  # type: ignore[union-attr]
        yield "fallback", name
        yield "fallback_window", window


def _window_of(evaluation: Evaluation, front: Admission, name: str) -> Value[Any] | None:
    """The window behind another name of the same proxy: its engine's, else what the proxy says of it."""
    for other in evaluation.findings.admissions:
        if other.system != front.system or other.unit != front.unit or name not in (other.name, *other.names):
            continue
        for path in evaluation.chain.links:
            if path.front is other:
                return path.group.first.get("window")
        stated = [promise.tokens for promise in other.promises if promise.kind in ("total", "input")]
        return max(stated, key=lambda tokens: tokens.value) if stated else None
    return None
