"""What vLLM compares when it starts, for options that no parser relates.

Read in vllm/config/{scheduler,parallel,model}.py and vllm/engine/arg_utils.py of each release named.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kvlint

QWEN = "Qwen/Qwen3-8B"  # 32 query heads, 8 KV heads
DEEPSEEK = "deepseek-ai/DeepSeek-V3"  # one latent row for all heads


def found(tmp_path: Path, release: str, arguments: str, model: str = QWEN) -> dict[str, Any]:
    line = f"#!/bin/sh\nexec uvx --from vllm=={release} vllm serve {model} {arguments}\n"
    (tmp_path / "chat.sh").write_text(line, encoding="utf-8")
    report = kvlint.check([str(tmp_path)])
    return {each.rule: each.message for each in report.findings if each.severity == "error"}


@pytest.mark.parametrize(
    ("release", "arguments", "told"),
    [
        ("0.33.0", "--max-num-seqs 8 --max-num-active-seqs 16", "above --max-num-seqs, 8"),
        ("0.33.0", "--max-model-len 8192 --long-prefill-token-threshold 8193", "above --max-model-len, 8,192"),
        ("0.27.1", "--max-model-len 8k --long-prefill-token-threshold 8192", "above --max-model-len, 8,000"),
        (
            "0.25.1",
            "--max-model-len 8192 --long-prefill-token-threshold 8193 --max-num-partial-prefills 2",
            "above --max-model-len, 8,192",
        ),
        ("0.12.0", "--max-long-partial-prefills 2", "above --max-num-partial-prefills, 1, its default"),
        ("0.10.2", "-tp 8 -dcp 3", "does not divide --tensor-parallel-size, 8"),
        ("0.33.0", "-tp 8 -dcp 3", "does not divide --tensor-parallel-size, 8"),
        ("0.33.0", "-dcp 2", "does not divide --tensor-parallel-size, 1, its default"),
        ("0.33.0", "-tp 8 -dcp 3 -pcp 1", "does not divide --tensor-parallel-size, 8"),
        ("0.10.2", "-tp 2 --enable-eplb", "needs --enable-expert-parallel"),
        ("0.12.0", "--data-parallel-external-lb", "needs --data-parallel-size"),
        ("0.33.0", "-dp 2 --data-parallel-external-lb --data-parallel-hybrid-lb", "does not go with"),
        ("0.33.0", "--max-model-len 0", "`0`"),
    ],
)
def test_what_it_refuses(tmp_path: Path, release: str, arguments: str, told: str) -> None:
    assert told in found(tmp_path, release, arguments, DEEPSEEK)["malformed-value"]


@pytest.mark.parametrize(
    ("release", "arguments"),
    [
        ("0.33.0", "--max-num-seqs 16 --max-num-active-seqs 16"),
        ("0.33.0", "--max-num-active-seqs 16"),  # the width is the device's
        ("0.33.0", "--max-model-len 8192 --long-prefill-token-threshold 8192"),
        ("0.33.0", "--long-prefill-token-threshold 8192"),
        # up to 0.25.1 the threshold counts only where prompts are read together
        ("0.25.1", "--max-model-len 8192 --long-prefill-token-threshold 8193"),
        ("0.25.1", "--max-model-len 8192 --long-prefill-token-threshold 8193 --max-num-partial-prefills 1"),
        ("0.33.0", "-tp 8 -dcp 4"),
        ("0.33.0", "-tp 2 -pcp 3 -dcp 3"),  # it spans the prefill axis
        ("0.33.0", "-tp 8 -ep --enable-eplb"),
        ("0.33.0", "--max-model-len -1"),
    ],
)
def test_what_it_takes(tmp_path: Path, release: str, arguments: str) -> None:
    assert "malformed-value" not in found(tmp_path, release, arguments, DEEPSEEK)


@pytest.mark.parametrize(
    ("release", "arguments", "told"),
    [
        ("0.33.0", "-tp 4 -dcp 2", "above the 8 KV heads, and that is 4"),
        ("0.12.0", "-tp 16 -dcp 4", "2 copies of each of 8 KV heads, fewer than 4"),  # 16 ÷ 8 = 2
        ("0.33.0", "-tp 32 -dcp 4", None),  # 32 ÷ 8 = 4 copies, 32 ÷ 8 = 4 query heads each
        ("0.33.0", "-tp 16 -dcp 2", None),
        ("0.11.0", "-tp 4 -dcp 2", None),  # no such check yet
    ],
)
def test_context_parallelism_needs_copies_of_kv_heads(
    tmp_path: Path, release: str, arguments: str, told: str | None
) -> None:
    message = found(tmp_path, release, arguments).get("context-parallel-heads", "")
    assert told in message if told else not message
