"""mlx-lm caches: growth rules by hand, differences by release, and every recorded row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvlint.models.architecture import UnknownArchitecture
from kvlint.models.config import architecture
from kvlint.sizing.mlx import kv as kv_mlx
from kvlint.sizing.mlx.kv import cache_bytes, chunked_length, grown_length, rotating_length

OBSERVED = Path(__file__).resolve().parents[2] / "../shared" / "observed" / "mlx-lm.jsonl"
PLAIN = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
LATENT = {
    "model_type": "deepseek_v3", "num_hidden_layers": 4, "hidden_size": 128, "num_attention_heads": 4, "kv_lora_rank": 64,
    "qk_rope_head_dim": 32, "qk_nope_head_dim": 32, "v_head_dim": 32,
}  # fmt: skip


@pytest.mark.parametrize(
    ("passes", "rows"),
    [
        ([1000], 1024),
        ([1000] + [1] * 30, 1280),
        ([5, 1, 1, 1], 256),
        ([512, 512, 1, 1], 1280),
        ([256], 256),
        ([257], 512),
    ],
)
def test_plain_buffers_grow_in_steps(passes: list[int], rows: int) -> None:
    # 1000 tokens take 4 steps of 256; the 25th single token after them does not fit and adds one
    assert grown_length(passes) == rows


@pytest.mark.parametrize(
    ("passes", "window", "rows"),
    [
        ([1000], 300, 1000),  # a first pass is kept whole
        ([1000, 1], 300, 300),  # the next token cuts it to the window
        ([512, 512], 300, 811),  # 299 kept + 512
        ([1], 300, 256),  # one step
        ([1] * 257, 300, 300),  # 256 + min(256, 300 - 256)
    ],
)
def test_rotating_buffers(passes: list[int], window: int, rows: int) -> None:
    assert rotating_length(passes, window) == rows


def test_chunked_buffers_are_cut_from_the_end_or_by_tokens() -> None:
    assert chunked_length([1000], 300, by_tokens=True) == 1024
    assert chunked_length([512, 1], 300, by_tokens=True) == 556  # 300 kept + a step of 256


def test_latents_since_0_30_6() -> None:
    # 1000 tokens: 1024 rows x 4 layers x 2 bytes x (64 + 32), before: x 4 heads x (32 + 32 + 32)
    assert cache_bytes(architecture(LATENT), 1000, version="0.30.6") == 1024 * 4 * 2 * 96
    assert cache_bytes(architecture(LATENT), 1000, version="0.30.5") == 1024 * 4 * 2 * 4 * 96


def test_a_window_that_mlx_lm_ignores() -> None:
    config = {**PLAIN, "model_type": "mistral", "sliding_window": 300}
    assert cache_bytes(architecture(config), 1000) == cache_bytes(architecture(PLAIN), 1000) == 1024 * 4 * 2 * 128 * 2


def test_quantized_rows() -> None:
    # head of 64 at 8 bits in groups of 64: 64 bytes + scale and bias of 2 bytes each; keys and values of 2 heads in 4 layers
    assert cache_bytes(architecture(PLAIN), 100, kv_bits=8) == 256 * 4 * 2 * 2 * (64 + 4)
    with pytest.raises(UnknownArchitecture, match="do not divide"):
        cache_bytes(architecture(PLAIN), 100, kv_bits=8, kv_group_size=128)


def test_prefill_in_passes() -> None:
    assert cache_bytes(architecture(PLAIN), 1000, prefill_step=512) == 1024 * 4 * 2 * 128 * 2


def test_a_type_without_a_model_file_is_unknown() -> None:
    with pytest.raises(UnknownArchitecture) as error:
        cache_bytes(architecture({**PLAIN, "model_type": "phi3_v"}), 10)
    assert error.value.field == "model_type"


def forward_steps(row: dict[str, Any]) -> list[int]:
    steps: list[int] = []
    for step in row["forward_steps"]:
        count, size = (int(part) for part in step.split("x")) if isinstance(step, str) else (1, step)
        steps += [size] * count
    return steps


@pytest.mark.skipif(not OBSERVED.exists(), reason="the recorded rows are not here")
def test_every_recorded_row() -> None:
    wrong = []
    rows = [json.loads(line) for line in OBSERVED.read_text().splitlines()]
    for row in rows:
        read = architecture(kv_mlx.read_as({**row["config"], "model_type": row["model_type"]}))
        steps = forward_steps(row)
        found = cache_bytes(read, sum(steps), row["batch"], row["version"], row["kv_dtype"], steps=steps)
        if found != row["cache_bytes"]:
            wrong.append((row["model_type"], row["version"], steps, found, row["cache_bytes"]))
    assert wrong == []
    assert len(rows) >= 100
