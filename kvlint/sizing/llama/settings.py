"""The settings that decide llama-server's slots and caches, and what comes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvlint.facts import Range, Unknown
from kvlint.models.architecture import Architecture
from kvlint.records import dataclass
from kvlint.sizing.llama.releases import Semantics, data
from kvlint.sizing.llama.shape import Shape

Model = Architecture | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """One command line; None where it says nothing.

    `context` -c (0: the trained context), `parallel` -np, `unified` -kvu and its negation, `per_slot` --kv-unified-per-slot,
    `cache_type_k` and `_v` -ctk and -ctv, `flash_attention` on, off or auto, `split_tensor` -sm tensor, `fit` --fit,
    `fit_context` --fit-ctx, `spec_types` --spec-type, `drafted` --spec-draft-n-max, `draft` the model of -md and
    `draft_type_k` and `_v` its cache types, `cache_ram` in MiB (-1: unlimited, 0: off), `checkpoints` --ctx-checkpoints.
    """

    context: int | None = None
    parallel: int | None = None
    unified: bool | None = None
    per_slot: int | None = None
    batch: int | None = None
    ubatch: int | None = None
    cache_type_k: str | None = None
    cache_type_v: str | None = None
    flash_attention: str | None = None
    swa_full: bool = False
    embedding: bool = False
    split_tensor: bool = False
    fit: bool | None = None
    fit_context: int | None = None
    spec_types: tuple[str, ...] = ()
    drafted: int | None = None
    draft: Model | None = None
    draft_type_k: str | None = None
    draft_type_v: str | None = None
    cache_ram: int | None = None
    checkpoints: int | None = None

    def key_type(self) -> str:
        return self.cache_type_k or str(data()["constants"]["cache_type"])

    def value_type(self) -> str:
        return self.cache_type_v or str(data()["constants"]["cache_type"])

    def draft_types(self) -> tuple[str, str]:
        """Types of the draft's caches: their own flags, never the target's."""
        default = str(data()["constants"]["cache_type"])
        return self.draft_type_k or default, self.draft_type_v or default


@dataclass(frozen=True, slots=True)
class Refusal:
    """llama-server does not start.  `kind` is a short stable key; `settings` the fields of `Settings` that make it so."""

    kind: str
    message: str
    settings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cache:
    """One allocation.  `role`: full, sliding, indexer, and the same with `draft-`; `cells` of each of `streams` buffers.

    `window`: positions of a sequence that are still needed, 0 where all are.  `ratio`: tokens of one row.
    """

    role: str
    layers: int
    cells: int
    streams: int
    type_k: str
    type_v: str
    key_bytes: int
    value_bytes: int
    window: int = 0
    ratio: int = 1

    @property
    def bytes(self) -> int:
        return self.key_bytes + self.value_bytes

    def held(self, tokens: int) -> int:
        """Bytes of the cells that one sequence of `tokens` tokens still needs."""
        needed = min(tokens, self.window) if self.window else tokens // self.ratio
        return self.bytes // (self.cells * self.streams) * needed


@dataclass(frozen=True, slots=True)
class Plan:
    """What llama-server allocates when it starts, in tokens and bytes, over all devices.

    `context`: cells of all slots together, after rounding.  `sequence`: cells one sequence may use.  `window`: tokens of
    one request, prompt and output.  `capped`: cells are allocated beyond the trained context, which no request may use.
    `floor`: the same plan at the smallest context that
    fitting may leave (None: nothing is shrunk).  `state_copies`: 1, and one for every token drafted where the model can
    roll back.
    """

    slots: int
    unified: bool
    context: int
    sequence: int
    window: int
    ubatch: int
    trained: int | None
    flash_attention: bool
    capped: bool
    caches: tuple[Cache, ...]
    state_bytes: int
    state_copies: int
    draft_state_bytes: int
    floor: Plan | None = None

    @property
    def recurrent_bytes(self) -> int:
        """State of every slot and of every copy: states x slots x copies, and the draft's, one copy a slot."""
        return self.slots * (self.state_bytes * self.state_copies + self.draft_state_bytes)

    @property
    def pool_bytes(self) -> int:
        """All caches, the draft's and the recurrent state included."""
        return sum(cache.bytes for cache in self.caches) + self.recurrent_bytes

    def ranged(self, name: str) -> int | Range:
        """`slots`, `window`, `context` or `pool_bytes`; a range where fitting may shrink the context."""
        value = int(getattr(self, name))
        if self.floor is None:
            return value
        least = int(getattr(self.floor, name))
        return value if least == value else Range(min(least, value), value, value)


Outcome = Plan | Refusal | Unknown


@dataclass(frozen=True, slots=True)
class Start:
    """One start: the model's shape, its settings, and the build's way of reading them."""

    shape: Shape
    settings: Settings
    rules: Semantics
    draft: Shape | None
