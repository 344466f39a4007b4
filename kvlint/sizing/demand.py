"""What an MLX server's own limits let it take: nothing in these engines refuses, so the limits are all there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvlint.facts import Assumed, Fact, Unknown, Value, quantity

if TYPE_CHECKING:
    from kvlint.sizing.server import Sizing


@quantity("admitted_width", unit="sequences", formula="min(batch width, admitted)", source="arithmetic")
def narrower(batch_width: int, admitted: int) -> int:
    return min(batch_width, admitted)


@quantity("stored_bytes", unit="B", formula="entries × slot", source="arithmetic")
def stored(prompt_cache_entries: int, slot_bytes: int) -> int:
    return prompt_cache_entries * slot_bytes


@quantity(
    "demand_bytes",
    unit="B",
    formula="weights + admitted width × slot + prompt cache",
    source="mlx-lm and vllm-mlx: nothing that runs is refused, and what is stored is kept beside it",
)
def total(admitted_width: int, weights_bytes: int, slot_bytes: int, stored_bytes: int) -> int:
    return weights_bytes + admitted_width * slot_bytes + stored_bytes


def admitted_width(sizing: Sizing) -> Value[int] | None:
    """Sequences that written limits let run together; None where neither the width nor an admission is written."""
    width, admitted = sizing.need("batch_width"), sizing.server.settings.get("admitted")
    if admitted is not None:
        return narrower(width, admitted)
    if isinstance(width, Unknown):
        return width
    return width if any(True for _ in width.spans()) else None


def demand_bytes(sizing: Sizing, width: Value[int] | None) -> Value[int] | None:
    """What those sequences take at the full window, with the weights and the prompt cache as far as it is declared."""
    if width is None:
        return None
    settings, slot = sizing.server.settings, sizing.need("slot_bytes")
    entries, limit = settings.get("prompt_cache_entries"), settings.get("prompt_cache_bytes")
    kept: Value[int] = Fact(0, Assumed("no prompt cache is declared"))
    if limit is not None:
        kept = limit
    elif isinstance(entries, Fact) and entries.origin.kind == "written":
        kept = stored(entries, slot)
    return total(width, sizing.need("weights_bytes"), slot, kept)
