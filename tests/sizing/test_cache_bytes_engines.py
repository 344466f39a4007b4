"""`kv_cache_bytes` for TensorRT-LLM and LMDeploy, by the formulas of their fact files; what they leave open is raised.

Qwen3-8B: 36 layers of 8 KV heads of 128: 36 × 2 × 8 × 128 = 73,728 elements a token.  Latent: rank 512 + 64 of rope.
"""

from __future__ import annotations

from typing import Any

import pytest

import kvlint

QWEN = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_size": 4096,
    "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16",
}
DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "hidden_size": 7168,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "torch_dtype": "bfloat16",
}


@pytest.mark.parametrize(
    ("config", "options", "size"),
    [
        (QWEN, {"engine": "trtllm"}, 1024 * 73728 * 2),  # 1,000 tokens are 32 blocks of 32
        (QWEN, {"engine": "trtllm", "block_size": 64, "sequences": 3}, 3 * 1024 * 73728 * 2),
        (QWEN, {"engine": "trtllm", "kv_dtype": "fp8"}, 1024 * 73728),
        (
            QWEN,
            {"engine": "trtllm", "kv_dtype": "nvfp4"},
            1024 * 73728 * 9 // 16,
        ),  # a scale of one byte for 16 elements
        (DEEPSEEK, {"engine": "trtllm"}, 1024 * 61 * 576 * 2),
        (QWEN, {"engine": "lmdeploy"}, 1024 * 73728 * 2),  # 16 blocks of 64
        (QWEN, {"engine": "lmdeploy", "block_size": 32, "sequences": 2}, 2 * 1024 * 73728 * 2),
        # 2 × head_dim + 8 bytes a head and layer; head_dim + 8
        (QWEN, {"engine": "lmdeploy", "kv_dtype": "int8"}, 1024 * 36 * 8 * (2 * 128 + 8)),
        (QWEN, {"engine": "lmdeploy", "kv_dtype": "int4"}, 1024 * 36 * 8 * (128 + 8)),
        (QWEN, {"engine": "lmdeploy", "kv_dtype": "fp8"}, 1024 * 73728),
    ],
)
def test_what_the_facts_give(config: dict[str, Any], options: dict[str, Any], size: int) -> None:
    assert kvlint.kv_cache_bytes(config, 1000, **options) == size


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ({**QWEN, "use_sliding_window": True, "sliding_window": 4096, "layer_types": ["sliding_attention"] * 36}, {}),
        (DEEPSEEK, {"engine": "lmdeploy"}),
        (QWEN, {"engine": "lmdeploy", "kv_dtype": "q8_0"}),
        (QWEN, {"engine": "lmdeploy", "kv_dtype": "fp8", "version": "0.9.2"}),  # it came with 0.14
        (QWEN, {"engine": "trtllm", "kv_dtype": "int4"}),
    ],
)
def test_what_they_leave_open_is_raised(config: dict[str, Any], options: dict[str, Any]) -> None:
    for engine in ("trtllm", "lmdeploy") if not options else (options["engine"],):
        with pytest.raises(kvlint.UnknownArchitecture):
            kvlint.kv_cache_bytes(config, 1000, **{**options, "engine": engine})


@pytest.mark.parametrize("engine", ["trtllm", "lmdeploy"])
def test_a_block_of_nothing_is_no_size(engine: str) -> None:
    with pytest.raises(ValueError, match="block_size is 0"):
        kvlint.kv_cache_bytes(QWEN, 1000, engine=engine, block_size=0)


def test_every_engine_of_the_configuration_is_answered() -> None:
    from kvlint.config import ENGINE_NAMES

    for engine in ENGINE_NAMES:
        assert kvlint.kv_cache_bytes(QWEN, 1000, engine=engine) >= 1000 * 73728 * 2
