"""How many devices a container has."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files, evaluate, memory_project

COMPOSE = """services:
  llm:
    image: vllm/vllm-openai:v0.11.0
    command: --model Qwen/Qwen3-8B --tensor-parallel-size 2
    shm_size: 8g
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              {}
              capabilities: [gpu]
"""


def unlike(text: str) -> list[str]:
    found = check_files({"compose.yaml": text}).findings
    return [each.severity for each in found if each.rule == "devices-unlike-parallelism"]


@pytest.mark.parametrize(
    ("devices", "severities"),
    [
        ('device_ids: ["0"]', ["error"]),
        ('device_ids: ["0,1"]', []),
        ('device_ids: ["${GPUS:-0,1}"]', []),
        ('device_ids: ["${GPUS:-0}"]', ["warning"]),  # another value may be set outside
        ('device_ids: ["${GPUS}"]', []),
        ("count: ${COUNT:-1}", ["warning"]),
        ("count: 1", ["error"]),
    ],
)
def test_devices_of_a_service(devices: str, severities: list[str]) -> None:
    assert unlike(COMPOSE.format(devices)) == severities


@pytest.mark.parametrize(("profile", "count"), [("nvidia-gpu-l4:2", 2), ("cpu:6", None), ("gaudi-for-text:1", 1)])
def test_units_of_a_profile_that_are_devices(profile: str, count: int | None) -> None:
    model = f"""apiVersion: kubeai.org/v1
kind: Model
metadata: {{name: m}}
spec: {{features: [TextGeneration], url: "hf://Qwen/Qwen3-8B", engine: VLLM, resourceProfile: "{profile}"}}
"""
    (group,) = evaluate(memory_project({"m.yaml": model})).groups
    assert getattr(group.first.site.gpus, "value", None) == count


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("vllm/vllm-openai:latest", 1),
        ("registry.example/vllm-fork:latest", 0),
        ("vllm/vllm-openai@sha256:" + "0" * 64, 0),
    ],
)
def test_what_the_next_start_brings(image: str, expected: int) -> None:
    text = f"services:\n  llm:\n    image: {image}\n    entrypoint: [vllm, serve]\n    command: Qwen/Qwen3-8B --swap-space 4\n"
    found = [each.rule for each in check_files({"compose.yaml": text}).findings]
    assert found.count("breaks-when-updated") == expected


@pytest.mark.parametrize(
    ("label", "resource", "expected"),
    [
        ("cloud.google.com/gke-tpu-accelerator: tpu-v6e-slice", "google.com/tpu", []),
        ("cloud.google.com/gke-accelerator: nvidia-l4", "nvidia.com/gpu", ["shared-memory-too-small"]),
    ],
)
def test_devices_of_a_tpu_slice_need_no_shared_memory(label: str, resource: str, expected: list[str]) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  nodeSelector: {{{0}}}\n  containers:\n"
        "    - name: m\n      image: vllm/vllm-openai:v0.11.0\n      args: [--model=a/b, --tensor-parallel-size=4]\n"
        "      resources: {{limits: {{{1}: 4}}}}\n"
    )
    report = check_files({"a.yaml": pod.format(label, resource)})
    assert [each.rule for each in report.findings if each.severity == "warning"] == expected
