"""Where a proxy's file is served from, and what that says of its addresses and of how often it counts."""

from __future__ import annotations

import pytest
from carried import admission, found, value

from kvlint.links import admitted_to
from kvlint.pipeline import evaluate, memory_project

PROXY = """\
model_list:
  - model_name: chat
    litellm_params: {model: hosted_vllm/Qwen/Qwen3-8B, api_base: "http://vllm:8000/v1", max_parallel_requests: 8}
"""
COMPOSE = """\
services:
  vllm:
    image: vllm/vllm-openai:v0.13.0
    command: --model Qwen/Qwen3-8B --max-num-seqs 16
  gateway:
    image: ghcr.io/berriai/litellm:v1.80.0
    container_name: front
    command: [--config, /app/config.yaml, --num_workers, "4"]
    ports: ["80:4000"]
    deploy: {replicas: 2}
    volumes: ["./conf/litellm.yaml:/app/config.yaml:ro"]
"""


def test_a_mounted_file_belongs_to_the_compose_project() -> None:
    files = {"srv/compose.yaml": COMPOSE, "srv/conf/litellm.yaml": PROXY}
    front = admission(files)
    assert (front.unit, value(front.settings["hosts"])) == ("compose srv", ("gateway", "front"))
    assert (value(front.settings["port"]), value(front.settings["copies"])) == (4000, 8)  # 4 workers × 2 replicas
    evaluation = evaluate(memory_project(files))
    (link,) = evaluation.chain.links
    assert link.group.id == "srv/compose.yaml#vllm"
    assert value(admitted_to([link])) == 64


def test_a_file_that_nobody_or_that_two_mount_stays_with_its_directory() -> None:
    twice = COMPOSE + '  other: {image: x, volumes: ["./conf/litellm.yaml:/x"]}\n'
    for files in ({"conf/litellm.yaml": PROXY}, {"compose.yaml": twice, "conf/litellm.yaml": PROXY}):
        assert admission(files).unit == "host conf"


def test_localhost_of_a_container_is_the_container() -> None:
    local = PROXY.replace("http://vllm", "http://localhost")
    assert admission({"compose.yaml": COMPOSE, "conf/litellm.yaml": local}).target is None
    on_host = COMPOSE.replace("    ports:", "    network_mode: host\n    ports:")
    assert admission({"compose.yaml": on_host, "conf/litellm.yaml": local}).target is not None


def test_one_limit_before_several_replicas_is_shared_out() -> None:
    """⌈9 ÷ 2⌉ = 5."""
    manifests = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: qwen, namespace: ai}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: qwen}}
    spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.13.0", args: [--model=Qwen/Qwen3-8B]}]}
---
apiVersion: v1
kind: Service
metadata: {name: vllm, namespace: ai}
spec: {selector: {app: qwen}, ports: [{port: 8000}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: litellm, namespace: ai}
data:
  config.yaml: |
    model_list:
      - model_name: chat
        litellm_params: {model: hosted_vllm/Qwen/Qwen3-8B, api_base: "http://vllm:8000/v1", max_parallel_requests: 9}
"""
    evaluation = evaluate(memory_project({"all.yaml": manifests}))
    assert value(admitted_to(evaluation.chain.links)) == 5
    (link,) = evaluation.chain.links
    link.front.per = "key"
    assert admitted_to([link]) is None  # a limit for each key bounds no total


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ("ttl: 10m", "10m"),
        ('concurrencyLimit: "4"', '"4"'),
        ("aliases: coder", "coder"),
        ("env: {A: b}", "env"),
        ("proxy: http://localhost:${PORT}/v1", None),
        ("ttl: 1e3", None),  # a number to Go's reader
    ],
)
def test_types_that_the_loader_refuses(wrong: str, place: str | None) -> None:
    text = f"models:\n  chat:\n    cmd: vllm serve m --port ${{PORT}}\n    {wrong}\n"
    refused = [each.span.text for each in found({"c.yaml": text}).problems if each.kind == "wrong-schema"]
    assert refused == ([place] if place else [])


def test_a_port_that_no_command_takes() -> None:
    """internal/config/macros.go: `proxy` defaults to http://localhost:${PORT}."""
    bare = "models:\n  chat:\n    cmd: vllm serve m --port 9000\n"
    (problem,) = found({"c.yaml": bare}).problems
    assert (problem.kind, problem.span.text, problem.doubt) == ("wrong-schema", "chat", None)
    (problem,) = found({"c.yaml": bare.replace("9000", "5800")}).problems
    assert problem.doubt is not None
    for sound in (bare + "    proxy: http://localhost:9000\n", bare.replace("9000", "${PORT}")):
        assert found({"c.yaml": sound}).problems == []


def test_names_given_twice() -> None:
    text = """\
models:
  a: {cmd: "vllm serve a --port ${PORT}", aliases: [x]}
  b: {cmd: "vllm serve b --port ${PORT}", aliases: [x]}
groups:
  one: {members: [a]}
  two: {members: [a, b]}
"""
    assert [each.span.text for each in found({"c.yaml": text}).problems] == ["x", "a"]
