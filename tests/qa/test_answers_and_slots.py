"""Answers that fill the window, slots that forget, and prompts that are read in one pass."""

from __future__ import annotations

from typing import Any

import pytest

from kvlint.pipeline import check_files, evaluate, memory_project

COMPOSE = """\
services:
  chat:
    image: vllm/vllm-openai:v0.24.0
    command: --model Qwen/Qwen3-8B {flags}
  litellm:
    image: ghcr.io/berriai/litellm:v1.80.0
    command: ["--config", "/app/config.yaml"]
    volumes: ["./litellm.yaml:/app/config.yaml"]
"""
LITELLM = """\
model_list:
  - model_name: qwen
    litellm_params: {{model: hosted_vllm/Qwen/Qwen3-8B, api_base: "http://chat:8000/v1"{params}}}
    model_info: {{{info}}}
"""


def said(rule: str, files: dict[str, str], toml: str | None = None) -> list[tuple[str, str]]:
    return [(each.severity, each.text) for each in check_files(files, toml).findings if each.rule == rule]


@pytest.mark.parametrize(
    ("flags", "params", "info", "found"),
    [
        ("--max-model-len 8192", ", max_tokens: 8193", "", [("error", "8192")]),
        ("--max-model-len 8192", ", max_tokens: 8192", "", [("warning", "8192")]),
        ("--max-model-len 8192", ", max_tokens: 8191", "", []),
        ("", ", max_tokens: 65536", "", [("warning", "vllm/vllm-openai:v0.24.0")]),  # the model's own 40,960
        ("--max-model-len 8192", "", "max_tokens: 8192", []),  # told to clients, often as the window
    ],
)
def test_answers_that_a_proxy_asks_for(flags: str, params: str, info: str, found: list[tuple[str, str]]) -> None:
    files = {"compose.yaml": COMPOSE.format(flags=flags), "litellm.yaml": LITELLM.format(params=params, info=info)}
    assert said("output-leaves-no-prompt", files) == found


@pytest.mark.parametrize(("tokens", "found"), [(8193, "error"), (8192, "warning"), (8191, None)])
def test_answers_that_llama_swap_asks_for(tokens: int, found: str | None) -> None:
    config = f"""\
models:
  chat:
    cmd: vllm serve Qwen/Qwen3-8B --port ${{PORT}} --max-model-len 8192
    filters: {{setParams: {{max_tokens: {tokens}}}}}
"""
    assert said("output-leaves-no-prompt", {"llama-swap.yaml": config}) == ([(found, "8192")] if found else [])


SWAP = """\
models:
  chat:
    cmd: llama-server -hf unsloth/Qwen3-8B-GGUF --port ${{PORT}} {flags}
    capabilities: {{context: {context}}}
"""


def toml(build: str) -> str:
    return f'[[engine]]\nmatch = "**"\nname = "llama-server"\nversion = "{build}"\n'


@pytest.mark.parametrize(
    ("flags", "build", "context", "forgets", "refuses"),
    [
        ("-c 8192 -np 1 --context-shift", "b11434", 16384, [("warning", "8192")], []),
        ("-c 16384 -np 2 --context-shift", "b11434", 16384, [("warning", "2")], []),
        ("-c 8192 -np 1 --context-shift", "b11434", 8192, [], []),
        ("-c 8192 -np 1", "b11434", 16384, [], [("error", "16384")]),
        ("-c 8192 -np 1", "b4748", 16384, [("warning", "8192")], []),  # shifted by default
        ("-c 8192 -np 1 --no-context-shift", "b4748", 16384, [], [("error", "16384")]),
    ],
)
def test_a_slot_that_shifts_its_context(
    flags: str, build: str, context: int, forgets: list[tuple[str, str]], refuses: list[tuple[str, str]]
) -> None:
    files = {"llama-swap.yaml": SWAP.format(flags=flags, context=context)}
    found = said("window-drops-history", files, toml(build))
    assert [each[0] for each in found] == [each[0] for each in forgets]
    assert said("window-mismatch", files, toml(build)) == refuses


@pytest.mark.parametrize(
    ("flags", "window"),
    [
        ("", 40960),
        ("--override-kv qwen3.context_length=int:131072", 131072),
        ("--override-kv tokenizer.ggml.add_bos_token=bool:false,qwen3.context_length=int:65536", 65536),
        ("--override-kv qwen3.context_length=int:131072 --override-kv a.b=int:1", 131072),
        ("--override-kv qwen3.rope.context_length_x=int:9", 40960),
    ],
)
def test_an_overridden_length(flags: str, window: int) -> None:
    """The slot is cut to what the model was trained for, by its metadata (llama-server.md 1)."""
    files = {"a.sh": f"#!/bin/sh\nllama-server -hf unsloth/Qwen3-8B-GGUF -c 131072 -np 1 {flags}\n"}
    (group,) = evaluate(memory_project(files, toml("b11434"))).groups
    found: Any = group.first.get("window")
    assert found.value == window


@pytest.mark.parametrize(
    ("release", "flags", "found"),
    [
        ("0.7.3", "--max-model-len 32768", ["error"]),  # vllm.md 2: V0 reads in pieces by itself above 32,768 alone
        ("0.7.3", "--max-model-len 65536", []),
        ("0.7.3", "--max-model-len 32768 --enable-chunked-prefill", []),
        ("0.11.0", "--max-model-len 32768 --no-enable-chunked-prefill", []),  # V1 then set it whatever it was told
        ("0.24.0", "--max-model-len 32768 --no-enable-chunked-prefill", ["error"]),
        ("0.24.0", "--max-model-len 32768", []),
    ],
)
def test_prompts_in_one_pass(release: str, flags: str, found: list[str]) -> None:
    line = (
        f"uvx --from vllm=={release} vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-batched-tokens 8192 {flags}"
    )
    rule = "prefill-budget-below-window"
    assert [each for each, _ in said(rule, {"a.sh": f"#!/bin/sh\n{line}\n"})] == found


@pytest.mark.parametrize(
    ("release", "flags", "batch"),
    [
        ("0.11.0", "", (8192, 1024)),  # an H100 (vllm.md 5)
        ("0.11.0", ", --no-enable-chunked-prefill", (8192, 1024)),  # not heeded: the batch need not hold the window
        ("0.24.0", ", --no-enable-chunked-prefill", (40960, 1024)),
        ("0.24.0", ", --performance-mode, throughput", (16384, 2048)),  # doubles both since 0.17.1
        ("0.24.0", ", --performance-mode, throughput, --max-num-seqs, '64'", (16384, 64)),
    ],
)
def test_what_makes_the_batch(release: str, flags: str, batch: tuple[int, int]) -> None:
    pod = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec:
  nodeSelector: {{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
  containers:
    - {{name: a, image: "vllm/vllm-openai:v{release}", args: [--model, Qwen/Qwen3-8B{flags}]}}
"""
    (group,) = evaluate(memory_project({"a.yaml": pod})).groups
    tokens: Any = group.first.get("batched_tokens")
    width: Any = group.first.get("batch_width")
    assert (tokens.value, width.value) == batch
