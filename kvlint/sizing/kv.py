"""The arithmetic of caches that belongs to no engine: elements and bytes of an architecture's layers.

Sizes are of one copy of the whole model and of one sequence, in bytes, unless a function says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture, Attention, Compressed, Latent, Layer, State

ELEMENT_BYTES: dict[str, Fraction] = {
    "float64": Fraction(8),
    "float32": Fraction(4), "f32": Fraction(4), "fp32": Fraction(4), "float": Fraction(4),
    "float16": Fraction(2), "f16": Fraction(2), "fp16": Fraction(2), "half": Fraction(2),
    "bfloat16": Fraction(2), "bf16": Fraction(2),
    "fp8": Fraction(1), "fp8_e4m3": Fraction(1), "fp8_e5m2": Fraction(1), "fp8_e4m3fn": Fraction(1),
    "float8_e4m3fn": Fraction(1), "float8_e5m2": Fraction(1), "int8": Fraction(1), "uint8": Fraction(1),
    # ggml blocks of 32 elements: scale, and minimum where there is one, of 16 bits each
    "q8_0": Fraction(34, 32), "q5_1": Fraction(24, 32), "q5_0": Fraction(22, 32), "q4_1": Fraction(20, 32),
    "q4_0": Fraction(18, 32), "iq4_nl": Fraction(18, 32),
    # four bits, and one scale of eight bits for each 16 elements
    "nvfp4": Fraction(9, 16),
}  # fmt: skip


def element_bytes(dtype: str) -> Fraction | Unknown:
    """Bytes of one cached element, block scales included, as an exact fraction."""
    known = ELEMENT_BYTES.get(dtype.removeprefix("torch.").lower())
    if known is None:
        return Unknown("kv_dtype", f"the size of an element of type {dtype!r} is not known", "name a known cache type")
    return known


def growing_elements(layer: Layer) -> Fraction:
    """Elements that one more token adds to a layer, once it is long; latents as such, indexer keys included.

    DeepSeek V4: a row for every `ratio` tokens (rank 512 and, with an indexer at ratio 4, its key).
    """
    total = Fraction(0)
    for part in layer:
        if isinstance(part, Attention) and part.window is None and part.chunk is None:
            total += part.elements
        elif isinstance(part, Latent):
            total += part.elements + (part.indexer_dim or 0)
        elif isinstance(part, Compressed) and part.ratio:
            total += Fraction(part.head_dim + (part.index_dim if part.ratio == 4 else 0), part.ratio)
    return total


def kv_bytes_per_token(architecture: Architecture, element: Fraction, layers: Iterable[Layer] | None = None) -> int:
    """What one more token adds, in bytes, in the layers whose cache grows without bound; a part of a byte counts whole."""
    elements = sum((growing_elements(layer) for layer in layers or architecture.layers), Fraction(0))
    return ceil(elements * element)


def windowed_bytes(architecture: Architecture, tokens: int, element: Fraction) -> int:
    """What sliding and chunked layers hold at `tokens` tokens when they keep exactly their window."""
    return ceil(sum(windowed_elements(layer, tokens) for layer in architecture.layers) * element)


def windowed_elements(layer: Layer, tokens: int) -> int:
    total = 0
    for part in layer:
        if isinstance(part, Attention) and (part.window or part.chunk):
            total += part.elements * min(tokens, part.window or part.chunk or tokens)
        elif isinstance(part, Compressed):
            total += part.head_dim * (1 if part.ratio else 2) * min(tokens, part.window)
    return total


def state_bytes(part: State, columns: int, conv: Fraction, recurrent: Fraction) -> int:
    """One layer's state: `columns` columns of convolution state (the kernel, or one less, by engine) and the recurrence."""
    return ceil(part.conv_channels * columns * conv + part.recurrent * recurrent)
