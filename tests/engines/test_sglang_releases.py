"""SGLang's flags at the releases where they came, changed and went, as the sources of the released wheels have them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvlint.engines.argparse import read
from kvlint.engines.options import options
from kvlint.pipeline import check_files
from kvlint.source import Source, Text

SGLANG = options("sglang")


def words(line: str) -> list[Text]:
    source = Source("line", line)
    return [Text.at(word, source.span(0, len(line))) for word in line.split()]


def problems(release: str, line: str, entry: str = "python -m sglang.launch_server") -> list[str]:
    return [problem.kind for problem in read("sglang", release, words(line), entry=entry).problems]


@pytest.mark.parametrize(
    ("flag", "before", "since", "last", "gone"),
    [
        # the release before it, the first and the last that have it, the first without; by the lines of sglang/srt/
        ("--pp-size", "0.4.6.post1", "0.4.6.post2", "0.5.23", None),  # 0.4.6.post2 server_args.py:656
        ("--enable-eplb", "0.4.6.post4", "0.4.6.post5", "0.5.23", None),  # 0.4.6.post5 server_args.py:1294
        ("--n-share-experts-fusion", None, "0.4.6", "0.4.6.post5", "0.4.7"),  # 0.4.6 server_args.py:1133
        ("--impl", "0.4.6.post5", "0.4.7", "0.4.9.post2", "0.4.9.post3"),  # 0.4.7 server_args.py:739
        ("--max-queued-requests", "0.4.9.post5", "0.4.9.post6", "0.5.23", None),  # 0.4.9.post6 server_args.py:811
        ("--pdlb-url", "0.4.6.post2", "0.4.6.post3", "0.5.1.post3", "0.5.2"),  # 0.4.6.post3 server_args.py:1263
        ("--max-mamba-cache-size", "0.5.1.post3", "0.5.2", "0.5.23", None),  # 0.5.2 server_args.py:1727
        ("--config", "0.5.2", "0.5.3", "0.5.23", None),  # 0.5.3 server_args.py:2870
        (
            "--max-micro-batch-size",
            "0.4.6.post1",
            "0.4.6.post2",
            "0.5.3",
            "0.5.3.post1",
        ),  # 0.4.6.post2 server_args.py:662
        ("--crash-on-nan", "0.5.3.post1", "0.5.3.post2", "0.5.3.post3", "0.5.4"),  # 0.5.3.post2 server_args.py:1855
        ("--nsa-prefill-backend", "0.5.3.post3", "0.5.4", "0.5.19", "0.5.20"),  # 0.5.4 server_args.py:2398
        ("--enable-beta-spec", "0.5.3.post1", "0.5.3.post2", "0.5.4", "0.5.4.post1"),  # 0.5.3.post2 server_args.py:2230
        ("--load-watch-interval", "0.5.2", "0.5.3", "0.5.6.post2", "0.5.7"),  # 0.5.3 server_args.py:1887
        ("--dllm-algorithm", "0.5.5.post3", "0.5.6", "0.5.23", None),  # 0.5.6 server_args.py:3310
        ("--enable-hisparse", "0.5.9", "0.5.10", "0.5.23", None),  # 0.5.10 server_args.py:5188
        ("--enable-double-sparsity", None, "0.4.6", "0.5.10.post1", "0.5.11"),  # 0.4.6 server_args.py:911
        ("--dsa-prefill-backend", "0.5.12.post1", "0.5.13", "0.5.23", None),  # 0.5.13 server_args.py:5737
        ("--hybrid-kvcache-ratio", "0.4.8.post1", "0.4.9", "0.5.13.post1", "0.5.14"),  # 0.4.9 server_args.py:841
        (
            "--custom-sigquit-handler",
            "0.5.6.post2",
            "0.5.7",
            "0.5.13.post1",
            "0.5.14",
        ),  # 0.5.14: a field without a flag
        ("--cuda-graph-max-bs-decode", "0.5.13.post1", "0.5.14", "0.5.23", None),  # 0.5.14 server_args.py:1939
        (
            "--optimistic-prefill-retries",
            "0.5.12.post1",
            "0.5.13",
            "0.5.15.post1",
            "0.5.16",
        ),  # 0.5.13 server_args.py:7034
        ("--torchao-config", None, "0.4.6", "0.5.17", "0.5.18"),  # 0.4.6 server_args.py:1027
        ("--cuda-graph-max-bs", None, "0.4.6", "0.5.19", "0.5.20"),  # 0.4.6 server_args.py:1015
        ("--elastic-ep-rejoin", "0.5.10.post1", "0.5.11", "0.5.20", "0.5.21"),  # 0.5.20 arg_groups/fields/exec_.py:780
        ("--attn-dp-size", "0.5.21", "0.5.22", "0.5.23", None),  # 0.5.22 arg_groups/fields/parallel.py:81
        (
            "--speculative-skip-dp-mlp-sync",
            "0.5.10.post1",
            "0.5.11",
            "0.5.22",
            "0.5.23",
        ),  # 0.5.22 arg_groups/fields/spec.py:229
    ],
)
def test_where_a_flag_came_and_went(flag: str, before: str | None, since: str, last: str, gone: str | None) -> None:
    past = SGLANG.history(flag)
    assert (past.releases[0], past.releases[-1], past.gone) == (since, last, gone)
    for release, stands in ((before, False), (since, True), (last, True), (gone, False)):
        assert release is None or (SGLANG.lookup(flag, release) is not None) is stands


def test_the_release_that_is_pinned_is_one_world() -> None:
    for release in ("0.4.6.post3", "0.5.1.post2", "0.5.3", "0.5.9", "0.5.12.post1", "0.5.21"):
        assert SGLANG.neighbours(release).kind == "exact"
    assert SGLANG.neighbours("0.5.0").releases == ("0.4.10.post2", "0.5.1")  # never published


@pytest.mark.parametrize(
    ("release", "line", "expected"),
    [
        # parser/reasoning_parser.py, DetectorMap; from 0.5.12 `auto` too
        ("0.4.6", "--reasoning-parser deepseek-r1", []),
        ("0.4.6", "--reasoning-parser qwen3", ["malformed-value"]),  # 0.4.6 reasoning_parser.py:131
        ("0.4.6.post1", "--reasoning-parser qwen3", []),
        ("0.5.1", "--reasoning-parser minimax", ["malformed-value"]),
        ("0.5.11", "--reasoning-parser auto", ["malformed-value"]),
        ("0.5.12", "--reasoning-parser auto", []),  # 0.5.12 server_args.py
        # function_call/function_call_parser.py, ToolCallParserEnum
        ("0.5.1", "--tool-call-parser glm", ["malformed-value"]),
        ("0.5.4", "--tool-call-parser minimax-m2", ["malformed-value"]),
        ("0.5.4.post1", "--tool-call-parser minimax-m2", []),
        # ATTN_BACKENDS of add_cli_args
        ("0.5.1", "--attention-backend flash-attn", ["malformed-value"]),
        ("0.5.1.post2", "--attention-backend trtllm_mha", []),
        # human_readable_int is the type of these from 0.5.10 (utils/common.py:2229)
        ("0.5.9", "--context-length 32k", ["malformed-value"]),
        ("0.5.10", "--context-length 32k", []),
        # cuda_graph_config.py: Backend.ALL
        ("0.5.21", "--cuda-graph-backend-prefill tc_piecewise", []),
        ("0.5.22", "--cuda-graph-backend-prefill tc_piecewise", ["malformed-value"]),
    ],
)
def test_what_a_flag_takes(release: str, line: str, expected: list[str]) -> None:
    assert problems(release, f"--model-path m {line}") == expected


@pytest.mark.parametrize(
    ("flag", "release", "default"),
    [
        ("--watchdog-timeout", "0.5.9", 300),
        ("--schedule-conservativeness", "0.5.3", 1.0),
        ("--speculative-ngram-capacity", "0.5.5", 10_000_000),
        ("--speculative-ngram-capacity", "0.5.23", 10_000_000),
        ("--max-queued-requests", "0.4.9.post6", 2**63 - 1),
        ("--max-queued-requests", "0.5.2", 2**63 - 1),
        ("--max-queued-requests", "0.5.3", None),
        ("--encoder-urls", "0.5.23", None),
    ],
)
def test_defaults_that_the_parser_puts_in(flag: str, release: str, default: Any) -> None:
    option = SGLANG.lookup(flag, release)
    assert option is not None
    assert (option.default, option.computed) == (default, False)


def test_two_spellings_of_a_degree_are_one_setting() -> None:
    """0.5.9 server_args.py:5072: `args.attn_cp_size = args.attention_context_parallel_size`."""
    for release in ("0.5.9", "0.5.13", "0.5.14", "0.5.23"):
        reading = read("sglang", release, words("--model-path m --attn-cp-size 2"))
        assert reading.typed("attn_cp_size") == 2


@pytest.mark.parametrize(
    ("release", "flag", "kind"),
    [
        # up to 0.5.7 DeprecatedAction raises (0.5.4 server_args.py:3791); the flag is known, as far as prefixes go
        ("0.4.6", "--enable-flashmla", "unknown-flag"),
        ("0.4.7", "--enable-flashm", "unknown-flag"),
        ("0.5.2", "--enable-ep-moe", None),
        ("0.5.3", "--enable-ep-moe", "removed-flag"),
        ("0.5.4", "--enable-ep-moe", "removed-flag"),
        ("0.5.4.post1", "--enable-ep-moe", "removed-flag"),
        # from 0.5.8 it only warns, unless it is given an error_message (0.5.18 server_args.py:8709)
        ("0.5.8", "--prefill-round-robin-balance", None),
        ("0.5.17", "--enable-expert-distribution-metrics", None),
        ("0.5.18", "--enable-expert-distribution-metrics", "removed-flag"),
        ("0.5.20", "--enable-expert-distribution-metrics", "removed-flag"),
    ],
)
def test_a_flag_that_only_ends_the_start(release: str, flag: str, kind: str | None) -> None:
    assert problems(release, f"--model-path m {flag}") == ([kind] if kind else [])


def test_its_successor_is_named() -> None:
    service = {"image": "lmsysorg/sglang:v0.5.3", "shm_size": "8g"}
    service["command"] = "python3 -m sglang.launch_server --model-path a/b --enable-deepep-moe"
    report = check_files({"compose.yaml": json.dumps({"services": {"chat": service}})})
    (found,) = [each for each in report.findings if each.rule == "removed-flag"]
    assert "since 0.5.3; instead: --moe-a2a-backend deepep" in found.message
    assert found.severity == "error"


@pytest.mark.parametrize(
    ("release", "line", "expected"),
    [
        # cli/serve.py: _normalize_positional_model_path from 0.5.16; cli/utils.py: get_model_path knows `--model` from 0.5.18
        ("0.5.15.post1", "a/b", ["missing-model", "missing-model", "stray-argument"]),
        ("0.5.16", "a/b", []),
        ("0.5.17", "--model a/b", ["missing-model"]),
        ("0.5.18", "--model a/b", []),
        ("0.5.9", "--model-path a/b --model-type llm", ["unknown-flag"]),
        ("0.5.10", "--model-path a/b --model-type llm", []),
        ("0.5.23", "--model-type=llm a/b", []),
    ],
)
def test_the_model_of_serve(release: str, line: str, expected: list[str]) -> None:
    assert sorted(problems(release, line, "sglang serve")) == expected


def file_problems(release: str, text: str) -> tuple[list[str], dict[str, Any]]:
    source = Source("c.yaml", text)
    args = words("--model-path m --config c.yaml")
    reading = read("sglang", release, args, load=lambda name: Text.of(source, 0, len(text)))
    return [problem.kind for problem in reading.problems], {d: g.typed for d, g in reading.settings.items()}


def test_a_file_of_options() -> None:
    """server_args_config_parser.py: from 0.5.3; from 0.5.8 only `store` and `store_true`, lists of values among them."""
    assert file_problems("0.5.2", "tp-size: 2\n")[0] == ["unknown-flag"]
    assert file_problems("0.5.3", "tp-size: 2\n") == ([], {"model_path": "m", "tp_size": 2})
    for release in ("0.5.7", "0.5.8", "0.5.13"):
        assert file_problems(release, "cuda-graph-bs: [1, 2]\n")[1]["cuda_graph_bs"] == [1, 2]
    assert file_problems("0.5.7", "lora-paths: [a, b]\n")[0] == []
    assert file_problems("0.5.8", "lora-paths: [a, b]\n")[0] == ["config-file"]


@pytest.mark.parametrize(
    ("release", "line", "expected"),
    [
        # 0.4.6.post1 server_args.py: "compatibility of lora and cuda graph and radix attention is in progress"
        ("0.4.6.post1", "--lora-paths a=b --disable-radix-cache", ["conflict"]),
        ("0.4.6.post2", "--lora-paths a=b --disable-radix-cache", []),
        ("0.4.10.post2", "--lora-paths a=b", ["conflict"]),
        ("0.5.1", "--lora-paths a=b", []),
        ("0.4.10.post2", "--enable-hierarchical-cache --disable-radix-cache", []),
        ("0.5.1", "--enable-hierarchical-cache --disable-radix-cache", ["conflict"]),  # 0.5.1 server_args.py:726
        ("0.5.20", "--enable-lmcache --disable-radix-cache", []),
        ("0.5.21", "--enable-lmcache --disable-radix-cache", ["conflict"]),  # 0.5.21 arg_groups/kv_cache_hook.py:433
        ("0.5.21", "--enable-hisparse --disable-radix-cache --enable-mixed-chunk", []),
        (
            "0.5.22",
            "--enable-hisparse --disable-radix-cache --enable-mixed-chunk",
            ["conflict"],
        ),  # arg_groups/hisparse_hook.py:83
    ],
)
def test_settings_that_exclude_each_other(release: str, line: str, expected: list[str]) -> None:
    assert problems(release, f"--model-path m {line}") == expected
