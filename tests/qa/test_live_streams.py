"""mlx-lm: streams beyond what is answered at once wait, and what waits is stored rather than live."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

MODEL = "mlx-community/Meta-Llama-3.1-8B-Instruct-4bit"


def said(flags: str, window: int) -> list[tuple[str, str]]:
    """32 layers × 8 heads × 128 × 2 × 2 = 131,072 B a token; 0.9 × 10 - 4 = 5 GiB, 40,960 tokens, for live and stored."""
    line = f"#!/bin/sh\n# kvlint: window={window} streams=2\nuvx --from mlx-lm==0.32.2 mlx_lm.server --model {MODEL} {flags}\n"
    toml = f'[[hardware]]\nmatch = "**"\nbudget = "10GiB"\n[[model]]\nid = "{MODEL}"\nweights = "4GiB"\n'
    report = check_files({"a.sh": line}, toml)
    rules = ("cold-prompt-cache", "slots-below-streams")
    return [(each.rule, each.severity) for each in report.findings if each.rule in rules]


@pytest.mark.parametrize(
    ("flags", "limit"),
    [
        ("", 40960 // 3),  # two live, one stored
        ("--decode-concurrency 1 --prompt-concurrency 1", 40960 // 2),
        ("--draft-model mlx-community/Llama-3.2-1B-Instruct-4bit", 40960 // 2),
    ],
)
def test_one_conversation_stays_warm(flags: str, limit: int) -> None:
    assert said(flags, limit) == [("slots-below-streams", "warning")]
    assert said(flags, limit + 1) == [("cold-prompt-cache", "error")]


@pytest.mark.parametrize(
    ("budget", "found"), [(38_654_705_664, []), (38_654_705_662, ["warning"]), (35_000_000_000, ["warning"])]
)
def test_a_draft_model_in_the_budget(budget: int, found: list[str]) -> None:
    """
    8B: 4 GiB of weights; 65,536 tokens of 131,072 bytes, live and stored: 16 GiB.
    1B: 16 layers × 8 heads × 64 × 2 × 2 = 32,768 bytes a token, live and stored: 4 GiB; 8.4 GiB of weights, to make the sum
    0.9 × 36 GiB.
    """
    small = "mlx-community/Llama-3.2-1B-Instruct-4bit"
    weights = 38_654_705_664 * 9 // 10 - (4 + 16 + 4) * 2**30
    line = f"#!/bin/sh\n# kvlint: window=65536\nuvx --from mlx-lm==0.32.2 mlx_lm.server --model {MODEL} --draft-model {small}\n"
    toml = f'[[hardware]]\nmatch = "**"\nbudget = {budget}\n[[model]]\nid = "{MODEL}"\nweights = "4GiB"\n'
    report = check_files({"a.sh": line}, f'{toml}[[model]]\nid = "{small}"\nweights = {weights}\n')
    assert [each.severity for each in report.findings if each.rule == "draft-cache-unbudgeted"] == found
    assert not [each for each in report.findings if each.rule == "cold-prompt-cache"]
