"""One conversation's bytes as a function of its window: growing × window + windowed × min(window, w) + state."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture, Attention, Compressed, Cross, Latent, State, UnknownArchitecture
from kvlint.records import dataclass
from kvlint.sizing.kv import element_bytes


@dataclass(frozen=True, slots=True)
class SlotShape:
    """`growing`: bytes of each token; `windows`: bytes a token up to a length; `state`: bytes that do not grow."""

    growing: Fraction
    windows: tuple[tuple[Fraction, int], ...]
    state: int

    def __call__(self, window: int) -> int:
        windowed = sum((rate * min(window, limit) for rate, limit in self.windows), Fraction(0))
        return ceil(self.growing * window + windowed) + self.state

    @property
    def bytes_per_token(self) -> int:
        """A part of a byte counts whole."""
        return ceil(self.growing)


def mlx_shape(
    architecture: Architecture, release: str, dtype: str, bits: int | None = None, group: int = 64
) -> SlotShape:
    """As that release of mlx-lm keeps the layers, without its steps of 256.  Raises `UnknownArchitecture`."""
    from kvlint.sizing.mlx import kv as kv_mlx

    element = _element(dtype)
    layout = kv_mlx.Layout(architecture, kv_mlx.release(release), element, bits, group)
    growing, state, windows = Fraction(0), 0, []
    for layer in architecture.layers:
        compound = len(layer) > 1
        for part in layer:
            if isinstance(part, State):
                state += ceil(layout.state_bytes(part))
            elif isinstance(part, Attention) and part.shared:
                continue
            elif isinstance(part, Attention) and part.window is not None and layout.rotates():
                windows.append((part.elements * element, part.window))
            elif isinstance(part, Attention) and part.chunk is not None and "ChunkedKVCache" in layout.classes:
                windows.append((part.elements * element, part.chunk))
            elif isinstance(part, Attention):
                growing += layout.row_bytes(part.kv_heads, part.key_dim, part.value_dim, compound=compound)
            elif isinstance(part, Latent):
                growing += Fraction(layout.latent_bytes(part, [256], compound=compound), 256)
            else:
                raise UnknownArchitecture("model_type", "how mlx-lm keeps these layers is not known")
    return SlotShape(growing, tuple(windows), state)


def plain_shape(architecture: Architecture, dtype: str) -> SlotShape:
    """The layers as the model describes them: windows kept exactly, latents as such, 32-bit recurrent state."""
    element = _element(dtype)
    growing, state, windows = Fraction(0), 0, []
    for layer in architecture.layers:
        for part in layer:
            if isinstance(part, State):
                state += part.conv_channels * max(part.conv_kernel - 1, 0) * 2 + part.recurrent * 4
            elif isinstance(part, Attention):
                limit = part.window or part.chunk
                if limit:
                    windows.append((part.elements * element, limit))
                else:
                    growing += part.elements * element
            elif isinstance(part, Latent):
                growing += (part.elements + (part.indexer_dim or 0)) * element
            elif isinstance(part, Compressed):
                raise UnknownArchitecture("compress_ratios", "the size of compressed layers depends on the engine")
            elif isinstance(part, Cross):
                continue
    return SlotShape(growing, tuple(windows), state)


def slot_function(architecture: Architecture, engine: str, dtype: str) -> tuple[Callable[[int], int], int]:
    """The bytes of one conversation by window, and of one more token, in the newest release of `engine`."""
    if engine == "mlx-lm":
        from kvlint.engines.options import options

        shape = mlx_shape(architecture, options("mlx-lm").releases[-1], dtype)
    else:
        shape = plain_shape(architecture, dtype)
    return shape, shape.bytes_per_token


def _element(dtype: str) -> Fraction:
    size = element_bytes(dtype)
    if isinstance(size, Unknown):
        raise ValueError(size.reason)
    return size
