"""Families whose layers keep keys and values: full, grouped, sliding, chunked, shared, and the odd ways of writing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvlint.models.architecture import Attention, Cross, Layer
from kvlint.models.families_fields import (
    Fields,
    Shape,
    head_size,
    hidden_size,
    number_of_layers,
    query_heads,
    unknown,
)
from kvlint.models.families_kinds import CHUNKED, FULL, SLIDING, layer_kinds, named, window_size

KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "num_attention_groups")


def kv_heads(fields: Fields) -> int:
    """As stated; one for every query head only where the model's class takes an absent field so."""
    stated = fields.maybe(*KV_HEADS)
    if stated is not None:
        return stated
    if not fields.rules.get("mha"):
        unknown("num_key_value_heads", "the configuration states no number of key and value heads")
    return query_heads(fields)


def sizes(fields: Fields, kind: str) -> tuple[int, int, int]:
    """KV heads, key and value size of a layer of this kind, with the fields that override them for one kind only."""
    sliding = fields.rules.get("sliding_prefix")
    if sliding and kind == SLIDING:
        heads = fields.integer(sliding + "num_key_value_heads")
        key = fields.integer(sliding + "head_dim")
        return heads, key, fields.maybe(sliding + "v_head_dim") or key
    heads, key = kv_heads(fields), head_size(fields)
    value = fields.maybe("v_head_dim") if fields.rules.get("value_dim") else None
    if fields.rules.get("global") and kind == FULL:
        key = fields.integer("global_head_dim")
        if fields.flag("attention_k_eq_v"):
            heads = fields.maybe("num_global_key_value_heads") or heads
    return heads, key, value or key


def attention_part(fields: Fields, kind: str, shared: bool = False) -> Attention:
    heads, key, value = sizes(fields, kind)
    if kind == SLIDING:
        window = window_size(fields)
        if window is None:
            unknown("sliding_window", "layers slide, and the configuration states no sliding_window")
        return Attention(heads, key, value, window=window, shared=shared)
    if kind == CHUNKED:
        return Attention(heads, key, value, chunk=fields.integer("attention_chunk_size"), shared=shared)
    if kind != FULL:
        unknown("layer_types", f"a layer of kind {kind} in a model of attention layers only")
    return Attention(heads, key, value, shared=shared)


def attention(fields: Fields) -> Shape:
    """Attention in every layer, by `layer_types` or the pattern of the class; the last `num_kv_shared_layers` store nothing.

    `per_layer_config` holds whole fields for single layers, by index, in place of what the class works out for kinds.
    """
    if fields.raw("use_bidirectional_attention") not in (None, False, "vision"):
        unknown("use_bidirectional_attention", "the model attends in both directions, which changes its windows")
    kinds = layer_kinds(fields)
    if fields.rules.get("last_full"):
        kinds[-1] = FULL
    owners = len(kinds) - fields.count("num_kv_shared_layers")
    single = fields.table("per_layer_config")
    if single is not None:
        fields = Fields(fields.config, fields.constants, {**fields.rules, "global": False})
    layers: list[Layer] = []
    for index, kind in enumerate(kinds):
        own = (single or {}).get(str(index))
        layer_fields = Fields({**fields.config, **own}, fields.constants, fields.rules) if own else fields
        layers.append((attention_part(layer_fields, kind, index >= owners),))
    return Shape(layers, draft(fields, len(layers)))


def draft(fields: Fields, count: int) -> list[Layer] | None:
    """The draft where the class fixes its kind, or `layer_types` goes on past the last layer; None: like the last layer."""
    written = (fields.sequence("layer_types") or ())[count : count + draft_count(fields)]
    if written:
        return [(attention_part(fields, named(kind, "layer_types")),) for kind in written]
    kind = fields.rules.get("draft")
    return [(attention_part(fields, kind),)] * draft_count(fields) if kind else None


def draft_count(fields: Fields) -> int:
    """How many layers the multi-token-prediction draft has."""
    return fields.count("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "_num_mtp_layers")


def uniform(fields: Fields, heads: int) -> Shape:
    size = head_size(fields)
    return Shape([(Attention(heads, size, size),)] * number_of_layers(fields))


def falcon(fields: Fields) -> Shape:
    """The new decoder is grouped; before it, `multi_query` means one head whatever `num_kv_heads` says."""
    if fields.flag("new_decoder_architecture") or not fields.flag("multi_query"):
        return uniform(fields, fields.maybe("num_kv_heads", "n_head_kv") or query_heads(fields))
    return uniform(fields, 1)


def multi_query(fields: Fields) -> Shape:
    """GPTBigCode: one head with `multi_query`, else one for every query head."""
    return uniform(fields, 1 if fields.flag("multi_query") else query_heads(fields))


def chatglm(fields: Fields) -> Shape:
    """`multi_query_group_num` counts only with `multi_query_attention`."""
    grouped = fields.flag("multi_query_attention")
    return uniform(fields, fields.integer("multi_query_group_num") if grouped else query_heads(fields))


def attn_config(fields: Fields) -> Shape:
    """MPT and DBRX keep the number of KV heads in `attn_config.kv_n_heads`."""
    config = fields.table("attn_config") or {}
    kind = config.get("attn_type", "multihead_attention")
    if kind not in ("multihead_attention", "grouped_query_attention", "multiquery_attention"):
        unknown("attn_config.attn_type", f"attn_type {kind!r} is not understood")
    heads = Fields(config).maybe("kv_n_heads")
    if heads is None:
        if not fields.rules.get("mha"):
            unknown("attn_config.kv_n_heads", "attn_config states no kv_n_heads")
        heads = 1 if kind == "multiquery_attention" else query_heads(fields)
    return uniform(fields, heads)


def kv_channels(fields: Fields) -> Shape:
    """JetMoE: `kv_channels` is the head size, and the query heads follow from the experts."""
    size = fields.integer("kv_channels")
    return Shape([(Attention(kv_heads(fields), size, size),)] * number_of_layers(fields))


def block_configs(fields: Fields) -> Shape:
    """Nemotron-NAS: each block has its own group size, and some have no attention at all."""
    blocks = fields.per_layer("block_configs", number_of_layers(fields))
    if blocks is None:
        unknown("block_configs", "block_configs is not stated")
    heads, size = query_heads(fields), head_size(fields)
    return Shape([block(entry, heads, size) for entry in blocks])


def block(entry: Any, heads: int, size: int) -> Layer:
    config = entry.get("attention") if isinstance(entry, Mapping) else None
    if not isinstance(config, Mapping):
        unknown("block_configs", "an entry of block_configs has no attention object")
    if config.get("no_op") or config.get("replace_with_linear"):
        return ()
    own = Fields(config)
    group = own.maybe("n_heads_in_group")
    kv = heads // group if group else own.integer("num_key_value_heads")
    return (Attention(kv, size, size, window=own.maybe("window_length")),)


def cross_layer(fields: Fields) -> Shape:
    """Hunyuan: with `use_cla`, the first of each `cla_share_factor` layers stores, and the others read it."""
    heads, size = kv_heads(fields), head_size(fields)
    factor = fields.integer("cla_share_factor") if fields.flag("use_cla") else 1
    if fields.flag("use_mla"):
        unknown("use_mla", "use_mla is set, and how this family stores latents is not known")
    layers = number_of_layers(fields)
    return Shape([(Attention(heads, size, size, shared=index % factor != 0),) for index in range(layers)])


def image_cross(fields: Fields) -> Shape:
    """Mllama: the layers in `cross_attention_layers` attend to image tokens only."""
    count, heads, size = number_of_layers(fields), kv_heads(fields), head_size(fields)
    crossing = fields.sequence("cross_attention_layers")
    if crossing is None:
        unknown("cross_attention_layers", "cross_attention_layers is not stated")
    own: Layer = (Attention(heads, size, size),)
    cross: Layer = (Cross(heads, size, size),)
    return Shape([cross if index in crossing else own for index in range(count)])


def speech_decoder(fields: Fields) -> Shape:
    """Whisper: the decoder's own attention, and cross attention to `max_source_positions` encoder positions."""
    heads, width = fields.integer("decoder_attention_heads"), fields.integer("d_model")
    if width % heads:
        unknown("decoder_attention_heads", f"{heads} heads do not divide d_model {width}")
    size = width // heads
    encoder = fields.integer("max_source_positions")
    layer: Layer = (Attention(heads, size, size), Cross(heads, size, size, encoder_tokens=encoder))
    return Shape([layer] * fields.integer("decoder_layers"))


def decoder_only(fields: Fields) -> Shape:
    """Older decoders with one KV head for every query head, whatever their fields are called."""
    size, heads = hidden_size(fields), query_heads(fields)
    if size % heads:
        unknown("num_attention_heads", f"{heads} heads do not divide a hidden size of {size}")
    part = Attention(heads, size // heads, size // heads)
    return Shape([(part,)] * number_of_layers(fields))
