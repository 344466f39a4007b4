"""Combinations with which llama-server does not start, as far as the model and the types of its caches decide."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.sizing.llama.releases import Semantics, data
from kvlint.sizing.llama.settings import Refusal, Settings
from kvlint.sizing.llama.shape import Row, Shape


def block(cache_type: str) -> tuple[int, int]:
    """Elements and bytes of one block of a cache type."""
    elements, size = data()["types"][cache_type]
    return int(elements), int(size)


def quantized(cache_type: str) -> bool:
    return block(cache_type)[0] > 1


def flash_attention(settings: Settings, rules: Semantics, shape: Shape) -> str:
    """on, off or auto: as written or by default, and off for models that cannot."""
    if shape.name in data()["constants"]["no_flash"]:
        return "off"
    return settings.flash_attention or rules.flash_attention


def refused(settings: Settings, rules: Semantics, shape: Shape, draft: Shape | None) -> Refusal | None:
    """The first reason not to start, in the order in which llama-server finds them; None where it goes on."""
    for cache_type, name in _types(settings):
        if cache_type not in data()["types"]:
            return Refusal("cache-type", f"{cache_type!r} is no cache type", (name,))
    target = (settings.key_type(), settings.value_type())
    reason = _context_refused(settings, rules, shape, target, ("cache_type_k", "cache_type_v"))
    if reason is not None:
        return reason
    nextn = data()["constants"]["nextn_type"] in settings.spec_types
    if nextn and not (draft or shape).drafting:
        return Refusal("no-draft-layers", f"{shape.name} has no layers for multi-token prediction", ("spec_types",))
    if draft is None and not nextn:
        return None
    names = ("draft_type_k", "draft_type_v")
    return _context_refused(settings, rules, draft or shape, settings.draft_types(), names)


def _context_refused(
    settings: Settings, rules: Semantics, shape: Shape, types: tuple[str, str], names: tuple[str, str]
) -> Refusal | None:
    """Why a context with these cache types is not made (B:src/llama-context.cpp:3815)."""
    flash = flash_attention(settings, rules, shape)
    if settings.split_tensor and flash == "off":
        return Refusal("split-without-flash-attention", "a tensor split needs flash attention", ("flash_attention",))
    type_k, type_v = types
    if rules.equal_latent_types and shape.latent and type_k != type_v:
        return Refusal("kv-types-differ", f"latent attention takes one cache type, not {type_k} and {type_v}", names)
    if quantized(type_v) and flash == "off":
        named = (names[1], "flash_attention")
        return Refusal("quantized-v-without-flash-attention", f"values of type {type_v} need flash attention", named)
    sizes_of = _heads if rules.divides_head and flash != "off" else _row_sizes
    for cache_type, name, sizes in zip(types, names, sizes_of((*shape.full, *shape.sliding)), strict=True):
        elements = block(cache_type)[0]
        odd = sorted(size for size in sizes if size % elements)
        if odd:
            message = f"blocks of {elements} elements of type {cache_type} do not divide {odd[0]} elements"
            return Refusal("head-not-divisible", message, (name,))
    return None


def _heads(rows: tuple[Row, ...]) -> tuple[set[int], set[int]]:
    return {row.key_head for row in rows}, {row.value_head for row in rows}


def _row_sizes(rows: tuple[Row, ...]) -> tuple[set[int], set[int]]:
    return {row.keys for row in rows}, {row.values for row in rows}


def _types(settings: Settings) -> Iterator[tuple[str, str]]:
    draft_k, draft_v = settings.draft_types()
    yield settings.key_type(), "cache_type_k"
    yield settings.value_type(), "cache_type_v"
    yield draft_k, "draft_type_k"
    yield draft_v, "draft_type_v"
