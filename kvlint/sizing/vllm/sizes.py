"""vLLM's memory model: what a server's cache is made of, what one request needs, and what a pool holds.

`layout` cuts the cache of an architecture under `Settings`; the other functions ask it.  Everything is exact, in integers and
fractions; what no fact gives is `Unknown`, a start that fails whatever the memory is a `Refusal`.
"""

from __future__ import annotations

from kvlint.models.architecture import Architecture, UnknownArchitecture
from kvlint.sizing.vllm.blocks import (
    Available,
    blocks,
    blocks_by_stage,
    fits,
    held_bytes,
    largest_window,
    least_available,
    logged_tokens,
    max_concurrency,
    pool_tokens,
    request_blocks,
    request_bytes,
    state_blocks,
)
from kvlint.sizing.vllm.defaults import (
    chunks_always,
    chunks_by_default,
    default_batch,
    default_max_model_len,
    derived_max_model_len,
    gdn_prefill_backend,
)
from kvlint.sizing.vllm.layout import Layout, Stage, layout, layouts
from kvlint.sizing.vllm.memory import activation_bytes, available_kv, graphs_in_budget, weights_per_device
from kvlint.sizing.vllm.releases import Rules, known_releases, neighbours, rules, semantic_class
from kvlint.sizing.vllm.settings import Refusal, Settings
from kvlint.sizing.vllm.specs import smallest_block_size

__all__ = [
    "Available",
    "Layout",
    "Refusal",
    "Rules",
    "Settings",
    "Stage",
    "activation_bytes",
    "available_kv",
    "blocks",
    "blocks_by_stage",
    "cache_bytes",
    "chunks_always",
    "chunks_by_default",
    "default_batch",
    "default_max_model_len",
    "derived_max_model_len",
    "fits",
    "gdn_prefill_backend",
    "graphs_in_budget",
    "held_bytes",
    "known_releases",
    "largest_window",
    "layout",
    "layouts",
    "least_available",
    "logged_tokens",
    "max_concurrency",
    "neighbours",
    "pool_tokens",
    "request_blocks",
    "request_bytes",
    "rules",
    "semantic_class",
    "smallest_block_size",
    "state_blocks",
    "weights_per_device",
]


def cache_bytes(
    arch: Architecture,
    tokens: int,
    *,
    sequences: int = 1,
    version: str | None = None,
    kv_dtype: str | None = None,
    block_size: int | None = None,
    batched_tokens: int | None = None,
) -> int:
    """Bytes that one server holds for `sequences` sequences of `tokens` tokens, whole blocks, one copy over all devices.

    One state a sequence (no prefix cache keeps more), everything else as the engine defaults.  `version` None: the newest release
    known.  `batched_tokens` None: one batch takes all tokens.  UnknownArchitecture where no layout is known for the release.
    """
    if tokens < 0 or sequences < 0:
        raise ValueError("tokens and sequences are not negative")
    settings = Settings(
        release=version or known_releases()[-1],
        max_model_len=max(1, tokens),
        max_num_batched_tokens=batched_tokens or max(1, tokens),
        kv_cache_dtype=kv_dtype or arch.dtype or "bfloat16",
        model_dtype=arch.dtype or "bfloat16",
        block_size=block_size,
        prefix_caching=False,
    )
    held = set()
    for each in layouts(arch, settings):
        if not isinstance(each, Layout):
            raise UnknownArchitecture("block_size" if isinstance(each, Refusal) else each.missing, each.reason)
        held.add(held_bytes(each, tokens))
    if len(held) > 1:
        raise UnknownArchitecture("version", f"the releases on either side of vLLM {version} hold different amounts")
    return sequences * held.pop()
