"""What mlx_lm.server does with memory, by release (data/engines/mlx-lm.memory.toml)."""

from __future__ import annotations

from functools import cache
from typing import Any

from kvlint.compiled import load
from kvlint.engines.versions import parse
from kvlint.records import dataclass, fields


@dataclass(frozen=True, slots=True)
class Meaning:
    """Releases with equal meanings keep memory alike.  `copies`: in-place, either, both."""

    batches: bool
    entries: int
    copies: str
    quantized_serial: bool
    draft_serial: bool
    unmergeable: tuple[str, ...]
    byte_limit_skipped: bool
    segments: int


@cache
def _data() -> dict[str, list[list[Any]]]:
    data: dict[str, list[list[Any]]] = load("mlx-lm_memory.json")
    return data


@cache
def meaning(release: str) -> Meaning:
    """The newest row of each kind that is not newer than `release`."""
    key = parse(release) or parse("999")
    values: dict[str, Any] = {}
    for field in fields(Meaning):
        rows = [value for since, value in _data()[field.name] if (parse(since) or key) <= key]  # type: ignore[operator]
        values[field.name] = tuple(rows[-1]) if isinstance(rows[-1], list) else rows[-1]
    return Meaning(**values)
