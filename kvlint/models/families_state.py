"""Families with a state that does not grow: delta nets, state spaces, short convolutions, lightning, recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kvlint.models.architecture import Layer, Part, State
from kvlint.models.families_attention import attention_part, draft_count
from kvlint.models.families_fields import Fields, Shape, head_size, hidden_size, number_of_layers, query_heads, unknown
from kvlint.models.families_kinds import (
    FULL,
    HYBRID,
    HYBRID_SLIDING,
    LETTERS,
    LINEAR,
    NOTHING,
    SLIDING,
    layer_kinds,
    named,
    placed,
)
from kvlint.models.families_latent import latent_part


def gated_delta(fields: Fields) -> State:
    """Gated delta net: convolution over queries, keys and values; a key x value matrix for each value head."""
    key_heads, value_heads = fields.maybe("linear_num_key_heads"), fields.maybe("linear_num_value_heads")
    key_dim, value_dim = fields.maybe("linear_key_head_dim"), fields.maybe("linear_value_head_dim")
    if fields.rules.get("linear_from_heads"):
        key_heads = key_heads or query_heads(fields)
        value_heads = value_heads or query_heads(fields)
        key_dim = key_dim or 3 * hidden_size(fields) // (4 * key_heads)
        value_dim = value_dim or 2 * key_dim
    return delta_state(
        "gdn",
        stated(key_heads, "linear_num_key_heads"),
        stated(value_heads, "linear_num_value_heads"),
        stated(key_dim, "linear_key_head_dim"),
        stated(value_dim, "linear_value_head_dim"),
        fields.integer("linear_conv_kernel_dim"),
    )


def delta_state(kind: str, key_heads: int, value_heads: int, key_dim: int, value_dim: int, kernel: int) -> State:
    return State(
        kind=kind,
        conv_channels=2 * key_heads * key_dim + value_heads * value_dim,
        conv_kernel=kernel,
        recurrent=value_heads * key_dim * value_dim,
        heads=value_heads,
        key_heads=key_heads,
        key_dim=key_dim,
        value_dim=value_dim,
    )


def kimi_delta(fields: Fields) -> State:
    """Kimi delta attention: three convolutions of heads x size, one matrix a head."""
    own = Fields(fields.table("linear_attn_config") or {}, fields.constants)
    heads = own.maybe("num_heads") or fields.integer(fields.rules.get("linear_heads", "linear_num_heads"))
    size = own.maybe("head_dim") or fields.integer(fields.rules.get("linear_size", "linear_head_dim"))
    kernel = own.maybe("short_conv_kernel_size") or fields.integer("short_conv_kernel_size", "linear_conv_kernel_dim")
    return delta_state("kda", heads, heads, size, size, kernel)


def state_space(fields: Fields) -> State:
    """Mamba2: heads x head size channels, and two groups of states beside them in the convolution."""
    heads = fields.integer("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
    groups = fields.integer("n_groups", "mamba_n_groups", "mamba_ngroups")
    state = fields.integer("ssm_state_size", "mamba_d_state", "state_size")
    size = state_head_size(fields, heads)
    return State(
        kind="mamba2",
        conv_channels=heads * size + 2 * groups * state,
        conv_kernel=fields.integer("conv_kernel", "mamba_d_conv"),
        recurrent=heads * size * state,
        heads=heads,
        key_dim=state,
        value_dim=size,
        groups=groups,
    )


def state_head_size(fields: Fields, heads: int) -> int:
    names = ("mamba_head_dim", "mamba_d_head", "mamba_headdim", *fields.rules.get("state_head", ()))
    if fields.raw(*names) not in (None, "auto"):
        return fields.integer(*names)
    inner = fields.maybe("mamba_d_ssm") or fields.integer("mamba_expand", "expand") * hidden_size(fields)
    if inner % heads:
        unknown(names[0], f"{names[0]} is not stated, and {heads} heads do not divide {inner}")
    return inner // heads


def selective(fields: Fields) -> State:
    """Mamba1: an inner width with a state for each channel."""
    inner = fields.maybe("intermediate_size") if fields.rules.get("inner_is_intermediate") else None
    if inner is None:
        inner = fields.integer("mamba_expand", "expand") * hidden_size(fields)
    state = fields.integer("mamba_d_state", "state_size")
    kernel = fields.integer("mamba_d_conv", "conv_kernel")
    return State(
        kind="mamba1",
        conv_channels=inner,
        conv_kernel=kernel,
        recurrent=inner * state,
        key_dim=state,
        value_dim=inner,
    )


def short_convolution(fields: Fields) -> State:
    return State(
        kind="short-conv", conv_channels=hidden_size(fields), conv_kernel=fields.integer("conv_L_cache"), recurrent=0
    )


def lightning(fields: Fields) -> State:
    """Lightning attention: a matrix of head size squared for every query head, no convolution."""
    heads, size = query_heads(fields), head_size(fields)
    return State(
        kind="lightning",
        conv_channels=0,
        conv_kernel=0,
        recurrent=heads * size * size,
        heads=heads,
        key_heads=heads,
        key_dim=size,
        value_dim=size,
    )


def gated_recurrence(fields: Fields) -> State:
    """RG-LRU: one value for each channel of the recurrence."""
    width = fields.maybe("lru_width") or hidden_size(fields)
    return State(
        kind="rglru",
        conv_channels=width,
        conv_kernel=fields.integer("conv1d_width"),
        recurrent=width,
        heads=query_heads(fields),
    )


def receptance(fields: Fields) -> State:
    """RWKV-7: two shifted rows of the hidden size, and a matrix of head size squared for each head."""
    size, head = hidden_size(fields), fields.integer("head_dim")
    if size % head:
        unknown("head_dim", f"heads of {head} do not divide a hidden size of {size}")
    heads = size // head
    return State(
        kind="rwkv",
        conv_channels=2 * size,
        conv_kernel=2,
        recurrent=size * head,
        heads=heads,
        key_dim=head,
        value_dim=head,
    )


STATES: dict[str, Callable[[Fields], State]] = {
    "gdn": gated_delta,
    "kda": kimi_delta,
    "mamba2": state_space,
    "mamba1": selective,
    "short-conv": short_convolution,
    "lightning": lightning,
    "rglru": gated_recurrence,
    "rwkv": receptance,
}


def hybrid(fields: Fields) -> Shape:
    """State in some layers and attention (or a latent) in the others; a hybrid layer has both."""
    state = STATES[fields.rules["state"]](fields)
    kinds = layer_kinds(fields)
    parts = {kind: hybrid_layer(fields, kind, state) for kind in set(kinds)}
    return Shape([parts[kind] for kind in kinds], draft_layers(fields))


def hybrid_layer(fields: Fields, kind: str, state: State) -> Layer:
    if kind == LINEAR:
        return (state,)
    if kind == NOTHING:
        return ()
    if kind in (HYBRID, HYBRID_SLIDING):
        return state, attention_part(fields, FULL if kind == HYBRID else SLIDING)
    return (growing(fields, kind),)


def growing(fields: Fields, kind: str) -> Part:
    return latent_part(fields) if fields.rules.get("latent") else attention_part(fields, kind)


def draft_layers(fields: Fields) -> list[Layer]:
    """The draft of a hybrid has attention layers only, unless its own pattern says otherwise (Nemotron-H)."""
    count = draft_count(fields)
    if not count:
        return []
    pattern = fields.raw("mtp_hybrid_override_pattern")
    if isinstance(pattern, str) and not set(pattern) - set(LETTERS):
        return [layer for layer in (letter_layer(fields, letter) for letter in pattern) if layer] * count
    return [(growing(fields, FULL),)] * count


def letter_layer(fields: Fields, letter: str) -> Layer:
    kind = LETTERS[letter]
    return hybrid_layer(fields, kind, STATES[fields.rules["state"]](fields))


def lettered_hybrid(fields: Fields) -> Shape:
    """Nemotron-H: a letter for each layer; newer files list block types and may leave out the number of layers."""
    pattern, written = fields.raw("hybrid_override_pattern"), fields.sequence("layers_block_type")
    kinds: list[str]
    if isinstance(pattern, str):
        if set(pattern) - set(LETTERS):
            unknown("hybrid_override_pattern", "hybrid_override_pattern has letters other than M, *, - and E")
        kinds = [LETTERS[letter] for letter in pattern]
    elif written:
        kinds = [named(kind, "layers_block_type") for kind in written]
    else:
        unknown("hybrid_override_pattern", "neither hybrid_override_pattern nor layers_block_type is stated")
    state = state_space(fields)
    return Shape([hybrid_layer(fields, kind, state) for kind in kinds], draft_layers(fields))


def kimi_linear(fields: Fields) -> Shape:
    """Kimi Linear counts its layers from 1 in `linear_attn_config.full_attn_layers`."""
    count = number_of_layers(fields)
    own: Any = fields.table("linear_attn_config") or {}
    if fields.raw("layer_types") is not None:
        kinds = layer_kinds(fields)
    elif isinstance(own.get("full_attn_layers"), list):
        kinds = placed(own["full_attn_layers"], "linear_attn_config.full_attn_layers", count, LINEAR, base=1)
    else:
        unknown("linear_attn_config.full_attn_layers", "which layers have full attention is not stated")
    state = kimi_delta(fields)
    return Shape([hybrid_layer(fields, kind, state) for kind in kinds], draft_layers(fields))


def pure_state(fields: Fields) -> Shape:
    """State in every layer, nothing that grows."""
    return Shape([(STATES[fields.rules["state"]](fields),)] * number_of_layers(fields))


def shared_blocks(fields: Fields) -> Shape:
    """Zamba: every layer has a state, and the hybrid ones an attention block of twice the hidden size beside it."""
    size = fields.maybe("attention_head_dim") or 2 * hidden_size(fields) // query_heads(fields)
    wide = Fields({**fields.config, "head_dim": size}, fields.constants, fields.rules)
    state = STATES[fields.rules["state"]](fields)
    return Shape([hybrid_layer(wide, kind, state) for kind in layer_kinds(fields)])


def stated(value: int | None, field: str) -> int:
    if value is None:
        unknown(field, f"the configuration states no {field}")
    return value
