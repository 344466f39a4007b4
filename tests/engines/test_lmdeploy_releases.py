"""LMDeploy's flags by release: where each came and went, and how its parser reads a word.

Every edge from the text of lmdeploy/cli/serve.py (add_parser_api_server) and lmdeploy/cli/utils.py (ArgumentHelper,
FlexibleArgumentParser) in the packages of the releases on both sides of it.
"""

from __future__ import annotations

import pytest

from kvlint.engines.argparse import Reading, read
from kvlint.engines.options import options
from kvlint.pipeline import check_files
from kvlint.source import Text

LMDEPLOY = options("lmdeploy")


def reading(release: str, words: str) -> Reading:
    return read("lmdeploy", release, [Text(word) for word in ["org/model", *words.split()]])


def refusals(release: str, words: str) -> list[str]:
    return [problem.kind for problem in reading(release, words).problems if problem.stage != "note"]


@pytest.mark.parametrize(
    ("flag", "since", "last", "gone"),
    [
        ("--dtype", "0.6.1", "0.18.0", None),  # utils.py: ArgumentHelper.dtype
        ("--proxy-url", "0.6.1", "0.18.0", None),  # serve.py
        ("--eager-mode", "0.6.2", "0.18.0", None),
        ("--max-concurrent-requests", "0.7.0.post3", "0.18.0", None),  # serve.py
        ("--tool-call-parser", "0.7.2", "0.18.0", None),
        ("--communicator", "0.7.2", "0.18.0", None),
        ("--dp", "0.8.0", "0.18.0", None),
        ("--dp-rank", "0.8.0", "0.8.0", "0.9.0"),
        ("--role", "0.9.0", "0.18.0", None),
        ("--hf-overrides", "0.9.2", "0.18.0", None),
        ("--enable-metrics", "0.9.2", "0.10.2", "0.11.0"),
        ("--disable-vision-encoder", "0.9.2", "0.14.0", "0.15.0"),
        ("--logprobs-mode", "0.10.0", "0.18.0", None),
        ("--dllm-block-length", "0.10.1", "0.18.0", None),
        ("--cp", "0.11.0", "0.18.0", None),
        ("--disable-metrics", "0.11.0", "0.18.0", None),
        ("--async", "0.12.0", "0.18.0", None),
        ("--trust-remote-code", "0.13.0", "0.18.0", None),
        ("--cudagraph-capture-batch-sizes", "0.14.0", "0.18.0", None),
        ("--generation-config", "0.15.0", "0.18.0", None),
        ("--moe-a2a-backend", "0.17.0", "0.18.0", None),
        ("--num-gpu-blocks", "0.18.0", "0.18.0", None),
    ],
)
def test_a_flag_comes_and_goes_with_the_very_release(flag: str, since: str, last: str, gone: str | None) -> None:
    past = LMDEPLOY.history(flag)
    assert (past.since, past.releases[-1], past.gone) == (since, last, gone)
    before = LMDEPLOY.releases[LMDEPLOY.index[since] - 1]
    assert LMDEPLOY.lookup(flag, before) is None


@pytest.mark.parametrize(
    ("release", "words", "found"),
    [
        ("0.6.1", "--device maca", ["malformed-value"]),  # utils.py: device(parser, default, choices)
        ("0.6.2", "--device maca", []),
        ("0.6.5", "--device camb", ["malformed-value"]),
        ("0.7.0", "--device camb", []),
        ("0.7.0.post1", "--model-format llama", []),  # utils.py: model_format
        ("0.7.0.post2", "--model-format llama", ["malformed-value"]),
        ("0.12.2", "--model-format compressed-tensors", ["malformed-value"]),
        ("0.12.3", "--model-format compressed-tensors", []),
        ("0.9.2.post1", "--communicator cuda-ipc", ["malformed-value"]),
        ("0.10.0", "--communicator cuda-ipc", []),
        ("0.9.0", "--migration-backend Mooncake", ["malformed-value"]),
        ("0.9.1", "--migration-backend Mooncake", []),
        ("0.12.3", "--quant-policy 42", ["malformed-value"]),  # messages.py: QuantPolicy from 0.13.0
        ("0.13.0", "--quant-policy 42", []),
        ("0.13.0", "--quant-policy int8", ["malformed-value"]),  # a number until 0.14.0
        ("0.14.0", "--quant-policy int8", []),
        ("0.15.0", "--speculative-algorithm hy3_mtp", ["malformed-value"]),
        ("0.16.0", "--speculative-algorithm hy3_mtp", []),
        ("0.17.0", "--speculative-algorithm dflash", ["malformed-value"]),
        ("0.18.0", "--speculative-algorithm dflash", []),
    ],
)
def test_a_choice_comes_with_the_very_release(release: str, words: str, found: list[str]) -> None:
    assert refusals(release, words) == found


@pytest.mark.parametrize(
    ("release", "found"), [("0.7.2", ["conflict"]), ("0.8.0", ["conflict"]), ("0.9.0", []), ("0.18.0", [])]
)
def test_the_two_parsers_excluded_each_other(release: str, found: list[str]) -> None:
    """serve.py: add_mutually_exclusive_group from 0.7.2 to 0.8.0."""
    assert refusals(release, "--tool-call-parser internlm --reasoning-parser deepseek-r1") == found


def test_underscores_are_dashes_from_0_9_2() -> None:
    words = "--session_len=4096 --cache_max_entry_count 0.5"
    assert refusals("0.9.1", words) == ["unknown-flag", "unknown-flag"]
    for release in ("0.9.2", "0.12.1", "0.18.0"):
        assert refusals(release, words) == []
        typed = reading(release, words)
        assert (typed.typed("session_len"), typed.typed("cache_max_entry_count")) == (4096, 0.5)


def test_dots_make_an_object_from_0_9_2() -> None:
    words = "--hf-overrides.rope_scaling.factor 2.5 --hf-overrides.rope_scaling.rope_type=yarn"
    assert reading("0.9.2", words).typed("hf_overrides") == {"rope_scaling": {"factor": 2.5, "rope_type": "yarn"}}
    assert refusals("0.9.1", words) == ["unknown-flag", "unknown-flag"]


def test_a_dot_behind_one_dash_is_a_number() -> None:
    """Unlike vLLM's, which takes `-0.1` for a name (argument-parsing.md)."""
    assert reading("0.16.0", "--rope-scaling-factor -0.1 --tp 2").typed("tp") == 2


@pytest.mark.parametrize(
    ("version", "word", "rule"),
    [
        ("v0.9.1", "--hf-overrides={}", "unknown-flag"),
        ("v0.9.2.post1-cu12", "--hf-overrides={}", None),
        ("v0.10.2", "--enable-metrics", None),
        ("v0.11.1", "--enable-metrics", "removed-flag"),
        ("v0.9.1", "--session_len=4096", "unknown-flag"),
        ("v0.11.1", "--session_len=4096", None),
    ],
)
def test_a_release_between_is_sure(version: str, word: str, rule: str | None) -> None:
    text = f"services:\n  chat:\n    image: openmmlab/lmdeploy:{version}\n"
    text += f"    command: lmdeploy serve api_server Qwen/Qwen2.5-7B-Instruct {word}\n"
    report = check_files({"compose.yaml": text})
    assert [(each.rule, each.severity) for each in report.findings if each.severity != "note"] == (
        [(rule, "error")] if rule else []
    )
