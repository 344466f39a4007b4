"""Several compose files of one project: overrides and includes; replicas, and the devices that a process is let see."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files
from tests.carriers.found import findings, lines, processes

BASE = """\
services:
  chat:
    image: vllm/vllm-openai:v0.11.0
    command: [--model, Qwen/Qwen3-8B, --max-model-len, "16384"]
    ports: ["8000:8000"]
"""
OVER = """\
services:
  chat:
    command: [--model, Qwen/Qwen3-8B, --max-model-len, "8192"]
    ports: ["9000:8000"]
  other:
    image: vllm/vllm-openai:v0.11.0
    command: [--model, acme/other]
"""


def test_an_override_is_read_on_top() -> None:
    found = processes({"a/compose.yaml": BASE, "a/compose.override.yml": OVER})
    assert {name: process.line.words[-1].value for name, process in found.items()} == {
        "a/compose.yaml#chat": "8192",
        "a/compose.override.yml#other": "acme/other",
    }
    assert set(found["a/compose.yaml#chat"].site.published) == {8000, 9000}


def test_no_override_of_a_file_that_compose_does_not_find_by_itself() -> None:
    found = lines({"compose.gpu.yaml": BASE, "compose.override.yml": OVER})
    assert found["compose.gpu.yaml#chat"].endswith("16384")


PROXY = """\
model_list:
  - model_name: chat
    litellm_params: {model: openai/Qwen/Qwen3-8B, api_base: "http://chat:8000/v1"}
    model_info: {max_input_tokens: 24576}
"""


@pytest.mark.parametrize(
    "include", ["[engines/compose.yaml]", "[{path: engines/compose.yaml}]", "[{path: [engines/compose.yaml]}]"]
)
def test_an_included_file_is_of_the_same_project(include: str) -> None:
    outer = f'include: {include}\nservices:\n  proxy:\n    image: litellm\n    volumes: ["./config.yaml:/app/config.yaml"]\n'
    files = {"compose.yaml": outer, "engines/compose.yaml": BASE, "config.yaml": PROXY}
    found = [(each.rule, each.severity, each.text) for each in check_files(files).findings]
    assert ("window-mismatch", "error", "24576") in found


def test_variables_of_the_including_project() -> None:
    files = {
        "compose.yaml": "include: [engines/compose.yaml]\n",
        ".env": "LEN=4096\n",
        "engines/.env": "LEN=1024\n",
        "engines/compose.yaml": BASE.replace('"16384"', '"${LEN}"'),
    }
    assert lines(files)["engines/compose.yaml#chat"].endswith("4096")


def test_replicas_share_a_limit() -> None:
    scaled = BASE.replace('"16384"]', '"16384", --max-num-seqs, "8"]') + "    deploy: {replicas: 4}\n"
    proxy = "  nginx:\n    image: nginx\n    volumes: [./nginx.conf:/etc/nginx/nginx.conf]\n"
    conf = (
        "events {}\nhttp {\n  limit_conn_zone $server_name zone=all:1m;\n"
        "  server { listen 80; limit_conn all LIMIT; location / { proxy_pass http://chat:8000; } }\n}\n"
    )

    def rules(limit: int) -> list[str]:
        files = {"compose.yaml": scaled + proxy, "nginx.conf": conf.replace("LIMIT", str(limit))}
        return [each.rule for each in check_files(files).findings if each.severity == "warning"]

    assert rules(32) == []  # 4 containers x 8
    assert rules(33) == ["width-below-admission"]


DEVICES = """\
    ipc: host
    deploy: {resources: {reservations: {devices: [{driver: nvidia, COUNT, capabilities: [gpu]}]}}}
    environment: ["CUDA_VISIBLE_DEVICES=PICKED"]
"""


@pytest.mark.parametrize(
    ("count", "visible", "errors"),
    [
        ("count: all", "1", 1),
        ("count: all", "0,1", 0),
        ("count: 2", "0", 1),
        ('device_ids: ["2", "3"]', "0,1", 0),
        ("count: all", "${GPUS}", 0),
    ],
)
def test_devices_that_a_process_is_let_see(count: str, visible: str, errors: int) -> None:
    text = BASE.replace('"16384"]', '"16384", --tensor-parallel-size, "2"]')
    text += DEVICES.replace("COUNT", count).replace("PICKED", visible)
    rules = [each.rule for each in check_files({"compose.yaml": text}).findings if each.severity == "error"]
    assert rules == ["devices-unlike-parallelism"] * errors


ENVOY = """\
static_resources:
  clusters:
    - name: chat
      circuit_breakers: {thresholds: [{priority: HIGH, max_requests: 1}, {max_requests: 32, max_pending_requests: 9}]}
      load_assignment:
        endpoints:
          - lb_endpoints:
              - endpoint: {address: {socket_address: {address: chat, port_value: 8000}}}
    - name: web
      load_assignment:
        endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: web, port_value: 80}}}}]}]
"""


def test_envoy_before_a_service() -> None:
    text = BASE.replace('"16384"]', '"16384", --max-num-seqs, "8"]')
    files = {
        "compose.yaml": f"{text}  envoy: {{image: envoy, volumes: ['./envoy.yaml:/etc/envoy.yaml']}}\n",
        "envoy.yaml": ENVOY,
    }
    found = [(each.rule, each.severity, each.text) for each in check_files(files).findings if each.severity != "note"]
    assert found == [("width-below-admission", "warning", "32")]
    limits = {each.name: each.limit for each in findings(files).admissions}
    assert limits["web"].value == 1024  # type: ignore[union-attr]
    assert limits["web"].origin.kind == "default"  # type: ignore[union-attr]
