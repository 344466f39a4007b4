"""Text Generation Inference: what its limits mean, and the pool that it sizes itself.

`max_batch_total_tokens` does nothing for models with flash attention but must still be at least `max_total_tokens`: the pool is
what is left after a warm-up prefill.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Union

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture, Attention
from kvlint.sizing.spans import TYPE_BYTES, Outcome, Refusal, parse, unknown, value_of

_DATA = Path(__file__).resolve().parents[1] / "_data/tgi_memory.json"


@dataclass(frozen=True, slots=True)
class Rules:
    """One release's way of sizing; what each field means is said in data/engines/tgi.memory.toml."""

    pool: str
    limits: str
    batch_total_ignored: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """Plain settings of one server under the names of its flags; None where the launcher chooses.

    `attention`: flashinfer, flashdecoding, flashdecoding-ipex or paged.  `sizes_pool`: the model has flash attention.
    `chunking`: prefills may be cut (PREFILL_CHUNKING).  `wiggle_room`: TGI_WIGGLE_ROOM.
    """

    release: str
    num_shard: int = 1
    attention: str = "flashinfer"
    kv_cache_dtype: str | None = None
    model_dtype: str | None = None
    cuda_memory_fraction: Fraction = Fraction(1)
    wiggle_room: Fraction | None = None
    max_input_tokens: int | None = None
    max_total_tokens: int | None = None
    max_batch_prefill_tokens: int | None = None
    max_batch_total_tokens: int | None = None
    sizes_pool: bool = True
    chunking: bool = True


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server enforces.  `window`: prompt and output of one request; `batch_total`: tokens of all running requests."""

    window: int | Unknown
    input: int | Unknown
    prefill: int | Unknown
    batch_total: int | Unknown


@cache
def data() -> Mapping[str, Any]:
    """The compiled data file."""
    loaded: dict[str, Any] = json.loads(_DATA.read_text(encoding="utf-8"))
    return loaded


def constant(name: str) -> int:
    return int(data()["constants"][name])


@cache
def rules(release: str) -> tuple[Rules, ...]:
    """The rules that a release may follow: one set, or those of its two neighbours where they differ."""
    key, spans = parse(release), data()["rules"]
    found = (Rules(**{name: value_of(spans[name], key, newer) for name in spans}) for newer in (False, True))
    return tuple(dict.fromkeys(found))


def semantic_class(release: str) -> tuple[Rules, ...]:
    """Releases with equal classes mean the same by their settings."""
    return rules(release)


def bytes_per_token_per_shard(arch: Architecture, settings: Settings) -> int | Outcome:
    """Keys and values of one token in every layer of one shard (models/flash_causal_lm.py:1519)."""
    size = element_bytes(arch, settings)
    if not isinstance(size, int):
        return size
    shapes = set()
    for layer in arch.layers:
        if len(layer) != 1 or not isinstance(layer[0], Attention):
            return unknown("caches other than keys and values were not worked out for this engine")
        shapes.add((layer[0].kv_heads, layer[0].key_dim, layer[0].value_dim))
    if len(shapes) != 1:
        return unknown("layers of different sizes were not worked out for this engine")
    heads, key, value = shapes.pop()
    if heads > 1:
        if settings.num_shard > heads:
            return Refusal(f"{settings.num_shard} shards are more than the {heads} KV heads of the model")
        heads //= settings.num_shard
    return len(arch.layers) * heads * (key + value) * size


def element_bytes(arch: Architecture, settings: Settings) -> int | Outcome:
    if settings.kv_cache_dtype is not None:
        size = data()["kv_bytes"].get(settings.kv_cache_dtype)
        return int(size) if size else Refusal(f"this engine knows no cache type {settings.kv_cache_dtype}")
    name = settings.model_dtype or arch.dtype
    if name not in TYPE_BYTES:
        return unknown("the model's type is not known", "model.dtype", "--dtype")
    return TYPE_BYTES[name]


def block_tokens(settings: Settings) -> int | Outcome:
    """Tokens of one block of the attention implementation."""
    size = data()["block_sizes"].get(settings.attention)
    return int(size) if size else Refusal(f"there is no attention implementation {settings.attention}")


def pool_tokens(arch: Architecture, settings: Settings, free_bytes: int, warm_up_tokens: int) -> int | Outcome:
    """Tokens of the pool: `free_bytes` are free on one shard after a prefill of `warm_up_tokens` tokens, which are kept too.

    Printed as `Setting max batch total tokens to N`.
    """
    for each in rules(settings.release):
        if each.pool != "free":
            return unknown("how this release takes its pool was not read", "engine.version", "a newer release")
    price, block = bytes_per_token_per_shard(arch, settings), block_tokens(settings)
    if not isinstance(price, int):
        return price
    if not isinstance(block, int):
        return block
    room = settings.wiggle_room if settings.wiggle_room is not None else Fraction(constant("wiggle_percent"), 100)
    blocks = int(free_bytes * settings.cuda_memory_fraction * room // (block * price))
    return (blocks + -(-warm_up_tokens // block)) * block


def limits(settings: Settings, model_window: int, pool: Union[int, Unknown]) -> Limits | Outcome:
    """The limits in force.  `pool`: tokens of the pool of a model that sizes it itself, where they are known."""
    found = {_limits(each, settings, model_window, pool) for each in rules(settings.release)}
    return (
        found.pop() if len(found) == 1 else unknown("the releases on either side differ", "engine.version", "a release")
    )


def _limits(each: Rules, settings: Settings, model_window: int, pool: Union[int, Unknown]) -> Limits | Outcome:
    total, entered, prefill = settings.max_total_tokens, settings.max_input_tokens, settings.max_batch_prefill_tokens
    if each.limits == "fixed":
        total = constant("max_total_tokens") if total is None else total
        entered = constant("max_input_tokens") if entered is None else entered
        prefill = constant("max_batch_prefill_tokens") if prefill is None else prefill
    window = total if total is not None else _window(each, settings, model_window, pool)
    longest = entered if entered is not None else window - 1 if isinstance(window, int) else window
    wrong = refused(settings, window, longest, prefill, pool)
    if wrong is not None:
        return wrong
    estimated = unknown("an unset prefill budget is estimated from the device", "max_batch_prefill_tokens", "the flag")
    budget = prefill if prefill is not None else estimated
    return Limits(window, longest, budget, _batch_total(each, settings, window, budget, pool))


def _window(each: Rules, settings: Settings, model_window: int, pool: Union[int, Unknown]) -> int | Unknown:
    if each.limits != "model" or not settings.chunking:
        return unknown("the default of max_total_tokens was not read", "max_total_tokens", "--max-total-tokens")
    return min(model_window, pool) if isinstance(pool, int) else pool


def refused(
    settings: Settings,
    window: int | Unknown,
    longest: int | Unknown,
    prefill: int | None,
    pool: Union[int, Unknown],
) -> Refusal | None:
    """Why the launcher or the router stops (tgi.md, Refused)."""
    if isinstance(window, int) and isinstance(longest, int) and longest >= window:
        return Refusal(f"max_input_tokens {longest} must be below max_total_tokens {window}")
    if prefill is not None and isinstance(longest, int) and prefill < longest and not settings.chunking:
        return Refusal(f"max_batch_prefill_tokens {prefill} is below max_input_tokens {longest}")
    stated = settings.max_batch_total_tokens
    if stated is not None and isinstance(window, int) and window > stated:
        return Refusal(f"max_total_tokens {window} is above max_batch_total_tokens {stated}")
    if settings.sizes_pool and isinstance(pool, int):
        if isinstance(window, int) and window > pool:
            return Refusal(f"max_total_tokens {window} is above the pool of {pool} tokens", "pool")
        if prefill is not None and prefill > pool:
            return Refusal(f"max_batch_prefill_tokens {prefill} is above the pool of {pool} tokens", "pool")
    return None


def _batch_total(
    each: Rules, settings: Settings, window: int | Unknown, prefill: int | Unknown, pool: Union[int, Unknown]
) -> int | Unknown:
    """Tokens of all running requests: the pool, or for other models the flag or its default."""
    if settings.sizes_pool and each.batch_total_ignored:
        return pool
    if settings.max_batch_total_tokens is not None:
        return settings.max_batch_total_tokens
    if isinstance(window, Unknown):
        return window
    return max(constant("least_batch_total"), window, prefill) if isinstance(prefill, int) else prefill
