"""What a stated memory limit leaves: plain functions of bytes, lifted to facts."""

from __future__ import annotations

from fractions import Fraction

from kvlint.facts import quantity


@quantity(
    "usable_bytes",
    unit="B",
    formula="⌊budget × (1 - holdback)⌋",
    source="contract: one flooring, at usable_bytes",
)
def usable_of_budget(budget_bytes: int, holdback: Fraction) -> int:
    """Bytes of a declared budget that weights and caches may take.  `holdback` is a fraction in [0, 1)."""
    return int(budget_bytes * (1 - Fraction(holdback)))


@quantity(
    "usable_bytes",
    unit="B",
    formula="⌊device memory × memory fraction⌋",
    source="vllm==0.33.0:vllm/v1/worker/utils.py:716-772 (of total memory, not of free memory)",
)
def usable_of_device(device_bytes: int, memory_fraction: Fraction) -> int:
    return int(device_bytes * Fraction(memory_fraction))


@quantity(
    "live_kv_bytes",
    unit="B",
    formula="streams × slot_bytes",
    source="arithmetic",
)
def live_kv_bytes(streams: int, slot_bytes: int) -> int:
    """Bytes of `streams` conversations decoding at the full window."""
    return streams * slot_bytes


@quantity(
    "prompt_cache_capacity_bytes",
    unit="B",
    formula="usable_bytes - weights_bytes - live_kv_bytes",
    source="arithmetic: weights, live KV and prompt cache share one budget",
)
def prompt_cache_remainder(usable_bytes: int, weights_bytes: int, live_kv_bytes: int) -> int:
    """What is left for stored prompts; negative when weights and live KV alone are over the budget."""
    return usable_bytes - weights_bytes - live_kv_bytes


@quantity(
    "warm_slots",
    unit="conversations",
    formula="max(0, prompt_cache_capacity_bytes) ÷ slot_bytes",
    source="arithmetic",
)
def warm_slots(prompt_cache_capacity_bytes: int, slot_bytes: int) -> Fraction:
    """How many full-window conversations the prompt cache holds, unrounded."""
    if slot_bytes <= 0:
        return Fraction(0)
    return Fraction(max(0, prompt_cache_capacity_bytes), slot_bytes)


@quantity("machine_bytes", unit="B", formula="devices × device memory + memory of the container", source="arithmetic")
def machine_bytes(device_bytes: int, devices: int, host_bytes: int) -> int:
    return device_bytes * devices + host_bytes


@quantity(
    "host_memory_bytes",
    unit="B",
    formula="host cache + offloaded weights of the ranks of one node",
    source="arithmetic: vLLM states its host cache for all ranks, SGLang for each; both offload so much of each rank",
)
def host_memory(
    host_cache_bytes: int,
    cpu_offload_bytes: int,
    tensor_parallel: int,
    pipeline_parallel: int,
    nodes: int,
    cache_of_each_rank: bool,
) -> int:
    """The least that one node holds: further data-parallel ranks may stand on it."""
    ranks = max(1, tensor_parallel * pipeline_parallel // nodes)
    cache = host_cache_bytes * ranks if cache_of_each_rank else host_cache_bytes // nodes
    return cache + cpu_offload_bytes * ranks
