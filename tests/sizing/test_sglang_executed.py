"""SGLang's memory model against its own argument resolution and pool sizing, run release by release, and against logs.

`-s` prints what does not agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kvlint.models.architecture import Architecture
from kvlint.models.config import architecture
from kvlint.sizing.sglang import sizes as sglang

SHARED = Path(__file__).resolve().parents[2] / "../shared"
ROWS = SHARED / "observed/sglang-pool.jsonl"
GIB = 1 << 30

pytestmark = pytest.mark.skipif(not ROWS.is_file(), reason="the observations are not beside the repository")


@cache
def model(name: str) -> Architecture:
    path = SHARED / "facts/models" / f"{name.replace('/', '__')}.json"
    return architecture(json.loads(path.read_text(encoding="utf-8")))


def rows(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def fraction(value: Any) -> Fraction:
    return Fraction(str(value))


def settings(row: dict[str, Any]) -> sglang.Settings:
    given = dict(row["inputs"]["args"])
    for name in ("mem_fraction_static", "swa_full_tokens_ratio", "mamba_full_memory_ratio", "hybrid_kvcache_ratio"):
        if given.get(name) is not None:
            given[name] = fraction(given[name])
    resolved = row["out"].get("resolved_args", {})
    if "draft_layers_stand_in" in resolved:
        given["draft_layers"] = resolved["draft_layers_stand_in"]
    return sglang.Settings(release=row["sglang"], model_dtype="bfloat16", **given)


def device(row: dict[str, Any]) -> sglang.Device:
    given = row["inputs"]
    return sglang.Device(
        given["gpu_total_mib"],
        given["sm"],
        fraction(given["free_before_load_gib"]) * GIB,
        fraction(given["free_after_load_gib"]) * GIB,
    )


def arguments(found: sglang.Arguments) -> dict[str, Any]:
    return {
        "mem_fraction_static": found.mem_fraction_static,
        "chunked_prefill_size": found.chunked_prefill_size,
        "page_size": found.page_size,
        "kv_cache_dtype": found.kv_cache_dtype,
        "attention_backend": found.attention_backend,
        "max_running_requests": found.max_running_requests,
        "disable_radix_cache": found.disable_radix_cache,
        "disable_overlap_schedule": found.disable_overlap_schedule,
        "context_len": found.context_length,
        "is_multimodal": found.model.multimodal,
        "model_dtype": found.model.dtype,
    }


def disagreements(row: dict[str, Any]) -> list[str]:
    arch, given, on, out = model(row["model"]), settings(row), device(row), row["out"]
    pool = sglang.pool(arch, given, on)
    if not out["starts"]:
        return [] if isinstance(pool, sglang.Refusal) else [f"starts: {pool}"]
    if not isinstance(pool, sglang.Pool):
        return [f"does not start: {pool}"]
    found = sglang.resolve(arch, given, on)
    assert isinstance(found, sglang.Arguments)
    resolved = out["resolved_args"]
    pairs = [(name, value, resolved.get(name)) for name, value in arguments(found).items() if name in resolved]
    price, state = sglang.bytes_per_token_per_rank(arch, given, on), sglang.state_bytes_per_slot(arch, given, on)
    pairs += [
        ("attn_tp", found.attention_tp, out["attn_tp"]),
        ("bytes_per_token_per_rank", price, out["bytes_per_token_per_rank"]),
        ("max_total_num_tokens", pool.tokens, out["max_total_num_tokens"]),
        ("max_running_requests", pool.requests, out["max_running_requests"]),
        ("full_tokens", pool.full, out.get("full_tokens")),
        ("swa_tokens", pool.sliding, out.get("swa_tokens")),
        ("max_mamba_cache_size", pool.states, out.get("max_mamba_cache_size")),
        ("state_bytes_per_slot", state or None, out.get("state_bytes_per_slot")),
        ("request_slots", pool.slots, out.get("request_slots")),
    ]
    if isinstance(price, Fraction):
        pairs = [
            (n, float(v) if isinstance(v, Fraction) else v, float(e) if n.startswith("bytes") else e)
            for n, v, e in pairs
        ]
    return [f"{name}: {value} for {expected}" for name, value, expected in pairs if value != expected]


def test_every_executed_row() -> None:
    """Exact in every field, refusals included."""
    wrong = {row["id"]: (row, found) for row in rows(ROWS) if (found := disagreements(row))}
    for row, found in wrong.values():
        print(row["id"], row["sglang"], row["model"], row["inputs"]["sm"], row["inputs"]["args"], found)
    assert not wrong


LOGS = SHARED / "observed/sglang.jsonl"


def logged() -> list[Any]:
    """Starts whose model has a published configuration, so that nothing was fitted to the log."""
    if not LOGS.is_file():
        return []
    chosen = (row for row in rows(LOGS) if str(row.get("derived", {}).get("arch_basis")).startswith("config:"))
    return [pytest.param(row, id=row["id"]) for row in chosen]


def log_cells(row: dict[str, Any]) -> tuple[sglang.Cells, int]:
    """Bytes of a token, and the page size."""
    arch = model(row["derived"]["arch_basis"].removeprefix("config:"))
    pages = dict(zip(row["args"], row["args"][1:], strict=False)).get("--page-size")
    given = sglang.Settings(
        release=row["version"] or sglang.known_releases()[-1],
        tp_size=row["tp"],
        page_size=int(pages) if pages else None,
        kv_cache_dtype=row["kv_cache_dtype"] or "auto",
        model_dtype="bfloat16",
    )
    on = sglang.Device(143771, 90, 100 * GIB, 90 * GIB)
    price, settled = sglang.cells(arch, given, on), sglang.resolve(arch, given, on)
    assert isinstance(price, sglang.Cells), price
    assert isinstance(settled, sglang.Arguments), settled
    return price, settled.page_size


def log_sizes(row: dict[str, Any]) -> Iterator[tuple[int, list[Fraction]]]:
    """Bytes that are predicted for a pool, and what is printed of them."""
    (price, page), said = log_cells(row), row["reported"]
    only_full, only_sliding = sglang.Cells(price.full, 0, price.full), sglang.Cells(price.sliding, 0, price.sliding)
    if "full_k_gb" in said:
        parts = [fraction(said[name]) for name in ("full_k_gb", "full_v_gb")]
        yield sglang.allocated_bytes(only_full, said["full_tokens"], page), parts
    if "swa_k_gb" in said:
        parts = [fraction(said[name]) for name in ("swa_k_gb", "swa_v_gb")]
        yield sglang.allocated_bytes(only_sliding, said["swa_tokens"], page), parts
    if "full_tokens" in said and "kv_size_gb" in said:
        held = sglang.allocated_bytes(price, said["full_tokens"], page, said["swa_tokens"])
        yield held, [fraction(said["kv_size_gb"])]
    if "kv_tokens" in said:
        names = ("k_size_gb", "v_size_gb") if "k_size_gb" in said else ("kv_size_gb",)
        yield sglang.allocated_bytes(price, said["kv_tokens"], page), [fraction(said[name]) for name in names]


@pytest.mark.parametrize("row", logged())
def test_bytes_of_logs(row: dict[str, Any]) -> None:
    """Keys and values of the printed tokens, each within the printed hundredth of a GiB."""
    sizes = list(log_sizes(row))
    assert sizes
    for held, printed in sizes:
        print(row["id"], float(Fraction(held, GIB)), float(sum(printed)))
        assert abs(Fraction(held, GIB) - sum(printed)) <= Fraction(len(printed), 200)
