"""A model that only the name in a path says: its shape is taken, and whatever rests on it is at most a warning."""

from __future__ import annotations

import json

import pytest

from kvlint.facts import Fact, Unknown
from kvlint.models.catalogue import of_path
from kvlint.pipeline import check_files
from kvlint.subjects import Server


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/models/Qwen2.5-72B-Instruct-Q4_K_M.gguf", "Qwen/Qwen2.5-72B-Instruct"),
        ("/m/Qwen3-30B-A3B-UD-Q4_K_XL-00001-of-00002.gguf", "Qwen/Qwen3-30B-A3B"),
        ("Mistral-7B-Instruct-v0.3.Q4_K_M.gguf", "mistralai/Mistral-7B-Instruct-v0.3"),
        ("/m/Meta-Llama-3.1-8B-Instruct-Q8_0.gguf", "meta-llama/Llama-3.1-8B-Instruct"),
        ("/m/Qwen_QwQ-32B-Q4_K_M.gguf", "Qwen/QwQ-32B"),
        ("/models/Llama-3.3-70B-Instruct/", "unsloth/Llama-3.3-70B-Instruct"),
        ("~/models/Qwen3-8B-4bit", "Qwen/Qwen3-8B"),
    ],
)
def test_names_that_say_a_model(path: str, model: str) -> None:
    entry = of_path(path)
    assert entry is not None
    assert entry.id == model


@pytest.mark.parametrize("path", ["/models/model.gguf", "/models/base", "/models/qwen.gguf", "/models/mine-7B", "/"])
def test_names_that_say_none(path: str) -> None:
    assert of_path(path) is None


def findings(line: str) -> dict[str, str]:
    return {each.rule: each.severity for each in check_files({"run.sh": line + "\n"}).findings}


def test_what_rests_on_a_name_is_a_warning() -> None:
    """64 heads (the model's configuration) on 6 devices."""
    flags = "--tensor-parallel-size 6 --max-model-len 8192"
    assert findings(f"vllm serve meta-llama/Llama-3.3-70B-Instruct {flags}")["heads-not-divisible"] == "error"
    assert findings(f"vllm serve /models/Llama-3.3-70B-Instruct {flags}")["heads-not-divisible"] == "warning"
    assert "heads-not-divisible" not in findings(f"vllm serve /models/mine {flags}")


def test_what_does_not_rest_on_it_is_as_certain_as_before() -> None:
    """Whatever the model, no V cache is quantized without flash attention (llama.cpp, src/llama-context.cpp)."""
    line = "docker run ghcr.io/ggml-org/llama.cpp:server-b9093 -m {} -c 4096 -fa off -ctv q8_0"
    named, other = findings(line.format("/m/Qwen3-8B-Q4_K_M.gguf")), findings(line.format("/m/mine.gguf"))
    assert "error" in other.values()
    assert named == other


def test_a_repository_in_the_path_is_no_mere_name() -> None:
    """32,768 tokens beyond the 40,960 positions that Qwen3-8B's configuration states."""
    line = "vllm serve {} --max-model-len 73728"
    assert findings(line.format("/models/Qwen/Qwen3-8B"))["window-beyond-model"] == "error"
    line = "docker run ghcr.io/ggml-org/llama.cpp:server-b9093 -m {} -c 4096 -np 1"
    for directory, named in (("/models/unsloth/Qwen3-8B-GGUF", False), ("/models", True)):
        report = check_files({"run.sh": line.format(f"{directory}/Qwen3-8B-Q4_K_M.gguf") + "\n"})
        model = report.groups[0].first.model
        assert model is not None
        assert isinstance(model.architecture, Fact)
        assert model.named == named


def test_what_the_owner_says_of_a_file_beats_its_name() -> None:
    """One layer of one head: 2 × 1 × 4 × 2 B = 16 B a token, and the size that is stated; both by the file's stem."""
    shape = {"general.architecture": "llama", "llama.block_count": 1, "llama.attention.head_count": 1}
    shape |= {"llama.attention.head_count_kv": 1, "llama.embedding_length": 4, "llama.context_length": 4096}
    line = "docker run ghcr.io/ggml-org/llama.cpp:server-b9093 -m /m/Qwen3-8B-Q4_K_M.gguf -c 4096 -np 1\n"
    declared = '[[model]]\nid = "Qwen3-8B-Q4_K_M"\n'

    def world(table: str) -> Server:
        return check_files({"run.sh": line, "tiny.json": json.dumps(shape)}, declared + table).groups[0].first

    own = world('config = "tiny.json"\n').get("kv_bytes_per_token")
    assert isinstance(own, Fact)
    assert own.value == 16
    sized = world('weights = "5GiB"\n')
    weights, named = sized.get("weights_bytes"), sized.get("kv_bytes_per_token")
    assert isinstance(weights, Fact)
    assert weights.value == 5 * 2**30
    assert isinstance(named, Fact)
    assert named.value == 147_456  # 36 layers × 8 heads × (128 + 128) × 2 B


def test_the_cache_of_a_named_file() -> None:
    """2 × 80 layers × 8 KV heads × 128 × 2 B = 327,680 B a token; the weights of a file are what its types make them."""
    line = "docker run ghcr.io/ggml-org/llama.cpp:server-b9093 -m /m/Qwen2.5-72B-Instruct-Q4_K_M.gguf -c 8192 -np 1"
    world = check_files({"run.sh": line}).groups[0].first
    bytes_per_token = world.get("kv_bytes_per_token")
    assert isinstance(bytes_per_token, Fact)
    assert bytes_per_token.value == 327_680
    assert isinstance(world.get("weights_bytes"), Unknown)
