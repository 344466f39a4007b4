"""What vLLM's sizing is given besides the model, and what the engine makes of unset values."""

from __future__ import annotations

from typing import Union

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture, Attention, Layer, State
from kvlint.records import dataclass
from kvlint.sizing.vllm.releases import Rules, data

MODEL_BYTES = {"bfloat16": 2, "float16": 2, "half": 2, "float32": 4, "float": 4}


@dataclass(frozen=True, slots=True)
class Settings:
    """Plain settings of one server; None where the engine chooses.

    `latent_block`: the kernel block of the MLA backend (64; 128 with CUTLASS MLA).  `strided_attention`: the attention backend
    finds blocks by their stride, so pages may be padded (0.24-0.28).  `gdn_prefill`: `flashinfer` or `triton`.
    `draft`: the layers that a draft or MTP head adds behind the last one.  `layer_partition`: VLLM_PP_LAYER_PARTITION.
    """

    release: str
    max_model_len: int
    max_num_batched_tokens: int
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    decode_context_parallel: int = 1
    kv_cache_dtype: str = "auto"
    model_dtype: str | None = None
    block_size: int | None = None
    hybrid_manager: bool | None = None
    prefix_caching: bool | None = None
    mamba_cache_mode: str | None = None
    mamba_cache_dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    speculative_tokens: int = 0
    draft: tuple[Layer, ...] = ()
    async_scheduling: bool | None = None
    model_runner: str = "v1"
    latent_block: int | None = None
    strided_attention: bool = True
    gdn_prefill: str | None = None
    layer_partition: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The engine stops at start with this configuration, whatever the memory."""

    reason: str
    smallest_block_size: int | None = None

    def __bool__(self) -> bool:
        return False


Outcome = Union[Refusal, Unknown]


def unknown_layout(reason: str, missing: str = "engine.layout", supply: str = "a measured pool size") -> Unknown:
    return Unknown(missing, reason, supply)


def model_bytes(arch: Architecture, settings: Settings) -> int | Unknown:
    """Bytes of one element of the model's own type."""
    name = settings.model_dtype or arch.dtype
    if name is None or name == "auto":
        return unknown_layout("the model's type is not stated", "model.dtype", "--dtype")
    size = MODEL_BYTES.get(name)
    return size if size is not None else unknown_layout(f"no cache layout is known for the type {name}", "model.dtype")


def manager_on(arch: Architecture, settings: Settings, rules: Rules) -> bool:
    """The hybrid KV manager; unset, it is on but for chunked local attention in the releases that say so."""
    if settings.hybrid_manager is not None:
        return settings.hybrid_manager
    return rules.chunked_manager or not any(part.chunk for part in arch.distinct(Attention))


def caches_prefixes(arch: Architecture, settings: Settings, rules: Rules) -> bool:
    if settings.prefix_caching is not None:
        return settings.prefix_caching
    recurrent = bool(arch.distinct(State))
    return rules.prefix_caching == "on" or (rules.prefix_caching == "plain" and not recurrent)


def cache_mode(arch: Architecture, settings: Settings, rules: Rules) -> str:
    """`none`, `align` or `all`: how recurrent states are cached."""
    if settings.mamba_cache_mode is not None and rules.state_count == "mode":
        return settings.mamba_cache_mode
    if not caches_prefixes(arch, settings, rules) or rules.cache_mode == "off":
        return "none"
    if rules.cache_mode == "align":
        return "align"
    listed = arch.model_type in data()["models"]["all_mode"]
    if rules.cache_mode == "listed":
        return "all" if listed else "none"
    if rules.cache_mode == "all-without-drafts" and settings.speculative_tokens:
        return "align"
    return "all" if listed else "align"


def batches_in_flight(settings: Settings, rules: Rules) -> int:
    """Batches whose tokens a window layer may hold at once (vllm==0.27.1:vllm/config/vllm.py:540-561)."""
    if not rules.concurrent_batches:
        return 1
    stages = settings.pipeline_parallel
    if settings.async_scheduling is False:
        return stages
    if stages == 1:
        return 2
    return stages + 1 if settings.model_runner == "v2" else stages


def stage_sizes(layers: int, settings: Settings, rules: Rules) -> tuple[int, ...] | Refusal:
    """Decoder layers of every pipeline stage."""
    stages = settings.pipeline_parallel
    if settings.layer_partition is not None:
        if len(settings.layer_partition) != stages or sum(settings.layer_partition) != layers:
            return Refusal("the layer partition does not add up to the model's layers")
        return settings.layer_partition
    if stages > layers:
        return Refusal(f"{layers} layers cannot be cut into {stages} stages")
    size, rest = divmod(layers, stages)
    sizes = [size] * stages
    if rules.uneven_stages == "last":
        sizes[-1] += rest
    else:
        for behind in range(2, rest + 2):
            sizes[-behind] += 1
    return tuple(sizes)
