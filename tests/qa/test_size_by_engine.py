"""`kvlint size --engine`: the same model as each engine keeps it, and TGI's servers, which keep every token."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from kvlint.pipeline import evaluate, memory_project
from kvlint.sizing.ask import Question, answer

STATE = 48 * (10240 * 3 * 2 + 786432 * 4)  # Qwen3.5-27B: kv-formulas 5, three columns of convolution
WIDE = 48 * (10240 * 3 * 4 + 786432 * 4)  # llama-server.md 2: all of it in 32 bits


@pytest.mark.parametrize(
    ("model", "engine", "each", "slot"),
    [
        # 42 layers of 8,192 bytes a token, every other with a window of 4,096
        ("google/gemma-2-9b", "vllm", 21 * 8192, 21 * 8192 * (8192 + 4096)),
        ("google/gemma-2-9b", "sglang", 42 * 8192, 42 * 8192 * 8192),  # sglang.md: switched off
        ("google/gemma-2-9b", "tgi", 42 * 8192, 42 * 8192 * 8192),
        ("google/gemma-2-9b", "mlx-lm", 42 * 8192, 42 * 8192 * 8192),
        ("google/gemma-2-9b", "vllm-mlx", 42 * 8192, 42 * 8192 * 8192),
        ("openai/gpt-oss-20b", "sglang", 12 * 2048, 12 * 2048 * (8192 + 127)),
        ("openai/gpt-oss-20b", "vllm", 12 * 2048, 12 * 2048 * (8192 + 128)),
        ("deepseek-ai/DeepSeek-V3.2", "vllm", 61 * (1152 + 132), 61 * (1152 + 132) * 8192),
        ("deepseek-ai/DeepSeek-V3.2", "sglang", 61 * (1152 + 132), 61 * (1152 + 132) * 8192),
        ("deepseek-ai/DeepSeek-V3.2", "transformers", 61 * 1408, 61 * 1408 * 8192),  # kv-formulas 4
        ("deepseek-ai/DeepSeek-V2-Lite", "vllm-mlx", 276_480, 276_480 * 8192),  # kv-formulas 3: expanded
        ("Qwen/Qwen3.5-27B", "vllm", 65536, 65536 * 8192 + STATE),
        ("Qwen/Qwen3.5-27B", "mlx-lm", 65536, 65536 * 8192 + STATE),
        ("Qwen/Qwen3.5-27B", "llama-server", 65536, 65536 * 8192 + WIDE),
    ],
)
def test_a_conversation_of_8192_tokens(model: str, engine: str, each: int, slot: int) -> None:
    asked = Question(model, None, None, 0, None, None, Fraction(1, 10), 1, (8192,), engine, None)
    found = answer(asked)
    assert (found.kv_bytes_per_token, found.table.rows[0].slot_bytes) == (each, slot)


@pytest.mark.parametrize(
    ("model", "each"), [("google/gemma-2-9b", 42 * 8192), ("mistralai/Mistral-7B-v0.1", 32 * 4096)]
)
def test_tgi_keeps_every_token(model: str, each: int) -> None:
    image = "ghcr.io/huggingface/text-generation-inference:3.3.7"
    pod = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec:
  containers:
    - {{name: a, image: "{image}", args: [--model-id, {model}, --max-total-tokens, "8192", --num-shard, "2"]}}
"""
    (group,) = evaluate(memory_project({"a.yaml": pod})).groups
    found: dict[str, Any] = {
        name: group.first.get(name) for name in ("kv_bytes_per_token", "slot_bytes", "kv_bytes_per_token_per_device")
    }
    assert [each.value for each in found.values()] == [each, each * 8192, each // 2]
