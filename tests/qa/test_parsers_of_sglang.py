"""SGLang's switches with a `--no-` form and its closed lists, as the released wheels' own parser has them."""

from __future__ import annotations

import pytest

from kvlint.engines.argparse import read
from kvlint.source import Source, Text


def refused(release: str, line: str) -> list[str]:
    source = Source("line", line)
    words = [Text.at(word, source.span(0, len(line))) for word in f"--model-path m {line}".split()]
    return [problem.kind for problem in read("sglang", release, words).problems]


@pytest.mark.parametrize(
    "flag",
    [
        "--no-lora-strict-loading",
        "--no-enable-tf32-matmul",
        "--no-mm-enable-dp-encoder",
        "--no-dllm-fdfo",
        "--no-lora-str",
    ],
)
def test_a_switch_that_can_be_switched_off(flag: str) -> None:
    assert refused("0.5.23", flag) == []
    assert refused("0.5.5", flag) == ["unknown-flag"]


def test_others_cannot() -> None:
    assert refused("0.5.23", "--no-disable-radix-cache") == ["unknown-flag"]
    assert refused("0.5.23", "--no-enable") == ["ambiguous-flag"]


@pytest.mark.parametrize(
    ("release", "line", "expected"),
    [
        ("0.5.23", "--sampling-backend flashinfer", []),
        ("0.5.23", "--sampling-backend triton", ["malformed-value"]),
        ("0.5.23", "--lora-target-modules q_proj v_proj", []),
        ("0.5.23", "--lora-target-modules q_proj query", ["malformed-value"]),
        ("0.4.10", "--lora-target-modules all", []),
        ("0.4.10", "--lora-target-modules lm_head", ["malformed-value"]),
        ("0.4.10", "--reasoning-parser glm45", []),
        ("0.4.10", "--reasoning-parser gpt-oss", ["malformed-value"]),
        ("0.5.23", "--monokernel-backend amd", []),
        ("0.5.23", "--monokernel-backend nvidia", ["malformed-value"]),
    ],
)
def test_closed_lists(release: str, line: str, expected: list[str]) -> None:
    assert refused(release, line) == expected
