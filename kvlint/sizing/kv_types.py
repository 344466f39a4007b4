"""Types of the cache and of the model that a device or a checkpoint cannot do, and scales that a checkpoint brings."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from kvlint.facts import Catalog, Fact, Unknown, Value

if TYPE_CHECKING:
    from kvlint.sizing.server import Sizing

# vllm/platforms/cuda.py: bfloat16 needs 8.0; Triton's fp8e4nv needs 8.9 (vllm-project/vllm#26431)
BFLOAT16_SINCE = Fraction("8.0")
FP8_SINCE = Fraction("8.9")
FP8 = ("fp8", "fp8_e4m3")


def calibrated(sizing: Sizing) -> Value[bool]:
    """Whether the checkpoint has scales for a quantized cache."""
    entry = sizing.server.model.entry if sizing.server.model is not None else None
    if entry is None or not entry.own:
        why = "whether the checkpoint has scales for the cache is not known"
        return Unknown("model.kv_scheme", why, "[[model]] config")
    return Fact(entry.kv_cache_dtype is not None, Catalog(entry.id, "kv_cache_dtype", entry.source))


def source(sizing: Sizing) -> Value[str] | None:
    """The cache's type where it is written, else the model, whose checkpoint or class says so."""
    settings = sizing.server.settings
    found = settings.get("kv_dtype")
    return found if isinstance(found, Fact) and found.origin.kind == "written" else settings.get("model")


def fault(sizing: Sizing) -> Value[str] | None:
    """The first of the three that applies; Unknown where the device or the attention backend decides."""
    for found in (_bfloat16(sizing), _of_checkpoint(sizing), _triton(sizing)):
        if found is not None:
            return found
    return None


def _bfloat16(sizing: Sizing) -> Value[str] | None:
    dtype, capability = sizing.server.settings.get("weights_dtype"), sizing.server.hardware.get("capability")
    if not isinstance(dtype, Fact) or dtype.value != "bfloat16" or not isinstance(capability, Fact):
        return None
    if Fraction(capability.value) >= BFLOAT16_SINCE:
        return None
    return Fact(f"bfloat16 needs compute capability 8.0, and this device has {_shown(capability)}", dtype.origin)


def _of_checkpoint(sizing: Sizing) -> Value[str] | None:
    dtype, arch = sizing.server.settings.get("kv_dtype"), sizing.server.architecture
    if not isinstance(dtype, Fact) or dtype.value != "fp8_e5m2" or not isinstance(arch, Fact):
        return None
    config = arch.value.root.get("quantization_config")
    method = config.get("quant_method") if isinstance(config, Mapping) else None
    return Fact("fp8_e5m2 does not go with an fp8 checkpoint", dtype.origin) if method == "fp8" else None


def _triton(sizing: Sizing) -> Value[str] | None:
    settings, capability = sizing.server.settings, sizing.server.hardware.get("capability")
    dtype, backend = settings.get("kv_dtype"), settings.get("attention_backend")
    if not isinstance(dtype, Fact) or dtype.value not in FP8 or not isinstance(capability, Fact):
        return None
    if Fraction(capability.value) >= FP8_SINCE:
        return None
    if backend is None:
        reason = "which attention backend runs fp8 on this device is not known"
        return Unknown("attention_backend", reason, "--attention-backend")
    if isinstance(backend, Unknown):
        return backend
    if "TRITON" not in str(backend.value).upper():
        return None
    return Fact(f"Triton's fp8 needs compute capability 8.9, and this device has {_shown(capability)}", dtype.origin)


def _shown(capability: Fact[Fraction]) -> str:
    major, minor = divmod(int(Fraction(capability.value) * 10), 10)
    return f"{major}.{minor}"
