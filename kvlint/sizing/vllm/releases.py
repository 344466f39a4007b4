"""Which vLLM releases size their cache alike.

The rules are data (data/engines/vllm.memory.toml): each has a value over the spans of releases in which it was read or run.
A release between two spans could have either value, so a release stands for one or two sets of rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from kvlint.compiled import load
from kvlint.records import dataclass, fields
from kvlint.sizing.spans import parse


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """One release's way of sizing; what each field means is said in data/engines/vllm.memory.toml.

    Releases that size alike have one object.
    """

    window_layers: str
    chunked_manager: bool
    checkpoint_kv: bool
    latent_layers: bool
    state_layers: str
    value_dim: bool
    sizes_of_one_kind: str
    sizes_of_several_kinds: str
    pad_state_pages: bool
    even_ratio: Fraction
    strided_groups: bool
    model_order: bool
    model_groups: bool
    concurrent_batches: bool
    state_count: str
    all_mode_drafts: bool
    prefill_checkpoint: bool
    request_count: str
    spare_blocks: int
    whole_model_check: bool
    tokens_logged: str
    hybrid_block: str
    latent_hybrid_block: int
    cache_mode: str
    nemotron_state: str
    qwen_state: bool
    promotion_drops_value_dim: bool
    draft_convolution: tuple[str, ...]
    prefix_caching: str
    graphs_in_budget: bool
    uneven_stages: str
    yarn_length: str
    batch_tiers: tuple[tuple[int, int, int], ...]
    small_devices: tuple[str, ...]
    chunks_always: bool
    chunked_tokens: int
    throughput_mode: bool


@cache
def data() -> Mapping[str, Any]:
    """The compiled data file."""
    loaded: dict[str, Any] = load("vllm_memory.json")
    return loaded


def constant(name: str) -> int:
    return int(data()["constants"][name])


def known_releases() -> tuple[str, ...]:
    """The releases whose sources were read, oldest first."""
    return tuple(data()["read"])


@cache
def rules(release: str) -> tuple[Rules, ...]:
    """The rules that a release may follow: one set, or those of its two neighbours where they differ.

    Before the oldest release and after the newest one the nearest is taken.
    """
    key = parse(release)
    older = tuple([_value(spans, key, newer=False) for spans in _spans()])
    newer = tuple([_value(spans, key, newer=True) for spans in _spans()])
    return tuple(dict.fromkeys((_of_values(older), _of_values(newer))))


def semantic_class(release: str) -> tuple[Rules, ...]:
    """Releases with equal classes size alike in every respect; the class is hashable."""
    return rules(release)


def neighbours(release: str) -> tuple[str, ...]:
    """The read releases that stand for `release`: itself, or the nearest on either side."""
    key = parse(release)
    below = [known for known in known_releases() if parse(known) <= key]
    above = [known for known in known_releases() if parse(known) >= key]
    if below and parse(below[-1]) == key:
        return (below[-1],)
    return (*below[-1:], *above[:1])


@cache
def _spans() -> tuple[tuple[tuple[Any, ...], ...], ...]:
    """Of every rule in the order of `Rules`: from where to where it has a value (None: to the newest)."""
    rows = [data()["rules"][field.name] for field in fields(Rules)]
    return tuple(
        tuple((parse(start), None if end is None else parse(end), _frozen(value)) for start, end, value in spans)
        for spans in rows
    )


def _value(spans: tuple[tuple[Any, ...], ...], key: tuple[int, ...], newer: bool) -> Any:
    before = spans[0][2]
    for start, end, value in spans:
        if key < start:
            return value if newer else before
        if end is None or key <= end:
            return value
        before = value
    return before


@cache
def _of_values(values: tuple[Any, ...]) -> Rules:
    known = dict(zip(Rules.__match_args__, values, strict=True))
    return Rules(**(known | {"even_ratio": Fraction(known["even_ratio"])}))


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
