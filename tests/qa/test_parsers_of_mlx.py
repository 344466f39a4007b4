"""What vllm-mlx takes for its tool and reasoning parsers, release by release: refusals of the released wheels' own parser."""

from __future__ import annotations

import pytest

from kvlint.engines.argparse import read
from kvlint.source import Source, Text


def texts(line: str) -> list[Text]:
    source = Source("line", line)
    return [Text.at(word, source.span(0, len(line))) for word in line.split()]


@pytest.mark.parametrize(
    ("flag", "value", "first"),
    [
        ("--tool-call-parser", "gemma4", "0.2.8"),
        ("--tool-call-parser", "qwen3_xml", "0.5.0"),
        ("--tool-call-parser", "glm4", "0.5.0"),
        ("--reasoning-parser", "harmony", "0.2.6"),
        ("--reasoning-parser", "gpt_oss", "0.2.7"),
        ("--reasoning-parser", "gemma4", "0.2.8"),
        ("--reasoning-parser", "glm4", "0.2.9"),
        ("--reasoning-parser", "mistral", "0.4.0"),
        ("--reasoning-parser", "poolside_v1", "0.4.1"),
        ("--reasoning-parser", "step3p5", "0.5.0"),
    ],
)
def test_a_parser_is_taken_from_the_release_that_registers_it(flag: str, value: str, first: str) -> None:
    releases = ["0.2.6", "0.2.7", "0.2.8", "0.2.9", "0.3.0", "0.4.0", "0.4.1", "0.5.0", "0.6.0"]
    taken = [r for r in releases if not read("vllm-mlx", r, texts(f"org/m {flag} {value}")).refused]
    assert taken == releases[releases.index(first) :]
