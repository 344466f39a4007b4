"""Bytes of weights by layout."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from kvlint.facts import Range, Unknown
from kvlint.models.catalogue import find
from kvlint.models.config import architecture
from kvlint.models.weights import experts, quantization, split, weight_bytes

MLX = Path(__file__).resolve().parents[2] / "../shared" / "facts" / "models" / "WEIGHT_BYTES_MLX.jsonl"

DENSE: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 100, "tie_word_embeddings": False, "dtype": "bfloat16",
}  # fmt: skip


@pytest.mark.parametrize(
    ("block", "low", "high"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8 + Fraction(32, 128 * 128), None),
        ({"quant_method": "fp8", "weight_block_size": None}, 8, None),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, 4 + Fraction(20, 128), None),
        ({"quant_method": "mxfp4"}, Fraction(17, 4), None),
        ({"bits": 4, "group_size": 64}, Fraction(9, 2), None),
        ({"bits": 8, "group_size": 64, "mode": "affine"}, Fraction(17, 2), None),
        (
            {"bits": 4, "group_size": 64, "model.layers.0.mlp": {"bits": 8, "group_size": 64}},
            Fraction(9, 2),
            Fraction(17, 2),
        ),
        ({"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}, Fraction(9, 2), None),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            8,
            None,
        ),
    ],
)
def test_bits_of_a_quantized_weight(block: dict[str, Any], low: Any, high: Any) -> None:
    found = quantization({"quantization_config": block}, {})
    assert found is not None
    assert (found.low_bits, found.high_bits) == (low, high or low)


def test_the_block_may_stand_in_the_text_model_or_beside() -> None:
    block = {"quant_method": "fp8"}
    assert quantization({}, {"quantization_config": block}) == quantization({"compression_config": block}, {})
    beside = quantization(
        {"hf_quant_config": {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}}, {}
    )
    assert beside is not None
    assert (beside.low_bits, beside.kv_cache) == (8, "fp8_e4m3")
    assert quantization({}, {}) is None


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ({"num_bits": 8, "type": "float"}, "fp8_e4m3"),
        ("FP8", "fp8_e4m3"),
        (None, None),
        ({"num_bits": 8, "type": "int"}, None),
    ],
)
def test_cache_schemes(scheme: Any, expected: str | None) -> None:
    found = quantization({"quantization_config": {"quant_method": "fp8", "kv_cache_scheme": scheme}}, {})
    assert found is not None
    assert found.kv_cache == expected


def test_sixteen_bits_are_exact() -> None:
    assert weight_bytes(1000, architecture(DENSE), None) == 2000
    assert weight_bytes(1000, architecture({**DENSE, "dtype": "float32"}), None) == 4000
    assert isinstance(weight_bytes(None, architecture(DENSE), None), Unknown)


def test_only_linear_modules_get_the_low_width() -> None:
    """Embedding and head have 100 x 64 weights each; attention 2 x 64 x (4 + 2) x 32."""
    layout = quantization({"quantization_config": {"quant_method": "fp8", "modules_to_not_convert": ["lm_head"]}}, {})
    found = weight_bytes(200_000, architecture(DENSE), layout)
    assert isinstance(found, Range)
    assert found.low == found.nominal == (200_000 - 12_800) + 2 * 12_800
    assert found.high == (200_000 - 12_800 - 24_576) + 2 * (12_800 + 24_576)


def test_experts_are_counted_apart() -> None:
    config = {
        **DENSE,
        "model_type": "qwen3_moe",
        "num_experts": 8,
        "moe_intermediate_size": 32,
        "head_dim": 16,
        "mlp_only_layers": [0],
    }
    # 1 layer x 8 experts x 3 matrices x 64 x 32
    assert experts(architecture(config)) == 8 * 3 * 64 * 32
    assert experts(architecture(DENSE)) == 0
    assert split(architecture(config)).embedding == split(architecture(config)).head == 6400


def test_experts_of_a_known_model() -> None:
    entry = find("Qwen/Qwen3-30B-A3B-Instruct-2507")
    assert entry is not None
    assert experts(entry.architecture) == 48 * 128 * 3 * 2048 * 768  # type: ignore[arg-type]


@pytest.mark.skipif(not MLX.exists(), reason="the recorded sizes are not here")
def test_exact_sizes_of_mlx_files_lie_in_the_range() -> None:
    """Affine layouts of text-only models: everything quantized but norms, within a tenth of a percent of the formula."""
    close = 0
    for row in map(json.loads, MLX.read_text().splitlines()):
        entry = find(row["id"])
        text_only = ("MiniMax", "Nemotron-70B", "GLM-4.7-4bit", "GLM-4.7-6bit")
        if row["rounded"] or entry is None or not entry.parameters or not any(name in row["id"] for name in text_only):
            continue
        if not row["quantization"].endswith("bit"):
            continue
        width = int(row["quantization"].removesuffix("bit"))
        layout = quantization({"quantization": {"bits": width, "group_size": 64}}, {})
        formula = weight_bytes(entry.parameters, entry.architecture, layout)  # type: ignore[arg-type]
        assert isinstance(formula, Range)
        assert abs(row["weight_bytes"] - formula.nominal) * 1000 < row["weight_bytes"]
        close += 1
    assert close >= 8
