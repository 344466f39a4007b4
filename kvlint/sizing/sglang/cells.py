"""Bytes that a token and a state take on one rank, as the engine counts them."""

from __future__ import annotations

from kvlint.models.architecture import Attention, Latent, State
from kvlint.records import dataclass
from kvlint.sizing.sglang.arguments import Arguments
from kvlint.sizing.sglang.model import draft_attention_layers
from kvlint.sizing.sglang.releases import Rules, constant, named
from kvlint.sizing.sglang.settings import CACHE_BYTES, FOUR_BIT, Settings
from kvlint.sizing.spans import TYPE_BYTES, Outcome, Refusal, unknown


@dataclass(frozen=True, slots=True)
class Cells:
    """Bytes of one token on one rank: in all full layers with the draft's, and in all sliding layers with a pool of their own.

    `whole`: in all layers at once, as releases count it that cut the pool before they split it.
    """

    full: int
    sliding: int = 0
    whole: int = 0


def cells(arguments: Arguments, settings: Settings, rules: Rules) -> Cells | Outcome:
    """What a token costs; `sliding` is 0 where sliding layers are charged like the others."""
    model = arguments.model
    if settings.pp_size > 1:
        return unknown("which layers stand on a pipeline stage was not worked out", "settings.pipeline_parallel")
    drafts = draft_attention_layers(model, settings) if rules.draft_pool == "layers" else 0
    if not isinstance(drafts, int):
        return drafts
    if model.latent:
        return latent_cells(arguments, rules, drafts)
    if not model.arch.distinct(Attention):
        return unknown("a pool for a model without attention was not worked out")
    if model.split:
        return split_cells(arguments, rules, drafts)
    part = widest(arguments)
    if not isinstance(part, Attention):
        return part
    layers = sum(1 for _ in model.arch.parts(Attention)) if model.recurrent else len(model.arch.layers)
    size = rank_elements(part, arguments, rules) * layers
    cell = packed(size, rank_heads(part, arguments) * part.key_dim * layers, arguments, rules)
    return cell_of(cell + cell * drafts // layers)


def cell_of(size: int) -> Cells:
    """One pool."""
    return Cells(size, 0, size)


def widest(arguments: Arguments) -> Attention | Outcome:
    """The one shape that the engine charges for every layer: that of full layers."""
    model = arguments.model
    parts = {id(part): part for part in model.full or model.sliding}  # like layers share them
    shapes = {(part.kv_heads, part.key_dim, part.value_dim): part for part in parts.values()}
    if len(shapes) > 1:
        return unknown("attention layers of different sizes were not worked out")
    return next(iter(shapes.values()))


def rank_heads(part: Attention, arguments: Arguments) -> int:
    return max(1, part.kv_heads // arguments.attention_tp)


def rank_elements(part: Attention, arguments: Arguments, rules: Rules) -> int:
    """Elements of one token in one layer on one rank."""
    value = part.value_dim if rules.value_dim else part.key_dim
    return rank_heads(part, arguments) * (part.key_dim + value)


def element_bytes(arguments: Arguments) -> int:
    """Bytes of one element as the engine counts it: four-bit types are stored one to a byte before they are packed."""
    if arguments.kv_cache_dtype == "auto":
        return TYPE_BYTES[arguments.model.dtype]
    return CACHE_BYTES.get(arguments.kv_cache_dtype, 1)


def packed(elements: int, keys: int, arguments: Arguments, rules: Rules) -> int:
    """Bytes of `elements` with their scales; `keys`: elements of the keys alone, which four-bit scales go by."""
    size = elements * element_bytes(arguments)
    if arguments.kv_cache_dtype == "mxfp8":
        return size + elements // constant("eight_bit_block")
    if arguments.kv_cache_dtype in FOUR_BIT and rules.four_bit_halved:
        return size // 2 + 2 * keys // constant("four_bit_block")
    return size


def split_cells(arguments: Arguments, rules: Rules, drafts: int) -> Cells | Outcome:
    """Full and sliding layers by their own shapes; only the whole of a four-bit type is counted packed."""
    model = arguments.model
    sizes = []
    for parts, extra in ((model.full, drafts), (model.sliding, 0)):
        shapes = {(part.kv_heads, part.key_dim, part.value_dim) for part in parts}
        if len(shapes) > 1:
            return unknown("layers of one kind with different sizes were not worked out")
        size = 0
        if parts:
            elements = rank_elements(parts[0], arguments, rules)
            size = elements * element_bytes(arguments)
            if arguments.kv_cache_dtype == "mxfp8":
                size += elements // constant("eight_bit_block")
        sizes.append(size * (len(parts) + extra))
    whole = sum(sizes)
    if arguments.kv_cache_dtype in FOUR_BIT and rules.four_bit_halved:
        part = next(iter(model.full or model.sliding))
        keys = rank_heads(part, arguments) * part.key_dim * len(model.arch.layers)
        whole = whole // 2 + 2 * keys // constant("four_bit_block")
    return Cells(sizes[0], sizes[1], whole)


def latent_cells(arguments: Arguments, rules: Rules, drafts: int) -> Cells | Outcome:
    """Latent rows, which no rank divides, and the keys of indexers."""
    model = arguments.model
    parts = list(model.arch.parts(Latent))
    rows = {part.elements for part in parts}
    if len(rows) > 1:
        return unknown("latent layers of different sizes were not worked out")
    layers = len(parts)
    row = rows.pop()
    if model.sparse:
        row = sparse_row(parts[0], arguments, rules)
    cell = row * layers * element_bytes(arguments)
    if arguments.kv_cache_dtype in FOUR_BIT:
        cell = cell // 2 + row // constant("four_bit_block") * layers
    added = cell * drafts // layers
    if not model.sparse:
        return cell_of(cell + added)
    key = index_bytes(parts)
    owned = sum(1 for part in parts if part.indexer_dim) if rules.sparse_shared else layers
    return cell_of(cell + added + key * (owned + drafts))


def index_bytes(parts: list[Latent]) -> int:
    """One key of an indexer in FP8 with its scales."""
    dim = next(part.indexer_dim for part in parts if part.indexer_dim)
    return dim + dim // constant("quant_block") * 4


def sparse_row(part: Latent, arguments: Arguments, rules: Rules) -> int:
    """Elements of a sparse row in the budget: in FP8 the stored row has scales and a rope key of two bytes an element."""
    pair = arguments.sparse_backends
    raw = rules.sparse_budget == "raw" or arguments.kv_cache_dtype != "fp8_e4m3"
    if raw or pair is None or "trtllm" in pair or pair == ("tilelang", "tilelang"):
        return part.elements
    return part.rank + part.rank // constant("quant_block") * 4 + part.rope_dim * 2


def state_bytes(arguments: Arguments, settings: Settings, rules: Rules) -> int | Outcome:
    """Bytes of one state slot over all recurrent layers on one rank; 0 without such layers."""
    total = 0
    for part in arguments.model.arch.parts(State):
        size = layer_state(part, arguments, settings, rules)
        if not isinstance(size, int):
            return size
        total += size
    return total


def layer_state(part: State, arguments: Arguments, settings: Settings, rules: Rules) -> int | Outcome:
    """Convolution columns of the kernel less one in bfloat16, and the recurrence in float32 unless stated."""
    if part.kind not in ("gdn", "kda", "mamba2", "short-conv", "lightning"):
        return unknown(f"states of the kind {part.kind} were not worked out")
    ranks = arguments.attention_tp
    channels = part.conv_channels
    if part.kind == "mamba2" and part.groups % ranks:
        channels += 2 * (ranks - part.groups) * part.key_dim
    if channels % ranks or part.recurrent % ranks or (part.recurrent and part.heads % ranks):
        return Refusal(f"the recurrent layers cannot be split over {ranks} ranks", "pool")
    stated = settings.mamba_ssm_dtype
    arch = arguments.model.arch
    if stated is None and rules.state_type_stated and arch.model_type in named("own_state_type"):
        stated = arch.config.get("mamba_ssm_dtype")
    recurrent = TYPE_BYTES.get(stated or "float32")
    if recurrent is None:
        return unknown(f"states of the type {stated} were not worked out")
    columns = part.conv_kernel - 1 if channels else 0
    return channels // ranks * columns * 2 + part.recurrent // ranks * recurrent


def slots_per_request(arguments: Arguments) -> int:
    """State slots that one running request may take (_calculate_mamba_ratio)."""
    if arguments.disable_radix_cache:
        return 1
    if arguments.strategy == "extra_buffer_lazy":
        return constant("states_no_buffer") + 1
    if arguments.strategy == "extra_buffer":
        return constant("states_buffered") - (1 if arguments.disable_overlap_schedule else 0)
    return constant("states_no_buffer")
