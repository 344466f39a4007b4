"""TGI's limits and pool, by arithmetic shown beside each figure and against public logs."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture
from kvlint.models.config import architecture
from kvlint.sizing.spans import Refusal
from kvlint.sizing.tgi import sizes as tgi

SHARED = Path(__file__).resolve().parents[2] / "../shared"
LOGS = SHARED / "observed/tgi.jsonl"
CATALOGUED = {"meta-llama/Meta-Llama-3-8B-Instruct": "meta-llama/Llama-3.1-8B-Instruct"}  # the same shape


def llama(**changes: Any) -> Architecture:
    """32 layers of 8 KV heads of 128, as Llama 3 8B."""
    sizes = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
    return architecture({"model_type": "llama", "torch_dtype": "bfloat16", "vocab_size": 128256, **sizes, **changes})


def test_heads_are_split_over_shards() -> None:
    assert tgi.bytes_per_token_per_shard(llama(), tgi.Settings("3.3.7", num_shard=2)) == 32 * 4 * 256 * 2
    fp8 = tgi.Settings("3.3.7", kv_cache_dtype="fp8_e4m3fn")
    assert tgi.bytes_per_token_per_shard(llama(), fp8) == 32 * 8 * 256
    assert isinstance(tgi.bytes_per_token_per_shard(llama(), tgi.Settings("3.3.7", num_shard=16)), Refusal)
    one = llama(num_key_value_heads=1)
    assert tgi.bytes_per_token_per_shard(one, tgi.Settings("3.3.7", num_shard=4)) == 32 * 1 * 256 * 2


def test_the_pool_leaves_a_share_of_all_memory_in_whole_blocks() -> None:
    """3.3.7: what is free less (1 - fraction × 0.90) of the device; the warm-up's own blocks are added."""
    free, total, block = 10 << 30, 24 << 30, 16 * 131072
    given = tgi.Settings("3.3.7", attention="paged", cuda_memory_fraction=Fraction("0.9"))
    expected = (int((free - (1 - Fraction("0.81")) * total) // block) + 4096 // 16) * 16
    assert tgi.pool_tokens(llama(), given, free, total, 4096) == expected


def test_older_pools_take_a_share_of_what_is_free() -> None:
    """2.4.1: 0.90 of what is free after (1 - fraction) of the device; 2.2.0: 0.95 of it."""
    free, total = 10 << 30, 24 << 30
    for release, share in (("2.4.1", "0.90"), ("2.2.0", "0.95")):
        given = tgi.Settings(release, attention="flashinfer", cuda_memory_fraction=Fraction("0.9"))
        expected = int((free - Fraction("0.1") * total) * Fraction(share) // 131072)
        assert tgi.pool_tokens(llama(), given, free, total, 0) == expected
    assert tgi.pool_tokens(llama(), tgi.Settings("3.0.1"), free, total, 0) == int((free - total // 20) // 131072)


def test_the_flag_for_the_pool_has_no_effect_but_can_stop_a_start() -> None:
    given = tgi.Settings("3.3.7", max_batch_total_tokens=9000, max_total_tokens=8000, max_batch_prefill_tokens=4096)
    found = tgi.limits(given, 131072, 50000)
    assert isinstance(found, tgi.Limits)
    assert (found.window, found.input, found.batch_total) == (8000, 7999, 50000)
    stopped = tgi.Settings("3.3.7", max_batch_total_tokens=7000, max_total_tokens=8000)
    assert isinstance(tgi.limits(stopped, 131072, 50000), Refusal)


@pytest.mark.parametrize(
    "given",
    [
        {"max_input_tokens": 8000, "max_total_tokens": 8000},
        {"max_total_tokens": 60000},
        {"max_batch_prefill_tokens": 60000},
        {"max_input_tokens": 4000, "max_total_tokens": 8000, "max_batch_prefill_tokens": 2000, "chunking": False},
    ],
)
def test_refused(given: dict[str, Any]) -> None:
    assert isinstance(tgi.limits(tgi.Settings("3.3.7", **given), 131072, 50000), Refusal)


def test_unset_limits_follow_the_pool_and_the_model() -> None:
    found = tgi.limits(tgi.Settings("3.3.7"), 131072, 50000)
    assert isinstance(found, tgi.Limits)
    assert (found.window, found.input) == (50000, 49999)
    assert isinstance(found.prefill, Unknown)
    old = tgi.limits(tgi.Settings("1.4.5"), 131072, 50000)
    assert isinstance(old, tgi.Limits)
    assert (old.window, old.input, old.prefill) == (2048, 1024, 4096)
    capped = tgi.limits(tgi.Settings("2.2.0"), 131072, 50000)
    assert isinstance(capped, tgi.Limits)
    assert (capped.window, capped.input, capped.prefill) == (4096, 4095, 4145)
    pooled = tgi.limits(tgi.Settings("2.4.1"), 131072, 50000)
    assert isinstance(pooled, tgi.Limits)
    assert (pooled.window, pooled.prefill) == (50000, 4096)


def test_a_prefill_holds_the_longest_input_until_prefills_are_cut() -> None:
    given = {"max_input_tokens": 4000, "max_total_tokens": 8000, "max_batch_prefill_tokens": 2000}
    assert isinstance(tgi.limits(tgi.Settings("2.2.0", **given), 131072, 50000), Refusal)
    assert isinstance(tgi.limits(tgi.Settings("3.3.7", **given), 131072, 50000), tgi.Limits)


def test_a_model_that_does_not_size_its_pool() -> None:
    found = tgi.limits(tgi.Settings("1.4.5", sizes_pool=False), 512, 0)
    assert isinstance(found, tgi.Limits)
    assert found.batch_total == 16000


def logged() -> list[Any]:
    rows = [json.loads(line) for line in LOGS.read_text(encoding="utf-8").splitlines()] if LOGS.is_file() else []
    priced = [row for row in rows if "bytes_per_token_formula" in row.get("derived", {})]
    return [pytest.param(row, id=row["id"]) for row in priced]


@pytest.mark.skipif(not LOGS.is_file(), reason="the observations are not beside the repository")
@pytest.mark.parametrize("row", logged())
def test_bytes_of_logs(row: dict[str, Any]) -> None:
    name = CATALOGUED.get(row["model"], row["model"]).replace("/", "__")
    path = SHARED / f"facts/models/{name}.json"
    if not path.is_file():
        pytest.skip("no configuration of this model is at hand")
    given = tgi.Settings(row["version"] or "3.3.7", num_shard=row["tp"], model_dtype="bfloat16")
    arch = architecture(json.loads(path.read_text(encoding="utf-8")))
    assert tgi.bytes_per_token_per_shard(arch, given) == row["derived"]["bytes_per_token_formula"]
