"""What each layer hands to vLLM's allocator: its kind, its block and the bytes of a block.

Bytes are those of one device.  `vllm_groups` makes blocks of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm
from typing import Union

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture, Attention, Latent, Layer, Part, State
from kvlint.records import dataclass, replace
from kvlint.sizing.vllm.releases import Rules, constant, data
from kvlint.sizing.vllm.releases import rules as rules_of
from kvlint.sizing.vllm.settings import (
    Outcome,
    Refusal,
    Settings,
    cache_mode,
    model_bytes,
    unknown_layout,
)
from kvlint.sizing.vllm.state import state_bytes


@dataclass(frozen=True, slots=True)
class Spec:
    """One layer's share.  Layers with equal specs, but for `layer`, may stand in one group.

    `kind`: full, latent, sliding, chunked, state.  `span`: the window or chunk in tokens.  `page_bytes`: bytes of one block,
    padding included.  `checkpoint`: a state that keeps one page more in mode align.
    """

    layer: int
    kind: str
    block_size: int
    page_bytes: int
    shape: tuple[int, ...] = ()
    span: int | None = None
    checkpoint: bool = False

    def like(self, other: Spec) -> bool:
        return replace(self, layer=0) == replace(other, layer=0)


Specs = Union[tuple[Spec, ...], Outcome]


def specs(arch: Architecture, settings: Settings, rules: Rules) -> Specs:
    """Every cache-bearing layer of the model and its draft, in the order in which the allocator sees them."""
    layers = (*arch.layers, *settings.draft)
    tokens: list[tuple[int, Part, int]] = []
    states: list[tuple[int, State, int]] = []
    costs: dict[int, tuple[int, ...]] = {}  # by the part, which like layers share
    for index, part in _parts(layers):
        if isinstance(part, State):
            size = state_bytes(part, arch, settings, rules)
            if not isinstance(size, int):
                return size
            states.append((index, part, size))
        else:
            cost = costs.get(id(part)) or token_bytes(part, arch, settings, rules)
            if not isinstance(cost, tuple):
                return cost
            costs[id(part)] = cost
            tokens += [(index, part, size) for size in cost]
    if not tokens and states:
        return unknown_layout("a model of recurrent layers alone was not worked out for vLLM")
    block = attention_block(arch, settings, rules)
    if not isinstance(block, int):
        return block
    kinds: dict[int, tuple[str, tuple[int, ...], int | None]] = {}
    found = []
    for index, part, size in tokens:
        if id(part) not in kinds:
            kinds[id(part)] = _token_kind(part)
        kind, shape, span = kinds[id(part)]
        found.append(Spec(index, kind, block, block * size, shape or (size,), span))
    found += [_state_spec(index, part, block * tokens[0][2], block, arch, settings, rules) for index, part, _ in states]
    if rules.model_order:
        found.sort(key=lambda spec: spec.layer)
    return tuple(found)


def _parts(layers: tuple[Layer, ...]) -> Iterator[tuple[int, Part]]:
    """Parts in layer order, attention before the state of the same layer; layers that share another's cache left out."""
    for index, layer in enumerate(layers):
        for part in layer if len(layer) == 1 else sorted(layer, key=lambda part: isinstance(part, State)):
            if not (isinstance(part, Attention) and part.shared):
                yield index, part


def token_bytes(part: Part, arch: Architecture, settings: Settings, rules: Rules) -> tuple[int, ...] | Unknown:
    """Bytes of one token in one layer on one device: one figure, or two where a sparse indexer keeps its own."""
    if isinstance(part, Attention):
        return _attention_bytes(part, arch, settings, rules)
    if isinstance(part, Latent):
        return _latent_bytes(part, arch, settings, rules)
    return unknown_layout(f"vLLM's layout of {type(part).__name__.lower()} layers was not worked out")


def growing_bytes(arch: Architecture, settings: Settings) -> int | Unknown:
    """Bytes that one more token adds in one copy of the model, in this release's layout: no window, no state, no draft."""
    whole, found = replace(settings, tensor_parallel=1), set()
    for rules in rules_of(settings.release):
        total = 0
        for _, part in _parts(arch.layers):
            if isinstance(part, State) or (isinstance(part, Attention) and (part.window or part.chunk)):
                continue
            cost = token_bytes(part, arch, whole, rules)
            if not isinstance(cost, tuple):
                return cost
            total += sum(cost)
        found.add(total)
    if len(found) > 1:
        return unknown_layout("the releases on either side differ", "engine.version", "an exact engine version")
    return found.pop()


def _attention_bytes(
    part: Attention, arch: Architecture, settings: Settings, rules: Rules
) -> tuple[int, ...] | Unknown:
    heads = max(1, part.kv_heads // settings.tensor_parallel)
    if part.key_dim != part.value_dim and not rules.value_dim:
        return unknown_layout("this release's layout of keys and values of different size was not worked out")
    if settings.kv_cache_dtype == "nvfp4":
        return (heads * sum(dim // 2 + dim // 16 for dim in (part.key_dim, part.value_dim)),)
    size = element_bytes(arch, settings)
    return (heads * (part.key_dim + part.value_dim) * size,) if isinstance(size, int) else size


def _latent_bytes(part: Latent, arch: Architecture, settings: Settings, rules: Rules) -> tuple[int, ...] | Unknown:
    """Latents are the same on every device.  A sparse indexer keeps 8-bit keys with one 32-bit scale for every 128."""
    dtype = settings.kv_cache_dtype
    if not rules.latent_layers:
        return unknown_layout("this release's layout of multi-head latent attention was not worked out")
    indexer = () if part.indexer_dim is None else (part.indexer_dim + part.indexer_dim // 128 * 4,)
    if dtype in ("fp8_ds_mla", "nvfp4_ds_mla"):
        if (part.rank, part.rope_dim) != (512, 64):
            return unknown_layout(f"the layout {dtype} is known for rank 512 with rope 64 only")
        return (constant("ds_mla_bytes" if dtype == "fp8_ds_mla" else "nvfp4_mla_bytes"), *indexer)
    if _sparse(arch) and dtype not in ("bfloat16", "float16"):
        return unknown_layout(
            f"sparse latent attention: what {dtype} turns into differs by release and backend",
            "kv_dtype",
            "--kv-cache-dtype",
        )
    size = element_bytes(arch, settings)
    return (part.elements * size, *indexer) if isinstance(size, int) else size


def _sparse(arch: Architecture) -> bool:
    return any(part.indexer_dim is not None for part in arch.distinct(Latent))


def element_bytes(arch: Architecture, settings: Settings) -> int | Unknown:
    """Bytes of one element of the cache type."""
    size = data()["kv_bytes"].get(settings.kv_cache_dtype)
    if size is None:
        return unknown_layout(f"the cache type {settings.kv_cache_dtype} is packed by its backend", "kv_dtype")
    return int(size) if size else model_bytes(arch, settings)


def attention_block(arch: Architecture, settings: Settings, rules: Rules) -> int | Outcome:
    """Tokens of one block of the attention layers.

    Where recurrent layers share the pool the block is raised until one attention page holds one state
    (vllm==0.33.0:vllm/platforms/interface.py:940-1110).
    """
    latent = bool(arch.distinct(Latent))
    kernel = (settings.latent_block or constant("latent_block")) if latent else constant("block")
    asked = settings.block_size
    sizes = [state_bytes(part, arch, settings, rules) for part in arch.distinct(State)]
    if not sizes:
        return asked or kernel
    state, costs = 0, set()
    for size in sizes:
        if not isinstance(size, int):
            return size
        state = max(state, size)
    for part in arch.distinct((Attention, Latent)):
        cost = token_bytes(part, arch, settings, rules)
        if not isinstance(cost, tuple):
            return cost
        costs.add(cost[0])
    if len(costs) != 1:
        return unknown_layout("recurrent layers beside attention layers of different sizes were not worked out")
    return _hybrid_block(state, costs.pop(), kernel, latent, arch, settings, rules)


def _hybrid_block(
    state: int, cost: int, kernel: int, latent: bool, arch: Architecture, settings: Settings, rules: Rules
) -> int | Outcome:
    asked = settings.block_size or 0
    if rules.hybrid_block == "refuse":
        block = asked or kernel
        if block * cost >= state:
            return block
        least = raised(state, cost, constant("block"))
        return Refusal(f"the attention block must be at least {least} tokens to hold one state", least)
    align = _alignment(kernel, latent, arch, settings, rules)
    return max(raised(state, cost, align), asked) if isinstance(align, int) else align


def raised(state: int, cost: int, align: int) -> int:
    """The smallest multiple of `align` tokens whose page of `cost` bytes a token holds `state` bytes."""
    return align * -(-state // (align * cost))


def _alignment(kernel: int, latent: bool, arch: Architecture, settings: Settings, rules: Rules) -> int | Outcome:
    align = kernel
    if rules.hybrid_block == "asked":
        align = max(kernel, settings.block_size or 0)
        if latent:
            align = max(align, rules.latent_hybrid_block)
    mode = cache_mode(arch, settings, rules)
    if mode == "all":
        chunk = arch.config.get("mamba_chunk_size") or arch.config.get("chunk_size") or constant("state_chunk")
        return lcm(int(chunk), align)
    if mode == "align" and rules.prefill_checkpoint and any(part.kind == "gdn" for part in arch.distinct(State)):
        if settings.gdn_prefill is None:
            return unknown_layout(
                "Gated DeltaNet layers hold one more page when FlashInfer prefills them, which the device decides",
                "hardware.device",
                "the GPU product",
            )
        return lcm(align, constant("flashinfer_chunk")) if settings.gdn_prefill == "flashinfer" else align
    return align


def smallest_block_size(arch: Architecture, settings: Settings) -> int | Outcome:
    """The least `--block-size` that a hybrid starts with where the engine does not raise it itself; else the block it takes."""
    found = [attention_block(arch, settings, each) for each in rules_of(settings.release)]
    sizes = {block.smallest_block_size if isinstance(block, Refusal) else block for block in found}
    if len(sizes) > 1:
        return unknown_layout("the releases on either side differ", "engine.version", "an exact engine version")
    only = found[0]
    if isinstance(only, Refusal) and only.smallest_block_size is not None:
        return only.smallest_block_size
    return only


def _token_kind(part: Part) -> tuple[str, tuple[int, ...], int | None]:
    """The kind of a layer's spec, its shape and its span; a latent layer's shape is its size."""
    if isinstance(part, Latent):
        return "latent", (), None
    assert isinstance(part, Attention)
    shape = (part.kv_heads, part.key_dim, part.value_dim)
    if part.chunk is not None:
        return "chunked", shape, part.chunk
    if part.window is not None:
        return "sliding", shape, part.window
    return "full", shape, None


def _state_spec(
    index: int, part: State, page: int, block: int, arch: Architecture, settings: Settings, rules: Rules
) -> Spec:
    mode = cache_mode(arch, settings, rules)
    checkpoint = (
        mode == "align"
        and rules.prefill_checkpoint
        and (part.kind == "mamba2" or (part.kind == "gdn" and settings.gdn_prefill == "flashinfer"))
    )
    span = settings.max_model_len if mode == "none" else block
    return Spec(index, "state", span, page, (part.conv_channels, part.recurrent), None, checkpoint)
