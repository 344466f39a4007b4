"""What the rules say of `mlx_lm.server`, release by release (facts: mlx-lm-server.md)."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

MODEL = "Qwen/Qwen3-8B"  # 36 layers of 8 heads of 128: 147,456 bytes a token in 16 bit
BUDGET = '[[hardware]]\nmatch = "**"\nbudget = "{}GiB"\n\n[[model]]\nid = "Qwen/Qwen3-8B"\nweights = "8GiB"\n'


def severity(rule: str, args: str, version: str = "==0.32.2", says: str = "", config: str | None = None) -> str | None:
    """The severity of `rule`, `unchecked`, or None."""
    model = "" if "--model" in args else f"--model {MODEL} "
    comment = f"# kvlint: {says}\n" if says else ""
    text = f"#!/bin/sh\n{comment}exec uvx --from 'mlx-lm{version}' mlx_lm.server {model}{args}\n"
    return said(rule, {"chat.sh": text}, config)


def said(rule: str, files: dict[str, str], config: str | None = None) -> str | None:
    report = check_files(files, config)
    assert report.internal == []
    found = [each.severity for each in report.findings if each.rule == rule]
    assert len(found) <= 1
    if found:
        return found[0]
    return "unchecked" if any(each.rule == rule for each in report.unchecked) else None


@pytest.mark.parametrize(
    ("args", "version", "expected"),
    [
        ("--kv-bits 8", "==0.32.2", "warning"),  # the width is only the default, and nobody stands in front
        ("--kv-bits 8 --decode-concurrency 4 --prompt-concurrency 4", "==0.32.0", "error"),
        ("--kv-bits 8 --decode-concurrency 4", "==0.32.2", "error"),
        ("--kv-bits 8 --decode-concurrency 1", "==0.32.2", None),  # one at a time is what was asked for
        ("--kv-bits 8 --decode-concurrency 1 --prompt-concurrency 1", "==0.32.2", None),
        ("--kv-bits 8 --decode-concurrency 4", "==0.33.0", "warning"),  # not verified
        ("--kv-bits 8 --decode-concurrency 4", "", "error"),  # older releases refuse the flag
        ("--kv-bits 8 --decode-concurrency 4", "==0.31.3", None),  # that is an unknown flag
        ("--decode-concurrency 4", "==0.32.2", None),
    ],
)
def test_a_quantized_cache_is_served_one_by_one(args: str, version: str, expected: str | None) -> None:
    assert severity("quantized-kv-batching", args, version) == expected


def test_what_is_admitted_counts() -> None:
    command = "uvx --from mlx-lm==0.32.2 mlx_lm.server --model Qwen/Qwen3-8B --kv-bits 8 --port ${{PORT}}"
    swap = f"models:\n  chat:\n    {{}}cmd: {command}\n"
    assert said("quantized-kv-batching", {"c.yaml": swap.format("concurrencyLimit: 4\n    ")}) == "error"
    assert said("quantized-kv-batching", {"c.yaml": swap.format("concurrencyLimit: 1\n    ")}) is None
    assert said("quantized-kv-batching", {"c.yaml": swap.format("")}) == "warning"
    assert severity("quantized-kv-batching", "--kv-bits 8", says="streams=2") == "error"


def test_both_ways_to_fail_are_named_where_the_release_is_not_known() -> None:
    files = {"a.sh": "exec mlx_lm.server --model Qwen/Qwen3-8B --kv-bits 8 --decode-concurrency 4\n"}
    (finding,) = (each for each in check_files(files).findings if each.rule == "quantized-kv-batching")
    assert "one request at a time" in finding.message
    assert "before 0.32.0 do not start" in finding.message


@pytest.mark.parametrize(
    ("version", "expected"), [("==0.28.3", None), ("==0.28.4", "error"), ("==0.32.2", "error"), ("==0.40.0", "warning")]
)
def test_a_draft_model_turns_batching_off(version: str, expected: str | None) -> None:
    assert severity("draft-model-batching", "--draft-model Qwen/Qwen3-0.6B", version, "streams=3") == expected


@pytest.mark.parametrize(
    ("model", "version", "expected"),
    [
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "==0.32.2", "warning"),  # ChunkedKVCache never merges
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "==0.30.2", "warning"),  # hybrids merge from 0.30.4 on
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "==0.30.4", None),
        ("openai/gpt-oss-20b", "==0.30.2", None),  # rotating caches always could
        ("Qwen/Qwen3-8B", "==0.30.2", None),
    ],
)
def test_classes_without_merge_are_not_batched(model: str, version: str, expected: str | None) -> None:
    assert severity("unmergeable-cache", f"--model {model}", version) == expected


@pytest.mark.parametrize(
    ("args", "says", "expected"),
    [
        ("--model openai/gpt-oss-20b --kv-bits 8", "", "error"),
        ("--model openai/gpt-oss-20b --kv-bits 8", "window=4096", None),  # never reaches 5,000 tokens
        ("--model openai/gpt-oss-20b --kv-bits 8 --quantized-kv-start 0", "window=4096", "error"),
        ("--model Qwen/Qwen3-8B --kv-bits 8", "", None),
        ("--model Qwen/Qwen3-Next-80B-A3B-Instruct --kv-bits 8", "", None),  # states are left as they are
    ],
)
def test_rotating_caches_cannot_be_quantized(args: str, says: str, expected: str | None) -> None:
    assert severity("quantized-kv-sliding-window", args, says=says) == expected


@pytest.mark.parametrize(
    ("model", "group", "expected"),
    [("Qwen/Qwen2.5-0.5B-Instruct", 128, "error"), ("Qwen/Qwen2.5-0.5B-Instruct", 64, None), (MODEL, 128, None)],
)
def test_groups_divide_the_heads(model: str, group: int, expected: str | None) -> None:
    args = f"--model {model} --kv-bits 4 --kv-group-size {group}"
    assert severity("quantized-kv-group-size", args) == expected


@pytest.mark.parametrize(
    ("args", "version", "expected"),
    [
        ("--decode-concurrency 2", "==0.31.3", "warning"),  # eight ran, live
        ("--decode-concurrency 2 --prompt-concurrency 2", "==0.31.3", None),
        ("--decode-concurrency 16", "==0.31.3", None),
        ("", "==0.32.2", None),
        ("", "==0.28.4", None),  # 32 and 8, fixed
    ],
)
def test_the_decode_limit_is_raised_to_the_prompt_limit(args: str, version: str, expected: str | None) -> None:
    assert severity("decode-below-prompt-concurrency", args, version) == expected


@pytest.mark.parametrize(
    ("args", "says", "expected"),
    [
        ("--prompt-cache-size 2", "streams=4", "error"),
        ("--prompt-cache-size 4", "streams=4", "warning"),  # and one for what they share
        ("--prompt-cache-size 5", "streams=4", None),
        ("--prompt-cache-size 2", "", None),
        ("--model Qwen/Qwen3-Next-80B-A3B-Instruct", "streams=3", None),  # 3 × 3 + 1 of 10
        ("--model Qwen/Qwen3-Next-80B-A3B-Instruct", "streams=4", "warning"),
        ("--prompt-cache-size 2", "streams=4 reuse=none", None),
    ],
)
def test_entries_are_counted_against_conversations(args: str, says: str, expected: str | None) -> None:
    assert severity("entries-below-streams", args, says=says) == expected


def test_one_slot_is_one_entry() -> None:
    assert severity("entries-below-streams", "", "==0.28.3", "streams=2") == "error"


@pytest.mark.parametrize(
    ("args", "version", "expected"),
    [
        ("--prompt-cache-bytes 8GB --kv-bits 8", "==0.32.2", "error"),  # grew to 557,056 at a limit of 200,000, live
        ("--prompt-cache-bytes 8GB --draft-model Qwen/Qwen3-0.6B", "==0.31.3", "error"),
        ("--model meta-llama/Llama-4-Scout-17B-16E-Instruct --prompt-cache-bytes 8GB", "==0.32.2", "error"),
        ("--prompt-cache-bytes 8GB --draft-model Qwen/Qwen3-0.6B", "==0.35.0", "warning"),
        ("--prompt-cache-bytes 8GB", "==0.32.2", None),
    ],
)
def test_the_limit_is_heard_only_where_requests_are_batched(args: str, version: str, expected: str | None) -> None:
    assert severity("prompt-cache-limit-ignored", args, version) == expected


# A slot of 32,768 tokens is 4.5 GiB; 10 % of the budget are held back.
@pytest.mark.parametrize(
    ("args", "says", "budget", "expected"),
    [
        ("", "window=32768", 64, None),  # 57.6 - 8 - 4.5 = 45.1 >= 45
        ("", "window=32768", 63, "warning"),  # 44.2
        ("--prompt-cache-size 5", "window=32768", 40, None),
        ("--prompt-cache-bytes 4GB", "window=32768", 40, None),
    ],
)
def test_entries_times_slots_fit_in_what_is_left(args: str, says: str, budget: int, expected: str | None) -> None:
    assert severity("unbounded-prompt-cache", args, says=says, config=BUDGET.format(budget)) == expected
