"""A server's memory as one line: weights, live KV, prompt cache, held back, free."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kvlint.facts import Fact, nominal
from kvlint.ruleset.messages import show
from kvlint.subjects import Server

WIDTH = 60
Style = Callable[[str, str], str]


def memory_bar(server: Server, style: Style) -> Iterator[str] | None:
    """None where the total or the weights are not known."""
    parts = segments(server)
    return _lines(parts, style) if parts else None


def segments(server: Server) -> list[tuple[str, int, str]]:
    """Name, bytes and fill character of each part of one device's memory, in order; empty where a part is unknown."""
    total = _bytes(server, "budget_bytes")
    weights = _bytes(server, "weights_bytes_per_device") or _bytes(server, "weights_bytes")
    usable = _bytes(server, "usable_bytes")
    if total is None or weights is None or usable is None:
        return []
    pool = _bytes(server, "pool_bytes")
    if pool is not None:
        rest = max(0, usable - weights - pool)
        return [
            ("weights", weights, "█"),
            ("KV pool", max(0, pool), "▓"),
            ("overhead", rest, "░"),
            ("not used", max(0, total - usable), "·"),
        ]
    live = _bytes(server, "live_kv_bytes")
    if live is None:
        return []
    cache = max(0, usable - weights - live)
    return [
        ("weights", weights, "█"),
        ("live KV", live, "▓"),
        ("prompt cache", cache, "▒"),
        ("held back", total - usable, "·"),
    ]


def _bytes(server: Server, name: str) -> int | None:
    found: Any = server.get(name)
    return int(nominal(found.value)) if isinstance(found, Fact) and found.value is not None else None


def _lines(parts: list[tuple[str, int, str]], style: Style) -> Iterator[str]:
    total = sum(size for _, size, _ in parts)
    if total <= 0:
        return
    edges, reached = [], 0
    for _, size, _ in parts:
        reached += size
        edges.append(round(WIDTH * reached / total))
    cells, start = "", 0
    for (_, _, fill), edge in zip(parts, edges, strict=True):
        cells += fill * (edge - start)
        start = edge
    yield f"  ▕{cells}▏ {show(total, 'bytes')}"
    yield "   " + "  ".join(f"{fill} {name} {show(size, 'bytes')}" for name, size, fill in parts)
