"""Quantized caches of SGLang and TGI: without scales, and with attention that has none."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec:
  nodeSelector: {{nvidia.com/gpu.product: {device}}}
  containers:
    - name: a
      image: lmsysorg/sglang:v0.5.23
      args: [python3, -m, sglang.launch_server, --model-path, {args}]
      resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""


@pytest.mark.parametrize(
    ("device", "args", "found"),
    [
        ("NVIDIA-H100-80GB-HBM3", "Qwen/Qwen3-8B, --kv-cache-dtype, fp8_e4m3", ["fp8_e4m3"]),
        ("NVIDIA-H100-80GB-HBM3", "Qwen/Qwen3-8B, --kv-cache-dtype, fp8_e4m3, --quantization-param-path, /a.json", []),
        (
            "NVIDIA-H100-80GB-HBM3",
            "Qwen/Qwen3-8B, --kv-cache-dtype, fp8_e5m2",
            [],
        ),  # has the range of 16 bits, no scales
        ("NVIDIA-H100-80GB-HBM3", "Qwen/Qwen3-8B", []),
        ("NVIDIA-B200", 'deepseek-ai/DeepSeek-V3.2, --tp, "8"', []),  # the device's default, and nobody's scales
    ],
)
def test_scales_that_nobody_brings(device: str, args: str, found: list[str]) -> None:
    report = check_files({"a.yaml": POD.format(device=device, args=args)})
    assert [each.text for each in report.findings if each.rule == "uncalibrated-kv"] == found


def test_a_cache_that_the_checkpoint_quantizes() -> None:
    args = 'nvidia/Llama-3.1-70B-Instruct-FP8, --tp, "2"'
    report = check_files({"a.yaml": POD.format(device="NVIDIA-H100-80GB-HBM3", args=args)})
    (found,) = (each for each in report.findings if each.rule == "uncalibrated-kv")
    assert "of its own, which `auto` takes" in found.message
    assert found.text == "nvidia/Llama-3.1-70B-Instruct-FP8"


def test_a_type_that_no_device_changes() -> None:
    """Nobody names the device, and what is written holds on all of them."""
    text = POD.replace("  nodeSelector: {{nvidia.com/gpu.product: {device}}}\n", "")
    report = check_files({"a.yaml": text.format(args="Qwen/Qwen3-8B")})
    assert "uncalibrated-kv" not in {each.rule for each in (*report.findings, *report.unchecked)}


@pytest.mark.parametrize(("attention", "found"), [("flashdecoding", ["error"]), ("flashinfer", []), ("paged", [])])
def test_attention_without_an_fp8_cache(attention: str, found: list[str]) -> None:
    image = "ghcr.io/huggingface/text-generation-inference:3.3.7"
    line = f"docker run --gpus 1 -e ATTENTION={attention} {image} --model-id Qwen/Qwen3-8B --kv-cache-dtype fp8_e4m3fn"
    report = check_files({"a.sh": f"#!/bin/sh\n{line}\n"})
    assert [each.severity for each in report.findings if each.rule == "kv-dtype-unsupported"] == found


@pytest.mark.parametrize("selector", ["", "nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB}"])
def test_a_slice_of_a_device(selector: str) -> None:
    """10 GB hold no 16 GB of weights, however large the device is that was cut."""
    pod = f"""\
apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec:
  {selector}
  containers:
    - name: a
      image: vllm/vllm-openai:v0.11.0
      args: [--model, Qwen/Qwen3-8B, --max-model-len, "8192"]
      resources: {{limits: {{nvidia.com/mig-1g.10gb: 1}}}}
"""
    report = check_files({"a.yaml": pod})
    assert [each.severity for each in report.findings if each.rule == "weights-exceed-budget"] == ["error"]
