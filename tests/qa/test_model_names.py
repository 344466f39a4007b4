"""One model under several names: redirects of a hub, copies, and directories."""

from __future__ import annotations

import pytest

from kvlint.facts import Range
from kvlint.models.catalogue import find
from kvlint.models.lookup import copied
from kvlint.pipeline import check_files, evaluate, memory_project


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("meta-llama/Llama-3.3-70B-Instruct", "unsloth/Llama-3.3-70B-Instruct"),
    ],
)
def test_other_names_of_a_repository(name: str, like: str) -> None:
    found, base = find(name), find(like)
    assert found is not None
    assert base is not None
    assert (found.id, found.like) == (name, like)
    assert found.architecture == base.architecture


def test_a_renamed_organisation() -> None:
    old, new = find("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8"), find("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8")
    assert old is not None
    assert new is not None
    assert old.architecture == new.architecture
    # 8,030,261,248 parameters of one or two bytes; the name says one
    assert new.weight_bytes() == Range(8_030_261_248, 8_030_261_248, 16_060_522_496)


@pytest.mark.parametrize(
    ("path", "repository"),
    [
        ("/models/Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/0", "Qwen/Qwen3-8B"),
        ("/models/Qwen3-8B", None),  # whose it is, nobody says
        ("/data/chat/model", None),
    ],
)
def test_directories_that_are_copies(path: str, repository: str | None) -> None:
    assert copied(path) == repository


def test_a_path_below_a_variable() -> None:
    """The variable's value may be anything; it stands for one word, and the model is named behind it."""
    model = "${env.HOME}/.lmstudio/models/mlx-community/Qwen3-Coder-Next-8bit"
    config = f"""models:
  coder:
    concurrencyLimit: 3
    cmd: mlx_lm.server --port ${{PORT}} --model {model} --prompt-cache-bytes 20GB
"""
    (group,) = evaluate(memory_project({"config.yaml": config})).groups
    assert getattr(group.first.settings["model"], "value", None) == "mlx-community/Qwen3-Coder-Next-8bit"
    # 89,357,758,772 of weights, 3 × 200,000 × 24,576 + states of the 36 others, 20 GB of cached prompts: above 116 GB
    toml = '[[hardware]]\nmatch = "**"\nceiling = "116GB"\n[[workload]]\nmatch = "**"\nwindow = 200000\n'
    found = {each.rule: each.span.text for each in check_files({"config.yaml": config}, toml).findings}
    assert found["admitted-exceeds-ceiling"] == "3"


def test_an_image_with_the_engine_in_its_name() -> None:
    pod = """apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec: {{containers: [{{name: a, image: {}, args: [--model, a/b, --port, "1", --max-model-len, "4096"]}}]}}
"""
    assert [g.first.engine for g in evaluate(memory_project({"a.yaml": pod.format("team-vllm:3")})).groups] == ["vllm"]
    assert evaluate(memory_project({"a.yaml": pod.format("team-server:3")})).groups == []
