"""Servers on one device of a cluster: by a claim, or in one pod that names the device."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: two}}
spec:
  resourceClaims: {claims}
  {first}:
    - name: chat
      image: vllm/vllm-openai:v0.24.0
      args: ["--model", "Qwen/Qwen3-8B", "--gpu-memory-utilization", "0.9"]
      env: {env}
      resources: {{{chat}}}
  {second}
    - name: embed
      image: vllm/vllm-openai:v0.24.0
      args: ["--model", "Qwen/Qwen3-4B", "--port", "8001", "--gpu-memory-utilization", "0.3"]
      env: {env}
      resources: {{{embed}}}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      resourceClaims: [{{name: gpu, {key}: one}}]
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.24.0
          args: ["--model", "Qwen/Qwen3-8B", "--gpu-memory-utilization", "0.6"]
          resources: {{claims: [{{name: gpu}}]}}
"""
ONE = "[{name: gpu, resourceClaimName: one}]"
MADE = "[{name: gpu, resourceClaimTemplateName: one}]"
TWO = "[{name: gpu, resourceClaimTemplateName: one}, {name: more, resourceClaimTemplateName: one}]"
GPU = "claims: [{name: gpu}]"


def said(text: str) -> list[str]:
    return [each.severity for each in check_files({"a.yaml": text}).findings if each.rule == "shared-device-overcommit"]


def pod(chat: str, embed: str, claims: str = "[]", env: str = "[]", first: str = "containers", second: str = "") -> str:
    return POD.format(claims=claims, first=first, second=second, chat=chat, embed=embed, env=env)


@pytest.mark.parametrize("claims", [ONE, MADE])
def test_containers_that_share_a_claim(claims: str) -> None:
    """0.9 + 0.3 = 1.2 of the device."""
    assert said(pod(GPU, GPU, claims)) == ["error"]


def test_containers_that_name_one_device_of_their_node() -> None:
    assert said(pod("", "", env='[{name: NVIDIA_VISIBLE_DEVICES, value: "0"}]')) == ["error"]


@pytest.mark.parametrize(
    "text",
    [
        pod(GPU, "claims: [{name: more}]", TWO),
        pod("claims: [{name: gpu, request: a}]", "claims: [{name: gpu, request: b}]", ONE),
        pod(GPU, GPU, ONE, first="initContainers", second="containers:"),  # the one ends before the other starts
        pod("limits: {nvidia.com/gpu: 1}", "limits: {nvidia.com/gpu: 1}"),
        # each container counts the devices of its own request
        pod(
            "limits: {nvidia.com/gpu: 1}",
            "limits: {nvidia.com/gpu: 1}",
            env='[{name: CUDA_VISIBLE_DEVICES, value: "0"}]',
        ),
        pod("", ""),
    ],
)
def test_containers_with_devices_of_their_own(text: str) -> None:
    assert said(text) == []


@pytest.mark.parametrize(
    ("key", "namespace", "replicas", "found"),
    [
        ("resourceClaimName", "a", 1, ["error"]),
        ("resourceClaimTemplateName", "a", 1, []),  # every pod is made a claim of its own
        ("resourceClaimName", "b", 1, []),
        ("resourceClaimName", "a", 0, []),
    ],
)
def test_deployments_with_one_claim(key: str, namespace: str, replicas: int, found: list[str]) -> None:
    one = DEPLOYMENT.format(name="one", namespace="a", replicas=1, key=key)
    other = DEPLOYMENT.format(name="other", namespace=namespace, replicas=replicas, key=key)
    assert said(f"{one}---\n{other}") == found
