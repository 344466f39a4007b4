"""Variables and devices that another controller brings."""

from __future__ import annotations

import pytest

from kvlint.facts import Unknown
from kvlint.pipeline import check_files, evaluate, memory_project

POD = """apiVersion: {version}
kind: {kind}
metadata: {{name: qwen}}
spec:
  replicas: 1
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.11.0
          command: {command}
          env: [{{name: SEQS, value: "8"}}]
          {more}
          resources: {{limits: {{nvidia.com/gpu: 2}}}}
          volumeMounts: [{{name: shm, mountPath: /dev/shm}}]
      volumes: [{{name: shm, emptyDir: {{medium: Memory}}}}]
"""


def pod(command: str, kind: str = "Deployment", version: str = "apps/v1", more: str = "") -> dict[str, str]:
    return {"a.yaml": POD.format(command=command, kind=kind, version=version, more=more)}


def errors(files: dict[str, str]) -> list[str]:
    return [each.rule for each in check_files(files).findings if each.severity == "error"]


def test_a_variable_that_the_container_does_not_set_is_unknown() -> None:
    """`envFrom`, a webhook, a controller or Kustomize's own `vars` may set it."""
    command = '[vllm, serve, Qwen/Qwen3-8B, --max-model-len=$(WINDOW), --max-num-seqs, $(SEQS), -tp, "2"]'
    for more in ("", "envFrom: [{secretRef: {name: settings}}]"):
        files = pod(command, more=more)
        assert errors(files) == []
        (group,) = evaluate(memory_project(files)).groups
        assert isinstance(group.first.settings["window"], Unknown)
        assert getattr(group.first.settings["batch_width"], "value", None) == 8


SCRIPT = "[bash, -c, 'ray start --head --port 6379; vllm serve Qwen/Qwen3-8B -tp 2 -pp 2']"
MULTI = "[sh, -c, 'bash /vllm-workspace/examples/multi-node-serving.sh leader; vllm serve Qwen/Qwen3-8B -tp 2 -pp 2']"
PLAIN = "[bash, -c, 'vllm serve Qwen/Qwen3-8B -tp 2 -pp 2']"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (pod(PLAIN), ["devices-unlike-parallelism"]),
        (pod(SCRIPT, "StatefulSet"), []),
        (pod(PLAIN, "RoleBasedGroup", "workloads.x-k8s.io/v1alpha1"), []),
        (pod(MULTI, "StatefulSet"), []),
    ],
)
def test_other_pods_may_hold_devices(files: dict[str, str], expected: list[str]) -> None:
    assert errors(files) == expected


def test_a_chart_that_starts_its_engine_on_ray() -> None:
    values = """servingEngineSpec:
  modelSpec:
    - name: qwen
      repository: vllm/vllm-openai
      tag: v0.11.0
      modelURL: Qwen/Qwen3-8B
      replicaCount: 1
      requestGPU: 1
      vllmConfig: {{tensorParallelSize: 1, pipelineParallelSize: 2}}
      raySpec: {{enabled: {}}}
"""
    assert errors({"values.yaml": values.format("true")}) == []
    assert errors({"values.yaml": values.format("false")}) == ["devices-unlike-parallelism"]


RUNNER = """apiVersion: ome.io/v1beta1
kind: ClusterServingRuntime
metadata: {name: qwen}
spec:
  engineConfig:
    runner:
      name: main
      image: vllm/vllm-openai:v0.11.0
      command: [vllm, serve, Qwen/Qwen3-8B]
      args: [--max-model-len, "8192"]
      resources: {limits: {nvidia.com/gpu: 1}}
"""
OWN_SERVICE = POD.replace("spec:\n", "spec:\n  modelClaims: {{}}\n", 1)


@pytest.mark.parametrize(
    "text",
    [
        RUNNER,
        OWN_SERVICE.format(
            version="inference.llmaz.io/v1", kind="Service", command="[vllm, serve, Qwen/Qwen3-8B]", more=""
        ),
    ],
)
def test_objects_of_operators_that_are_not_known(text: str) -> None:
    (group,) = evaluate(memory_project({"a.yaml": text})).groups
    assert (group.first.engine, getattr(group.first.settings["model"], "value", None)) == ("vllm", "Qwen/Qwen3-8B")


ROLES = """apiVersion: serving.example/v1
kind: ModelServing
metadata: {name: llm}
spec:
  roles:
    - name: decode
      entryTemplate:
        spec:
          containers:
            - name: m
              image: vllm/vllm-openai:v0.11.0
              command: [vllm, serve, Qwen/Qwen3-8B, -tp, "2", -pp, "2"]
              resources: {limits: {nvidia.com/gpu: 2}}
              volumeMounts: [{name: shm, mountPath: /dev/shm}]
          volumes: [{name: shm, emptyDir: {medium: Memory}}]
      workerReplicas: 1
"""


def test_what_a_controller_of_an_unknown_kind_makes_of_a_pod_is_unknown() -> None:
    """2 × 2 devices may stand in two pods of 2: nothing is said, and that is reported."""
    report = check_files({"a.yaml": ROLES})
    assert [each.rule for each in report.findings if each.severity != "note"] == []
    assert "devices-unlike-parallelism" in [each.rule for each in report.unchecked]
