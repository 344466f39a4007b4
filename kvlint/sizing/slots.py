"""One conversation's bytes as a function of its window: growing × window + windowed × min(window, w) + state."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import Any

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


def plain_shape(architecture: Architecture, dtype: str, convolution_bytes: int = 2) -> SlotShape:
    """The layers as the model describes them: windows kept exactly, latents as such, 32-bit recurrent state."""
    element = _element(dtype)
    growing, state, windows = Fraction(0), 0, []
    for layer in architecture.layers:
        for part in layer:
            if isinstance(part, State):
                state += part.conv_channels * max(part.conv_kernel - 1, 0) * convolution_bytes + part.recurrent * 4
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


def tgi_shape(architecture: Architecture, dtype: str) -> SlotShape:
    """TGI keeps every token in every layer (models/flash_causal_lm.py:1519)."""
    total = 0
    for part in (part for layer in architecture.layers for part in layer):
        if not isinstance(part, Attention):
            raise UnknownArchitecture("model_type", "how TGI keeps these layers is not known")
        total += part.elements
    return SlotShape(total * _element(dtype), (), 0)


def vllm_shape(architecture: Architecture, release: str, dtype: str) -> SlotShape:
    """As that release of vLLM keeps the layers, without its blocks."""
    from kvlint.sizing.vllm.releases import rules
    from kvlint.sizing.vllm.settings import Settings
    from kvlint.sizing.vllm.specs import growing_bytes, token_bytes
    from kvlint.sizing.vllm.state import state_bytes

    settings = Settings(release, 1, 1, kv_cache_dtype=dtype, model_dtype=architecture.dtype or "bfloat16")
    growing, state, windows = Fraction(_known(growing_bytes(architecture, settings))), 0, []
    (each,) = rules(release)
    for part in (part for layer in architecture.layers for part in layer):
        if isinstance(part, State):
            state += _known(state_bytes(part, architecture, settings, each))
        elif isinstance(part, Attention) and (limit := part.window or part.chunk) and not part.shared:
            windows.append((Fraction(sum(_known(token_bytes(part, architecture, settings, each)))), limit))
    return SlotShape(growing, tuple(windows), state)


def sglang_shape(architecture: Architecture, release: str, dtype: str) -> SlotShape:
    """As that release of SGLang keeps the layers: windows only of the classes that it has a second pool for."""
    from kvlint.sizing.sglang import sizes, start
    from kvlint.sizing.sglang.model import Model, read_model, sliding_window
    from kvlint.sizing.sglang.releases import rules

    settings = sizes.settings_of(release, dtype)
    (each,) = rules(release)
    found, model = start.on_one(architecture, settings, each, 90), read_model(architecture, settings, each)
    if not isinstance(found, tuple) or not isinstance(model, Model):
        reason = found.reason if not isinstance(found, tuple) else "how SGLang keeps these layers is not known"
        raise UnknownArchitecture("model_type", reason)
    price, state = found
    windows = ((Fraction(price.sliding), sliding_window(model)),) if price.sliding else ()
    return SlotShape(Fraction(price.full), windows, state)


def slot_function(architecture: Architecture, engine: str, dtype: str) -> tuple[Callable[[int], int], int]:
    """The bytes of one conversation by window, and of one more token, in the newest release of `engine`."""
    from kvlint.engines.options import options

    if engine in ("mlx-lm", "vllm-mlx"):
        shape = mlx_shape(architecture, options("mlx-lm").releases[-1], dtype)
    elif engine == "vllm":
        shape = vllm_shape(architecture, options(engine).releases[-1], dtype)
    elif engine == "sglang":
        shape = sglang_shape(architecture, options(engine).releases[-1], dtype)
    elif engine == "tgi":
        shape = tgi_shape(architecture, dtype)
    else:  # llama.cpp keeps all of a recurrent state in 32 bits
        shape = plain_shape(architecture, dtype, 4 if engine in ("llama-server", "ollama") else 2)
    return shape, shape.bytes_per_token


def _known(found: Any) -> Any:
    """A size, or the reason why there is none."""
    reason = getattr(found, "reason", None)
    if reason is not None:
        raise UnknownArchitecture(getattr(found, "missing", "model_type"), reason)
    return found


def _element(dtype: str) -> Fraction:
    size = element_bytes(dtype)
    if isinstance(size, Unknown):
        raise ValueError(size.reason)
    return size
