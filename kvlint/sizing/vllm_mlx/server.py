"""The derived values of a vllm-mlx server: live conversations as mlx-lm keeps them, stored prefixes up to their own limit."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from kvlint.facts import Assumed, Fact, Range, Unknown, Value, quantity
from kvlint.models.architecture import Architecture, Attention, Latent
from kvlint.sizing import budget, demand
from kvlint.sizing.mlx import server as mlx
from kvlint.sizing.search import largest
from kvlint.sizing.server import Sizing
from kvlint.sizing.slots import SlotShape

CACHES = mlx.CACHES
# The mlx-lm that 0.6.0 requires, and the newest that is read: releases before 0.5 require no more than the first.
MLX_LM = ("0.31.3", "0.32.2")


@quantity("slot_shape", unit="", formula="cache classes of the model's file in mlx-lm", source=CACHES)
def slot_shape(architecture: Architecture, kv_dtype: str) -> SlotShape | Unknown:
    found = [mlx.slot_shape.plain(architecture, release, kv_dtype) for release in MLX_LM]
    if found[0] != found[1]:
        return Unknown("engine.version", "releases of mlx-lm differ in this model's caches", "pin mlx-lm")
    return found[0]


@quantity("slot_bytes", unit="B", formula="growing × window + windowed × min(window, w) + state", source=CACHES)
def slot_bytes(slot_shape: SlotShape, window: int, max_kv_size: int | None = None) -> int:
    """A rotating limit bounds what a conversation holds."""
    return slot_shape(window if max_kv_size is None else min(window, max_kv_size))


@quantity("capacity", unit="B", formula="blocks × tokens of a block × bytes of a token", source="vllm-mlx: paged cache")
def paged_bytes(blocks: int, block_size: int, kv_bytes_per_token: int) -> int:
    return blocks * block_size * kv_bytes_per_token


@quantity("longest_window", unit="tokens", formula="largest window: copies × slot ≤ room", source="arithmetic")
def longest_window(slot_shape: SlotShape, room: int, copies: int, model_window: int) -> int:
    return largest(lambda tokens: copies * slot_shape(tokens) <= room, model_window)


@quantity("room", unit="B", formula="usable_bytes - weights_bytes", source="arithmetic")
def room(usable_bytes: int, weights_bytes: int) -> int:
    return usable_bytes - weights_bytes


@quantity("buffers", unit="buffers", formula="blocks × growing layers × buffers of a layer", source="uncalibrated")
def buffers(architecture: Architecture, blocks: int, buffers_per_block_layer: Any) -> int | Range:
    return int(blocks * _growing(architecture) * buffers_per_block_layer)


@quantity(
    "smallest_block_size", unit="tokens", formula="capacity in tokens ÷ blocks below the limit", source="uncalibrated"
)
def smallest_block_size(
    architecture: Architecture, blocks: int, block_size: int, buffers_per_block_layer: Any, metal_buffer_limit: int
) -> int | Unknown:
    """The block size that holds as many tokens in as few blocks as stay below the limit."""
    per_block = _growing(architecture) * buffers_per_block_layer
    most = int(metal_buffer_limit // per_block) if per_block else 0
    if most < 1:
        return Unknown("buffers", "no block of this model stays below the limit", "another prefix cache")
    return -(-blocks * block_size // most)


def _growing(architecture: Architecture) -> int:
    """Layers whose keys and values are cut into blocks."""
    return sum(
        any(isinstance(part, (Attention, Latent)) and not getattr(part, "shared", False) for part in layer)
        for layer in architecture.layers
    )


class VllmMlxSizing(Sizing):
    """vllm-mlx: live keys and values have no limit, stored ones the limit of the prefix cache that the flags choose."""

    def slot_shape(self) -> Value[SlotShape]:
        model = self.server.model
        if model is None:
            return self.need("model")
        dtype = model.dtype
        if isinstance(dtype, Unknown):
            dtype = Fact("bfloat16", Assumed("activations of MLX models are 16 bit"))
        return slot_shape(self.server.architecture, dtype)

    def kv_bytes_per_token(self) -> Value[int]:
        return mlx.kv_bytes_per_token(self.need("slot_shape"))

    def kv_bytes_per_token_per_device(self) -> Value[int]:
        return self.need("kv_bytes_per_token")

    def state_bytes_per_sequence(self) -> Value[int]:
        return mlx.state_bytes_per_sequence(self.need("slot_shape"))

    def slot_bytes(self) -> Value[int]:
        limit = self.server.settings.get("max_kv_size")
        bounded = {"max_kv_size": limit} if limit is not None else {}
        return slot_bytes(self.need("slot_shape"), self.need("window"), **bounded)

    def rotating_limit(self) -> Value[int] | None:
        return self.server.settings.get("max_kv_size")

    def live_kv_bytes(self) -> Value[int]:
        return budget.live_kv_bytes(self.need("streams"), self.need("slot_bytes"))

    def weights_bytes_per_device(self) -> Value[Any]:
        return self.need("weights_bytes")

    def budget_bytes(self) -> Value[int]:
        return self.server.hardware["budget"]

    def usable_bytes(self) -> Value[int]:
        return budget.usable_of_budget(self.need("budget_bytes"), self.need("coefficient.holdback"))

    def blocks(self) -> Value[int] | None:
        return self.server.settings.get("max_cache_blocks")

    def buffers(self) -> Value[Any] | None:
        blocks = self.get("blocks")
        if blocks is None:
            return None
        return buffers(self.server.architecture, blocks, self.need("coefficient.buffers_per_block_layer"))

    def smallest_block_size(self) -> Value[int] | None:
        blocks = self.get("blocks")
        if blocks is None:
            return None
        each, limit = self.need("coefficient.buffers_per_block_layer"), self.need("coefficient.metal_buffer_limit")
        return smallest_block_size(self.server.architecture, blocks, self.need("block_size"), each, limit)

    def prompt_cache_capacity_bytes(self) -> Value[int] | None:
        """The limit of the memory-aware cache, or what the blocks hold; entries alone have no bytes."""
        blocks = self.get("blocks")
        if blocks is not None:
            return paged_bytes(blocks, self.need("block_size"), self.need("kv_bytes_per_token"))
        return self.server.settings.get("cache_limit")

    def warm_slots(self) -> Value[Fraction] | None:
        capacity = self.get("prompt_cache_capacity_bytes")
        return budget.warm_slots(capacity, self.need("slot_bytes")) if capacity is not None else None

    def admitted_width(self) -> Value[int] | None:
        return demand.admitted_width(self)

    def demand_bytes(self) -> Value[int] | None:
        return demand.demand_bytes(self, self.get("admitted_width"))

    def longest_window(self) -> Value[int]:
        return self._longest(room(self.need("usable_bytes"), self.need("weights_bytes")), self.need("streams"))

    def longest_warm_window(self) -> Value[int] | None:
        capacity = self.get("prompt_cache_capacity_bytes")
        return self._longest(capacity, Fact(1, Assumed("one warm slot"))) if capacity is not None else None

    def longest_window_per_stream(self) -> Value[int] | None:
        capacity = self.get("prompt_cache_capacity_bytes")
        return self._longest(capacity, self.need("streams")) if capacity is not None else None

    def _longest(self, space: Value[int], copies: Value[int]) -> Value[int]:
        longest = self.server.settings.get("model_window")
        upper = longest if isinstance(longest, Fact) else Fact(2**33, Assumed("no limit of the model is known"))
        return longest_window(self.need("slot_shape"), space, copies, upper)
