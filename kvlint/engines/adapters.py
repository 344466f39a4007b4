"""Ranks of the LoRA adapters that a server loads, where the project holds their `adapter_config.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from kvlint.facts import Fact, Written
from kvlint.source import Text
from kvlint.subjects import Server


def attach(servers: Sequence[Server], load: Callable[[Text], Text | None]) -> None:
    """Write the largest known rank into the settings, with the place that names its adapter."""
    for server in servers:
        adapters = server.settings.get("adapters")
        if not isinstance(adapters, Fact) or not isinstance(adapters.origin, Written) or server.engine != "vllm":
            continue
        place = adapters.origin.span
        ranks = [
            rank for path in adapters.value if (rank := _rank(load(Text.at(f"{path}/adapter_config.json", place))))
        ]
        if ranks:
            server.settings["adapter_rank"] = Fact(max(ranks), adapters.origin)


def _rank(text: Text | None) -> int | None:
    try:
        config = json.loads(text.value) if text is not None else None
    except (ValueError, RecursionError):
        return None
    rank = config.get("r") if isinstance(config, dict) else None
    return rank if isinstance(rank, int) else None
