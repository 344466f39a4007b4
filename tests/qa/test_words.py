"""What is written on purpose and is no mistake."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files, evaluate, memory_project


def found(files: dict[str, str]) -> list[tuple[str, str]]:
    return [(each.severity, each.rule) for each in check_files(files).findings if each.severity != "note"]


def test_a_macro_that_is_changed_where_it_is_used() -> None:
    config = """healthCheckTimeout: 60
macros:
  base: llama-server --port ${{PORT}} -ub 2048 {}
models:
  a: {{cmd: "${{base}} -ub 512 -m /models/a.gguf -np 1"}}
"""
    assert found({"config.yaml": config.format("")}) == []
    assert found({"config.yaml": config.format("-ub 1024")}) == [("warning", "overridden-flag")]


@pytest.mark.parametrize(
    ("line", "servers"),
    [("llama-server --version", 0), ("vllm --help", 0), ("vllm serve --help", 0), ("vllm serve a/b --help", 1)],
)
def test_a_script_that_asks_for_help(line: str, servers: int) -> None:
    assert len(evaluate(memory_project({"install.sh": f"#!/bin/sh\n{line} || exit 1\n"})).groups) == servers


def test_an_image_whose_arguments_come_later() -> None:
    assert found({"Dockerfile": 'FROM python:3.12\nENTRYPOINT ["vllm"]\nCMD ["--help"]\n'}) == []


def test_braces_of_another_program_in_quotes() -> None:
    text = 'a: vllm\nb: "{{ printf \\"%.0f\\" $value }} of {{ $labels.x }}"\n'
    assert check_files({"rules.yaml": text}).not_understood == []


def test_a_cache_type_that_only_another_build_may_have() -> None:
    line = "#!/bin/sh\nllama-server -m a.gguf -np 1 -c 4096 -ctk {}\n"
    assert found({"a.sh": line.format("zz4")}) == []
    assert ("error", "malformed-value") in found({"a.sh": line.format("q8")})


CONTAINER = "        - {{name: {0}, image: vllm/vllm-openai:v0.11.0, args: [--model, Qwen/{1}, --port, '{2}']}}\n"


@pytest.mark.parametrize(("second", "expected"), [("8001", []), ("8000", [("warning", "replica-identity")])])
def test_containers_of_one_pod_at_ports_of_their_own(second: str, expected: list[tuple[str, str]]) -> None:
    text = (
        "apiVersion: v1\nkind: Service\nmetadata: {name: llm}\nspec: {selector: {app: llm}, ports: [{port: 80}]}\n---\n"
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: llm}\nspec:\n  template:\n    metadata: {labels: {app: llm}}\n"
        "    spec:\n      enableServiceLinks: false\n      containers:\n"
        + CONTAINER.format("a", "Qwen3-8B", "8000")
        + CONTAINER.format("b", "Qwen3-4B", second)
    )
    assert found({"a.yaml": text}) == expected


POD = """apiVersion: apps/v1
kind: Deployment
metadata: {{name: a}}
spec:
  template:
    spec:
      containers:
        - name: a
          image: ghcr.io/ggml-org/llama.cpp:server-b9093
          args: [-m, /m/a.gguf, -np, "1", -c, "2048"{}]
          resources: {{limits: {{memory: 2Gi}}}}
"""


@pytest.mark.parametrize(
    ("mode", "expected"), [("", ["host-cache-exceeds-memory"]), (", --reranking", []), (", --embeddings", [])]
)
def test_prompts_are_kept_for_completions_only(mode: str, expected: list[str]) -> None:
    assert [rule for _, rule in found({"a.yaml": POD.format(mode)})] == expected


def test_a_service_that_only_lends_its_keys() -> None:
    text = """services:
  .defaults: {image: "ghcr.io/ggml-org/llama.cpp:server-b9093", command: "-m $$MODEL -c 4096 stray"}
  a: {extends: .defaults, command: "-m /models/a.gguf -c 4096 -np 1"}
"""
    assert [group.id for group in evaluate(memory_project({"compose.yaml": text})).groups] == ["compose.yaml#a"]


def test_a_macro_of_several_servers_is_spoken_of_once() -> None:
    config = """healthCheckTimeout: 60
macros: {base: "vllm serve --port ${PORT} --no-such-flag-at-all"}
models:
  a: {cmd: "${base} Qwen/Qwen3-8B"}
  b: {cmd: "${base} Qwen/Qwen3-4B"}
"""
    (one,) = [each for each in check_files({"config.yaml": config}).findings if each.rule == "unknown-flag"]
    assert one.servers == ("config.yaml#a", "config.yaml#b")
