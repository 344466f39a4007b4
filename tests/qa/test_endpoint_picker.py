"""The endpoint picker's detector counts what it gives each pod of the pool that it picks for."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
          args: [--model=Qwen/Qwen3-8B, --max-model-len=16384, --max-num-seqs=16]
"""
POOL = """\
---
apiVersion: inference.networking.k8s.io/v1
kind: InferencePool
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  targetPorts: [{number: 8000}]
  endpointPickerRef: {name: NAME-epp}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-plugins}
data:
  plugins.yaml: |
    apiVersion: inference.networking.x-k8s.io/v1alpha1
    kind: EndpointPickerConfig
    plugins:
      - type: concurrency-detector
        parameters: {PARAMETERS}
---
"""


def said(*files: str) -> list[tuple[str, str, str]]:
    report = check_files({f"{number}.yaml": text for number, text in enumerate(files)})
    rule = "width-below-admission"
    return [(each.severity, each.text, each.span.path) for each in report.findings if each.rule == rule]


def pool(parameters: str, name: str = "chat") -> str:
    return (SERVER + POOL).replace("{PARAMETERS}", f"{{{parameters}}}").replace("NAME", name)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("maxConcurrency: 64", [("warning", "64", "0.yaml")]),
        ("maxConcurrency: 16", []),
        ("headroom: 0.1", [("note", "concurrency-detector", "0.yaml")]),  # 100 where nothing is written
        ("concurrencyMode: tokens, maxConcurrency: 64", []),
    ],
)
def test_a_detector(parameters: str, expected: list[tuple[str, str, str]]) -> None:
    assert said(pool(parameters)) == expected


def test_of_two_pools_none_is_chosen_where_nothing_says_which() -> None:
    assert said(pool("maxConcurrency: 64"), pool("maxConcurrency: 64", "other")) == []
