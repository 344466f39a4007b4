"""Engine-neutral arithmetic and the library's function."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from kvlint.facts import Unknown
from kvlint.models.architecture import State, UnknownArchitecture
from kvlint.models.config import architecture
from kvlint.sizing.api import kv_cache_bytes
from kvlint.sizing.kv import element_bytes, kv_bytes_per_token, state_bytes, windowed_bytes

TWO = Fraction(2)


def plain(layers: int, kv_heads: int, head: int, **more: Any) -> dict[str, Any]:
    return {
        "model_type": "llama", "num_hidden_layers": layers, "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": kv_heads, "head_dim": head, **more,
    }  # fmt: skip


DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
    "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
}  # fmt: skip
QWEN35_27B = {
    "model_type": "qwen3_5_text", "num_hidden_layers": 64, "hidden_size": 5120, "num_attention_heads": 24,
    "num_key_value_heads": 4, "head_dim": 256, "linear_num_key_heads": 16, "linear_num_value_heads": 48,
    "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "mtp_num_hidden_layers": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (plain(32, 8, 128), 131_072),  # 32 x 8 x 256 x 2
        (plain(80, 8, 128), 327_680),  # 80 x 8 x 256 x 2
        (DEEPSEEK_V3, 70_272),  # 61 x 576 x 2
        (QWEN35_27B, 65_536),  # 16 full layers x 4 x 512 x 2
    ],
)
def test_bytes_per_token(config: dict[str, Any], expected: int) -> None:
    assert kv_bytes_per_token(architecture(config), TWO) == expected


def test_draft_layers_cost_one_layer_of_their_kind() -> None:
    deepseek, qwen = architecture(DEEPSEEK_V3), architecture(QWEN35_27B)
    assert kv_bytes_per_token(deepseek, TWO, deepseek.draft_layers) == 576 * 2
    assert kv_bytes_per_token(qwen, TWO, qwen.draft_layers) == 4096


def test_state_of_a_gated_delta_net_by_engine() -> None:
    """Convolution width 2 x 16 x 128 + 48 x 128 = 10,240, state 48 x 128 x 128 = 786,432 elements a layer."""
    part = next(architecture(QWEN35_27B).parts(State))
    assert (part.conv_channels, part.recurrent) == (10_240, 786_432)
    assert state_bytes(part, 4, TWO, Fraction(4)) == 3_227_648  # transformers: 4 columns, float32 state
    assert state_bytes(part, 3, TWO, Fraction(4)) == 3_207_168  # SGLang: 3 columns
    assert state_bytes(part, 3, TWO, TWO) == 1_634_304  # vLLM, all 16 bit
    assert state_bytes(part, 3, Fraction(4), Fraction(4)) == 3_268_608  # llama.cpp, all 32 bit


def test_compressed_rows_grow_by_ratio() -> None:
    config = {
        "model_type": "deepseek_v4", "num_hidden_layers": 43, "hidden_size": 4096, "num_attention_heads": 64,
        "compress_ratios": [0, 0] + [4, 128] * 20 + [4, 0],
    }  # fmt: skip
    # 21 CSA layers x (512 + 128) x 2 / 4 + 20 HCA layers x 512 x 2 / 128
    assert kv_bytes_per_token(architecture(config), TWO) == 21 * 320 + 20 * 8 == 6_880


def test_windows_hold_their_window() -> None:
    shape = architecture(plain(2, 8, 128, layer_types=["full_attention", "sliding_attention"], sliding_window=1024))
    assert kv_bytes_per_token(shape, TWO) == 4096
    assert windowed_bytes(shape, 100, TWO) == 4096 * 100
    assert windowed_bytes(shape, 5000, TWO) == 4096 * 1024


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("bfloat16", 2),
        ("torch.float16", 2),
        ("float32", 4),
        ("fp8_e4m3", 1),
        ("q8_0", Fraction(17, 16)),
        ("q4_0", Fraction(9, 16)),
    ],
)
def test_element_sizes(dtype: str, size: Any) -> None:
    assert element_bytes(dtype) == size


def test_an_unknown_element_is_unknown() -> None:
    assert isinstance(element_bytes("turbo3"), Unknown)


def test_the_library_function() -> None:
    config = plain(32, 8, 128)
    assert kv_cache_bytes(config, 8192) == 8192 * 131_072
    assert kv_cache_bytes(config, 8192, sequences=2, kv_dtype="float32") == 2 * 8192 * 2 * 131_072
    assert kv_cache_bytes({**config, "torch_dtype": "float32"}, 1) == 2 * 131_072
    assert kv_cache_bytes(config, 1000, engine="mlx-lm") == 1024 * 131_072


@pytest.mark.parametrize("engine", ["transformers", "mlx-lm"])
def test_a_missing_field_is_named(engine: str) -> None:
    config = plain(32, 8, 128)
    del config["num_hidden_layers"]
    with pytest.raises(UnknownArchitecture) as error:
        kv_cache_bytes(config, 10, engine=engine)
    assert error.value.field == "num_hidden_layers"


def test_engines_whose_caches_another_makes() -> None:
    config = plain(32, 8, 128)  # 2 × 32 layers × 8 heads × 128 × 2 B = 131,072 B a token
    assert kv_cache_bytes(config, 1000, engine="vllm-mlx", version="0.6.0") == 1024 * 131_072
    assert kv_cache_bytes(config, 1000, engine="ollama") == kv_cache_bytes(config, 1000, engine="llama-server")
    assert kv_cache_bytes(config, 1000, engine="tgi", sequences=2) == 2000 * 131_072


@pytest.mark.parametrize("options", [{"engine": "nothing"}, {"kv_dtype": "turbo3"}, {"sequences": -1}])
def test_senseless_questions(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        kv_cache_bytes(plain(32, 8, 128), 10, **options)
