"""Pairs that must agree without a `[[parity]]`."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files


def disagreements(files: dict[str, str]) -> list[tuple[str, str]]:
    found = check_files(files)
    assert found.internal == []
    return [(each.severity, each.text) for each in found.findings if each.rule == "values-disagree"]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("proxy: http://localhost:9001\n    cmd: vllm serve m --port 9001", []),
        ("proxy: http://localhost:9001\n    cmd: vllm serve m --port 9002", [("error", "9001")]),
        ("proxy: http://localhost:9001\n    cmd: vllm serve m", [("warning", "9001")]),  # 8000 by default
        ("proxy: http://127.0.0.1:${PORT}\n    cmd: vllm serve m --port ${PORT}", []),
        ("proxy: http://other.lan:9001\n    cmd: vllm serve m --port 9002", []),  # elsewhere
        ("cmd: docker run -p ${PORT}:8000 vllm/vllm-openai:v0.13.0 --model m", []),
        (
            "proxy: http://localhost:9001\n    cmd: docker run -p 9002:8000 vllm/vllm-openai:v0.13.0 --model m",
            [("error", "9001")],
        ),
        (
            "proxy: http://localhost:9001\n    cmd: docker run -p 9001:8000 vllm/vllm-openai:v0.13.0 --model m --port 8001",
            [("error", "8000")],
        ),
        (
            "proxy: http://localhost:9001\n    cmd: docker run --network host vllm/vllm-openai:v0.13.0 --model m --port 9001",
            [],
        ),
    ],
)
def test_the_port_that_llama_swap_calls(model: str, expected: list[tuple[str, str]]) -> None:
    assert disagreements({"llama-swap.yaml": f"models:\n  chat:\n    {model}\n"}) == expected


def test_a_port_that_a_variable_may_change_is_no_error() -> None:
    swap = "models:\n  chat:\n    concurrencyLimit: 4\n    proxy: http://localhost:9001\n    cmd: ./serve.sh\n"
    script = "#!/bin/sh\nexec vllm serve m --port ${SERVER_PORT:-9002}\n"
    assert disagreements({"llama-swap.yaml": swap, "serve.sh": script}) == [("warning", "9001")]


COMPOSE = """\
services:
  vllm:
    image: vllm/vllm-openai:v0.13.0
    command: --model Qwen/Qwen3-8B --served-model-name qwen --port 8001
    ports: ["8000:8001"]
  litellm:
    image: ghcr.io/berriai/litellm:v1.80.0
    volumes: ["./litellm.yaml:/app/config.yaml"]
"""
PROXY = """\
model_list:
  - model_name: chat
    litellm_params: {model: hosted_vllm/qwen, api_base: "http://vllm:8001/v1"}
"""


def test_inside_a_compose_network_the_published_port_is_not_heard() -> None:
    files = {"compose.yaml": COMPOSE, "litellm.yaml": PROXY}
    assert disagreements(files) == []
    wrong = PROXY.replace("vllm:8001", "vllm:8000")
    assert disagreements({**files, "litellm.yaml": wrong}) == [("error", "http://vllm:8000/v1")]


def test_the_name_that_vllm_serves() -> None:
    files = {"compose.yaml": COMPOSE, "litellm.yaml": PROXY.replace("vllm/qwen", "vllm/Qwen/Qwen3-8B")}
    assert disagreements(files) == [("warning", "hosted_vllm/Qwen/Qwen3-8B")]
    unnamed = COMPOSE.replace(" --served-model-name qwen", "")
    assert disagreements({**files, "compose.yaml": unnamed}) == []
    adapters = COMPOSE.replace("--port", "--enable-lora --lora-modules Qwen/Qwen3-8B=/x --port")
    assert disagreements({**files, "compose.yaml": adapters}) == []


def test_the_blocks_by_which_a_scheduler_counts() -> None:
    text = """\
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata: {name: chat}
spec:
  template:
    containers:
      - {name: main, image: "vllm/vllm-openai:v0.13.0", command: [vllm, serve, Qwen/Qwen3-8B, --block-size, "32"]}
  router:
    scheduler:
      config:
        inline:
          kind: EndpointPickerConfig
          plugins:
            - {type: precise-prefix-cache-producer, parameters: {tokenProcessorConfig: {blockSize: 64}}}
"""
    assert disagreements({"chat.yaml": text}) == [("warning", "64")]
    assert disagreements({"chat.yaml": text.replace("64", "32")}) == []
