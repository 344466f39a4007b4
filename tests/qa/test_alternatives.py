"""Things beside each other of which only one runs: functions of a script, compose files of a directory."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

BOTH = """#!/bin/bash
export CUDA_VISIBLE_DEVICES=0
small() {{
  vllm serve Qwen/Qwen3-4B {one} --gpu-memory-utilization 0.6 &
}}
large() {{
  vllm serve Qwen/Qwen3-8B {other} --gpu-memory-utilization 0.6 &
}}
"$1"
"""
DOCKER = "docker run -d --gpus '\"device=0\"' {0} vllm/vllm-openai:v0.22.1 --model {1} --gpu-memory-utilization 0.6\n"


def rules(files: dict[str, str]) -> list[str]:
    report = check_files(files)
    assert report.internal == []
    return [each.rule for each in report.findings if each.severity != "note"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("--port 8100", "--port 8200", ["shared-device-overcommit"]),
        ("--port 8100", "--port 8100", []),
        ("", "--port 8000", []),  # 8000 is vLLM's default: the second does not start
    ],
)
def test_servers_on_one_port_do_not_run_together(one: str, other: str, expected: list[str]) -> None:
    """0.6 + 0.6 is more than a device, where both run."""
    assert rules({"run.sh": BOTH.format(one=one, other=other)}) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("-p 8001:8000", "-p 8002:8000", ["shared-device-overcommit"]),
        ("-p 8001:8000", "-p 8001:8000", []),
        ("", "", ["shared-device-overcommit"]),  # each has a network of its own
    ],
)
def test_ports_inside_a_container_are_its_own(one: str, other: str, expected: list[str]) -> None:
    script = DOCKER.format(one, "Qwen/Qwen3-4B") + DOCKER.format(other, "Qwen/Qwen3-8B")
    assert rules({"run.sh": "#!/bin/sh\n" + script}) == expected


SERVICE = """services:
  {name}:
    image: vllm/vllm-openai:v0.22.1
    command: --model Qwen/Qwen3-8B --kv-cache-dtype {dtype}
    networks: {{default: {{aliases: [pool]}}}}
"""


def test_a_service_that_another_file_writes_anew_is_no_replica() -> None:
    files = {
        "docker-compose.yaml": SERVICE.format(name="model", dtype="fp8"),
        "docker-compose-plain.yaml": SERVICE.format(name="model", dtype="bfloat16"),
    }
    assert rules(files) == []
    other = SERVICE.format(name="other", dtype="bfloat16").partition("\n")[2]
    assert rules({"compose.yaml": files["docker-compose.yaml"] + other}) == ["replica-identity"]


@pytest.mark.parametrize("name", ["serve.sbatch", "serve.slurm", "serve.job", "serve.pbs", "serve.sub", "serve"])
def test_scripts_of_batch_systems_are_scripts(name: str) -> None:
    script = "#!/bin/bash\n#SBATCH --gres=gpu:1\nvllm serve Qwen/Qwen3-8B --max-model-length 4096\n"
    assert rules({name: script}) == ["unknown-flag"]
    assert rules({name: script.replace("#!/bin/bash", "executable = /bin/true")}) == []
