"""From a device's memory to the bytes that vLLM leaves for its cache.

Overheads are coefficients (ranges) of the caller's; nothing here knows a figure.
"""

from __future__ import annotations

from fractions import Fraction

from kvlint.facts import Unknown, quantity
from kvlint.sizing.vllm.releases import rules


@quantity(
    "pool_bytes",
    unit="B",
    formula="usable_bytes - weights_bytes_per_device - activation_bytes - non_torch_bytes - graph_bytes",
    source="vllm==0.33.0:vllm/v1/worker/gpu_worker.py:641-830; vllm==0.11.0:same:222-302",
)
def available_kv(
    usable_bytes: int, weights_bytes_per_device: int, activation_bytes: int, non_torch_bytes: int, graph_bytes: int
) -> int:
    """Bytes for the cache on one device; below zero the server finds no memory for blocks.

    `usable_bytes`: memory fraction x total memory of the device.  `graph_bytes`: 0 where `graphs_in_budget` is False.
    """
    return usable_bytes - weights_bytes_per_device - activation_bytes - non_torch_bytes - graph_bytes


@quantity(
    "activation_bytes",
    unit="B",
    formula="batched_tokens × activation_bytes_per_token, less for those beyond what was measured",
    source="gpu_worker.py of vllm==0.33.0: profiling runs max_num_batched_tokens (V0 without chunks: the window)",
)
def activation_bytes(
    batched_tokens: int,
    activation_bytes_per_token: int,
    activation_measured_tokens: int,
    activation_bytes_per_further_token: int,
) -> int:
    """Peak activations of the profiling run on one device."""
    measured = min(batched_tokens, activation_measured_tokens)
    return measured * activation_bytes_per_token + (batched_tokens - measured) * activation_bytes_per_further_token


@quantity(
    "weights_bytes_per_device",
    unit="B",
    formula="⌈expert_bytes ÷ (TP × PP × DP with EP)⌉ + ⌈(weights_bytes - expert_bytes) ÷ (TP × PP)⌉ - offload",
    source="a lower bound: embeddings stand on the first and last stage only",
)
def weights_per_device(
    weights_bytes: int,
    expert_bytes: int,
    tensor_parallel: int,
    pipeline_parallel: int,
    data_parallel: int,
    expert_parallel: bool,
    offload_bytes: int,
) -> int:
    """Bytes of weights on one device.  `expert_bytes`: what expert parallelism spreads over data-parallel ranks too.

    `offload_bytes`: `--cpu-offload-gb` of one device.
    """
    split = tensor_parallel * pipeline_parallel
    spread = split * data_parallel if expert_parallel else split
    held = -(-expert_bytes // spread) - (-(weights_bytes - expert_bytes) // split)
    return max(0, held - offload_bytes)


def graphs_in_budget(release: str, *, enforce_eager: bool = False, estimate: bool | None = None) -> bool | Unknown:
    """Whether CUDA graphs are taken from the memory fraction.

    `estimate`: VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS where it is set (since 0.18.0).
    """
    if enforce_eager:
        return False
    if estimate is not None:
        return estimate
    found = {each.graphs_in_budget for each in rules(release)}
    if len(found) > 1:
        return Unknown(
            "engine.version",
            f"the releases around vLLM {release} count CUDA graphs differently",
            "an exact engine version",
        )
    return found.pop()


def requested_bytes(device_bytes: int, memory_fraction: Fraction) -> int:
    """What the server claims of the device's total memory; less must be free at start since 0.9.2."""
    return int(device_bytes * memory_fraction)
