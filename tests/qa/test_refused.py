"""Requests that a proxy admits and the engine's own limit refuses."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

TGI = "ghcr.io/huggingface/text-generation-inference:3.3.4", "--model-id Qwen/Qwen3-8B --port 8000"
SGLANG = "lmsysorg/sglang:v0.5.5", "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --port 8000"
COMPOSE = """\
services:
  chat:
    image: {}
    command: {}
  proxy:
    image: ghcr.io/berriai/litellm:v1.74.0
    command: --config /app/config.yaml
    volumes: [./litellm.yaml:/app/config.yaml]
"""
LITELLM = """\
model_list:
  - model_name: chat
    litellm_params:
      model: hosted_vllm/Qwen/Qwen3-8B
      api_base: http://chat:8000/v1
      max_parallel_requests: 64
"""


@pytest.mark.parametrize(
    ("engine", "arguments", "severities"),
    [
        (TGI, "--max-concurrent-requests 16", ["error"]),
        (TGI, "--max-concurrent-requests 64", []),
        (TGI, "", []),  # 128 unless it is written
        (SGLANG, "--max-running-requests 8", ["warning"]),  # they wait
        (SGLANG, "--max-running-requests 8 --max-queued-requests 8", ["error"]),  # the 17th is refused
        (SGLANG, "--max-running-requests 8 --max-queued-requests 56", ["warning"]),  # 8 + 56 = 64
    ],
)
def test_what_a_queue_does_not_take_is_refused(engine: tuple[str, str], arguments: str, severities: list[str]) -> None:
    image, command = engine
    files = {"compose.yaml": COMPOSE.format(image, f"{command} {arguments}"), "litellm.yaml": LITELLM}
    found = [each for each in check_files(files).findings if each.rule == "width-below-admission"]
    assert [each.severity for each in found] == severities
    assert all(("refuses" in each.message) is (each.severity == "error") for each in found)
