"""LMDeploy on the pipeline: how it is started, what its cache count means, what a release refuses."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from kvlint.facts import Fact, Unknown
from kvlint.pipeline import check_files, evaluate, memory_project
from kvlint.subjects import Server

MODEL = "Qwen/Qwen2.5-7B-Instruct"  # 28 layers of 4 KV heads of 128: 57,344 bytes a token in 16 bits
FREE = '[[hardware]]\nmatch = "**"\nmemory = "80GiB"\nloaded_free = "40GiB"\n'


def compose(command: str, tag: str) -> dict[str, str]:
    return {
        "compose.yaml": json.dumps({"services": {"chat": {"image": f"openmmlab/lmdeploy:{tag}", "command": command}}})
    }


def server(words: str, tag: str = "v0.9.2", config: str | None = FREE) -> Server:
    evaluation = evaluate(memory_project(compose(f"lmdeploy serve api_server {MODEL} {words}", tag), config))
    assert evaluation.findings.internal == []
    (group,) = evaluation.groups
    return group.live[0]


def errors(words: str, tag: str) -> list[tuple[str, str]]:
    report = check_files(compose(f"lmdeploy serve api_server {MODEL} {words}", tag), FREE)
    return [(each.rule, each.text) for each in report.findings if each.severity == "error"]


def value(found: Server, name: str) -> Any:
    fact = found.get(name)
    return fact.value if isinstance(fact, Fact) else fact


def test_settings() -> None:
    found = server("--tp 2 --session-len 16384 --cache-max-entry-count 0.5 --max-batch-size 64", "v0.9.2-cu12")
    assert (found.engine, found.releases, value(found, "model")) == ("lmdeploy", ("0.9.2",), MODEL)
    assert (value(found, "window"), value(found, "window_kind"), value(found, "tensor_parallel")) == (
        16384,
        "refuse",
        2,
    )
    assert (value(found, "batch_width"), value(found, "memory_fraction"), value(found, "port")) == (
        64,
        Fraction(1, 2),
        23333,
    )


def test_the_pool_is_a_share_of_what_the_weights_leave() -> None:
    found = server("--session-len 16384")
    blocks = int(40 * 2**30 * Fraction(8, 10) // (57344 * 64))
    assert (value(found, "blocks"), value(found, "pool_tokens")) == (blocks, blocks * 64)


@pytest.mark.parametrize(
    ("policy", "tag", "price", "kind"),
    [
        ("8", "v0.9.2", 28 * 4 * (2 * 128 + 8), "int8"),
        ("4", "v0.9.2", 28 * 4 * (128 + 8), "int4"),
        ("int8", "v0.14.0", 28 * 4 * (2 * 128 + 8), "int8"),
        ("int8", "v0.18.0", 28 * 4 * (2 * 128 + 8), "int8"),
    ],
)
def test_quantized_keys_and_values(policy: str, tag: str, price: int, kind: str) -> None:
    found = server(f"--quant-policy {policy}", tag)
    assert (value(found, "kv_bytes_per_token_per_device"), value(found, "kv_dtype")) == (price, kind)


def test_a_block_count_is_a_pool_in_some_releases_and_refused_in_others() -> None:
    assert value(server("--cache-max-entry-count 100", "v0.12.3"), "pool_tokens") == 6400
    for tag in ("v0.9.2", "v0.16.0"):
        assert errors("--cache-max-entry-count 100", tag) == [("engine-refuses-settings", "100")]


def test_a_number_of_blocks_is_the_pool_of_the_pytorch_engine() -> None:
    words = "--backend pytorch --num-gpu-blocks 100"
    assert value(server(words, "v0.18.0"), "pool_tokens") == 6400
    assert [rule for rule, _ in errors(words, "v0.17.0")] == ["unknown-flag"]


def test_heads_that_the_pytorch_engine_cannot_split() -> None:
    assert ("engine-refuses-settings", "8") in errors("--backend pytorch --tp 8", "v0.16.0")


def test_a_session_longer_than_its_pool_is_a_warning() -> None:
    report = check_files(
        compose(f"lmdeploy serve api_server {MODEL} --session-len 32768", "v0.9.2"),
        '[[hardware]]\nmatch = "**"\navailable_kv = "1GiB"\n',
    )
    found = [(each.severity, each.text) for each in report.findings if each.rule == "window-exceeds-pool"]
    assert found == [("warning", "32768")]


def test_another_engine_behind_an_unserved_class_is_not_guessed() -> None:
    files = compose("lmdeploy serve api_server google/gemma-3-27b-it", "v0.16.0")
    (group,) = evaluate(memory_project(files, FREE)).groups
    assert isinstance(group.first.get("pool_tokens"), Unknown)
