"""Host caches and offloaded weights against the memory that a container may have."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec:
  containers:
    - name: main
      image: IMAGE
      command: COMMAND
      resources: {limits: {memory: LIMIT, nvidia.com/gpu: 2}}
"""
SGLANG = "lmsysorg/sglang:v0.5.5", "[python3, -m, sglang.launch_server, --model-path, Qwen/Qwen3-8B, {}]"
VLLM = "vllm/vllm-openai:v0.22.1", "[vllm, serve, Qwen/Qwen3-8B, {}]"
TIERED = "--enable-hierarchical-cache, --hicache-size, '30', --tp, '{}'"


def told(engine: tuple[str, str], arguments: str, limit: str) -> list[str]:
    image, command = engine
    pod = POD.replace("IMAGE", image).replace("COMMAND", command.format(arguments)).replace("LIMIT", limit)
    found = check_files({"pod.yaml": pod}).findings
    return [each.message for each in found if each.rule == "host-cache-exceeds-memory"]


@pytest.mark.parametrize(
    ("engine", "arguments", "limit", "spoken"),
    [
        (SGLANG, TIERED.format(1), "32Gi", False),  # 30 GB of one rank
        (SGLANG, TIERED.format(2), "32Gi", True),  # of each of two
        (SGLANG, TIERED.format(2), "56Gi", False),  # 60 GB are 55.9 GiB
        (SGLANG, "--tp, '2'", "1Gi", False),
        (VLLM, "--kv-offloading-size, '40', -tp, '2'", "32Gi", True),  # 40 GiB of all ranks
        (VLLM, "--kv-offloading-size, '40', -tp, '2'", "40Gi", False),
        (VLLM, "--cpu-offload-gb, '20', -tp, '2'", "32Gi", True),  # 20 GiB of each of two
        (VLLM, "--cpu-offload-gb, '20'", "32Gi", False),
        (VLLM, "--cpu-offload-gb, '8', --kv-offloading-size, '26'", "32Gi", True),
        (VLLM, "-tp, '2'", "1Gi", False),
    ],
)
def test_what_one_node_pins(engine: tuple[str, str], arguments: str, limit: str, spoken: bool) -> None:
    assert bool(told(engine, arguments, limit)) is spoken


def test_both_numbers_are_said() -> None:
    (message,) = told(VLLM, "--cpu-offload-gb, '20', -tp, '2'", "32Gi")
    assert "40 GiB" in message
    assert "32 GiB" in message
