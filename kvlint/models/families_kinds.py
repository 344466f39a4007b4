"""What kind each layer is: written out in the configuration, or by the pattern of the model's class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kvlint.models.families_fields import Fields, number_of_layers, unknown

FULL, SLIDING, CHUNKED, LINEAR, HYBRID, HYBRID_SLIDING, NOTHING = (
    "full", "sliding", "chunked", "linear", "hybrid", "hybrid-sliding", "nothing",
)  # fmt: skip

WRITTEN = {
    "full_attention": FULL,
    "global_attention": FULL,
    "attention": FULL,
    "indexed_attention": FULL,
    "sliding_attention": SLIDING,
    "local_attention": SLIDING,
    "chunked_attention": CHUNKED,
    "linear_attention": LINEAR,
    "recurrent": LINEAR,
    "mamba": LINEAR,
    "mamba2": LINEAR,
    "conv": LINEAR,
    "hybrid": HYBRID,
    "hybrid_sliding": HYBRID_SLIDING,
    "mlp": NOTHING,
    "moe": NOTHING,
}

LETTERS = {"M": LINEAR, "*": FULL, "-": NOTHING, "E": NOTHING}


def layer_kinds(fields: Fields) -> list[str]:
    """One kind a layer: `layer_types` where it is written, else the rule of the class."""
    count = number_of_layers(fields)
    for name in ("layer_types", "layers_block_type"):
        written = fields.per_layer(name, count)
        if written is not None:
            return [named(kind, name) for kind in written]
    return by_rule(fields, count)


def named(kind: Any, field: str) -> str:
    known = WRITTEN.get(kind) if isinstance(kind, str) else None
    if known is None:
        unknown(field, f"{field} has an entry {kind!r} that is not understood")
    return known


def by_rule(fields: Fields, count: int) -> list[str]:
    rule = fields.rules.get("pattern", {"rule": "window"})
    return RULES[rule["rule"]](fields, rule, count)


def window_size(fields: Fields) -> int | None:
    """The sliding window; None where there is none, or the class has it switched off (`gate`)."""
    gate = fields.rules.get("gate")
    if gate and not fields.flag(gate):
        return None
    return fields.maybe("sliding_window", "sliding_window_size", "attention_window_size")


def windowed(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """All layers alike: sliding where a window is set, as caches are built for a class that says nothing of its layers."""
    del rule
    if window_size(fields) is not None:
        return [SLIDING] * count
    return [CHUNKED if fields.maybe("attention_chunk_size") is not None else FULL] * count


def every(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """Every nth layer is full: the last of each n, or the first of each n with `first`; a pattern may also be text like LLLG."""
    other = rule.get("other", SLIDING)
    pattern = fields.raw(rule["field"]) if "field" in rule else None
    if isinstance(pattern, str):
        return lettered(pattern, rule["field"], count)
    if other == SLIDING and rule.get("no_window") == FULL and window_size(fields) is None:
        return [FULL] * count
    every_nth = fields.maybe(rule["field"]) if "field" in rule else None
    length = every_nth or rule.get("n")
    if not length:
        unknown(rule.get("field", "layer_types"), f"{rule.get('field', 'layer_types')} is not stated")
    offset = 0 if rule.get("first") else length - 1
    return [FULL if index % length == offset else other for index in range(count)]


def lettered(pattern: str, field: str, count: int) -> list[str]:
    kinds = {"L": SLIDING, "G": FULL}
    if not pattern or set(pattern) - set(kinds):
        unknown(field, f"{field} is {pattern!r}; only the letters L and G are understood")
    return [kinds[pattern[index % len(pattern)]] for index in range(count)]


def after(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """Layers from `max_window_layers` on slide (Qwen2, Qwen3, dots.llm1)."""
    del rule
    if window_size(fields) is None:
        return [FULL] * count
    first = fields.raw("max_window_layers")
    if isinstance(first, bool) or not isinstance(first, int):
        unknown("max_window_layers", "a window is in use and max_window_layers is not stated")
    return [SLIDING if index >= first else FULL for index in range(count)]


def alternate_before(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """Even layers below `max_window_layers` slide (Qwen2-MoE)."""
    del rule
    if window_size(fields) is None:
        return [FULL] * count
    end = fields.integer("max_window_layers")
    return [SLIDING if index % 2 == 0 and index < end else FULL for index in range(count)]


def without_rope(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """Layers without rotary positions differ from those with (Llama 4: full against chunked; SmolLM3: sliding against full).

    `no_rope_layers` holds 1 for a layer that has rotary positions; an empty list means the interval, not none.
    """
    written = fields.per_layer("no_rope_layers", count)
    interval = fields.integer("no_rope_layer_interval")
    rope = [bool(entry) for entry in written] if written else [(i + 1) % interval != 0 for i in range(count)]
    if rule["with"] == CHUNKED and fields.maybe("attention_chunk_size") is None:
        return [FULL] * count
    if rule["without"] == SLIDING and window_size(fields) is None:
        return [FULL] * count
    return [rule["with"] if has else rule["without"] for has in rope]


def window_flags(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """A list with 1 for a window layer (MiMo-V2), else the first and every nth layer full."""
    written = fields.per_layer(rule["field"], count)
    if written is None:
        return [FULL if index == 0 or (index + 1) % rule["n"] == 0 else SLIDING for index in range(count)]
    if set(written) - {0, 1}:
        unknown(rule["field"], f"{rule['field']} has entries other than 0 and 1")
    return [SLIDING if entry else FULL for entry in written]


def full_flags(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """A list with 1 for softmax attention and 0 for linear attention (MiniMax-01, MiniMax-M1)."""
    written = fields.per_layer(rule["field"], count)
    if written is None:
        unknown(rule["field"], f"{rule['field']} is not stated")
    if set(written) - {0, 1}:
        unknown(rule["field"], f"{rule['field']} has entries other than 0 and 1")
    return [FULL if entry else rule["other"] for entry in written]


def full_indices(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """A list of the indices of the layers with full attention (Bamba, LFM2)."""
    written = fields.sequence(rule["field"])
    if written is None:
        unknown(rule["field"], f"{rule['field']} is not stated")
    return placed(written, rule["field"], count, rule["other"])


def placed(indices: Sequence[Any], field: str, count: int, other: str, base: int = 0) -> list[str]:
    kinds = [other] * count
    for index in indices:
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index - base < count:
            unknown(field, f"{field} has an entry {index!r} outside the {count} layers")
        kinds[index - base] = FULL
    return kinds


def periodic(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """`attn_layer_period` and `attn_layer_offset`, which may be 0 (Jamba); Zamba counts them after a fixed beginning."""
    period, offset = fields.integer("attn_layer_period"), fields.raw("attn_layer_offset")
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        unknown("attn_layer_offset", "attn_layer_offset is not stated")
    start = rule.get("start", [])
    rest = [rule.get("at", FULL) if index % period == offset else LINEAR for index in range(count - len(start))]
    return [*start, *rest]


def alike(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """All layers of one kind, which the class fixes."""
    del fields
    return [rule["kind"]] * count


def after_dense(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """The first dense layers and the rest each count their own pattern (Cohere2-MoE)."""
    dense = min(fields.count("first_k_dense_replace"), count)
    kinds = []
    for length, layers in ((fields.integer(rule["prefix"]), dense), (fields.integer(rule["field"]), count - dense)):
        kinds += [FULL if (index + 1) % length == 0 else SLIDING for index in range(layers)]
    return kinds


def unstated(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """No rule serves: the class's own list is for one depth only."""
    del fields, count
    unknown(rule["field"], f"the configuration states no {rule['field']}")


def repeated(fields: Fields, rule: dict[str, Any], count: int) -> list[str]:
    """A short list of block types, repeated over the layers (RecurrentGemma)."""
    written = fields.sequence(rule["field"])
    if not written:
        unknown(rule["field"], f"{rule['field']} is not stated")
    kinds = [named(kind, rule["field"]) for kind in written]
    attention = rule.get("attention", FULL)
    kinds = [attention if kind == FULL else kind for kind in kinds]
    return [kinds[index % len(kinds)] for index in range(count)]


RULES: dict[str, Callable[[Fields, dict[str, Any], int], list[str]]] = {
    "window": windowed,
    "alike": alike,
    "unstated": unstated,
    "every": every,
    "after": after,
    "after-dense": after_dense,
    "alternate-before": alternate_before,
    "without-rope": without_rope,
    "window-flags": window_flags,
    "full-flags": full_flags,
    "full-indices": full_indices,
    "periodic": periodic,
    "repeated": repeated,
}
