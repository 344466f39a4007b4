"""The derived values of a vLLM server: its layout from the model and the settings, its pool from the device."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from kvlint.facts import Assumed, Fact, Unknown, Value, quantity
from kvlint.models.architecture import Architecture, Attention, Compressed, State
from kvlint.records import fields
from kvlint.sizing import kv_types, shards
from kvlint.sizing.budget import usable_of_device
from kvlint.sizing.server import Sizing, present
from kvlint.sizing.vllm import sizes as vllm
from kvlint.sizing.vllm.sizes import Layout, Refusal, Settings
from kvlint.sizing.vllm.specs import growing_bytes

# Our setting → the field of `Settings` that it fills, where the two names differ.
FIELDS = {
    "window": "max_model_len",
    "batched_tokens": "max_num_batched_tokens",
    "context_parallel": "decode_context_parallel",
    "state_dtype": "mamba_ssm_cache_dtype",
    "draft_tokens": "speculative_tokens",
}
PLAIN = (
    *("tensor_parallel", "pipeline_parallel", "block_size", "hybrid_manager", "prefix_caching", "mamba_cache_mode"),
    *(
        "mamba_cache_dtype",
        "async_scheduling",
        "model_dtype",
        "latent_block",
        "layer_partition",
        "draft",
        "gdn_prefill",
    ),
)
ALLOCATOR = "the allocator of vLLM, executed release by release"


@quantity("layout", unit="", formula="layers cut into groups of equal pages", source=ALLOCATOR)
def cut(architecture: Architecture, release: str, **settings: Any) -> Layout | Refusal | Unknown:
    """The groups of every pipeline stage; a `Refusal` where the engine stops whatever the memory."""
    known = {field.name for field in fields(Settings)}
    given = {name: value for name, value in settings.items() if name in known and value is not None}
    return vllm.layout(architecture, Settings(release=release, **given))


@quantity(
    "request_kv_bytes", unit="B", formula="what the engine's length check adds up for one request", source=ALLOCATOR
)
def request_kv_bytes(layout: Layout) -> int:
    return vllm.request_bytes(layout)


@quantity("least_pool_bytes", unit="B", formula="the smallest pool that passes the length check", source=ALLOCATOR)
def least_pool_bytes(layout: Layout) -> int:
    return vllm.least_available(layout)


@quantity("blocks", unit="blocks", formula="⌊pool_bytes ÷ bytes per block⌋", source=ALLOCATOR)
def blocks(layout: Layout, pool_bytes: int) -> int:
    return vllm.blocks(layout, pool_bytes)


@quantity(
    "max_concurrency", unit="requests", formula="blocks ÷ blocks of one request, over all ranks", source=ALLOCATOR
)
def max_concurrency(layout: Layout, blocks: int, data_parallel: int) -> Fraction:
    return Fraction(blocks, vllm.request_blocks(layout)) * data_parallel


@quantity("pool_tokens", unit="tokens", formula="⌊max_concurrency × window⌋", source=ALLOCATOR)
def pool_tokens(max_concurrency: Fraction, window: int) -> int:
    return int(max_concurrency * window)


@quantity("longest_window", unit="tokens", formula="the largest length that passes the length check", source=ALLOCATOR)
def longest_window(layout: Layout, pool_bytes: int, model_window: int) -> int:
    return vllm.largest_window(layout, pool_bytes, model_window)


@quantity(
    "state_blocks", unit="blocks", formula="blocks of the pool, for a model with recurrent layers", source=ALLOCATOR
)
def state_blocks(layout: Layout, pool_bytes: int) -> int | None:
    return vllm.state_blocks(layout, pool_bytes)


@quantity(
    "kv_bytes_per_token",
    unit="B",
    formula="Σ growing layers of bytes of one token, one copy",
    source="vllm/v1/kv_cache_interface.py: the page of each kind of layer",
)
def kv_bytes_per_token(
    architecture: Architecture, release: str, kv_cache_dtype: str, model_dtype: str | None = None
) -> int | Unknown:
    settings = Settings(release, 1, 1, kv_cache_dtype=kv_cache_dtype, model_dtype=model_dtype)
    return growing_bytes(architecture, settings)


@quantity(
    "kv_bytes_per_token_per_device", unit="B", formula="page bytes of growing layers ÷ block tokens", source=ALLOCATOR
)
def per_device(layout: Layout) -> int:
    sizes = []
    for stage in layout.stages:
        growing = (spec for spec in stage.specs if spec.kind in ("full", "latent"))
        sizes.append(sum(Fraction(spec.page_bytes, spec.block_size) for spec in growing))
    largest = max(sizes)
    return -(-largest.numerator // largest.denominator) if isinstance(largest, Fraction) else int(largest)


@quantity("slot_bytes", unit="B", formula="pages of one request at the full window, one copy", source=ALLOCATOR)
def slot_bytes(layout: Layout) -> int:
    return vllm.held_bytes(layout)


@quantity(
    "pool_bytes",
    unit="B",
    formula="blocks × bytes per block",
    source="vllm/v1/core/kv_cache_utils.py: num_gpu_blocks_override replaces the block count",
)
def pool_of_blocks(layout: Layout, blocks: int) -> int:
    return blocks * layout.bytes_per_block


@quantity(
    "expert_bytes", unit="B", formula="expert parameters × 2, at most the weights", source="exact parameter counts"
)
def expert_bytes(architecture: Architecture, weights_bytes: int) -> int | Unknown:
    """16-bit experts; of a quantized checkpoint all weights, so that what is spread is never more than it can be."""
    from kvlint.models.weights import experts

    found = experts(architecture)
    if found is None:
        return Unknown(
            "model.experts", "which layers have experts is not known", "[[hardware]] available_kv, as measured"
        )
    return min(found * 2, weights_bytes)


@quantity(
    "partition_fault",
    unit="",
    formula="stages ≤ layers; a written partition has one number for each stage, which add up to the layers",
    source="vllm/distributed/utils.py:get_pp_indices",
)
def partition_fault(architecture: Architecture, layer_partition: tuple[int, ...], pipeline_parallel: int) -> str | None:
    layers, parts = len(architecture.layers), layer_partition
    if not parts:
        short = pipeline_parallel > layers
        return f"{layers} layers cannot be cut into {pipeline_parallel} stages" if short else None
    if len(parts) != pipeline_parallel:
        return f"VLLM_PP_LAYER_PARTITION names {len(parts)} stages, and there are {pipeline_parallel}"
    return (
        f"VLLM_PP_LAYER_PARTITION adds up to {sum(parts)}, and there are {layers} layers"
        if sum(parts) != layers
        else None
    )


@quantity("recurrent_layers", unit="layers", formula="layers with a recurrent state", source="the configuration")
def recurrent_layers(architecture: Architecture) -> int:
    return sum(any(isinstance(part, State) for part in layer) for layer in architecture.layers)


@quantity(
    "windowed_layers", unit="layers", formula="layers with a sliding or chunked window", source="the configuration"
)
def windowed_layers(architecture: Architecture) -> int:
    windowed = (
        any(isinstance(part, Attention) and (part.window or part.chunk) for part in layer)
        for layer in architecture.layers
    )
    return sum(map(bool, windowed))


@quantity(
    "effective_block_size", unit="tokens", formula="the attention block, raised to hold a state page", source=ALLOCATOR
)
def effective_block_size(layout: Layout) -> int:
    return layout.block_size


class VllmSizing(Sizing):
    """vLLM V1.  Values that need the layout are those of the fullest device."""

    def layout(self) -> Value[Layout]:
        """The layout, or the `Unknown` in its way."""
        found = self._cut()
        if isinstance(found, Fact) and isinstance(found.value, Refusal):
            return Unknown("engine.layout", found.value.reason, "settings that the engine accepts")
        return found

    def start_refusal(self) -> Value[str] | None:
        """Why the engine stops with this model and these settings, whatever the memory; None where it does not."""
        found = self._cut()
        if isinstance(found, Unknown):
            return found
        return Fact(found.value.reason, found.origin) if isinstance(found.value, Refusal) else None

    def partition_fault(self) -> Value[str] | None:
        """Why the layers cannot be cut into the stages that are asked for; None where they can."""
        parts = self.server.settings.get("layer_partition")
        if parts is None:
            parts = Fact((), Assumed("no partition is written"))
        return present(partition_fault(self.server.architecture, parts, self.need("pipeline_parallel")))

    def context_split_fault(self) -> Value[str] | None:
        """Why decode context parallelism cannot share this model's heads out; None where it can."""
        need = self.need
        return present(
            shards.context_split_fault(self.server.architecture, need("context_parallel"), need("tensor_parallel"))
        )

    def kv_dtype_source(self) -> Value[str] | None:
        return kv_types.source(self)

    def kv_calibrated(self) -> Value[bool] | None:
        """Whether the checkpoint brings scales for a quantized cache, or the engine works them out."""
        if "calculated_scales" in self.server.settings:
            return Fact(True, Assumed("the engine works the scales out"))
        return kv_types.calibrated(self)

    def kv_dtype_fault(self) -> Value[str] | None:
        """Why the device or the checkpoint cannot do the types that are written; None where nothing is in the way."""
        return kv_types.fault(self)

    def recurrent_layers(self) -> Value[int]:
        return recurrent_layers(self.server.architecture)

    def windowed_layers(self) -> Value[int]:
        return windowed_layers(self.server.architecture)

    def effective_block_size(self) -> Value[int]:
        """Tokens of an attention block, as the engine sets it."""
        return effective_block_size(self.need("layout"))

    def drafting(self) -> Value[Any] | None:
        """What asks for drafts."""
        return self.server.settings.get("draft_tokens")

    def least_pool_without_draft(self) -> Value[int] | None:
        """The smallest pool without the layers that a draft or prediction head adds; None where there are none."""
        draft = self.server.settings.get("draft")
        if draft is None or (isinstance(draft, Fact) and not draft.value):
            return None
        found = self._cut(drafts=False)
        if isinstance(found, Fact) and isinstance(found.value, Refusal):
            return None
        return least_pool_bytes(found)

    def _cut(self, *, drafts: bool = True) -> Value[Any]:
        server = self.server
        needed: dict[str, Value[Any]] = {
            "architecture": server.architecture,
            "release": server.settings["release"],
            "max_model_len": self.need("window"),
            "max_num_batched_tokens": self._batched_tokens(),
            "kv_cache_dtype": self.need("kv_cache_dtype"),
        }
        optional = {field: server.settings.get(name) for name, field in FIELDS.items()}
        optional |= {name: server.settings.get(name) for name in PLAIN}
        for name, value in optional.items():
            if value is not None and (drafts or name not in ("draft", "speculative_tokens")):
                needed.setdefault(name, value)
        for value in needed.values():
            if isinstance(value, Unknown):
                return value
        return cut(**needed)

    def _batched_tokens(self) -> Value[Any]:
        """The batch matters to windowed layers alone; for the others any number gives the same layout, and none is a cause."""
        arch, draft = self.server.architecture, self.server.settings.get("draft")
        if isinstance(arch, Unknown) or isinstance(draft, Unknown):
            return self.need("batched_tokens")
        drafted = (part for layer in (draft.value if draft else ()) for part in layer)
        parts = (*arch.value.distinct((Attention, Compressed)), *drafted)
        if any(not isinstance(part, Attention) or part.window or part.chunk for part in parts):
            return self.need("batched_tokens")
        return Fact(2048, Assumed("no layer of this model depends on the batch"))

    def kv_bytes_per_token(self) -> Value[int]:
        server = self.server
        own = server.settings.get("model_dtype")
        typed = {"model_dtype": own} if own is not None else {}
        return kv_bytes_per_token(server.architecture, server.settings["release"], self.need("kv_cache_dtype"), **typed)

    def kv_bytes_per_token_per_device(self) -> Value[int]:
        return per_device(self.need("layout"))

    def slot_bytes(self) -> Value[int]:
        return slot_bytes(self.need("layout"))

    def request_kv_bytes(self) -> Value[int]:
        return request_kv_bytes(self.need("layout"))

    def least_pool_bytes(self) -> Value[int]:
        return least_pool_bytes(self.need("layout"))

    def weights_bytes_per_device(self) -> Value[Any]:
        experts = self._expert_bytes()
        return vllm.weights_per_device(
            self.need("weights_bytes"),
            experts,
            self.need("tensor_parallel"),
            self.need("pipeline_parallel"),
            self.need("data_parallel"),
            self.need("expert_parallel"),
            self.server.settings.get("cpu_offload_bytes") or Fact(0, Assumed("no offload")),
        )

    def _expert_bytes(self) -> Value[Any]:
        """What expert parallelism spreads over data-parallel ranks; without it nothing is spread further."""
        spread = self.need("expert_parallel")
        nothing: Value[Any] = Fact(0, Assumed("no experts are spread over ranks"))
        arch = self.server.architecture
        if not isinstance(spread, Fact) or not spread.value or isinstance(arch, Unknown):
            return nothing if isinstance(spread, Fact) else spread
        return expert_bytes(arch, self.need("weights_bytes"))

    def host_memory_bytes(self) -> Value[int] | None:
        return self._host_memory(each_rank=False)

    def budget_bytes(self) -> Value[Any]:
        return self.server.hardware["device_memory"]

    def usable_bytes(self) -> Value[Any]:
        return usable_of_device(self.need("budget_bytes"), self.need("memory_fraction"))

    def pool_bytes(self) -> Value[Any]:
        """Measured, or stated outright, or what the fraction leaves after weights and overheads."""
        measured = self.server.hardware.get("available_kv")
        if measured is not None:
            return measured
        override = self.server.settings.get("gpu_blocks")
        if override is not None:
            return pool_of_blocks(self.need("layout"), override)
        stated = self.server.settings.get("kv_pool_bytes")
        if stated is not None:
            return stated
        return self._estimated_pool()

    def _estimated_pool(self) -> Value[Any]:
        coefficient = self.server.settings["overheads"]
        if isinstance(coefficient, Unknown):
            return coefficient
        overheads: dict[str, Value[Any]] = coefficient.value
        return vllm.available_kv(
            self.need("usable_bytes"),
            self.need("weights_bytes_per_device"),
            overheads["activation"],
            overheads["non_torch"],
            overheads["graphs"],
        )

    def blocks(self) -> Value[Any]:
        return blocks(self.need("layout"), self.need("pool_bytes"))

    def max_concurrency(self) -> Value[Any]:
        return max_concurrency(self.need("layout"), self.need("blocks"), self.need("data_parallel"))

    def pool_tokens(self) -> Value[Any]:
        return pool_tokens(self.need("max_concurrency"), self.need("window"))

    def longest_window(self) -> Value[Any]:
        longest = self.server.settings.get("model_window")
        if longest is None or isinstance(longest, Unknown):
            longest = self.need("window")
        return longest_window(self.need("layout"), self.need("pool_bytes"), longest)

    def state_blocks(self) -> Value[Any] | None:
        arch = self.server.architecture
        if isinstance(arch, Fact) and not arch.value.hybrid:
            return None
        return state_blocks(self.need("layout"), self.need("pool_bytes"))
