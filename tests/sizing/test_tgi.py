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
from kvlint.sizing import tgi
from kvlint.sizing.spans import Refusal

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


def test_the_pool_is_nine_tenths_of_what_is_free_in_whole_blocks() -> None:
    free, block = 10 << 30, 16 * 131072
    given = tgi.Settings("3.3.7", attention="paged", cuda_memory_fraction=Fraction("0.5"))
    expected = (int(free * Fraction("0.45") // block) + 4096 // 16) * 16
    assert tgi.pool_tokens(llama(), given, free, 4096) == expected
    assert isinstance(tgi.pool_tokens(llama(), tgi.Settings("2.4.1"), free, 4096), Unknown)


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
    between = tgi.limits(tgi.Settings("2.4.1"), 131072, 50000)
    assert isinstance(between, tgi.Limits)
    assert isinstance(between.window, Unknown)


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
