"""The attention backend that SGLang picks, the pages that it forces, and what it refuses."""

from __future__ import annotations

from kvlint.records import dataclass
from kvlint.sizing.sglang.model import Model
from kvlint.sizing.sglang.releases import Rules, constant, named
from kvlint.sizing.sglang.settings import FOUR_BIT, Device, Settings
from kvlint.sizing.spans import Outcome, Refusal

BLACKWELL, HOPPER = (100, 103), (90,)


@dataclass(frozen=True, slots=True)
class Backends:
    """`main`, and what prefill and decode use where they differ.  `page_size`: forced or asked; None: the default."""

    main: str | None
    prefill: str | None = None
    decode: str | None = None
    page_size: int | None = None

    @property
    def prefilling(self) -> str | None:
        return self.prefill or self.main

    @property
    def decoding(self) -> str | None:
        return self.decode or self.main

    @property
    def used(self) -> tuple[str | None, ...]:
        return (self.main, self.prefill, self.decode)


def pick(model: Model, settings: Settings, rules: Rules, device: Device, kv_dtype: str) -> Backends | Outcome:
    """Backends and page size; `kv_dtype`: the cache type after the defaults of sparse classes."""
    capability = device.capability
    first = of_class(model, settings, rules, device)
    refused = refused_class(model, first, rules)
    if refused is not None:
        return refused
    if not rules.backend_at_start:
        return snapped(first, rules)
    four = four_bit_prefill(first, kv_dtype, capability)
    if not isinstance(four, Backends):
        return four
    found = defaulted(model, four, settings, rules, capability)
    paged = snapped(found, rules)
    wrong = refused_device(paged, rules, capability, kv_dtype)
    if wrong is not None:
        return wrong
    if paged.main == "fa3" and kv_dtype == "fp8_e5m2":
        paged = Backends("triton", paged.prefill, paged.decode, paged.page_size)
    forced = paged.used if rules.fa4_pages == "any" else (paged.prefill,)
    branches = settings.speculative_eagle_topk or 0
    if "fa4" in forced and not model.latent and capability in BLACKWELL and branches <= 1:
        paged = Backends(paged.main, paged.prefill, paged.decode, 128)
    untaken = refused_type(model, paged, rules, capability, kv_dtype)
    return paged if untaken is None else untaken


def on_large_hopper(model: Model, rules: Rules, device: Device) -> bool:
    """Multimodal classes with serving defaults of their own on a large Hopper."""
    listed = model.multimodal and model.name in rules.hopper_vision
    return listed and device.capability in HOPPER and device.total_mib >= constant("hopper_vision_mib")


def of_class(model: Model, settings: Settings, rules: Rules, device: Device) -> Backends:
    """The backend that the model's class asks for where none is given, and the pages of sparse classes."""
    capability = device.capability
    main, page = settings.attention_backend, settings.page_size
    prefill, decode = settings.prefill_attention_backend, settings.decode_attention_backend
    if main is None and decode is None and on_large_hopper(model, rules, device):
        decode = "flashinfer"
    unset = main is None and prefill is None and decode is None
    if model.sparse and model.name in rules.sparse_defaults:
        return Backends(rules.sparse_backend if unset else main, prefill, decode, 64)
    if unset and model.name in rules.deepseek_classes and capability in BLACKWELL and not model.sparse:
        main = "trtllm_mla"
    if main is None and model.name in rules.delta_classes and capability in BLACKWELL:
        cached = not settings.disable_radix_cache and not settings.speculative_algorithm
        buffered = settings.mamba_radix_cache_strategy in ("extra_buffer", "extra_buffer_lazy")
        main = "trtllm_mha" if on_blackwell(settings, rules) and (buffered or not cached) else "triton"
        if rules.delta_pages:
            page = 64 if main == "trtllm_mha" else 1
    if main is None and (model.windowed or model.name not in named("only_windowed")):
        choices = next((row[1:] for row in rules.class_backends if row[0] == model.name), ("", "", ""))
        index = 0 if capability in BLACKWELL else 1 if capability in HOPPER else 2
        main = choices[index] or None
    return Backends(main, prefill, decode, page)


def refused_class(model: Model, backends: Backends, rules: Rules) -> Refusal | None:
    accepted = next((row[1:] for row in rules.accepted_backends if row[0] == model.name), None)
    if accepted is not None and (model.windowed or model.name not in named("only_windowed")):
        pair = (backends.prefilling, backends.decoding) if backends.prefill or backends.decode else (backends.main,)
        if any(each not in accepted for each in pair):
            return Refusal(f"{model.name} needs one of the attention backends {', '.join(accepted)}")
    if model.name in named("not_triton") and backends.main == "triton":
        return Refusal(f"{model.name} does not run on the attention backend triton")
    return None


def one_branch(settings: Settings) -> bool:
    """No draft, or one branch of it on pages of one token (is_no_spec_infer_or_topk_one)."""
    topk = settings.speculative_eagle_topk
    return topk is None or (topk == 1 and settings.page_size in (1, None))


def on_blackwell(settings: Settings, rules: Rules) -> bool:
    """Whether plain attention defaults to TensorRT-LLM's kernels on Blackwell."""
    drafted = settings.speculative_algorithm is not None and settings.speculative_eagle_topk is None
    return rules.blackwell_default and one_branch(settings) and not drafted


def defaulted(model: Model, backends: Backends, settings: Settings, rules: Rules, capability: int) -> Backends:
    """The general default (get_default_attn_backend)."""
    main = backends.main
    if backends.prefill is not None and backends.prefill == backends.decode:
        main = backends.prefill
    elif main is None:
        main = general(model, settings, rules, capability)
    return Backends(main, backends.prefill, backends.decode, backends.page_size)


def general(model: Model, settings: Settings, rules: Rules, capability: int) -> str:
    if model.latent:
        return "fa3" if capability in HOPPER else "flashinfer" if capability in BLACKWELL else "triton"
    if capability in HOPPER and one_branch(settings) and (not rules.hopper_listed or model.name in rules.hopper_listed):
        return "fa3"
    if capability in BLACKWELL and on_blackwell(settings, rules):
        return "fa4" if model.unequal and rules.unequal_to_fa4 else "trtllm_mha"
    return "triton" if model.sinks and rules.sinks_to_triton else "flashinfer"


def snapped(backends: Backends, rules: Rules) -> Backends:
    """Page sizes that a backend in use does not take become its own."""
    page = backends.page_size
    for name, *sizes in rules.paged_backends:
        watched = (
            backends.used if name in ("trtllm_mha", "cutedsl_mla", "hpc_ops") else (backends.main, backends.decode)
        )
        if name in watched and page not in sizes:
            page = sizes[-1]
    return Backends(backends.main, backends.prefill, backends.decode, page)


def four_bit_prefill(backends: Backends, kv_dtype: str, capability: int) -> Backends | Outcome:
    """NVFP4 brings its own pair of backends (srt/arg_groups/kv_cache_hook.py, handle_nvfp4_prefill_kv_dequant_dtype)."""
    if kv_dtype != "nvfp4":
        return backends
    explicit = backends.prefill or backends.main
    if explicit not in (None, "flashinfer", "trtllm_mha"):
        return Refusal(f"an NVFP4 cache cannot be read by the attention backend {explicit}")
    native = explicit == "trtllm_mha" or (explicit is None and capability in BLACKWELL)
    if native and capability not in BLACKWELL:
        return Refusal("native NVFP4 prefill needs compute capability 100")
    if backends.decode not in (None, "trtllm_mha"):
        return Refusal("an NVFP4 cache is decoded by trtllm_mha only")
    return Backends(backends.main, "trtllm_mha" if native else "flashinfer", "trtllm_mha", backends.page_size)


def refused_device(backends: Backends, rules: Rules, capability: int, kv_dtype: str) -> Refusal | None:
    if "trtllm_mla" in (backends.main, backends.decode):
        if capability < 100:
            return Refusal("trtllm_mla runs on Blackwell only")
        if kv_dtype not in rules.trtllm_latent_types:
            return Refusal(f"trtllm_mla takes the cache types {', '.join(rules.trtllm_latent_types)}, not {kv_dtype}")
    prefill, decode = rules.trtllm_devices
    for phase, backend, devices in (("prefill", backends.prefilling, prefill), ("decode", backends.decoding, decode)):
        if backend == "trtllm_mha" and not runs_on(capability, devices):
            return Refusal(f"trtllm_mha does not {phase} on compute capability {capability / 10}")
    return None


def runs_on(capability: int, devices: tuple[int, ...]) -> bool:
    return capability in devices or (capability in BLACKWELL and 100 in devices)


def refused_type(model: Model, backends: Backends, rules: Rules, capability: int, kv_dtype: str) -> Refusal | None:
    """Cache types that the backend in use or the device cannot hold."""
    if kv_dtype == "mxfp8" and capability < 100:
        return Refusal("an MXFP8 cache needs Blackwell")
    if kv_dtype not in FOUR_BIT or not rules.four_bit_backends:
        return None
    if kv_dtype == "nvfp4" and capability < 100:
        return Refusal("an NVFP4 cache needs Blackwell")
    if backends.prefilling != backends.decoding and backends.prefilling != "fa4":
        return None
    accepted = rules.four_bit_backends[1 if model.latent else 0]
    main = backends.decoding if backends.prefilling == "fa4" else backends.main
    if main not in accepted:
        return Refusal(f"a four-bit cache needs one of the attention backends {', '.join(accepted)}, not {main}")
    return None
