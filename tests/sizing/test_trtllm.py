"""TensorRT-LLM's pool, by arithmetic shown beside each figure and against public logs."""

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
from kvlint.sizing.trtllm import sizes as trtllm

SHARED = Path(__file__).resolve().parents[2] / "../shared"
LOGS = SHARED / "observed/trtllm.jsonl"
GIB = 1 << 30
SHAPES = {"8B-class Llama geometry (32 layers, 8 KV heads)": "meta-llama/Llama-3.1-8B-Instruct"}


def llama(**changes: Any) -> Architecture:
    """32 layers of 8 KV heads of 128, as Llama 3 8B."""
    sizes = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8}
    return architecture({"model_type": "llama", "torch_dtype": "bfloat16", "vocab_size": 128256, **sizes, **changes})


def test_the_share_is_of_free_memory() -> None:
    """0.9 of the 17.83 GiB that a log prints as free are the 16.05 GiB that it prints as allocated."""
    given = trtllm.Settings(kv_cache_dtype="fp8")
    free = int(Fraction("17.83") * GIB)
    tokens = trtllm.pool_tokens(llama(), given, free)
    assert isinstance(tokens, int)
    assert tokens == int(free * Fraction("0.9") / 65536) // 32 * 32
    assert abs(Fraction(tokens * 65536, GIB) - Fraction("16.05")) <= Fraction(1, 200)


def test_a_yaml_replaces_the_fraction_of_the_command_line() -> None:
    cli = Fraction("0.5")
    assert trtllm.fraction(trtllm.Settings(cli_fraction=cli)) == cli
    assert trtllm.fraction(trtllm.Settings(cli_fraction=cli, yaml_cache=True)) == Fraction("0.9")
    assert trtllm.fraction(
        trtllm.Settings(cli_fraction=cli, yaml_cache=True, yaml_fraction=Fraction("0.7"))
    ) == Fraction("0.7")


def test_the_smallest_bound_wins_in_whole_blocks() -> None:
    free = 20 * GIB
    assert trtllm.pool_tokens(llama(), trtllm.Settings(max_tokens=1000), free) == 992
    bounded = trtllm.Settings(max_gpu_total_bytes=GIB, tokens_per_block=64)
    assert trtllm.pool_tokens(llama(), bounded, free) == GIB // 131072 // 64 * 64


def test_ranks_split_heads_and_not_latents() -> None:
    assert trtllm.bytes_per_token_per_rank(llama(), trtllm.Settings(tp_size=4)) == 32 * 2 * 256 * 2
    assert trtllm.bytes_per_token_per_rank(llama(), trtllm.Settings(tp_size=4, attention_dp=True)) == 32 * 8 * 256 * 2
    assert trtllm.bytes_per_token_per_rank(llama(), trtllm.Settings(kv_cache_dtype="nvfp4")) == 32 * 8 * 256 * Fraction(
        9, 16
    )
    assert isinstance(trtllm.bytes_per_token_per_rank(llama(), trtllm.Settings(kv_cache_dtype="q8_0")), Refusal)
    assert isinstance(trtllm.bytes_per_token_per_rank(llama(), trtllm.Settings(pp_size=2)), Unknown)


def test_defaults() -> None:
    assert trtllm.limits(trtllm.Settings(), 131072) == trtllm.Limits(131072, 8192, 2048)
    assert trtllm.limits(trtllm.Settings(max_seq_len=4096, max_batch_size=8), 131072) == trtllm.Limits(4096, 8192, 8)


def logged() -> list[Any]:
    rows = [json.loads(line) for line in LOGS.read_text(encoding="utf-8").splitlines()] if LOGS.is_file() else []
    priced = [row for row in rows if "bytes_per_token_formula" in row.get("derived", {})]
    return [pytest.param(row, id=row["id"]) for row in priced]


@pytest.mark.skipif(not LOGS.is_file(), reason="the observations are not beside the repository")
@pytest.mark.parametrize("row", logged())
def test_bytes_of_logs(row: dict[str, Any]) -> None:
    """Bytes of the printed tokens, within the printed hundredth of a GiB."""
    name = SHAPES.get(row["model"], row["model"].split(" (")[0]).replace("/", "__")
    path = SHARED / f"facts/models/{name}.json"
    if not path.is_file():
        pytest.skip("no configuration of this model is at hand")
    given = trtllm.Settings(tp_size=row["tp"], kv_cache_dtype=row["kv_cache_dtype"], model_dtype="bfloat16")
    price = trtllm.bytes_per_token_per_rank(architecture(json.loads(path.read_text(encoding="utf-8"))), given)
    assert price == row["derived"]["bytes_per_token_formula"]
    held = Fraction(row["reported"]["kv_tokens"]) * price / GIB
    assert abs(held - Fraction(str(row["reported"]["kv_size_gb"]))) <= Fraction(1, 200)
