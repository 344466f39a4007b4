"""A command that a script runs on another machine starts a server there: judged like any other, and on no port of this one."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

SERVE = "vllm serve Qwen/Qwen3-8B --max-model-len 65536 --port 8000"


def errors(line: str, **files: str) -> list[str]:
    report = check_files({"run.sh": f"#!/bin/sh\n{line}\n", **files})
    return [each.rule for each in report.findings if each.severity == "error"]


@pytest.mark.parametrize(
    "line",
    [
        f"ssh gpu1 {SERVE}",
        f'ssh -p 22 -o StrictHostKeyChecking=no user@gpu1 "{SERVE}"',
        f"ssh -tt gpu1 'cd /srv && nohup {SERVE} > log 2>&1 &'",
    ],
)
def test_a_server_elsewhere(line: str) -> None:
    assert errors(line) == ["window-beyond-model"]


@pytest.mark.parametrize(
    "line",
    ["ssh gpu1", "ssh -L 8000:localhost:8000 gpu1", "ssh gpu1 'pkill -f \"vllm serve\"'", "ssh gpu1 tail -f vllm.log"],
)
def test_what_starts_nothing(line: str) -> None:
    assert errors(line) == []


def test_its_port_is_not_this_machine_s() -> None:
    config = (
        "model_list:\n  - model_name: a\n    litellm_params: {model: hosted_vllm/Qwen/Qwen3-8B, api_base: 'http://localhost:8000/v1'}\n"
        "    model_info: {max_input_tokens: 32768}\n"
    )
    served = SERVE.replace("65536", "16384")
    assert errors(served, **{"litellm.yaml": config}) == ["window-mismatch"]
    assert errors(f"ssh gpu1 {served}", **{"litellm.yaml": config}) == []


def test_devices_of_two_machines_are_not_one() -> None:
    def warnings(first: str, second: str) -> list[str]:
        line = "CUDA_VISIBLE_DEVICES=0 vllm serve Qwen/Qwen3-0.6B --gpu-memory-utilization 0.9 --port"
        text = f"#!/bin/sh\n{first} {line} 8000 &\n{second} {line} 8001 &\n"
        report = check_files({"run.sh": text})
        return [each.rule for each in report.findings if each.rule == "shared-device-overcommit"]

    assert warnings("", "") == ["shared-device-overcommit"]
    assert warnings("ssh gpu1", "ssh gpu2") == []
