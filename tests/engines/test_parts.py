"""Numbers of parts that divide nothing: a typing error, which is no fault of ours and no figure of anybody's."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

LINES = (
    *("vllm serve {model} --tensor-parallel-size {n}", "vllm serve {model} --pipeline-parallel-size {n}"),
    *("vllm serve {model} --data-parallel-size {n}", "vllm serve {model} --decode-context-parallel-size {n}"),
    *(f"python -m sglang.launch_server --model-path {{model}} --{flag} {{n}}" for flag in ("tp", "pp-size", "dp-size")),
    *("text-generation-launcher --model-id {model} --num-shard {n}", "trtllm-serve {model} --tp_size {n}"),
    "lmdeploy serve api_server {model} --tp {n}",
)
MODELS = ("Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-Next-80B-A3B-Instruct")


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("number", ["0", "-1"])
def test_no_parts_at_all(line: str, model: str, number: str) -> None:
    report = check_files({"run.sh": f"#!/bin/sh\n{line.format(model=model, n=number)}\n"})
    assert report.internal == []
    assert [group.first.engine for group in report.groups] != []


@pytest.mark.parametrize("tokens", ["0", "-7"])
def test_a_window_of_nothing_breaks_no_rule(tokens: str) -> None:
    """Qwen3.5 keeps its recurrent state by blocks as long as the window."""
    line = f"uvx --from vllm==0.22.1 vllm serve Qwen/Qwen3.5-27B --max-model-len {tokens}\n"
    report = check_files({"run.sh": line})
    assert not report.internal
    assert any(each.missing == "window" for each in report.unchecked)
