"""JSON that a program printed, with its messages before or behind, configures nothing: it is told, and fails no run."""

from __future__ import annotations

from pathlib import Path

import pytest

import kvlint

VALUE = '{"command": "vllm serve Qwen/Qwen3-8B --port 8000"}'


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (f"Loading the plan of vllm serve\n{VALUE}\n", "warning"),
        (f"{VALUE}\nWritten by vllm serve\n", "warning"),
        ('{"command": "vllm serve Qwen/Qwen3-8B", port: 8000}\n', "error"),
        ('{"command": "vllm serve Qwen/Qwen3-8B"\n', "error"),
    ],
)
def test_what_stands_outside_of_any_value(tmp_path: Path, text: str, severity: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    found = [each for each in kvlint.check([tmp_path]).findings if each.rule == "unreadable-config"]
    assert [each.severity for each in found] == [severity]
