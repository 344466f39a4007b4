"""What each server can hold, which limit binds, and the same of two runs side by side.

A measure that differs between the releases that a line may run on has a reading for each; a range keeps both ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from math import floor
from typing import TYPE_CHECKING, Any

from kvlint.facts import Assumed, Fact, Range, Unknown, Value, high, low, nominal, quantity
from kvlint.records import dataclass
from kvlint.reports.json import plain
from kvlint.subjects import Server, ServerGroup

if TYPE_CHECKING:
    from kvlint.config import Config
    from kvlint.evaluation import Evaluation

# What is compared, in the order in which it is printed, with its unit.
MEASURES: Mapping[str, str] = {
    "window": "tokens",
    "request_kv_bytes": "bytes",
    "pool_bytes": "bytes",
    "max_concurrency": "ratio",
    "state_blocks": "count",
    "batch_width": "count",
    "admitted": "count",
    "concurrency": "count",
    "warm_slots": "ratio",
    "headroom_bytes": "bytes",
    "longest_window": "tokens",
}
NOBODY_LIMITS = Unknown(
    "concurrency", "nothing known limits how many requests run", "state the memory that may be used"
)


@quantity(
    "pool_bytes", unit="B", formula="usable_bytes - weights_bytes", source="arithmetic: engines that reserve no pool"
)
def room(usable_bytes: int, weights_bytes: int) -> int:
    return usable_bytes - weights_bytes


@quantity("max_concurrency", unit="requests", formula="max(0, pool_bytes) ÷ slot_bytes", source="arithmetic")
def fitting(pool_bytes: int, slot_bytes: int) -> Fraction:
    return Fraction(max(0, pool_bytes), slot_bytes) if slot_bytes > 0 else Fraction(0)


@quantity("headroom_bytes", unit="B", formula="pool_bytes - ⌈streams ÷ ranks⌉ × request bytes", source="arithmetic")
def headroom(pool_bytes: int, request_bytes: int, streams: int, ranks: int) -> int:
    """What the fullest rank has left beside the conversations that the owner wants guaranteed; negative where they do not fit."""
    return pool_bytes - -(-streams // ranks) * request_bytes


@quantity(
    "over_ranks", unit="requests", formula="state blocks of one rank × ranks", source="one block holds one sequence"
)
def over_ranks(state_blocks: int, ranks: int) -> int:
    return state_blocks * ranks


@quantity("concurrency", unit="requests", formula="the smallest of the limits, whole requests", source="arithmetic")
def smallest(**limits: Fraction) -> int:
    return min(floor(limit) for limit in limits.values())


Reading = tuple[tuple[str, ...], Value[Any]]  # the releases that agree, and what they have


@dataclass(frozen=True, slots=True)
class Measure:
    """One number of a server, once for each class of releases that differ."""

    readings: tuple[Reading, ...]

    @property
    def only(self) -> Value[Any] | None:
        """The value where all releases agree."""
        return self.readings[0][1] if len(self.readings) == 1 else None


@dataclass(frozen=True, slots=True)
class Capacity:
    """One server.  `limits`: whole requests that each limit admits; `binds`: the smallest; `length`: what ends one request."""

    id: str
    engine: str
    model: str | None
    measures: Mapping[str, Measure]
    limits: tuple[Mapping[str, Value[Any]], ...]
    binds: tuple[str, ...]
    length: tuple[str, ...]
    reused: bool  # whether conversations come back, so that warm slots matter

    @property
    def name(self) -> str:
        return self.id.partition("#")[2]

    @property
    def path(self) -> str:
        return self.id.partition("#")[0]

    def same(self, other: Capacity) -> bool:
        mine, others = ({name: as_json(measure) for name, measure in each.measures.items()} for each in (self, other))
        return mine == others and (self.binds, self.length) == (other.binds, other.length)


def capacities(evaluation: Evaluation) -> list[Capacity]:
    """Every server of a run, worked out in full."""
    return [capacity(group) for group in evaluation.groups]


def capacity(group: ServerGroup) -> Capacity:
    values = {id(world): _measured(world) for world in group.live}
    limits = tuple(_limits(world) for world in group.live)
    measures = {name: across(group, partial(_value_in, values, name)) for name in MEASURES}
    model, reuse = (group.live[0].settings.get(name) for name in ("model", "reuse"))
    return Capacity(
        id=group.id,
        engine=group.first.engine,
        model=str(model.value) if isinstance(model, Fact) else None,
        measures={name: measure for name, measure in measures.items() if measure is not None},
        limits=limits,
        binds=_united(binding(each) for each in limits),
        length=_united(_length(each) for each in values.values()),
        reused=not (isinstance(reuse, Fact) and reuse.value == "none"),
    )


def _value_in(values: Mapping[int, Mapping[str, Value[Any]]], name: str, world: Server) -> Value[Any] | None:
    return values[id(world)].get(name)


def across(group: ServerGroup, get: Callable[[Server], Value[Any] | None]) -> Measure | None:
    """One number of a server over the releases that it may run on; None where it applies to none of them."""
    readings = [(world.releases, found) for world in group.live if (found := get(world)) is not None]
    return Measure(tuple(_merged(readings))) if readings else None


def _measured(server: Server) -> dict[str, Value[Any]]:
    limits = _limits(server)
    found = {name: _present(server, name) for name in MEASURES}
    found["request_kv_bytes"] = _request(server)
    found["pool_bytes"] = _pool(server)
    found["max_concurrency"] = limits.get("pool")
    found["concurrency"] = concurrency(limits)
    streams, ranks = server.settings.get("streams"), _ranks(server)
    if found["pool_bytes"] is not None and found["request_kv_bytes"] is not None and streams is not None:
        found["headroom_bytes"] = headroom(found["pool_bytes"], found["request_kv_bytes"], streams, ranks)
    return {name: value for name, value in found.items() if value is not None}


def _present(server: Server, name: str) -> Value[Any] | None:
    value = server.get(name)
    return None if isinstance(value, Fact) and value.value is None else value


def _request(server: Server) -> Value[Any] | None:
    own = _present(server, "request_kv_bytes")
    return own if own is not None else _present(server, "slot_bytes")


def _pool(server: Server) -> Value[Any] | None:
    """The engine's pool; for an engine that reserves none, what its budget leaves beside the weights."""
    own = _present(server, "pool_bytes")
    if own is not None:
        return own
    usable, weights = _present(server, "usable_bytes"), _present(server, "weights_bytes")
    return room(usable, weights) if usable is not None and weights is not None else None


def _ranks(server: Server) -> Value[Any]:
    stated = server.settings.get("data_parallel")
    return stated if stated is not None else Fact(1, Assumed("one rank"))


def _limits(server: Server) -> dict[str, Value[Any]]:
    """Requests at the full window that each limit admits, over all ranks."""
    pool, slot = _present(server, "max_concurrency"), _present(server, "slot_bytes")
    space = _pool(server)
    if pool is None and space is not None and slot is not None:
        pool = fitting(space, slot)
    states = _present(server, "state_requests")
    states = states if states is not None else _present(server, "state_blocks")
    found = {
        "pool": pool,
        "state blocks": over_ranks(states, _ranks(server)) if states is not None else None,
        "admission": server.settings.get("admitted"),
        "batch width": _present(server, "batch_width"),
    }
    return {name: value for name, value in found.items() if value is not None}


def concurrency(limits: Mapping[str, Value[Any]]) -> Value[Any]:
    """Whole requests at the full window that run together: unknown as soon as one limit is."""
    for name, value in limits.items():
        if isinstance(value, Unknown):
            known = {other: each for other, each in limits.items() if isinstance(each, Fact)}
            most = f"; at most {plain(high(smallest(**known).value))} by {binding(known)}" if known else ""  # type: ignore[union-attr]
            return Unknown(value.missing, f"{name} is unknown: {value.reason}{most}", value.supply)
    return smallest(**limits) if limits else NOBODY_LIMITS


def binding(limits: Mapping[str, Value[Any]]) -> str:
    """The name of the smallest limit; of several that may be the smallest, all of them; empty where none is known.

    Fewer state blocks than the batch is wide bind whatever the pool holds: engines refuse or clamp the width for them, while a
    pool of fewer full windows is oversubscribed by design.
    """
    facts = {name: value.value for name, value in limits.items() if isinstance(value, Fact)}
    states, width = facts.get("state blocks"), facts.get("batch width")
    if states is not None and width is not None and floor(high(states)) < floor(low(width)):
        return "state blocks"
    if not limits or len(facts) < len(limits):
        return ""
    least = min(floor(high(value)) for value in facts.values())
    return " or ".join(name for name, value in facts.items() if floor(low(value)) <= least)


def _length(values: Mapping[str, Value[Any]]) -> str:
    """What ends one request: its window, unless the pool holds less than one."""
    window, fits = values.get("window"), values.get("max_concurrency")
    if not isinstance(window, Fact):
        return ""
    if isinstance(fits, Fact) and high(fits.value) < 1:
        return "pool"
    return "window or pool" if isinstance(fits, Fact) and low(fits.value) < 1 else "window"


def _merged(readings: Iterable[Reading]) -> Iterator[Reading]:
    """Readings of equal value joined."""
    seen: dict[str, tuple[list[str], Value[Any]]] = {}
    for releases, value in readings:
        key = repr(_key(value))
        seen.setdefault(key, ([], value))[0].extend(releases)
    return ((tuple(releases), value) for releases, value in seen.values())


def _key(value: Value[Any]) -> Any:
    return ("unknown", value.missing, value.reason) if isinstance(value, Unknown) else plain(value.value)


def _united(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def as_json(measure: Measure) -> Any:
    """`{"value": n}`, `{"unknown": …}`, or `{"worlds": [{"versions": […], …}]}`."""
    rows = [{"versions": list(versions), **_reading(value)} for versions, value in measure.readings]
    return {"worlds": rows} if len(rows) > 1 else _reading(measure.readings[0][1])


def _reading(value: Value[Any]) -> dict[str, Any]:
    if isinstance(value, Unknown):
        return {"unknown": value.missing, "reason": value.reason, "supply": value.supply}
    return {"value": plain(value.value)}


@dataclass(frozen=True, slots=True)
class Pair:
    """A server before and after; None where it was added or removed."""

    before: Capacity | None
    after: Capacity | None

    @property
    def status(self) -> str:
        if self.before is None or self.after is None:
            return "added" if self.before is None else "removed"
        return "unchanged" if self.before.same(self.after) else "changed"


_STEPS: tuple[Callable[[Capacity], Any], ...] = (
    lambda each: each.id,
    lambda each: each.name,
    lambda each: (each.path, each.engine),
    lambda each: (each.model, each.engine) if each.model else None,
)


def paired(before: Iterable[Capacity], after: Iterable[Capacity]) -> list[Pair]:
    """Servers matched by name, then by place, then by model; a match is unique on both sides, or none."""
    after = list(after)
    old, new = list(before), after
    matched: dict[int, Capacity] = {}
    for step in _STEPS:
        left, right = _unique(old, step), _unique(new, step)
        for key in left.keys() & right.keys():
            matched[id(right[key])] = left[key]
        old = [each for each in old if not any(each is taken for taken in matched.values())]
        new = [each for each in new if id(each) not in matched]
    pairs = [Pair(matched.get(id(each)), each) for each in after]
    return [*pairs, *(Pair(each, None) for each in old)]


def _unique(servers: Iterable[Capacity], key: Callable[[Capacity], Any]) -> dict[Any, Capacity]:
    found: dict[Any, list[Capacity]] = {}
    for each in servers:
        found.setdefault(key(each), []).append(each)
    return {value: group[0] for value, group in found.items() if value is not None and len(group) == 1}


FLOORS = {"min_warm_slots": "warm_slots", "min_concurrency": "concurrency"}


@dataclass(frozen=True, slots=True)
class Floor:
    """A promise of `[[floor]]` held against a server.

    `state`: kept, broken, doubtful (within a range, or for some releases only), unknown.
    """

    server: str
    name: str
    least: Fraction
    measure: Measure
    state: str
    why: str = ""


def floors(after: Iterable[Capacity], config: Config) -> Iterator[Floor]:
    """Every promise that `[[floor]]` makes for a server; what a server has not, such as warm slots, is promised by none."""
    for each in after:
        stated = config.matching("floor", each.id)
        for key, name in FLOORS.items():
            measure = each.measures.get(name)
            if key not in stated or measure is None or (name == "warm_slots" and not each.reused):
                continue
            least = Fraction(stated[key].value)
            state = _state(measure, least)
            if state == "unknown" and name == "concurrency" and all(_below(limits, least) for limits in each.limits):
                state = "broken"
            unknown = next((value for _, value in measure.readings if isinstance(value, Unknown)), None)
            why = f"{unknown.reason}; {unknown.supply}" if unknown is not None else ""
            yield Floor(each.id, key, least, measure, state, why)


def _state(measure: Measure, least: Fraction) -> str:
    values = [value for _, value in measure.readings]
    if any(isinstance(value, Unknown) for value in values):
        return "unknown"
    numbers = [value.value for value in values if isinstance(value, Fact)]
    if all(high(number) < least for number in numbers):
        return "broken"
    return "doubtful" if any(nominal(number) < least for number in numbers) else "kept"


def _below(limits: Mapping[str, Value[Any]], least: Fraction) -> bool:
    """Whether one of the limits that are known is below a promise already."""
    return any(isinstance(value, Fact) and high(value.value) < least for value in limits.values())


def ends(value: Any) -> tuple[Any, ...]:
    """The numbers that a printed value must not blur."""
    return (value.low, value.high) if isinstance(value, Range) else (value,)
