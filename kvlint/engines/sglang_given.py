"""What SGLang's memory model is given: what the line and the checkpoint say, and what is known of the device."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from kvlint.engines.fields import Convert, Fields, exact
from kvlint.facts import Assumed, Fact, Range, Unknown, Value, nominal
from kvlint.models.architecture import Attention, Latent
from kvlint.models.lookup import Model
from kvlint.units import GIB, MIB

# The field of `Settings` beside the destinations that fill it, by release.
DESTS: Mapping[str, tuple[str, ...]] = {
    "tp_size": ("tp_size",),
    "dp_size": ("dp_size",),
    "pp_size": ("pp_size",),
    "page_size": ("page_size",),
    "context_length": ("context_length",),
    "max_total_tokens": ("max_total_tokens",),
    "max_running_requests": ("max_running_requests",),
    "chunked_prefill_size": ("chunked_prefill_size",),
    "max_prefill_tokens": ("max_prefill_tokens",),
    "kv_cache_dtype": ("kv_cache_dtype",),
    "enable_dp_attention": ("enable_dp_attention",),
    "disable_radix_cache": ("disable_radix_cache",),
    "disable_overlap_schedule": ("disable_overlap_schedule",),
    "disable_cuda_graph": ("disable_cuda_graph", "disable_decode_cuda_graph"),
    "disable_prefill_cuda_graph": ("disable_prefill_cuda_graph", "disable_piecewise_cuda_graph"),
    "cuda_graph_max_bs": ("cuda_graph_max_bs", "cuda_graph_max_bs_decode"),
    "attention_backend": ("attention_backend",),
    "prefill_attention_backend": ("prefill_attention_backend",),
    "decode_attention_backend": ("decode_attention_backend",),
    "dsa_prefill_backend": ("dsa_prefill_backend", "nsa_prefill_backend"),
    "dsa_decode_backend": ("dsa_decode_backend", "nsa_decode_backend"),
    "disable_hybrid_swa_memory": ("disable_hybrid_swa_memory",),
    "mamba_ssm_dtype": ("mamba_ssm_dtype",),
    "max_mamba_cache_size": ("max_mamba_cache_size",),
    "mamba_radix_cache_strategy": ("mamba_radix_cache_strategy", "mamba_scheduler_strategy"),
    "speculative_algorithm": ("speculative_algorithm",),
    "speculative_num_steps": ("speculative_num_steps",),
    "speculative_eagle_topk": ("speculative_eagle_topk",),
    "speculative_num_draft_tokens": ("speculative_num_draft_tokens",),
    "enable_multimodal": ("enable_multimodal",),
    "language_only": ("language_only",),
}
SHARES = ("mem_fraction_static", "swa_full_tokens_ratio", "mamba_full_memory_ratio", "hybrid_kvcache_ratio")
# Flags that change the pool in ways that were not worked out.
UNREAD = (
    *(
        "dcp_size",
        "attn_cp_size",
        "enable_unified_memory",
        "cuda_graph_bs",
        "cuda_graph_bs_decode",
        "cuda_graph_config",
        "enforce_piecewise_cuda_graph",
    ),
    *("dllm_algorithm", "prefill_only_disable_kv_cache", "enable_kv_cache_sharding", "enable_hisparse"),
)


def given(fields: Fields, model: Model | None) -> dict[str, Value[Any]]:
    """Fields of the memory model's settings that somebody states."""
    found: dict[str, Value[Any] | None] = {name: _first(fields, dests) for name, dests in DESTS.items()}
    for name in SHARES:
        found[name] = share(fields, name)
    context, allowed = found["context_length"], Fact(True, Assumed("a longer window is another rule's matter"))
    if context is not None:
        found["allow_longer"] = allowed
    found["model_dtype"] = _dtype(fields, model)
    found["checkpoint_fp8_kv"] = _checkpoint_type(model, found["kv_cache_dtype"])
    found["draft_layers"] = _draft_layers(fields)
    if _decodes(fields):
        found["disable_radix_cache"] = fields.written("disaggregation_mode", lambda _: True)
    for name in UNREAD:
        if fields.given(name) is not None:
            flag = "--" + name.replace("_", "-")
            found[name] = Unknown(
                f"arguments.{name}", f"what {flag} makes of the pool was not worked out", "a measured pool"
            )
    return {name: value for name, value in found.items() if value is not None}


def share(fields: Fields, dest: str) -> Value[Fraction] | None:
    return fields.written(dest, exact)


def _decodes(fields: Fields) -> bool:
    """A decode server of disaggregated serving, which keeps no prefixes unless it is told to."""
    mode = fields.world.reading.typed("disaggregation_mode")
    return mode == "decode" and fields.given("disaggregation_decode_enable_radix_cache") is None


def _dtype(fields: Fields, model: Model | None) -> Value[str] | None:
    """`--dtype`; `auto` turns checkpoints of 32 bits into 16."""
    written = fields.written("dtype")
    if written is not None and not (isinstance(written, Fact) and written.value == "auto"):
        return written
    arch = model.architecture if model is not None else None
    if not isinstance(arch, Fact) or arch.value.dtype != "float32":
        return None
    return Fact("bfloat16" if arch.value.model_type.startswith("gemma") else "float16", arch.origin)


def _checkpoint_type(model: Model | None, stated: Value[Any] | None) -> Value[bool] | None:
    """Whether the checkpoint itself asks for an FP8 cache; asked only where `auto` stands."""
    if model is None or model.entry is None or not isinstance(model.architecture, Fact):
        return None
    if isinstance(stated, Fact) and stated.value != "auto":
        return None
    if not model.entry.own:
        return Unknown("model.kv_scheme", f"whether {model.id} makes `auto` fp8 is not known", "--kv-cache-dtype")
    kind = model.entry.kv_cache_dtype
    return Fact(True, model.architecture.origin) if kind is not None and kind.startswith("fp8") else None


def _draft_layers(fields: Fields) -> Value[int] | None:
    """Attention layers of a draft model that is named; those of the checkpoint's own head are the memory model's to find."""
    given = fields.given("speculative_draft_model_path")
    if given is None or given.value is None:
        return None
    arch = fields.world.model(given.value).architecture
    if isinstance(arch, Unknown):
        return arch
    return Fact(sum(1 for _ in arch.value.parts((Attention, Latent))), arch.origin)


def _device(fields: Fields) -> dict[str, Value[Any]]:
    """Memory as nvidia-smi prints it and compute capability, where the device is known."""
    hardware = fields.world.hardware
    memory, device, capability = hardware["device_memory"], hardware["device"], hardware.get("capability")
    found: dict[str, Value[Any]] = {}
    if isinstance(device, Fact) and device.value.driver_mib and not _exact(memory):
        found["total_mib"] = Fact(device.value.driver_mib, device.origin)
    elif isinstance(memory, Fact):
        gap = 0 if _exact(memory) else nominal(fields.world.coefficient("usable_below_driver").value) * GIB  # type: ignore[union-attr]
        found["total_mib"] = Fact(int(nominal(memory.value) + gap) // MIB, memory.origin)
    if isinstance(capability, Fact):
        found["capability"] = Fact(int(capability.value * 10), capability.origin)
    return found


def _exact(memory: Value[Any]) -> bool:
    """Somebody stated the size; a device's own is a range."""
    return isinstance(memory, Fact) and not isinstance(memory.value, Range)


def _first(fields: Fields, dests: tuple[str, ...], convert: Convert | None = None) -> Value[Any] | None:
    """What is written under the first of several names of one setting."""
    return next((found for dest in dests if (found := fields.written(dest, convert)) is not None), None)


def place(fields: Fields, before: Value[Any], after: Value[Any]) -> dict[str, Value[Any]]:
    """The device, and what is free of it before and after the weights are loaded."""
    from kvlint.sizing.sglang.server import Memory

    found = _device(fields)
    measured = fields.world.hardware.get("available_kv")
    if measured is not None:
        found["measured"] = measured
    for name, fact in (("before", before), ("after", after)):
        if isinstance(fact, Fact):
            found[name] = Fact(Memory(_printed(fact.value)), fact.origin)
    return found


def _printed(size: Any) -> Any:
    """A size that somebody copied from a log: hundredths of a GiB, whose decimal is the figure and not its whole bytes."""
    if not isinstance(size, int):
        return size
    decimal = round(Fraction(size, GIB), 2)
    return decimal * GIB if int(decimal * GIB) == size else size
