"""Which SGLang releases size their pools alike.

The rules are data (data/engines/sglang.memory.toml): each has a value over the spans of releases in which it was read or run.
A release between two spans could have either value, so a release stands for one or two sets of rules.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from functools import cache
from typing import Any

from kvlint.compiled import load
from kvlint.records import dataclass, fields
from kvlint.sizing.spans import Key, frozen, parse, value_of


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """One release's way of sizing; what each field means is said in data/engines/sglang.memory.toml.

    Releases that size alike have one object.
    """

    chunk_tiers: tuple[tuple[int, int], ...]
    graph_tiers: tuple[tuple[int, int, int], ...]
    graph_width_capped: bool
    fraction: str
    graphs_reserved: str
    prefill_graph: str
    prefill_graph_off: tuple[str, ...]
    prefill_graph_multimodal: tuple[str, ...]
    prefill_graph_window: bool
    draft_reserve: tuple[int, int]
    multimodal: str
    multimodal_off: tuple[str, ...]
    multimodal_reserve: int
    hopper_vision: tuple[str, ...]
    window_checked: bool
    rope_by_layer_type: bool
    latent_classes: tuple[str, ...]
    sparse_classes: tuple[str, ...]
    sparse_defaults: tuple[str, ...]
    sparse_backend: str
    sparse_splits: bool
    sparse_raw_default: bool
    sparse_budget: str
    sparse_shared: bool
    value_dim: bool
    cache_types: tuple[str, ...]
    checkpoint_type: bool
    four_bit_halved: bool
    four_bit_backends: tuple[tuple[str, ...], ...]
    backend_at_start: bool
    hopper_listed: tuple[str, ...]
    blackwell_default: bool
    unequal_to_fa4: bool
    sinks_to_triton: bool
    deepseek_classes: tuple[str, ...]
    class_backends: tuple[tuple[str, str, str, str], ...]
    delta_classes: tuple[str, ...]
    delta_pages: bool
    accepted_backends: tuple[tuple[str, ...], ...]
    paged_backends: tuple[tuple[Any, ...], ...]
    fa4_pages: str
    trtllm_latent_types: tuple[str, ...]
    trtllm_devices: tuple[tuple[int, ...], tuple[int, ...]]
    chunk_by_page: str
    state_classes: tuple[str, ...]
    state_type_stated: bool
    state_budget: str
    radix_off: tuple[str, ...]
    state_strategy: str
    buffered_classes: tuple[str, ...]
    split_classes: tuple[str, ...]
    split: str
    chunk_ratio: bool
    request_cap: str
    sliding_floor: bool
    requests: str
    draft_pool: str
    draft_steps: tuple[tuple[int, int, int], ...]
    drafts_stop_overlap: bool
    multimodal_classes: frozenset[str] = frozenset()


@cache
def data() -> Mapping[str, Any]:
    """The compiled data file."""
    loaded: dict[str, Any] = load("sglang_memory.json")
    return loaded


def constant(name: str) -> int:
    return int(data()["constants"][name])


@cache
def named(kind: str) -> frozenset[str]:
    """A set of classes or model types that no release changed."""
    return frozenset(data()["classes"][kind])


def known_releases() -> tuple[str, ...]:
    """The releases that were read and run, oldest first."""
    return tuple(data()["read"])


@cache
def rules(release: str) -> tuple[Rules, ...]:
    """The rules that a release may follow: one set, or those of its two neighbours where they differ.

    Before the oldest release and after the newest one the nearest is taken.
    """
    key, edges = parse(release), _edges()
    return _rules(key, (bisect_left(edges, key), bisect_right(edges, key)))


_stages: dict[tuple[int, int], tuple[Rules, ...]] = {}


def _rules(key: Key, stage: tuple[int, int]) -> tuple[Rules, ...]:
    """The rules at `key`, which all releases between the same two edges have."""
    if stage not in _stages:
        found = []
        for newer in (False, True):
            known = tuple((name, value_of(spans, key, newer)) for name, spans in _spans().items())
            found.append(_of_values((*known, ("multimodal_classes", multimodal_classes(key, newer)))))
        _stages[stage] = tuple(dict.fromkeys(found))
    return _stages[stage]


@cache
def _edges() -> list[Key]:
    """The releases at which a rule begins or ends, in order."""
    named = {
        edge for spans in _spans().values() for start, end, _ in spans for edge in (start, end) if edge is not None
    }
    return sorted({parse(edge) for edge in (*named, *(entry["since"] for entry in data()["multimodal"]))})


@cache
def _spans() -> Mapping[str, list[list[Any]]]:
    """The spans of every rule, their values ready to be compared."""
    written = data()["rules"]
    return {
        each.name: [[start, end, frozen(value)] for start, end, value in written[each.name]]
        for each in fields(Rules)
        if each.name in written
    }


@cache
def _of_values(values: tuple[tuple[str, Any], ...]) -> Rules:
    return Rules(**dict(values))


def semantic_class(release: str) -> tuple[Rules, ...]:
    """Releases with equal classes size alike in every respect; the class is hashable."""
    return rules(release)


def multimodal_classes(key: Key, newer: bool) -> frozenset[str]:
    """The classes listed as multimodal up to a release; between two read releases, up to the newer one where asked."""
    listed: set[str] = set()
    for index, entry in enumerate(data()["multimodal"]):
        reached = parse(entry["since"]) <= key
        if index and not reached:
            if newer and parse(data()["multimodal"][index - 1]["since"]) < key:
                listed.update(entry["classes"])
            break
        listed.update(entry["classes"])
    return frozenset(listed)
