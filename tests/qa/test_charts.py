"""Values of charts that nobody here knows."""

from __future__ import annotations

from kvlint.facts import Unknown
from kvlint.pipeline import check_files, evaluate, memory_project

OWN = """replicaCount: 1
image:
  repository: registry.example/vllm-gaudi
extraCmdArgs: [--block-size, "128", --max-num-seqs, "64", --enable-chunked-prefill]
"""
WHOLE = """image: {repository: vllm/vllm-openai, tag: v0.11.0}
args: [--model, Qwen/Qwen3-8B, --max-num-seqs, "64"]
"""


def test_a_chart_that_names_the_model_itself_may_write_more() -> None:
    (group,) = evaluate(memory_project({"values.yaml": OWN})).groups
    found = group.first.settings
    assert group.first.engine == "vllm"
    assert getattr(found["block_size"], "value", None) == 128
    assert isinstance(found["memory_fraction"], Unknown)
    assert check_files({"values.yaml": OWN}).findings == []  # nor is its tag missing: the chart has one


def test_arguments_with_a_model_are_all_there_is() -> None:
    (group,) = evaluate(memory_project({"values.yaml": WHOLE})).groups
    assert getattr(group.first.settings["memory_fraction"], "origin", None) is not None
