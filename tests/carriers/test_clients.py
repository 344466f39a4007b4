"""Clients that repeat the window of the server that they call."""

from __future__ import annotations

import pytest
from carried import admission, value

from kvlint.pipeline import check_files, evaluate, memory_project
from kvlint.subjects import Endpoint

OPENCODE = """\
{
  "$schema": "https://opencode.ai/config.json",
  "provider": {"local": {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "http://localhost:8000/v1"},
    "models": {"Qwen/Qwen3-8B": {"name": "Qwen", "limit": {"context": 65536, "output": 8192}}}
  }}
}
"""
LIBRECHAT = """\
endpoints:
  custom:
    - name: Local
      baseURL: http://vllm:8000/v1
      models: {default: [Qwen/Qwen3-8B]}
      tokenConfig:
        Qwen/Qwen3-8B: {prompt: 1, completion: 1, context: 40000}
"""
CONTINUE = """\
name: Local
models:
  - name: qwen
    provider: vllm
    model: Qwen/Qwen3-8B
    apiBase: http://localhost:8000/v1
    defaultCompletionOptions: {contextLength: 50000, maxTokens: 4000}
"""
CRUSH = """\
{"providers": {"local": {"type": "openai-compat", "base_url": "http://localhost:8000/v1",
  "models": [{"id": "Qwen/Qwen3-8B", "context_window": 70000, "default_max_tokens": 9000}]}}}
"""
PI = """\
{"providers": {"local": {"baseUrl": "http://localhost:8000/v1", "api": "openai-completions",
  "models": [{"id": "Qwen/Qwen3-8B", "contextWindow": 80000, "maxTokens": 9000}, {"id": "other"}]}}}
"""
ZED = """\
{
  // as Zed's own settings have them
  "language_models": {"openai_compatible": {"Local": {"api_url": "http://localhost:8000/v1",
    "available_models": [{"name": "Qwen/Qwen3-8B", "max_tokens": 90000, "max_output_tokens": 4096}]}}}
}
"""
CODEX = """\
model = "Qwen/Qwen3-8B"
model_provider = "local"
model_context_window = 100000

[model_providers.local]
base_url = "http://localhost:8000/v1"
"""
AIDER = '{"openai/Qwen/Qwen3-8B": {"max_input_tokens": 60000, "max_output_tokens": 4096}}'
SERVER = "#!/bin/sh\nexec vllm serve Qwen/Qwen3-8B --max-model-len 32768 --port 8000\n"


@pytest.mark.parametrize(
    ("files", "promises"),
    [
        ({"opencode.json": OPENCODE}, [("total", 65536, True), ("output", 8192, True)]),
        ({"librechat.yaml": LIBRECHAT}, [("total", 40000, True)]),
        ({"config.yaml": CONTINUE}, [("total", 50000, True), ("output", 4000, True)]),
        ({"crush.json": CRUSH}, [("total", 70000, True), ("output", 9000, True)]),
        ({"models.json": PI}, [("total", 80000, True)]),
        ({"openclaw.json": f'{{"models": {PI}}}'}, [("total", 80000, True)]),
        ({"settings.json": ZED}, [("total", 90000, True), ("output", 4096, True)]),
        (
            {"settings.json": ZED.replace('"openai_compatible": {', "").replace("}]}}}", "}]}}")},
            [("total", 90000, True), ("output", 4096, True)],
        ),
        ({"config.toml": CODEX}, [("total", 100000, True)]),
        (
            {".aider.model.metadata.json": AIDER, ".aider.conf.yml": "openai-api-base: http://localhost:8000/v1\n"},
            [("input", 60000, False), ("output", 4096, False)],
        ),
    ],
)
def test_promises_and_addresses(files: dict[str, str], promises: list[tuple[str, int, bool]]) -> None:
    front = admission(files)
    assert [(each.kind, each.tokens.value, each.enforced) for each in front.promises] == promises
    assert isinstance(front.target, Endpoint)
    assert (front.target.port, front.target.names, front.limit) == (8000, ("Qwen/Qwen3-8B",), None)


def test_a_client_that_calls_nothing_of_ours_is_left_out() -> None:
    assert evaluate(memory_project({"opencode.json": OPENCODE})).findings.admissions == []
    hidden = OPENCODE.replace("http://localhost:8000/v1", "{env:BASE}")
    assert admission({"opencode.json": hidden}).target is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("opencode.json", OPENCODE),
        ("config.yaml", CONTINUE),
        ("crush.json", CRUSH),
        ("models.json", PI),
        ("settings.json", ZED),
        ("config.toml", CODEX),
    ],
)
def test_a_window_larger_than_the_server_s(name: str, text: str) -> None:
    report = check_files({name: text, "chat.sh": SERVER})
    assert ("window-mismatch", "error") in {(each.rule, each.severity) for each in report.findings}


def test_the_window_of_a_server_that_has_none() -> None:
    mlx = "#!/bin/sh\nexec uvx --from mlx-lm==0.32.2 mlx_lm.server --model Qwen/Qwen3-8B --port 8000\n"
    (group,) = evaluate(memory_project({"opencode.json": OPENCODE, "chat.sh": mlx})).groups
    assert value(group.first.settings["window"]) == 65536


def test_a_client_in_the_compose_project() -> None:
    compose = """\
services:
  vllm: {image: "vllm/vllm-openai:v0.13.0", command: --model Qwen/Qwen3-8B --max-model-len 32768}
  api: {image: "ghcr.io/danny-avila/librechat:v0.8.0", volumes: ["./librechat.yaml:/app/librechat.yaml"]}
"""
    evaluation = evaluate(memory_project({"compose.yaml": compose, "librechat.yaml": LIBRECHAT}))
    assert [(link.front.system, link.group.id) for link in evaluation.chain.links] == [
        ("LibreChat", "compose.yaml#vllm")
    ]


def test_a_client_s_file_in_a_config_map() -> None:
    manifest = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: librechat, namespace: ai}
data:
  librechat.yaml: |
""" + "".join(f"    {line}\n" for line in LIBRECHAT.splitlines())
    front = admission({"librechat.yaml": manifest})
    assert (front.system, front.unit) == ("LibreChat", "namespace ai")
    assert front.promises[0].tokens.origin.span.text == "40000"  # type: ignore[union-attr]
