"""Servers of embeddings, rankings and classes hold no conversations: what is said of these is not said there."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

CONFIG = "models:\n  texts:\n    ttl: 600\n    concurrencyLimit: 16\n    cmd: {command} --port ${{PORT}}\n"
OF_CONVERSATIONS = {"unload-drops-cache", "prefix-caching-off", "replicas-without-affinity", "cold-prompt-cache"}


@pytest.mark.parametrize(
    "command",
    [
        "docker run vllm/vllm-openai:v0.12.0 --model acme/embedder --task embed --no-enable-prefix-caching",
        "docker run vllm/vllm-openai:v0.13.0 --model acme/ranker --runner pooling",
        "docker run vllm/vllm-openai:v0.13.0 --model acme/embedder --convert=embed",
        "python -m sglang.launch_server --model-path acme/embedder --is-embedding",
        "llama-server -m /m/embedder.gguf --embeddings",
        "llama-server -m /m/ranker.gguf --reranking",
    ],
)
def test_nothing_is_said_of_conversations(command: str) -> None:
    report = check_files({"llama-swap.yaml": CONFIG.format(command=command)})
    assert len(report.groups) == 1
    assert not OF_CONVERSATIONS & {each.rule for each in report.findings}


@pytest.mark.parametrize(
    "command",
    [
        "docker run vllm/vllm-openai:v0.12.0 --model acme/chat --task generate",
        "docker run vllm/vllm-openai:v0.13.0 --model acme/chat --runner auto --convert none",
        "llama-server -m /m/chat.gguf",
    ],
)
def test_a_server_of_conversations_is_one(command: str) -> None:
    report = check_files({"llama-swap.yaml": CONFIG.format(command=command)})
    assert "unload-drops-cache" in {each.rule for each in report.findings}
