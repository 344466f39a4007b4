"""A line of thousands of stray words ends soon, with findings that people can read."""

from __future__ import annotations

import time

import pytest

from kvlint.engines.dialects.python import MOST_LEFT_OVER
from kvlint.pipeline import check_files

WORDS = " ".join(f"w{number}" for number in range(10_000))


@pytest.mark.parametrize(
    "command", ["vllm serve Qwen/Qwen3-8B", "mlx_lm.server --model x", "python -m sglang.launch_server --model-path x"]
)
def test_ten_thousand_stray_words(command: str) -> None:
    started = time.monotonic()
    report = check_files({"chat.sh": f"exec {command} --port 8000 {WORDS}\n"})
    assert time.monotonic() - started < 20  # about one second; it was minutes
    found = [each for each in report.findings if each.rule == "stray-argument"]
    assert len(found) == MOST_LEFT_OVER
    assert found[0].text == "w0"


def test_the_flag_in_front_of_a_run_of_words_is_named() -> None:
    """`--port` takes the first, the words behind it belong to nothing."""
    report = check_files({"chat.sh": "exec mlx_lm.server --model x --port 8000 a b --host h c\n"})
    found = {each.text: each.message for each in report.findings if each.rule == "stray-argument"}
    assert list(found) == ["a", "b", "c"]
