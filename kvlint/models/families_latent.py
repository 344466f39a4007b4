"""Families that keep a latent row a token (MLA), with sparse indexers (DSA) or compressed rows (DeepSeek V4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvlint.models.architecture import Attention, Compressed, Latent, Layer
from kvlint.models.families_attention import draft_count
from kvlint.models.families_fields import Fields, Shape, head_size, hidden_size, number_of_layers, query_heads, unknown
from kvlint.records import replace

INDEXER_LETTERS = {"F": "full", "S": "shared"}


def latent_part(fields: Fields) -> Latent:
    value = fields.maybe("v_head_dim")
    if value is None:
        if not fields.rules.get("value_dim_from_hidden"):
            unknown("v_head_dim", "the configuration states no v_head_dim")
        value = hidden_size(fields) // query_heads(fields)
    return Latent(
        rank=fields.integer("kv_lora_rank"),
        rope_dim=fields.integer("qk_rope_head_dim"),
        heads=query_heads(fields),
        nope_dim=fields.integer("qk_nope_head_dim"),
        value_dim=value,
    )


def latent(fields: Fields) -> Shape:
    """One latent attention a layer, or as many as the class builds (LongCat-Flash: two); plain attention without `use_mla`."""
    if fields.raw("use_mla") is False:
        size = head_size(fields)
        return Shape([(Attention(query_heads(fields), size, size),)] * number_of_layers(fields))
    part = latent_part(fields)
    return Shape([(part,) * fields.rules.get("parts", 1)] * number_of_layers(fields))


def indexed(fields: Fields) -> Shape:
    """Latent attention with a sparse indexer; only the layers marked full keep keys of their own."""
    count = number_of_layers(fields)
    part = latent_part(fields)
    with_key = replace(part, indexer_dim=fields.integer("index_head_dim"))
    layers: list[Layer] = [(with_key if kind == "full" else part,) for kind in indexers(fields, count)]
    return Shape(layers, [(with_key,)] * draft_count(fields))


def indexers(fields: Fields, count: int) -> Sequence[str]:
    """`full` or `shared` for each layer: by list, by pattern, by interval; without any of them all are full."""
    pattern = fields.raw("index_topk_pattern")
    written: Sequence[Any] | None = fields.per_layer("indexer_types", count)
    field = "indexer_types"
    if written is None and isinstance(pattern, str):
        field, written = "index_topk_pattern", [INDEXER_LETTERS.get(letter) for letter in pattern]
    elif written is None and pattern is not None:
        field, written = "index_topk_pattern", fields.per_layer("index_topk_pattern", count)
    if written is None:
        interval, offset = fields.maybe("index_topk_freq") or 1, fields.count("index_skip_topk_offset") or 2
        return ["full" if max(index - offset + 1, 0) % interval == 0 else "shared" for index in range(count)]
    if len(written) < count or set(written) - {"full", "shared"}:
        unknown(field, f"{field} does not mark each layer full or shared")
    return written


def compressed(fields: Fields) -> Shape:
    """DeepSeek V4: `compress_ratios` has an entry for every layer, then those of the draft."""
    ratios = fields.sequence("compress_ratios")
    count = number_of_layers(fields)
    if ratios is None or len(ratios) < count:
        unknown("compress_ratios", f"compress_ratios does not give a ratio for each of {count} layers")
    parts = [compressed_part(fields, ratio) for ratio in ratios]
    draft = draft_count(fields)
    return Shape(list(parts[:count]), list(parts[count : count + draft]))


def compressed_part(fields: Fields, ratio: Any) -> Layer:
    if ratio not in (0, 4, 128) or isinstance(ratio, bool):
        unknown("compress_ratios", f"compress_ratios has an entry {ratio!r}; 0, 4 and 128 are understood")
    return (
        Compressed(
            ratio=ratio,
            window=fields.integer("sliding_window"),
            head_dim=fields.integer("head_dim"),
            index_dim=fields.integer("index_head_dim"),
        ),
    )
