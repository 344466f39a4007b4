"""LMDeploy's cache options, by arithmetic shown beside each figure and against public logs."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture
from kvlint.models.config import architecture
from kvlint.sizing.lmdeploy import sizes as lmdeploy
from kvlint.sizing.spans import Refusal

SHARED = Path(__file__).resolve().parents[2] / "../shared"
LOGS = SHARED / "observed/lmdeploy.jsonl"
GIB = 1 << 30


def llama(**changes: Any) -> Architecture:
    """32 layers of 32 KV heads of 128, as InternLM 7B."""
    sizes = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32}
    return architecture({"model_type": "llama", "torch_dtype": "float16", "vocab_size": 32000, **sizes, **changes})


@pytest.mark.parametrize(
    ("release", "backend", "count", "meaning"),
    [
        ("0.0.14", "turbomind", None, "sequences"),
        ("0.2.1", "turbomind", "0.01", "total"),
        ("0.6.4", "turbomind", "0.8", "free"),
        ("0.9.2", "turbomind", "0.8", "free"),
        ("0.2.1", "turbomind", "159", "blocks"),
        ("0.10.0", "turbomind", "159", "blocks"),
        ("0.12.3", "turbomind", "0.8", "free"),
        ("0.16.0", "pytorch", "0.8", "free"),
    ],
)
def test_the_meaning_of_the_count_changed_with_releases(
    release: str, backend: str, count: str | None, meaning: str
) -> None:
    given = lmdeploy.Settings(release, backend, cache_max_entry_count=None if count is None else Fraction(count))
    assert lmdeploy.entry_count_meaning(given) == meaning


def test_a_block_count_is_heard_in_some_releases_only() -> None:
    """The configuration's own check came with 0.4.1, went with 0.10.0, and TurboMind's came with 0.15.0."""
    counted = Fraction(159)
    for release in ("0.4.1", "0.9.2", "0.9.2.post1", "0.15.0", "0.16.0", "0.18.0"):
        assert isinstance(lmdeploy.refused(lmdeploy.Settings(release, cache_max_entry_count=counted)), Refusal)
    for release in ("0.2.2", "0.10.0", "0.12.3", "0.14.0"):
        assert lmdeploy.refused(lmdeploy.Settings(release, cache_max_entry_count=counted)) is None
    assert lmdeploy.refused(lmdeploy.Settings("0.9.3", cache_max_entry_count=counted)) is None
    assert isinstance(lmdeploy.entry_count_meaning(lmdeploy.Settings("0.9.3", cache_max_entry_count=counted)), Unknown)
    sequences = lmdeploy.Settings("0.0.14", cache_max_entry_count=Fraction(2), max_batch_size=8)
    assert isinstance(lmdeploy.refused(sequences), Refusal)


@pytest.mark.parametrize(
    ("policy", "head"),
    [(0, 2 * 2 * 128), (8, 2 * 128 + 8), (4, 128 + 8), (16, 2 * 128)],
)
def test_quantized_keys_and_values_have_a_scale_and_a_zero(policy: int, head: int) -> None:
    given = lmdeploy.Settings("0.16.0", "pytorch", quant_policy=policy)
    assert lmdeploy.bytes_per_token_per_device(llama(), given) == 32 * 32 * head


def test_what_an_engine_cannot_hold() -> None:
    assert isinstance(lmdeploy.refused(lmdeploy.Settings("0.16.0", quant_policy=16)), Refusal)
    assert isinstance(lmdeploy.refused(lmdeploy.Settings("0.9.2", "pytorch", quant_policy=16)), Refusal)
    uneven = lmdeploy.Settings("0.9.2", "pytorch", tp=3)
    assert isinstance(lmdeploy.bytes_per_token_per_device(llama(), uneven), Refusal)
    assert lmdeploy.bytes_per_token_per_device(llama(), lmdeploy.Settings("0.9.2", quant_policy=8)) == 32 * 32 * 264


def test_the_pool_is_a_share_of_what_the_release_means() -> None:
    block = 64 * 32 * 32 * 2 * 2 * 128
    free, total = 10 * GIB, 24 * GIB
    assert lmdeploy.pool_blocks(llama(), lmdeploy.Settings("0.9.2"), free, total) == int(
        free * Fraction("0.8") // block
    )
    of_total = lmdeploy.Settings("0.2.1", cache_max_entry_count=Fraction("0.5"))
    assert lmdeploy.pool_blocks(llama(), of_total, free, total) == 12 * GIB // block
    torch = lmdeploy.Settings("0.9.2", "pytorch", device_name="NVIDIA H100 80GB HBM3")
    left = free - (8192 + 2 * 512) * 32000 * 2
    assert lmdeploy.pool_blocks(llama(), torch, free, total) == int(left * Fraction("0.8") // block)
    assert isinstance(lmdeploy.pool_blocks(llama(), lmdeploy.Settings("0.9.2", "pytorch"), free, total), Unknown)


@pytest.mark.parametrize(
    ("release", "device", "batch"),
    [  # lmdeploy/utils.py (get_max_batch_size)
        ("0.6.0", "NVIDIA A100-SXM4-80GB", 256),
        ("0.9.2", "NVIDIA H100 80GB HBM3", 512),
        ("0.9.2.post1", "NVIDIA H100 80GB HBM3", 512),
        ("0.9.2", "NVIDIA H200", 128),
        ("0.10.0", "NVIDIA A100-SXM4-80GB", 384),
        ("0.10.0", "NVIDIA H200", 1024),
        ("0.18.0", "NVIDIA H100 80GB HBM3", 1024),
        ("0.18.0", "NVIDIA L4", 128),
    ],
)
def test_the_default_batch_grew_with_0_10(release: str, device: str, batch: int) -> None:
    assert lmdeploy.batch_size(lmdeploy.Settings(release, device_name=device)) == batch


def test_a_default_batch_between_two_tables_is_not_guessed() -> None:
    assert isinstance(lmdeploy.batch_size(lmdeploy.Settings("0.9.3", device_name="NVIDIA H200")), Unknown)
    assert lmdeploy.batch_size(lmdeploy.Settings("0.9.3", device_name="NVIDIA L4")) == 128


def test_the_reserve_of_the_pytorch_engine_changed_with_0_9_2() -> None:
    """_get_runtime_size: 7 bytes a word for each token of the prefill, then 2, and 4 for each row of the batch."""
    free = 10 * GIB
    for release in ("0.6.0", "0.7.2", "0.9.1"):
        given = lmdeploy.Settings(release, "pytorch", max_batch_size=256)
        assert lmdeploy.after_logits(llama(), given, free) == free - 8192 * 32000 * 7
    for release in ("0.9.2", "0.13.0", "0.18.0"):
        given = lmdeploy.Settings(release, "pytorch", max_batch_size=256, max_prefill_token_num=4096)
        assert lmdeploy.after_logits(llama(), given, free) == free - (4096 + 2 * 256) * 32000 * 2


def test_blocks_may_be_given_to_the_pytorch_engine() -> None:
    """0.18.0 pytorch/engine/executor/base.py, _update_num_gpu_blocks: a stated number is not sized from the free memory."""
    given = lmdeploy.Settings("0.18.0", "pytorch", device_name="NVIDIA L4", num_gpu_blocks=100)
    assert lmdeploy.pool_blocks(llama(), given, 10 * GIB, 24 * GIB) == 100


@pytest.mark.parametrize(
    ("release", "name", "width", "served"),
    [  # lmdeploy/turbomind/supported_models.py
        ("0.7.2", "Qwen3ForCausalLM", 128, False),
        ("0.7.3", "Qwen3ForCausalLM", 128, True),
        ("0.6.5", "InternLM3ForCausalLM", 128, False),
        ("0.7.0.post1", "InternLM3ForCausalLM", 128, True),
        ("0.6.1", "LlamaForCausalLM", 64, True),
        ("0.6.2", "LlamaForCausalLM", 64, False),  # _is_head_dim_128
        ("0.6.3", "LlamaForCausalLM", 64, True),  # _is_head_dim_supported
        ("0.12.3", "LlamaForCausalLM", 96, False),
        ("0.14.0", "LlamaForCausalLM", 96, True),
        ("0.13.0", "MistralForCausalLM", 128, True),
        ("0.14.0", "MistralForCausalLM", 128, False),
    ],
)
def test_which_models_turbomind_serves(release: str, name: str, width: int, served: bool) -> None:
    arch = llama(architectures=[name], head_dim=width)
    assert {lmdeploy.turbomind_serves(arch, each) for each in lmdeploy.rules(release)} == {served}


def test_a_session_longer_than_the_pool_is_cut() -> None:
    assert lmdeploy.window(lmdeploy.Settings("0.9.2", session_len=210000), 32768, 1966) == 1966
    assert lmdeploy.window(lmdeploy.Settings("0.9.2"), 32768, 50000) == 32768


def test_a_block_of_a_log() -> None:
    """`lmdeploy-0001`: 64 MiB a block of 128 tokens of a 7B of 32 layers; 159 blocks are 20,352 tokens."""
    given = lmdeploy.Settings("0.2.2", cache_block_seq_len=128)
    price = lmdeploy.bytes_per_token_per_device(llama(), given)
    assert price == 64 * (1 << 20) // 128
    assert lmdeploy.pool_tokens(llama(), given, int(159.5 * (64 << 20) / 0.8), 80 * GIB) == 20352


@pytest.mark.skipif(not LOGS.is_file(), reason="the observations are not beside the repository")
def test_bytes_of_logs() -> None:
    compared = 0
    for row in map(json.loads, LOGS.read_text(encoding="utf-8").splitlines()):
        path = SHARED / f"facts/models/{row['model'].replace('/', '__')}.json"
        if "bytes_per_token_formula" not in row.get("derived", {}) or not path.is_file():
            continue
        compared += 1
        given = lmdeploy.Settings(row["version"] or "0.9.2", tp=row["tp"], model_dtype="float16")
        arch = architecture(json.loads(path.read_text(encoding="utf-8")))
        assert lmdeploy.bytes_per_token_per_device(arch, given) == row["derived"]["bytes_per_token_formula"], row["id"]
    print(compared, "rows")
