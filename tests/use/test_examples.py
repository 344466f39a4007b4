"""The examples say what they are there to say, and the sound ones say nothing.

Arithmetic. Qwen3-8B keeps 36 layers x 8 heads x 128 x 2 (K and V) x 2 bytes = 147,456 bytes a token: 32,768 tokens
are 4.5 GiB and 16,384 are 2.25 GiB, of 3.81 GiB. Qwen3-Coder-30B-A3B keeps 48 x 4 x 128 x 2 x 2 = 98,304 bytes; with
8 bits in groups of 64, each with a scale and a bias of two bytes, 48 x 4 x 2 x (128 + 2 x 4) = 52,224. Qwen3.8-27B
keeps 16 x 4 x 256 x 2 x 2 = 65,536 bytes in its layers of full attention, so 200,000 tokens are 12.207 GiB, and more
with its recurrent state: of 48 GiB less a tenth, 17 GiB of weights and two such conversations at most 43.2 - 17 -
24.414 = 1.786 GiB are left, for one of them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kvlint.diagnostics import Report
from kvlint.discovery import open_project
from kvlint.pipeline import check

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def report() -> Report:
    return check(open_project((str(EXAMPLES),)))


def found(report: Report, path: str) -> dict[str, str]:
    return {each.rule: each.severity for each in report.findings if each.path == path}


@pytest.mark.parametrize(
    ("path", "rule", "underlined"),
    [
        ("mac/chat.nix", "cold-prompt-cache", "200000"),
        ("mac/llama-swap.yaml", "quantized-kv-batching", "8"),
        ("mac/llama-swap.yaml", "width-below-admission", "16"),
        ("mac/com.example.llama-swap.plist", "derived-drift", "98304"),
        ("k8s/qwen.yaml", "window-exceeds-pool", "32768"),
        ("k8s/qwen.yaml", "values-disagree", "32768"),
    ],
)
def test_what_is_wrong_is_found(report: Report, path: str, rule: str, underlined: str) -> None:
    marked = [each.span.text for each in report.findings if (each.path, each.rule) == (path, rule)]
    assert marked == [underlined]


def test_the_drifted_literal_is_what_it_was_before_the_cache_was_quantized(report: Report) -> None:
    (drift,) = [each for each in report.findings if each.rule == "derived-drift"]
    assert "52224" in drift.message


def test_nothing_is_left_unread(report: Report) -> None:
    assert not report.not_understood
    assert not report.internal
    assert {group.id for group in report.groups} == {
        f"{prefix}{server}"
        for prefix in ("", "sound/")
        for server in ("mac/chat.nix#chat", "mac/llama-swap.yaml#coder", "k8s/qwen.yaml#qwen/vllm")
    }


def test_the_sound_ones_are_silent(report: Report) -> None:
    assert [each for each in report.findings if any(span.path.startswith("sound/") for span in each.spans())] == []


def test_the_sound_ones_are_silent_alone() -> None:
    arguments = [sys.executable, "-m", "kvlint", "check", "examples/sound", "--fail-on", "note", "--require-input"]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_sound_and_unsound_have_the_same_files() -> None:
    for folder in ("mac", "k8s"):
        assert {each.name for each in (EXAMPLES / folder).iterdir()} == {
            each.name for each in (EXAMPLES / "sound" / folder).iterdir()
        }
