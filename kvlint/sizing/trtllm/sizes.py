"""TensorRT-LLM (trtllm-serve, PyTorch backend): a share of the memory that is free after the weights, in whole blocks."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any

from kvlint.compiled import load
from kvlint.models.architecture import Architecture, Attention, Latent, State, UnknownArchitecture
from kvlint.records import dataclass
from kvlint.sizing.spans import TYPE_BYTES, Outcome, Refusal, in_blocks, plain, unknown


@dataclass(frozen=True, slots=True)
class Settings:
    """Plain settings of one server; None where the engine chooses.

    `cli_fraction`: --kv_cache_free_gpu_memory_fraction.  `yaml_cache`: the YAML has a `kv_cache_config`, with `yaml_fraction`,
    `max_tokens`, `max_gpu_total_bytes` and `tokens_per_block` as it states them.
    """

    tp_size: int = 1
    pp_size: int = 1
    attention_dp: bool = False
    kv_cache_dtype: str = "auto"
    model_dtype: str | None = None
    cli_fraction: Fraction | None = None
    yaml_cache: bool = False
    yaml_fraction: Fraction | None = None
    max_tokens: int | None = None
    max_gpu_total_bytes: int | None = None
    tokens_per_block: int | None = None
    max_num_tokens: int | None = None
    max_batch_size: int | None = None
    max_seq_len: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server enforces: tokens of one request, tokens of one step, requests decoded together."""

    window: int
    batched_tokens: int
    batch_width: int


@cache
def data() -> Mapping[str, Any]:
    """The compiled data file."""
    loaded: dict[str, Any] = load("trtllm_memory.json")
    return loaded


def constant(name: str) -> int:
    return int(data()["constants"][name])


def semantic_class(release: str | None = None) -> str:
    """One class: no release number is established for what was read."""
    return "read"


def fraction(settings: Settings) -> Fraction:
    """The share of free memory in force: a `kv_cache_config` in the YAML replaces the command line's, unset fields and all."""
    default = Fraction(constant("fraction_percent"), 100)
    stated = settings.yaml_fraction if settings.yaml_cache else settings.cli_fraction
    return default if stated is None else stated


def limits(settings: Settings, model_window: int) -> Limits:
    """The limits in force."""
    return Limits(
        settings.max_seq_len or model_window,
        settings.max_num_tokens or constant("max_num_tokens"),
        settings.max_batch_size or constant("max_batch_size"),
    )


def bytes_per_token_per_rank(arch: Architecture, settings: Settings) -> Fraction | Outcome:
    """Keys and values, or latents, of one token in the attention layers of one rank (get_cache_size_per_token)."""
    if settings.pp_size > 1:
        return unknown("which layers stand on a pipeline stage was not worked out", "settings.pipeline_parallel")
    size = element_bytes(arch, settings)
    if not isinstance(size, Fraction):
        return size
    total = Fraction(0)
    for layer in arch.layers:
        for part in layer:
            if isinstance(part, State):
                continue
            found = part_bytes(part, settings, size)
            if not isinstance(found, Fraction):
                return found
            total += found
    return total


def cache_bytes(
    arch: Architecture,
    tokens: int,
    *,
    sequences: int = 1,
    version: str | None = None,
    kv_dtype: str | None = None,
    block_size: int | None = None,
) -> int:
    """Bytes of `sequences` sequences of `tokens` tokens in whole blocks, one copy.  No release changes what was read.

    UnknownArchitecture for layers whose layout was not read: states, and windows, which keep a pool of their own.
    """
    name = (kv_dtype or "auto").removeprefix("torch.").lower()
    own = name in TYPE_BYTES
    settings = Settings(
        kv_cache_dtype="auto" if own else CACHE_NAMES.get(name, name),
        model_dtype=name if own else arch.dtype or "bfloat16",
    )
    unread = next((part for layer in arch.layers for part in layer if not plain(part)), None)
    if unread is not None:
        raise UnknownArchitecture("model_type", "how TensorRT-LLM keeps these layers is not known")
    price = bytes_per_token_per_rank(arch, settings)
    if not isinstance(price, Fraction):
        raise UnknownArchitecture("kv_dtype", price.reason)
    return sequences * ceil(
        in_blocks(tokens, constant("tokens_per_block") if block_size is None else block_size) * price
    )


CACHE_NAMES = {"fp8_e4m3": "fp8", "fp8_e4m3fn": "fp8", "float8_e4m3fn": "fp8"}


def element_bytes(arch: Architecture, settings: Settings) -> Fraction | Outcome:
    size = data()["kv_bytes"].get(settings.kv_cache_dtype)
    if size is None:
        return Refusal(f"this engine knows no cache type {settings.kv_cache_dtype}")
    if size[0]:
        return Fraction(*size)
    name = settings.model_dtype or arch.dtype
    return Fraction(TYPE_BYTES[name]) if name in TYPE_BYTES else unknown("the model's type is not known", "model.dtype")


def part_bytes(part: Any, settings: Settings, size: Fraction) -> Fraction | Outcome:
    """One layer: heads are split over tensor-parallel ranks, latents are not; an indexer's keys are FP8 with scales."""
    if isinstance(part, Latent):
        index = part.indexer_dim or 0
        return part.elements * size + index + index // constant("index_block") * 4
    if not isinstance(part, Attention):
        return unknown("caches other than attention were not worked out for this engine")
    ranks = 1 if settings.attention_dp else settings.tp_size
    return part.key_dim * part.kv_heads // ranks * size + part.value_dim * part.kv_heads // ranks * size


def block_tokens(settings: Settings) -> int:
    return settings.tokens_per_block or constant("tokens_per_block")


def pool_tokens(arch: Architecture, settings: Settings, free_bytes: int) -> int | Outcome:
    """Tokens of the pool of one rank in whole blocks: the least of the fraction, max_gpu_total_bytes and max_tokens.

    `free_bytes`: free after the weights are loaded; the fraction is of these.
    """
    price = bytes_per_token_per_rank(arch, settings)
    if not isinstance(price, Fraction):
        return price
    if not price:
        return unknown("a pool for a model without attention was not worked out")
    room = free_bytes * fraction(settings)
    if settings.max_gpu_total_bytes is not None:
        room = min(room, Fraction(settings.max_gpu_total_bytes))
    tokens = int(room / price)
    if settings.max_tokens is not None:
        tokens = min(tokens, settings.max_tokens)
    return tokens // block_tokens(settings) * block_tokens(settings)
