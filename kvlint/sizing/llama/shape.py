"""What llama-server allocates for one cell and one slot of a model, from its architecture.

Rows are element counts of one token, of one copy of the whole model; bytes come with the cache types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kvlint.models.architecture import (
    Architecture,
    Attention,
    Compressed,
    Cross,
    Latent,
    Layer,
    Part,
    State,
    UnknownArchitecture,
)
from kvlint.models.config import architecture as config_architecture
from kvlint.models.gguf import architecture as gguf_architecture
from kvlint.models.gguf import is_gguf
from kvlint.records import dataclass
from kvlint.sizing.llama.releases import data

OVERLAPPING = 4  # the ratio of DeepSeek V4's layers with an indexer, whose compressed spans overlap


@dataclass(frozen=True, slots=True)
class Row:
    """What one layer keeps of one token: elements of keys and of values, and the head sizes a quantized block must divide."""

    keys: int
    values: int
    key_head: int
    value_head: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The rows of a model's layers by the cache they live in, and its state.

    `window`: positions that sliding layers need (0: none slide).  `indexer`: keys of sparse indexers.  `state_elements`: of
    one copy of the state of all layers.  `widest_values`: the widest row of values, to which all are padded without flash
    attention.  `trained`: positions the model was trained for.  `latent`: latent attention, which keeps no values.
    `compressed`: DeepSeek V4's layers, whose windows are among `sliding`.
    """

    name: str
    full: tuple[Row, ...]
    sliding: tuple[Row, ...]
    indexer: tuple[Row, ...]
    window: int
    state_elements: int
    widest_values: int
    trained: int | None
    latent: bool
    drafting: tuple[Row, ...]
    compressed: tuple[Compressed, ...] = ()

    @property
    def hybrid(self) -> bool:
        return bool(self.state_elements and (self.full or self.sliding) and not self.compressed)


def shape(model: Architecture | Mapping[str, Any]) -> Shape:
    """The shape of a model given as GGUF metadata, as a config.json or as an architecture (a model that is served as GGUF).

    Raises UnknownArchitecture where llama.cpp's cache for it is not known.
    """
    if isinstance(model, Architecture):
        return from_architecture(model)
    if is_gguf(model):
        return from_architecture(gguf_architecture(model))
    return from_architecture(config_architecture(model))


def from_architecture(architecture: Architecture) -> Shape:
    """As `shape`; a Hugging Face model is taken as the converter and the loader make it, which ignores some windows."""
    found: Shape | None = architecture.memo.get("llama")
    if found is None:
        found = architecture.memo["llama"] = _from_architecture(architecture)
    return found


def _from_architecture(architecture: Architecture) -> Shape:
    name, slides = _converted(architecture)
    kept = [part for layer in architecture.layers for part in layer]
    parts = _as_loaded(kept, name, slides)
    drafting = _as_loaded([part for layer in architecture.draft_layers for part in layer], name, slides)
    compressed = [part for part in parts if isinstance(part, Compressed)]
    full, sliding, indexer = _split([*parts, *(part for part in drafting if isinstance(part, Compressed))])
    windows = {part.window or part.chunk for part in parts if isinstance(part, Attention)} - {None}
    windows |= {part.window for part in compressed}
    if len(windows) > 1:
        raise UnknownArchitecture(
            "sliding_window", f"several windows in one model: {sorted(map(int, filter(None, windows)))}"
        )
    rows = [*full, *sliding, *_rows(drafting), *_rows(_shared(architecture.layers))]
    return Shape(
        name=name,
        full=tuple(full),
        sliding=tuple(sliding),
        indexer=tuple(indexer),
        window=max((int(window) for window in windows if window), default=0),
        state_elements=sum(state_elements(part) for part in parts if isinstance(part, (State, Compressed))),
        widest_values=max((row.values for row in rows), default=0),
        trained=architecture.positions,
        latent=any(isinstance(part, (Latent, Compressed)) for part in parts),
        drafting=tuple(_rows(drafting)),
        compressed=tuple(compressed),
    )


def state_elements(state: State | Compressed) -> int:
    """Elements of one copy of a layer's state; the convolution keeps a column less than its kernel.

    Compressed layers keep the rows that are not compressed yet, and a score beside each: 2 x ratio rows of double width with
    overlap (ratio 4, and the same for the indexer), ratio rows without (B:src/llama-kv-cache-dsv4.cpp:1256).
    """
    if isinstance(state, Compressed):
        if state.ratio == OVERLAPPING:
            return 2 * 2 * state.ratio * 2 * (state.head_dim + state.index_dim)
        return 2 * state.ratio * state.head_dim
    return max(state.conv_kernel - 1, 0) * state.conv_channels + state.recurrent


def _converted(architecture: Architecture) -> tuple[str, bool]:
    """The model's GGUF name, and whether the loader heeds its window.

    A plain model needs no name; one with a window, a latent or a state of which the loader is not known is refused.
    """
    tables = data()["gguf"]
    if "general.architecture" in architecture.config:
        return architecture.model_type, True
    written = architecture.model_type
    name = data()["converted"].get(written) or data()["converted"].get(written.removesuffix("_text"))
    if name is not None:
        return name, name in tables["sliding"]
    for part in architecture.parts():
        if not isinstance(part, Attention) or part.window or part.chunk or part.shared:
            raise UnknownArchitecture(
                "model_type",
                f"how llama.cpp keeps the {type(part).__name__.lower()} layers of {written!r} is not known",
            )
    return written, False


def _as_loaded(parts: Iterable[Part], name: str, slides: bool) -> list[Part]:
    """The parts as the loader keeps them: windows that it does not heed are dropped, latents that it expands are expanded."""
    latent = name in data()["gguf"]["latent"]
    result: list[Part] = []
    for part in parts:
        if isinstance(part, Cross):
            raise UnknownArchitecture("model_type", "llama.cpp's cache for cross attention is not known")
        if isinstance(part, Latent) and not latent:
            result.append(Attention(part.heads, part.nope_dim + part.rope_dim, part.value_dim))
        elif isinstance(part, Attention) and part.shared:
            continue
        elif isinstance(part, Attention) and (part.window or part.chunk) and not slides:
            result.append(Attention(part.kv_heads, part.key_dim, part.value_dim))
        else:
            result.append(part)
    return result


def _split(parts: Iterable[Part]) -> tuple[list[Row], list[Row], list[Row]]:
    """Rows of the full, the sliding and the indexer cache."""
    full: list[Row] = []
    sliding: list[Row] = []
    indexer: list[Row] = []
    for part in parts:
        if isinstance(part, Attention):
            (sliding if part.window or part.chunk else full).append(_row(part))
        elif isinstance(part, Compressed):
            sliding.append(Row(part.head_dim, 0, part.head_dim, 0))
        elif isinstance(part, Latent):
            full.append(_row(part))
            if part.indexer_dim:
                indexer.append(Row(part.indexer_dim, 0, part.indexer_dim, 0))
    return full, sliding, indexer


def _rows(parts: Iterable[Part]) -> list[Row]:
    return [_row(part) for part in parts if isinstance(part, (Attention, Latent))]


def _shared(layers: Iterable[Layer]) -> list[Part]:
    return [part for layer in layers for part in layer if isinstance(part, Attention) and part.shared]


def _row(part: Attention | Latent) -> Row:
    if isinstance(part, Latent):
        return Row(part.elements, 0, part.elements, 0)
    return Row(part.kv_heads * part.key_dim, part.kv_heads * part.value_dim, part.key_dim, part.value_dim)
