"""One model under several names: redirects of a hub, copies, and directories."""

from __future__ import annotations

import pytest

from kvlint.facts import Range
from kvlint.models.catalogue import find
from kvlint.models.lookup import copied
from kvlint.pipeline import check_files, evaluate, memory_project
from kvlint.records import replace


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


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("unsloth/Qwen3-8B-GGUF", "Qwen/Qwen3-8B"),
        ("Qwen/Qwen3-8B-GGUF", "Qwen/Qwen3-8B"),
        ("bartowski/Qwen_Qwen3-8B-GGUF", "Qwen/Qwen3-8B"),
        ("mradermacher/Qwen3-8B-i1-GGUF", "Qwen/Qwen3-8B"),
        ("google/gemma-3-27b-it-qat-q4_0-gguf", "google/gemma-3-27b-it"),
        ("ggml-org/gpt-oss-20b-GGUF", "openai/gpt-oss-20b"),
    ],
)
def test_what_a_gguf_was_made_of(name: str, like: str) -> None:
    found, base = find(name), find(like)
    assert found is not None
    assert base is not None
    assert found.architecture == base.architecture
    assert not isinstance(found.weight_bytes(), int)  # a file of fewer bits has its own size


@pytest.mark.parametrize(
    "name",
    [
        "unsloth/Qwen3-8B-128K-GGUF",  # its positions are others
        "somebody/Qwen3-8B-GGUF",  # whose it is, nobody says
        "Jackrong/Qwen3-8B-Distilled-GGUF",
        "unsloth/GGUF",
    ],
)
def test_gguf_that_may_be_anything(name: str) -> None:
    assert find(name) is None


@pytest.mark.parametrize(
    "named",
    [
        "-hf unsloth/Qwen3-8B-GGUF:Q4_K_M",
        "-m /home/me/.lmstudio/models/lmstudio-community/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf",
        "-m /cache/models--bartowski--Qwen_Qwen3-8B-GGUF/snapshots/0a/Qwen_Qwen3-8B-Q4_K_M.gguf",
    ],
)
def test_a_repository_of_gguf_on_a_command_line(named: str) -> None:
    """36 layers of 8 heads of 128, keys and values: 147,456 bytes a token in 16 bits, 78,336 in q8_0 (34 bytes for 32)."""
    line = "#!/bin/sh\nllama-server {1} -c 32768 -np 1 -fa on -ctk {0} -ctv {0}\n"
    for kind, size in (("f16", 147_456), ("q8_0", 78_336)):
        (group,) = evaluate(memory_project({"a.sh": line.format(kind, named)})).groups
        assert getattr(group.first.get("kv_bytes_per_token"), "value", None) == size


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("mlx-community/gemma-3-27b-it-4bit", "google/gemma-3-27b-it"),
        ("mlx-community/Mistral-7B-Instruct-v0.3-8bit", "mistralai/Mistral-7B-Instruct-v0.3"),
        ("mlx-community/Llama-4-Scout-17B-16E-Instruct-4bit", "meta-llama/Llama-4-Scout-17B-16E-Instruct"),
        ("mlx-community/Qwen2.5-7B-Instruct-4bit-DWQ", "Qwen/Qwen2.5-7B-Instruct"),
        ("lmstudio-community/gemma-3-27b-it-MLX-6bit", "google/gemma-3-27b-it"),
    ],
)
def test_what_a_repository_for_mlx_was_made_of(name: str, like: str) -> None:
    found, base = find(name), find(like)
    assert found is not None
    assert base is not None
    assert found.architecture == base.architecture


@pytest.mark.parametrize(
    "name", ["somebody/Qwen3-8B-4bit", "mlx-community/Qwen3-8B-128K-4bit", "mlx-community/other-4bit"]
)
def test_mlx_that_may_be_anything(name: str) -> None:
    assert find(name) is None


@pytest.mark.parametrize(
    ("name", "low", "usual", "high"),
    [
        # 4,022,468,096 weights of 4 bits; 32 bits for each 128, 64 or 32 of them; a twentieth more at most
        ("mlx-community/Qwen3-4B-4bit", 2_136_936_176, 2_262_638_304, 2_639_744_688),
        # 8,953,803,264 of text, and 456,010,480 of vision in 16 bits, which a server of text leaves out
        ("mlx-community/Qwen3.5-9B-4bit", None, 5_950_062_560, None),
    ],
)
def test_what_the_bits_of_a_name_weigh(name: str, low: int | None, usual: int, high: int | None) -> None:
    found = find(name)
    assert found is not None
    size = found.weight_bytes()
    assert size == (Range(low, usual, high) if low and high else usual)


def test_sizes_of_published_repositories() -> None:
    """Sizes from the hub, where the catalogue has them, lie in what their names say (kv-formulas 11)."""
    for name, size in (
        ("mlx-community/Qwen3.5-9B-4bit", 5_950_062_560),
        ("mlx-community/gemma-4-e4b-it-4bit", 5_216_992_212),
        ("mlx-community/Qwen3-Coder-Next-8bit", 89_357_758_772),
        ("mlx-community/MiniMax-M2.7-5bit", 157_262_619_651),
        ("mlx-community/Llama-3.1-Nemotron-70B-Instruct-HF-4bit", 39_688_355_840),
    ):
        found = find(name)
        assert found is not None
        bounds = replace(found, file_bytes=None).weight_bytes()
        assert isinstance(bounds, Range)
        assert bounds.low <= size <= bounds.high
