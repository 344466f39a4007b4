"""What SGLang makes of its arguments: the defaults that follow the device, the model and each other.

Fractions of memory are binary floating-point numbers because they are in the engine: its own roundings decide the last token.
"""

from __future__ import annotations

from typing import Any, Union

from kvlint.facts import Unknown
from kvlint.records import dataclass
from kvlint.sizing.sglang.backends import Backends, of_class, on_large_hopper, pick
from kvlint.sizing.sglang.model import Model, read_model
from kvlint.sizing.sglang.releases import Rules, constant, data, named
from kvlint.sizing.sglang.settings import Device, Settings
from kvlint.sizing.spans import Outcome, Refusal, unknown

RANK_SHARES = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))  # sglang==0.4.6:srt/server_args.py:226
DRAFTING = (None, "EAGLE", "EAGLE3", "NEXTN", "STANDALONE")
BUFFERED = ("extra_buffer", "extra_buffer_lazy")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments as the engine settles them.

    `attention_tp`, `attention_dp`: ranks over which heads and requests are split.  `strategy`: how states are cached with
    prefixes (None: there are none, or no prefix cache).  `sparse_backends`: of prefill and decode, for sparse classes.
    `draft`: steps, branches and tokens.
    """

    model: Model
    attention_tp: int
    attention_dp: int
    mem_fraction_static: Union[float, Unknown]
    chunked_prefill_size: int
    page_size: int
    kv_cache_dtype: str
    attention_backend: str | None
    max_running_requests: int | None
    disable_radix_cache: bool
    disable_overlap_schedule: bool
    strategy: str | None
    sparse_backends: tuple[str, str] | None
    decode_graph_width: int
    draft: tuple[int, int, int] | None

    @property
    def context_length(self) -> int:
        return self.model.context


def resolve(arch: Any, settings: Settings, device: Device, rules: Rules) -> Arguments | Outcome:
    """The arguments under one set of rules, or why the engine stops."""
    # told apart by identity, for to hash all fields would take longer; what is kept beside the answer keeps its identity
    key = ("arguments", id(settings), id(device), rules)
    kept: tuple[Settings, Device, Arguments | Outcome] | None = arch.memo.get(key)
    if kept is None:
        kept = arch.memo[key] = settings, device, _resolve(arch, settings, device, rules)
    return kept[2]


def _resolve(arch: Any, settings: Settings, device: Device, rules: Rules) -> Arguments | Outcome:
    model = read_model(arch, settings, rules)
    if not isinstance(model, Model):
        return model
    wrong = wrong_flags(model, settings, rules)
    if wrong is not None:
        return wrong
    if settings.speculative_algorithm not in DRAFTING:
        return unknown(f"drafts by {settings.speculative_algorithm} were not worked out", "draft_model")
    chunk = settings.chunked_prefill_size
    if chunk is None:
        chunk = tier(rules.chunk_tiers, device)[0]
    width = graph_width(model, settings, rules, device)
    fraction = static_fraction(model, settings, rules, device, chunk, width)
    if isinstance(fraction, Refusal):
        return fraction
    kv_dtype = cache_type(model, settings, rules, device)
    if not isinstance(kv_dtype, str):
        return kv_dtype
    backends = pick(model, settings, rules, device, kv_dtype)
    if not isinstance(backends, Backends):
        return backends
    states = cache_states(model, settings, rules, device)
    if not isinstance(states, tuple):
        return states
    ranks = attention_ranks(model, settings, rules)
    page, chunk = backends.page_size or 1, chunk // ranks
    if chunk % page and (chunk > 0 or rules.chunk_by_page == "always"):
        return Refusal(f"the chunk of {chunk} tokens is not a multiple of the page of {page}")
    draft = draft_shape(model, settings, rules)
    return Arguments(
        model=model,
        attention_tp=settings.tp_size // ranks,
        attention_dp=ranks,
        mem_fraction_static=fraction,
        chunked_prefill_size=chunk,
        page_size=page,
        kv_cache_dtype=kv_dtype,
        attention_backend=backends.main,
        max_running_requests=running_requests(settings),
        disable_radix_cache=states[0],
        disable_overlap_schedule=states[1] or (draft is not None and rules.drafts_stop_overlap),
        strategy=states[2],
        sparse_backends=sparse_pair(model, settings, rules, device, kv_dtype),
        decode_graph_width=width,
        draft=draft,
    )


def attention_ranks(model: Model, settings: Settings, rules: Rules) -> int:
    """Data-parallel ranks of attention."""
    if model.sparse and rules.sparse_splits and model.name in rules.sparse_defaults:
        return settings.tp_size
    return settings.dp_size if settings.enable_dp_attention else 1


def running_requests(settings: Settings) -> int | None:
    """max_running_requests, which drafts set where nobody does."""
    drafted = settings.speculative_algorithm is not None and settings.max_running_requests is None
    return constant("draft_requests") if drafted else settings.max_running_requests


def standing_alone(model: Model, settings: Settings, rules: Rules, capability: int = 90) -> Arguments | Outcome:
    """The arguments of one large device, a Hopper if nothing else is said, that holds the whole model."""
    device = Device(143771, capability, 0, 0)
    kv_dtype = cache_type(model, settings, rules, device)
    if not isinstance(kv_dtype, str):
        return kv_dtype
    return Arguments(
        model=model,
        attention_tp=1,
        attention_dp=1,
        mem_fraction_static=0.0,
        chunked_prefill_size=tier(rules.chunk_tiers, device)[0],
        page_size=1,
        kv_cache_dtype=kv_dtype,
        attention_backend=None,
        max_running_requests=None,
        disable_radix_cache=True,
        disable_overlap_schedule=False,
        strategy=None,
        sparse_backends=sparse_pair(model, settings, rules, device, kv_dtype),
        decode_graph_width=0,
        draft=None,
    )


def wrong_flags(model: Model, settings: Settings, rules: Rules) -> Refusal | None:
    sizes = (settings.tp_size, settings.dp_size, settings.pp_size, settings.page_size or 1, model.context)
    if min(sizes) < 1:
        return Refusal("sizes of parallelism, pages and context are at least 1")
    if settings.enable_dp_attention and settings.tp_size % settings.dp_size:
        return Refusal(f"tp_size {settings.tp_size} is not divisible by dp_size {settings.dp_size}")
    if not 0 < settings.swa_full_tokens_ratio <= 1:
        return Refusal("swa_full_tokens_ratio should be above 0 and at most 1")
    if settings.kv_cache_dtype not in rules.cache_types:
        return Refusal(f"this release knows no cache type {settings.kv_cache_dtype}", "pool")
    ratio = settings.hybrid_kvcache_ratio
    if (
        rules.chunk_ratio
        and ratio
        and settings.context_length is None
        and model.name == "Llama4ForConditionalGeneration"
    ):
        return Refusal("--hybrid-kvcache-ratio without --context-length compares nothing with a number")
    return None


def tier(tiers: Any, device: Device) -> tuple[int, ...]:
    """The row of a table by memory; a border of 0 is every other device."""
    row: tuple[int, ...] = next(row for row in tiers if not row[0] or device.total_mib < row[0])
    return row[1:]


def graph_width(model: Model, settings: Settings, rules: Rules, device: Device) -> int:
    """The largest batch with a decode graph; a 0 is not reserved for."""
    if settings.cuda_graph_max_bs is not None:
        return settings.cuda_graph_max_bs
    small, large = tier(rules.graph_tiers, device)
    width = small if settings.tp_size < 4 else large
    running = settings.max_running_requests
    if running is None or not rules.graph_width_capped:
        return width
    wide = on_large_hopper(model, rules, device) and running <= constant("hopper_vision_graph_requests")
    return running if wide else min(width, running)


def image_mib(model: Model, settings: Settings, rules: Rules, device: Device) -> int:
    """MiB kept back for images before the pool is cut (mm_runtime_reservation_gb)."""
    if not model.multimodal:
        return 0
    if on_large_hopper(model, rules, device):
        wide = (settings.max_running_requests or 0) >= constant("image_pool_wide_requests")
        return constant("image_pool_wide_mib" if wide else "image_pool_mib")
    return rules.multimodal_reserve


def static_fraction(
    model: Model, settings: Settings, rules: Rules, device: Device, chunk: int, width: int
) -> float | Outcome:
    """mem_fraction_static: weights and cache as a share of the memory free before loading."""
    if settings.mem_fraction_static is not None:
        return float(settings.mem_fraction_static)
    total = device.total_mib
    if rules.fraction == "ranks" and total <= 80 * 1024:
        return min(share for ranks, share in RANK_SHARES if settings.tp_size >= ranks)
    if rules.fraction == "ranks":
        return (total - 13 * 1024) / total
    if rules.fraction == "card":
        reserved = card_reserve(settings, rules, total)
    else:
        reserved = added_reserve(model, settings, rules, total, chunk, width)
    share = vision_share(model, settings)
    return round((total - reserved) / total, 3) * share if isinstance(share, float) else share


def vision_share(model: Model, settings: Settings) -> float | Outcome:
    """What an image encoder of its size leaves of the fraction (adjust_mem_fraction_for_vlm); 1 without one."""
    vision = model.arch.root.get("vision_config")
    if not model.multimodal or settings.language_only:
        return 1.0
    if not isinstance(vision, dict):
        if model.arch.root is model.arch.config or "audio_config" in model.arch.root:
            return 1.0
        return unknown(
            "the size of the image encoder is not known",
            "model.vision_config",
            "--mem-fraction-static, or [[model]] config",
        )
    usual: list[int] = data()["classes"]["vision"].get(model.name, [24, 1024])
    layers, size = vision.get("num_hidden_layers", usual[0]), vision.get("hidden_size", usual[1])
    if not isinstance(layers, int) or not isinstance(size, int):
        layers, size = usual
    complexity = float(layers * size * size / (24 * 1024 * 1024))
    return 0.95 * max(0.8, min(1.05, 1.0 - 0.1 * (complexity - 1.0)))


def card_reserve(settings: Settings, rules: Rules, total: int) -> float:
    """MiB by the class of card (sglang==0.4.10.post2:srt/server_args.py:322-347)."""
    parallel = settings.tp_size * settings.pp_size
    if total < 35 * 1024:
        reserved = (2.8 + parallel / 10) * 1024
    elif total < 90 * 1024:
        reserved = (9.5 + parallel / 2) * 1024
    elif total < 160 * 1024:
        reserved = (12 + parallel / 2) * 1024
    else:
        reserved = 32.0 * 1024
    return reserved + draft_mib(settings, rules) + (4 * 1024 if settings.enable_dp_attention else 0)


def added_reserve(model: Model, settings: Settings, rules: Rules, total: int, chunk: int, width: int) -> float:
    """MiB for activations, graphs and ranks (sglang==0.5.23:srt/arg_groups/memory_hook.py:297-390)."""
    prefilled = chunk if chunk > 0 else settings.max_prefill_tokens or constant("max_prefill_tokens")
    reserved = 512 + max(prefilled, 2048) * 1.5 + settings.tp_size * settings.pp_size / 8 * 1024
    if rules.graphs_reserved == "always" or not settings.disable_cuda_graph:
        reserved += width * 2
    split = settings.enable_dp_attention and (settings.dp_size > 1 or rules.prefill_graph != "breakable")
    if split:
        reserved += width * settings.dp_size * (4.5 if width > 300 else 3)
    if captures_prefill(model, settings, rules):
        reserved += 1536 if model.latent else 8 * prefill_graphs(settings, rules, chunk)
    if total > 60 * 1024:
        reserved = max(reserved, 10 * 1024)
    return reserved + draft_mib(settings, rules)


def draft_mib(settings: Settings, rules: Rules) -> int:
    standalone, eagle = rules.draft_reserve
    if settings.speculative_algorithm is None:
        return 0
    return standalone if settings.speculative_algorithm == "STANDALONE" else eagle


def captures_prefill(model: Model, settings: Settings, rules: Rules) -> bool:
    """Whether graphs of prefill are reserved for."""
    kind = rules.prefill_graph
    if kind == "none" or model.name in rules.prefill_graph_off or settings.disable_prefill_cuda_graph:
        return False
    if settings.disable_cuda_graph and kind != "piecewise":
        return False
    if model.multimodal and model.name not in rules.prefill_graph_multimodal:
        return False
    if kind == "breakable":
        return not model.kda and settings.pp_size == 1
    if settings.enable_dp_attention:
        return False
    if kind == "piecewise":
        return settings.speculative_algorithm is None and settings.pp_size == 1
    return not model.latent


def prefill_graphs(settings: Settings, rules: Rules, chunk: int) -> int:
    """How many prefill graphs up to a chunk are captured (generate_prefill_cuda_graph_batch_sizes)."""
    largest = chunk
    if settings.max_total_tokens is not None:
        largest = min(largest, settings.max_total_tokens)
    if rules.prefill_graph_window and settings.context_length is not None:
        largest = min(largest, settings.context_length)
    steps = ((4, 33, 4), (48, 257, 16), (288, 513, 32), (576, 1025, 64), (1280, 4097, 256), (4608, largest + 1, 512))
    return sum(1 for step in steps for size in range(*step) if size <= largest)


def cache_type(model: Model, settings: Settings, rules: Rules, device: Device) -> str | Outcome:
    """`kv_cache_dtype` after the defaults of sparse classes and of the checkpoint; `auto` otherwise stays."""
    kv_dtype = settings.kv_cache_dtype
    if model.sparse and model.name in rules.sparse_defaults:
        if kv_dtype == "auto":
            return "fp8_e4m3" if device.capability >= 100 else "bfloat16"
        if kv_dtype not in ("bf16", "bfloat16", "fp8_e4m3"):
            return Refusal("sparse attention (DSA) takes the cache types bfloat16 and fp8_e4m3 only")
        return "bfloat16" if kv_dtype == "bf16" else kv_dtype
    if kv_dtype == "auto" and settings.checkpoint_fp8_kv and rules.checkpoint_type:
        return "fp8_e4m3"
    return kv_dtype


def sparse_pair(
    model: Model, settings: Settings, rules: Rules, device: Device, kv_dtype: str
) -> tuple[str, str] | None:
    """The sparse backends of prefill and decode (srt/arg_groups/overrides.py, _dsa_split_backend_resolution)."""
    if not model.sparse or model.name not in rules.sparse_defaults:
        return None
    raw = rules.sparse_raw_default and device.capability >= 100
    prefill, decode = "flashmla_sparse", "trtllm" if raw else "fa3"
    if kv_dtype == "fp8_e4m3":
        prefill = decode = "trtllm" if raw else "flashmla_kv"
    return settings.dsa_prefill_backend or prefill, settings.dsa_decode_backend or decode


def cache_states(
    model: Model, settings: Settings, rules: Rules, device: Device
) -> tuple[bool, bool, str | None] | Outcome:
    """Prefix cache off, overlap off, and how states are cached (srt/arg_groups/overrides.py, _mamba_radix_cache_resolution)."""
    radix_off, overlap_off = settings.disable_radix_cache, settings.disable_overlap_schedule
    if not model.recurrent:
        return radix_off, overlap_off, None
    radix_off = radix_off or model.name in rules.radix_off
    if radix_off or rules.state_strategy == "none":
        return radix_off, overlap_off, None
    buffered = model.name in rules.buffered_classes
    chosen = of_class(model, settings, rules, device)
    asked = settings.mamba_radix_cache_strategy
    if asked in BUFFERED:
        return (radix_off, overlap_off, asked) if buffered else Refusal(f"{model.name} has no {asked} for its states")
    if rules.state_strategy == "no_buffer":
        if settings.speculative_algorithm is not None:
            return Refusal("drafts with a prefix cache need --mamba-scheduler-strategy extra_buffer")
        plain = chosen.main == "trtllm_mha"
        return plain, overlap_off or not plain, None if plain else "no_buffer"
    if asked in (None, "auto"):
        if buffered and (not overlap_off or (chosen.page_size or 1) > 1):
            return radix_off, overlap_off, "extra_buffer"
        overlap_off = True
    if chosen.page_size not in (1, None) or chosen.main == "trtllm_mha":
        return Refusal("states cached without a buffer need pages of one token and not trtllm_mha")
    if not overlap_off:
        return Refusal("states cached without a buffer need --disable-overlap-schedule")
    return radix_off, overlap_off, "no_buffer"


def draft_shape(model: Model, settings: Settings, rules: Rules) -> tuple[int, int, int] | None:
    """Draft steps, branches and tokens; one branch has one token more than steps."""
    if settings.speculative_algorithm is None:
        return None
    steps, topk, tokens = (
        settings.speculative_num_steps,
        settings.speculative_eagle_topk,
        settings.speculative_num_draft_tokens,
    )
    if steps is None:
        llama, listed, rest = rules.draft_steps
        if settings.speculative_algorithm == "STANDALONE" or model.name in named("drafted"):
            steps, topk, tokens = listed
        else:
            steps, topk, tokens = llama if model.name in ("LlamaForCausalLM", "Grok1ForCausalLM") else rest
    topk = topk or 1
    return steps, topk, steps + 1 if topk == 1 else tokens or steps + 1
