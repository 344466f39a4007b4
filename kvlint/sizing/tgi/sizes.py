"""Text Generation Inference: what its limits mean, and the pool that it sizes itself.

`max_batch_total_tokens` does nothing for models with flash attention but must still be at least `max_total_tokens`: the pool is
what is left after a warm-up prefill.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, Union

from kvlint.compiled import load
from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture, Attention
from kvlint.records import dataclass
from kvlint.sizing.spans import TYPE_BYTES, Outcome, Refusal, alternatives, unknown

Known = Union[int, Unknown]


@dataclass(frozen=True, slots=True)
class Rules:
    """One release's way of sizing; what each field means is said in data/engines/tgi.memory.toml."""

    pool: str
    wiggle: int
    limits: str
    attention: str
    prefill_holds_input: bool
    batch_total_ignored: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """Plain settings of one server under the names of its flags; None where the launcher chooses.

    `attention`: flashinfer, flashdecoding, flashdecoding-ipex or paged.  `sizes_pool`: the model has flash attention.
    `chunking`: prefills may be cut (PREFILL_CHUNKING).  `prefix_caching`: as PREFIX_CACHING says.
    `wiggle_room`: TGI_WIGGLE_ROOM, by the release where it is not set.
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
    max_batch_size: int | None = None
    sizes_pool: bool = True
    chunking: bool = True
    speculate: int = 0
    quantize: str | None = None
    prefix_caching: bool | None = None

    @property
    def cuts(self) -> bool:
        """Prefills are cut: server/text_generation_server/models/model.py, support_chunking."""
        return self.chunking and not self.speculate and self.attention != "paged"


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
    loaded: dict[str, Any] = load("tgi_memory.json")
    return loaded


def constant(name: str) -> int:
    return int(data()["constants"][name])


@cache
def rules(release: str) -> tuple[Rules, ...]:
    """The rules that a release may follow: one set, or those of its two neighbours where they differ."""
    return alternatives(Rules, data()["rules"], release)


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


def pool_tokens(
    arch: Architecture, settings: Settings, free_bytes: int, total_bytes: int, warm_up_tokens: int
) -> int | Outcome:
    """Tokens of the pool: `free_bytes` of `total_bytes` are free on one shard after a prefill of `warm_up_tokens` tokens.

    Those tokens' own cache is counted too.  Printed as `Setting max batch total tokens to N`.
    """
    price, block = bytes_per_token_per_shard(arch, settings), block_tokens(settings)
    if not isinstance(price, int):
        return price
    if not isinstance(block, int):
        return block
    found = {int(room(each, settings, free_bytes, total_bytes) // (block * price)) for each in rules(settings.release)}
    if len(found) > 1:
        return unknown("the releases on either side differ", "engine.version", "a release")
    return (found.pop() + -(-warm_up_tokens // block)) * block


def room(each: Rules, settings: Settings, free_bytes: int, total_bytes: int) -> Fraction:
    """Bytes of one shard that the pool may take beside the cache of the warm-up.

    The wiggle room is a share of what is free, or with the memory fraction one of all memory.
    """
    share = settings.cuda_memory_fraction
    wiggle = settings.wiggle_room if settings.wiggle_room is not None else Fraction(each.wiggle, 100)
    if each.pool == "of-free":
        return max(Fraction(0), free_bytes - (1 - share) * total_bytes) * wiggle
    return max(Fraction(0), free_bytes - (1 - share * wiggle) * total_bytes)


def limits(settings: Settings, model_window: Known, pool: Known) -> Limits | Outcome:
    """The limits in force.  `pool`: tokens of the pool of a model that sizes it itself, where they are known."""
    found = {_limits(each, settings, model_window, pool) for each in rules(settings.release)}
    return (
        found.pop() if len(found) == 1 else unknown("the releases on either side differ", "engine.version", "a release")
    )


def _limits(each: Rules, settings: Settings, model_window: Known, pool: Known) -> Limits | Outcome:
    total, entered, prefill = settings.max_total_tokens, settings.max_input_tokens, settings.max_batch_prefill_tokens
    if each.limits == "fixed":
        total = constant("max_total_tokens") if total is None else total
        entered = constant("max_input_tokens") if entered is None else entered
        prefill = constant("max_batch_prefill_tokens") if prefill is None else prefill
    window = total if total is not None else _window(each, settings, model_window, pool)
    longest = entered if entered is not None else window - 1 if isinstance(window, int) else window
    budget = prefill if prefill is not None else _prefill(each, settings, model_window, longest)
    wrong = refused(each, settings, window, longest, budget, pool)
    if wrong is not None:
        return wrong
    return Limits(window, longest, budget, _batch_total(each, settings, window, budget, pool))


def _window(each: Rules, settings: Settings, model_window: Known, pool: Known) -> Known:
    if each.limits == "capped":
        capped = constant("capped_total_tokens")
        return min(model_window, capped) if isinstance(model_window, int) else model_window
    if each.limits == "pool" and settings.cuts:
        return pool
    if each.limits != "model" or not settings.cuts:
        return unknown("the default of max_total_tokens was not read", "max_total_tokens", "--max-total-tokens")
    if isinstance(model_window, Unknown):
        return model_window
    return min(model_window, pool) if isinstance(pool, int) else pool


def _prefill(each: Rules, settings: Settings, model_window: Known, longest: Known) -> Known:
    """Tokens of one prefill where nobody says: by the input, a fixed number, or an estimate of what the device computes."""
    if each.limits == "capped":
        if isinstance(longest, Unknown):
            return longest
        return settings.max_batch_size * longest if settings.max_batch_size else longest + constant("prefill_edge")
    if each.limits == "pool":
        most = constant("max_batch_prefill_tokens")
        return min(most, model_window) if isinstance(model_window, int) else model_window
    return unknown("an unset prefill budget is estimated from the device", "max_batch_prefill_tokens", "the flag")


def refused(
    each: Rules, settings: Settings, window: Known, longest: Known, prefill: Known, pool: Known
) -> Refusal | None:
    """Why the launcher or the router stops."""
    if settings.quantize == "exl2" and settings.num_shard > 1:
        return Refusal(f"exl2 weights cannot be split over {settings.num_shard} shards")
    if settings.prefix_caching and settings.attention == "paged" and each.attention != "paged":
        return Refusal("prefix caching does not go with paged attention")
    if above(longest, window) or (isinstance(window, int) and longest == window):
        return Refusal(f"max_input_tokens {longest} must be below max_total_tokens {window}")
    whole = each.prefill_holds_input or not settings.cuts
    if whole and above(longest, prefill):
        return Refusal(f"max_batch_prefill_tokens {prefill} is below max_input_tokens {longest}")
    stated = settings.max_batch_total_tokens
    if stated is not None and above(window, stated):
        return Refusal(f"max_total_tokens {window} is above max_batch_total_tokens {stated}")
    if stated is not None and each.prefill_holds_input and above(prefill, stated):
        return Refusal(f"max_batch_prefill_tokens {prefill} is above max_batch_total_tokens {stated}")
    if settings.sizes_pool and settings.max_total_tokens is not None and above(window, pool):
        return Refusal(f"max_total_tokens {window} is above the pool of {pool} tokens", "pool")
    if settings.sizes_pool and settings.max_batch_prefill_tokens is not None and above(prefill, pool):
        return Refusal(f"max_batch_prefill_tokens {prefill} is above the pool of {pool} tokens", "pool")
    return None


def above(first: Known, second: Known) -> bool:
    return isinstance(first, int) and isinstance(second, int) and first > second


def _batch_total(each: Rules, settings: Settings, window: Known, prefill: Known, pool: Known) -> Known:
    """Tokens of all running requests: the pool, or for other models the flag or its default."""
    if settings.sizes_pool and each.batch_total_ignored:
        return pool
    if settings.max_batch_total_tokens is not None:
        return settings.max_batch_total_tokens
    if isinstance(window, Unknown):
        return window
    return max(constant("least_batch_total"), window, prefill) if isinstance(prefill, int) else prefill
