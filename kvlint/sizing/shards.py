"""How tensor parallelism cuts heads and quantized weights, and what it leaves over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvlint.facts import quantity
from kvlint.models.architecture import Architecture, Attention, Latent

LINEAR = "QKVParallelLinear and its kin: heads are divided over the ranks, or each is copied to a whole number of them"
EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts")


def _counts(architecture: Architecture) -> set[int]:
    return {part.kv_heads for part in architecture.distinct(Attention) if not part.shared and part.kv_heads > 0}


@quantity(
    "kv_heads", unit="heads", formula="fewest KV heads of any layer with plain attention", source="the configuration"
)
def kv_heads(architecture: Architecture) -> int | None:
    """None where no layer keeps keys and values by heads (MLA, pure state space)."""
    return min(_counts(architecture), default=None)


@quantity("kv_heads_remainder", unit="heads", formula="KV heads mod devices, or devices mod KV heads", source=LINEAR)
def kv_heads_remainder(architecture: Architecture, tensor_parallel: int) -> int:
    """0 where in every layer one of the two divides the other."""
    if tensor_parallel <= 0:
        return 0
    left = (
        heads % tensor_parallel if heads >= tensor_parallel else tensor_parallel % heads
        for heads in _counts(architecture)
    )
    return max(left, default=0)


@quantity("kv_copies", unit="copies", formula="devices ÷ KV heads, at least 1", source=LINEAR)
def kv_copies(kv_heads: int, tensor_parallel: int) -> int:
    return max(1, tensor_parallel // kv_heads)


@quantity(
    "context_split_fault",
    unit="",
    formula="TP > KV heads; DCP ≤ ⌊TP ÷ KV heads⌋; DCP divides query heads of one KV head",
    source="vllm/config/model.py:verify_with_parallel_config",
)
def context_split_fault(architecture: Architecture, context_parallel: int, tensor_parallel: int) -> str | None:
    """Copies of KV heads are what decode context parallelism shares out; MLA has one row for all, and layers that differ
    are left out."""
    counts = _counts(architecture)
    if len(counts) != 1 or architecture.distinct(Latent) or not architecture.heads:
        return None
    heads = counts.pop()
    most, queries = tensor_parallel // heads, architecture.heads // heads
    if tensor_parallel <= heads:
        return f"it needs tensor parallelism above the {heads} KV heads, and that is {tensor_parallel}"
    if context_parallel > most:
        return (
            f"{tensor_parallel} devices hold {most} copies of each of {heads} KV heads, fewer than {context_parallel}"
        )
    if queries % context_parallel:
        return f"{queries} query heads of one KV head cannot be split into {context_parallel}"
    return None


@quantity(
    "quantization_block",
    unit="elements",
    formula="weight_block_size or group_size of the checkpoint",
    source="config.json",
)
def quantization_block(architecture: Architecture) -> int | None:
    config = _quantization(architecture)
    block, group = config.get("weight_block_size"), config.get("group_size")
    if isinstance(block, (list, tuple)) and block and isinstance(block[0], int):
        return block[0]
    return group if isinstance(group, int) and group > 0 else None


@quantity(
    "quantization_remainder",
    unit="elements",
    formula="largest of the sharded MLP sizes mod the block of the quantized weights",
    source="vllm/model_executor/layers/quantization/fp8.py: block_n and block_k must divide what one rank holds",
)
def quantization_remainder(
    architecture: Architecture, quantization_block: int, tensor_parallel: int, expert_parallel: bool = False
) -> int:
    if tensor_parallel <= 1 or quantization_block <= 0:
        return 0
    sizes = _sharded(architecture.config, expert_parallel)
    return max((size // tensor_parallel % quantization_block for size in sizes), default=0)


def _quantization(architecture: Architecture) -> Mapping[str, Any]:
    found = architecture.root.get("quantization_config") or architecture.config.get("quantization_config")
    return found if isinstance(found, Mapping) else {}


def _sharded(config: Mapping[str, Any], expert_parallel: bool) -> Iterator[int]:
    """Inner sizes of the MLPs that are cut: experts are not where each rank holds whole ones."""
    experts = next((config[key] for key in EXPERTS if isinstance(config.get(key), int)), 0)
    dense, inner = config.get("intermediate_size"), config.get("moe_intermediate_size")
    if experts > 1:
        size = inner if isinstance(inner, int) else dense
        if not expert_parallel and isinstance(size, int):
            yield size
        if not config.get("first_k_dense_replace"):
            return
    if isinstance(dense, int):
        yield dense
