"""What the transformers library holds after one forward pass: exact tensors, no rounding to blocks."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from kvlint.compiled import load
from kvlint.models.architecture import (
    Architecture,
    Attention,
    Compressed,
    Cross,
    Latent,
    Part,
    State,
    UnknownArchitecture,
)
from kvlint.sizing.kv import ELEMENT_BYTES


@lru_cache(maxsize=1)
def facts() -> Mapping[str, Any]:
    """data/models/transformers.toml, compiled: what single classes of the library do otherwise."""
    data: Mapping[str, Any] = load("models-transformers.json")
    return data


def cache_bytes(architecture: Architecture, tokens: int, sequences: int = 1, dtype: str = "bfloat16") -> int:
    """Bytes that `DynamicCache` holds for `sequences` sequences of `tokens` tokens after a single forward pass.

    `dtype`: of keys, values and convolution states; recurrent states are float32 in most classes.
    """
    if tokens <= 0 or sequences <= 0:
        return 0
    size = ELEMENT_BYTES[dtype]
    total = sum(part_bytes(architecture, part, tokens, size) for layer in architecture.layers for part in layer)
    if total.denominator != 1:
        raise ValueError(f"{dtype} does not pack the heads of this model into whole bytes")
    return sequences * int(total)


def part_bytes(architecture: Architecture, part: Part, tokens: int, size: Fraction) -> Fraction:
    if isinstance(part, Attention):
        return cached_heads(architecture, part) * kept_tokens(architecture, part, tokens) * size
    if isinstance(part, Latent):
        return (part.elements + (part.indexer_dim or 0)) * tokens * size
    if isinstance(part, Compressed):
        return compressed_bytes(part, tokens, size)
    if isinstance(part, Cross):
        return part.kv_heads * (part.key_dim + part.value_dim) * (part.encoder_tokens or 0) * size
    return state_size(part, size)


def kept_tokens(architecture: Architecture, part: Attention, tokens: int) -> int:
    """A sliding or chunked layer keeps one position less than the window that its class is given."""
    window = part.window or part.chunk
    if window is None:
        return tokens
    if stated(architecture, "window_extra"):
        window += 1
    return min(tokens, window - 1) if window > 1 else tokens


def cached_heads(architecture: Architecture, part: Attention) -> int:
    """Elements of one token: those of the KV heads, or of all query heads where the class repeats them first."""
    if part.shared or not stated(architecture, "every_head"):
        return part.elements
    return architecture.heads * (part.key_dim + part.value_dim)


def stated(architecture: Architecture, table: str) -> bool:
    """Whether the table names a field for this model type, and the file sets it."""
    field = facts()[table].get(architecture.model_type)
    return bool(field and architecture.config.get(field))


def state_size(part: State, size: Fraction) -> Fraction:
    """Convolution states have as many columns as the kernel; the type of the recurrence is the class's."""
    if part.kind not in facts()["recurrent_dtype"]:
        raise UnknownArchitecture("model_type", f"how this library keeps a state of kind {part.kind} is not known")
    fixed = facts()["recurrent_dtype"][part.kind]
    recurrent = size if fixed == "cache" else ELEMENT_BYTES[fixed]
    return part.conv_channels * part.conv_kernel * size + part.recurrent * recurrent


def compressed_bytes(part: Compressed, tokens: int, size: Fraction) -> Fraction:
    """DeepSeek V4: window rows, one compressed row each `ratio` tokens, rows not yet compressed with their gates.

    At ratio 4 rows are twice as wide (they overlap), and the last group is kept for the next, its gate in float32.
    """
    window = min(tokens, part.window - 1) * part.head_dim
    if part.ratio == 0:
        return 2 * window * size
    groups, rest = divmod(tokens, part.ratio)
    if part.ratio != 4:
        return (window + groups * part.head_dim + 2 * rest * part.head_dim) * size
    row = part.head_dim + part.index_dim
    overlap = 4 * row * (size + ELEMENT_BYTES["float32"]) if groups else Fraction(0)
    return (window + groups * row + 2 * rest * 2 * row) * size + overlap
