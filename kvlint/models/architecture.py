"""What a model's cache is made of, layer by layer: facts of the checkpoint, no engine in it.

Sizes are element counts; bytes come in `sizing`, where an engine and its cache type are known.
A layer is a tuple of parts, because some layers keep two things (Falcon-H1: attention and state side by side) and some
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Union

from kvlint.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Attention:
    """Keys and values of `kv_heads` heads.  `window`: sliding; `chunk`: chunked local; both None: grows without bound.

    `shared`: the layer reads an earlier layer's cache and stores nothing (Gemma 3n, Gemma 4 E models).
    """

    kv_heads: int
    key_dim: int
    value_dim: int
    window: int | None = None
    chunk: int | None = None
    shared: bool = False

    @property
    def elements(self) -> int:
        """Elements stored for one token."""
        return 0 if self.shared else self.kv_heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention: one latent row and one rope key a token; some engines store the expanded sizes.

    `indexer_dim`: the key of a sparse indexer (DSA) that this layer owns, None where it has none.
    """

    rank: int
    rope_dim: int
    heads: int
    nope_dim: int
    value_dim: int
    indexer_dim: int | None = None

    @property
    def elements(self) -> int:
        return self.rank + self.rope_dim


@dataclass(frozen=True, slots=True)
class Compressed:
    """DeepSeek V4: a window of full rows, then a row for every `ratio` tokens (4: CSA, indexed; 128: HCA; 0: none)."""

    ratio: int
    window: int
    head_dim: int
    index_dim: int


@dataclass(frozen=True, slots=True)
class State:
    """A state that does not grow: linear attention, state space, short convolution.

    `kind`: gdn, kda, mamba1, mamba2, short-conv, lightning, rglru, rwkv.
    `conv_channels` × the kernel (or kernel - 1, by engine): elements of convolution state; `recurrent`: of the other.
    The remaining fields are what engines split over devices: heads (value heads), key heads, groups and their sizes.
    """

    kind: str
    conv_channels: int
    conv_kernel: int
    recurrent: int
    heads: int = 1
    key_heads: int = 1
    key_dim: int = 0
    value_dim: int = 0
    groups: int = 1


@dataclass(frozen=True, slots=True)
class Cross:
    """Cross attention to an encoder or to image tokens: nothing for text alone."""

    kv_heads: int
    key_dim: int
    value_dim: int
    encoder_tokens: int | None = None


Part = Union[Attention, Latent, Compressed, State, Cross]
Layer = tuple[Part, ...]
Kind = Union[type[Any], tuple[type[Any], ...]]


@dataclass(frozen=True, slots=True)
class Architecture:
    """One model's cache-bearing shape.

    `positions`: the largest of the model's positions as written (None: not stated); engines derive limits from `config`.
    `draft_layers`: what its multi-token-prediction layers would keep if an engine runs them.
    `config`: the text model's own configuration, for what one engine alone reads.
    `source`: where these facts were read.
    `memo`: what was worked out from these facts alone, by who worked it out.
    """

    model_type: str
    classes: tuple[str, ...]
    layers: tuple[Layer, ...]
    hidden_size: int
    heads: int
    vocab_size: int | None
    dtype: str | None
    positions: int | None
    draft_layers: tuple[Layer, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    root: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    memo: dict[Any, Any] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Layers that are alike are one object."""
        known: dict[Layer, Layer] = {}
        object.__setattr__(self, "layers", tuple([known.setdefault(layer, layer) for layer in self.layers]))

    def parts(self, kind: Kind = object) -> Iterator[Any]:
        """All parts of a kind, in layer order."""
        found: tuple[Any, ...] | None = self.memo.get(kind)
        if found is None:
            found = tuple([part for layer in self.layers for part in layer if isinstance(part, kind)])
            self.memo[kind] = found
        return iter(found)

    def distinct(self, kind: Kind = object) -> tuple[Any, ...]:
        """The parts of a kind, each once where layers are alike."""
        found: tuple[Any, ...] | None = self.memo.get(("distinct", kind))
        if found is None:
            found = self.memo["distinct", kind] = tuple(dict.fromkeys(self.parts(kind)))
        return found

    @property
    def hybrid(self) -> bool:
        """Attention and recurrent state in one model."""
        return bool(self.distinct(State) and self.distinct((Attention, Latent)))


class UnknownArchitecture(ValueError):
    """The configuration is not understood; `field` names what could not be read."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
