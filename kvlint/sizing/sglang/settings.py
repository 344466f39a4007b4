"""What SGLang's sizing is given besides the model."""

from __future__ import annotations

from fractions import Fraction
from typing import Union

from kvlint.records import dataclass

GIB = 1 << 30
CACHE_BYTES = {"bf16": 2, "bfloat16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1, "mxfp8": 1}
CACHE_NAMES = {
    "fp8": "fp8_e4m3",
    "fp8_e4m3fn": "fp8_e4m3",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "bf16": "bfloat16",
}  # other names of a cache type
FOUR_BIT = ("fp4_e2m1", "nvfp4", "fp4_mx_block16")
Bytes = Union[int, Fraction]


@dataclass(frozen=True, slots=True)
class Settings:
    """Plain settings of one server under the names of ServerArgs; None where the engine chooses.

    `draft_layers`: attention layers of the draft or MTP head; None: those of the checkpoint.  `checkpoint_fp8_kv`: the checkpoint
    declares an FP8 cache.  `enable_multimodal` None: by the class.  `language_only`: no images are served.  `allow_longer`: a
    context length above the model's own is not refused (SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN).
    """

    release: str
    tp_size: int = 1
    dp_size: int = 1
    enable_dp_attention: bool = False
    pp_size: int = 1
    page_size: int | None = None
    context_length: int | None = None
    mem_fraction_static: Fraction | None = None
    max_total_tokens: int | None = None
    max_running_requests: int | None = None
    chunked_prefill_size: int | None = None
    max_prefill_tokens: int | None = None
    kv_cache_dtype: str = "auto"
    model_dtype: str | None = None
    checkpoint_fp8_kv: bool = False
    disable_radix_cache: bool = False
    disable_overlap_schedule: bool = False
    disable_cuda_graph: bool = False
    disable_prefill_cuda_graph: bool = False
    cuda_graph_max_bs: int | None = None
    attention_backend: str | None = None
    prefill_attention_backend: str | None = None
    decode_attention_backend: str | None = None
    dsa_prefill_backend: str | None = None
    dsa_decode_backend: str | None = None
    swa_full_tokens_ratio: Fraction = Fraction(4, 5)
    disable_hybrid_swa_memory: bool = False
    hybrid_kvcache_ratio: Fraction | None = None
    mamba_ssm_dtype: str | None = None
    max_mamba_cache_size: int | None = None
    mamba_full_memory_ratio: Fraction = Fraction(9, 10)
    mamba_radix_cache_strategy: str | None = None
    speculative_algorithm: str | None = None
    speculative_num_steps: int | None = None
    speculative_eagle_topk: int | None = None
    speculative_num_draft_tokens: int | None = None
    draft_layers: int | None = None
    enable_multimodal: bool | None = None
    language_only: bool = False
    allow_longer: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """One device.  `total_mib`: as nvidia-smi prints it; `capability`: 89, 90, 100, 120 of CUDA; the rest in bytes.

    `free_before`: free before the weights are loaded, `free_after`: and after, the least of all ranks.
    """

    total_mib: int
    capability: int
    free_before: Bytes
    free_after: Bytes

    @property
    def gib_before(self) -> float:
        return float(Fraction(self.free_before) / GIB)

    @property
    def gib_after(self) -> float:
        return float(Fraction(self.free_after) / GIB)


def loaded(total_mib: int, capability: int, free_before: Bytes, weights_bytes: int) -> Device:
    """A device after `weights_bytes` were loaded onto it: a bound, for loading leaves more behind."""
    return Device(total_mib, capability, free_before, Fraction(free_before) - weights_bytes)
