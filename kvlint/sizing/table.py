"""The sizing table of `kvlint size`: for each window what is live, what remains, and the largest windows that fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from kvlint.records import dataclass
from kvlint.sizing import budget
from kvlint.sizing.search import LIMIT, largest

Slot = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Row:
    """One window (tokens); all sizes in bytes.  What a budget decides is None without one."""

    window: int
    live_kv_bytes: int
    slot_bytes: int
    prompt_cache_capacity_bytes: int | None = None
    warm_slots: Fraction | None = None
    fits: bool | None = None
    one_warm_slot: bool | None = None
    slot_per_stream: bool | None = None


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest window (tokens) that fits at all; with one warm slot; with one warm slot for every stream."""

    fits: int | None = None
    one_warm_slot: int | None = None
    slot_per_stream: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    weights_bytes: int | None
    usable_bytes: int | None
    streams: int
    rows: tuple[Row, ...]
    largest: Largest


def row(window: int, slot: Slot, *, usable_bytes: int | None, weights_bytes: int | None, streams: int) -> Row:
    slot_bytes = slot(window)
    live = budget.live_kv_bytes.plain(streams, slot_bytes)
    if usable_bytes is None or weights_bytes is None:
        return Row(window, live, slot_bytes)
    remainder = budget.prompt_cache_remainder.plain(usable_bytes, weights_bytes, live)
    return Row(
        window=window,
        live_kv_bytes=live,
        prompt_cache_capacity_bytes=remainder,
        slot_bytes=slot_bytes,
        warm_slots=budget.warm_slots.plain(remainder, slot_bytes),
        fits=remainder >= 0,
        one_warm_slot=remainder >= slot_bytes,
        slot_per_stream=remainder >= streams * slot_bytes,
    )


def largest_window(slot: Slot, copies: int, room: int, upper: int = LIMIT) -> int:
    """The largest window of which `copies` full slots fit into `room` bytes."""
    return largest(lambda window: copies * slot(window) <= room, upper)


def table(
    windows: Sequence[int],
    slot: Slot,
    *,
    usable_bytes: int | None,
    weights_bytes: int | None,
    streams: int,
    upper: int = LIMIT,
) -> Table:
    """The whole table.  `slot(window)` gives the bytes of one conversation; `upper` bounds the search (the model's positions)."""
    rows = tuple(
        row(window, slot, usable_bytes=usable_bytes, weights_bytes=weights_bytes, streams=streams) for window in windows
    )
    if usable_bytes is None or weights_bytes is None:
        return Table(weights_bytes, usable_bytes, streams, rows, Largest())
    room = usable_bytes - weights_bytes
    best = Largest(
        fits=largest_window(slot, streams, room, upper),
        one_warm_slot=largest_window(slot, streams + 1, room, upper),
        slot_per_stream=largest_window(slot, 2 * streams, room, upper),
    )
    return Table(weights_bytes, usable_bytes, streams, rows, best)
