"""llama-server: weights against all memory there is, drafts with a cache of their own, and weights stated apart."""

from __future__ import annotations

from typing import Any

import pytest

from kvlint.pipeline import check_files, evaluate, memory_project

BUILD = '[[engine]]\nmatch = "**"\nname = "llama-server"\nversion = "b11434"\n'
POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec:
  containers:
    - name: a
      image: ghcr.io/ggml-org/llama.cpp:server-b11434
      args: ["-m", "/models/x.gguf", "-c", "4096", "-np", "1"]
      resources: {{limits: {{nvidia.com/gpu: {gpus}, memory: {memory}}}}}
"""
SCRIPT = "#!/bin/sh\nllama-server -m /models/x.gguf -c 4096 -np 1\n"


def said(rule: str, files: dict[str, str], toml: str) -> list[tuple[str, str]]:
    return [(each.severity, each.text) for each in check_files(files, toml).findings if each.rule == rule]


@pytest.mark.parametrize(
    ("files", "hardware", "found"),
    [
        ({"a.yaml": POD.format(gpus=1, memory="16Gi")}, 'memory = "8GiB"', True),  # 24 of 40
        ({"a.yaml": POD.format(gpus=1, memory="32Gi")}, 'memory = "8GiB"', False),
        ({"a.yaml": POD.format(gpus=3, memory="16Gi")}, 'memory = "8GiB"', False),
        ({"a.yaml": POD.format(gpus=2, memory="16Gi")}, 'memory = "8GiB"', True),  # 32
        ({"a.sh": SCRIPT}, 'memory = "32GiB"\nunified = true', True),
        ({"a.sh": SCRIPT}, 'memory = "40GiB"\nunified = true', False),
        ({"a.sh": SCRIPT}, 'ceiling = "39GiB"', True),
        ({"a.sh": SCRIPT}, 'memory = "8GiB"', False),  # what the host has is not stated
    ],
)
def test_weights_of_40_gib(files: dict[str, str], hardware: str, found: bool) -> None:
    toml = f'{BUILD}[[hardware]]\nmatch = "**"\n{hardware}\n[[model]]\nid = "x.gguf"\nweights = "40GiB"\n'
    assert said("weights-exceed-budget", files, toml) == ([("warning", "/models/x.gguf")] if found else [])


DRAFT = "-md /m/small.gguf"


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (f"-ctk q8_0 -ctv q8_0 {DRAFT}", True),
        (f"-ctk q8_0 -ctv q8_0 {DRAFT} --spec-draft-type-k q8_0", True),  # the values stay wide
        (f"-ctk q8_0 -ctv q8_0 {DRAFT} --spec-draft-type-k q8_0 --spec-draft-type-v q8_0", False),
        (DRAFT, False),
        (f"-ctk q8_0 {DRAFT}", False),
        ("-ctk q8_0 -ctv q8_0", False),
    ],
)
def test_drafts_inherit_no_type(flags: str, found: bool) -> None:
    files = {"a.sh": f"#!/bin/sh\nllama-server -hf unsloth/Qwen3-8B-GGUF -c 8192 -np 1 -fa on {flags}\n"}
    assert said("draft-cache-unbudgeted", files, BUILD) == ([("note", "/m/small.gguf")] if found else [])


@pytest.mark.parametrize("name", ["unsloth/Qwen3-8B-GGUF:Q4_K_M", "unsloth/Qwen3-8B-GGUF"])
def test_weights_that_are_stated_leave_the_shape(name: str) -> None:
    """36 layers of 8 heads of 128, keys and values in 16 bits."""
    files = {"a.sh": "#!/bin/sh\nllama-server -hf unsloth/Qwen3-8B-GGUF:Q4_K_M -c 8192 -np 1\n"}
    (group,) = evaluate(memory_project(files, f'{BUILD}[[model]]\nid = "{name}"\nweights = "5GiB"\n')).groups
    size: Any = group.first.get("kv_bytes_per_token")
    weights: Any = group.first.get("weights_bytes")
    assert (size.value, weights.value) == (36 * 8 * 128 * 2 * 2, 5 * 2**30)
