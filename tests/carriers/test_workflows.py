"""Jobs of continuous integration."""

from __future__ import annotations

import pytest
from found import lines, only

GITHUB = """on: push
env: {MODEL: Qwen/Qwen3-8B}
jobs:
  smoke:
    runs-on: gpu
    env: {PORT: 8100}
    steps:
      - uses: actions/checkout@v4
      - run: pip install vllm==0.11.0
      - name: serve
        env: {WINDOW: 4096}
        run: |
          vllm serve ${{ env.MODEL }} --port $PORT --max-model-len "$WINDOW" \\
            --max-num-seqs ${{ matrix.width }} &
          curl localhost:$PORT/health
"""
GITLAB = """stages: [test]
variables: {MODEL: Qwen/Qwen3-8B, SEQS: {value: "8", description: width}}
.common: {before_script: [export PORT=8100]}
smoke:
  image: vllm/vllm-openai:v0.11.0
  services: [{name: "ollama/ollama:0.12.0", alias: llm}]
  before_script: [export PORT=8100]
  script:
    - vllm serve $MODEL --port $PORT
    - ./bench
"""
SERVICE = """jobs:
  test:
    services:
      llm: {image: "vllm/vllm-openai:v0.11.0", command: --model Qwen/Qwen3-8B, ports: ["8000:8000"]}
    steps: [{run: pytest}]
"""
BUILDKITE = "steps: [{label: a, commands: [cd /tmp, vllm serve m]}, {group: g, steps: [{command: vllm serve n}]}]\n"


def test_steps_of_github() -> None:
    identity, found = only({".github/workflows/a.yml": GITHUB})
    assert identity == ".github/workflows/a.yml#smoke"
    assert [word.value for word in found.line.words[:7]] == [
        *("vllm", "serve", "Qwen/Qwen3-8B", "--port", "8100", "--max-model-len", "4096"),
    ]
    assert not found.line.words[-1].known
    assert [(pin.distribution, pin.version.value) for pin in found.line.pins] == [("vllm", "0.11.0")]


def test_expressions_beside_templates_of_other_programs() -> None:
    """`docker ps --format '{{.Names}}'` makes a file look like a template."""
    other = GITHUB.replace("curl localhost", "docker ps --format '{{.Names}}'; curl localhost")
    _, found = only({".github/workflows/a.yml": other})
    assert [word.value for word in found.line.words[2:4]] == ["Qwen/Qwen3-8B", "--port"]


def test_jobs_of_gitlab() -> None:
    found = lines({".gitlab-ci.yml": GITLAB})
    assert found == {
        ".gitlab-ci.yml#llm": "[ollama/ollama:0.12.0]",
        ".gitlab-ci.yml#smoke": "vllm serve Qwen/Qwen3-8B --port 8100",
    }


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (".github/workflows/a.yml", SERVICE, {"#llm": "[vllm/vllm-openai:v0.11.0] --model Qwen/Qwen3-8B"}),
        (".buildkite/pipeline.yml", BUILDKITE, {"#pipeline": "vllm serve m", "#pipeline~2": "vllm serve n"}),
        (
            ".circleci/config.yml",
            "jobs: {a: {steps: [checkout, {run: {command: vllm serve m}}]}}",
            {"#a": "vllm serve m"},
        ),
        ("azure-pipelines.yml", "jobs: [{job: a, steps: [{script: vllm serve m}]}]", {"#a": "vllm serve m"}),
        ("x/action.yml", "runs: {using: composite, steps: [{run: vllm serve m}]}", {"#action": "vllm serve m"}),
        ("other.yml", BUILDKITE, {}),
    ],
)
def test_other_pipelines(path: str, text: str, expected: dict[str, str]) -> None:
    assert lines({path: text}) == {path + name: line for name, line in expected.items()}
