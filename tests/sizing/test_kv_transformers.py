"""The transformers cache: small models of each family, run with transformers 5.24.0, and every recorded row of real shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvlint.models.architecture import UnknownArchitecture
from kvlint.models.config import architecture
from kvlint.sizing.kv_transformers import cache_bytes

HERE = Path(__file__).resolve()
# Bytes of all tensors of the cache after one forward pass of a random model with this configuration, torch 2.13.0, bfloat16.
SMALL = [json.loads(line) for line in (HERE.parent / "transformers_small.jsonl").read_text().splitlines()]
SHARED = HERE.parents[2] / "../shared"
OBSERVED = SHARED / "observed" / "transformers-cache.jsonl"


@pytest.mark.parametrize("row", SMALL, ids=lambda row: f"{row['model_type']}-{row['tokens']}")
def test_small_models_of_each_family(row: dict[str, Any]) -> None:
    assert cache_bytes(architecture(row["config"]), row["tokens"]) == row["cache_bytes"]


def test_sequences_multiply() -> None:
    row = SMALL[0]
    assert cache_bytes(architecture(row["config"]), row["tokens"], 3) == 3 * row["cache_bytes"]


def test_float32_doubles_plain_attention() -> None:
    config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    # 2 layers x 4 heads x (16 + 16) x 10 tokens x 4 bytes
    assert cache_bytes(architecture(config), 10, dtype="float32") == 2 * 4 * 32 * 10 * 4


def test_windows_keep_one_position_less() -> None:
    config = {
        "model_type": "mistral",
        "num_hidden_layers": 1,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
    }
    # 1 head x (16 + 16) x min(tokens, window - 1) x 2 bytes
    assert cache_bytes(architecture({**config, "sliding_window": 8}), 100) == 32 * 7 * 2
    assert cache_bytes(architecture({**config, "sliding_window": 8}), 7) == 32 * 7 * 2
    assert cache_bytes(architecture({**config, "sliding_window": None}), 5000) == 32 * 5000 * 2
    assert cache_bytes(architecture(config), 5000) == 32 * 4095 * 2


def test_a_state_that_the_library_keeps_elsewhere_is_unknown() -> None:
    config = {
        "model_type": "recurrent_gemma", "num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4,
        "block_types": ["recurrent", "recurrent", "attention"],
    }  # fmt: skip
    with pytest.raises(UnknownArchitecture):
        cache_bytes(architecture(config), 10)


@pytest.mark.skipif(not OBSERVED.exists(), reason="the recorded rows are not here")
def test_every_recorded_row() -> None:
    models = SHARED / "facts" / "models"
    files = {row["id"]: row["file"] for row in map(json.loads, (models / "INDEX.jsonl").read_text().splitlines())}
    rows = [json.loads(line) for line in OBSERVED.read_text().splitlines()]
    wrong = [
        row["id"]
        for row in rows
        if cache_bytes(architecture(json.loads((models / files[row["model"]]).read_text())), row["tokens"])
        != row["cache_bytes"]
    ]
    assert wrong == []
    assert len(rows) >= 400
