"""trtllm-serve on the pipeline: its command line and the YAML file beside it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from kvlint.facts import Fact, Unknown
from kvlint.pipeline import check_files, evaluate, memory_project
from kvlint.subjects import Server

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
KNOWN = '[[engine]]\nmatch = "**"\nversion = "1.1.0rc6"\n'
FREE = '[[hardware]]\nmatch = "**"\nmemory = "80GiB"\nloaded_free = "40GiB"\n'


def server(words: str, yaml: str | None = None, config: str = KNOWN, program: str = "trtllm-serve") -> Server:
    files = {"run.sh": f"#!/bin/sh\nexec {program} {words}\n", **({"extra.yaml": yaml} if yaml is not None else {})}
    evaluation = evaluate(memory_project(files, config))
    assert evaluation.findings.internal == []
    (group,) = evaluation.groups
    return group.live[0]


def value(found: Server, name: str) -> Any:
    fact = found.get(name)
    return fact.value if isinstance(fact, Fact) else fact


@pytest.mark.parametrize(
    "program", ["trtllm-serve", "trtllm-serve serve", "python3 -m tensorrt_llm.commands.serve serve"]
)
def test_it_is_known_with_and_without_its_subcommand(program: str) -> None:
    found = server(f"{MODEL} --max_seq_len 8192 --tp_size 2", program=program)
    assert (found.engine, value(found, "model"), value(found, "window")) == ("trtllm", MODEL, 8192)
    assert (value(found, "tensor_parallel"), value(found, "batch_width"), value(found, "batched_tokens")) == (
        2,
        2048,
        8192,
    )


def test_other_subcommands_are_none() -> None:
    files = {"run.sh": "#!/bin/sh\nexec trtllm-serve disaggregated -c config.yaml\n"}
    assert evaluate(memory_project(files)).groups == []


def test_a_cache_section_in_the_file_replaces_the_command_lines_fraction() -> None:
    line = f"{MODEL} --kv_cache_free_gpu_memory_fraction 0.5 --extra_llm_api_options extra.yaml"
    assert value(server(line, "max_batch_size: 8\n"), "memory_fraction") == Fraction(1, 2)
    assert value(server(line, "kv_cache_config:\n  enable_block_reuse: false\n"), "memory_fraction") == Fraction(9, 10)
    found = server(line, "kv_cache_config:\n  free_gpu_memory_fraction: 0.7\n")
    fact = found.settings["memory_fraction"]
    assert isinstance(fact, Fact)
    assert (fact.value, next(fact.spans()).text) == (Fraction(7, 10), "0.7")


def test_where_the_winner_is_not_known_nothing_is_said() -> None:
    files = {"run.sh": f"#!/bin/sh\nexec trtllm-serve {MODEL} --free_gpu_memory_fraction 0.5 --config extra.yaml\n"}
    files["extra.yaml"] = "kv_cache_config: {dtype: fp8}\n"
    (group,) = evaluate(memory_project(files)).groups
    by_release = {release: world.get("memory_fraction") for world in group.live for release in world.releases}
    assert isinstance(by_release["snapshot-029e223"], Unknown)
    older = by_release["snapshot-00209af"]
    assert isinstance(older, Fact)
    assert older.value == Fraction(9, 10)


def test_keys_of_the_file_are_settings() -> None:
    yaml = "max_seq_len: 16384\nmax_batch_size: 64\nenable_attention_dp: true\n"
    yaml += "kv_cache_config:\n  dtype: fp8\n  tokens_per_block: 64\n"
    found = server(f"{MODEL} --tp_size 4 --extra_llm_api_options extra.yaml", yaml)
    assert (value(found, "window"), value(found, "batch_width"), value(found, "block_size")) == (16384, 256, 64)
    assert (value(found, "kv_dtype"), value(found, "kv_bytes_per_token_per_device")) == ("fp8", 32 * 8 * 256)


def test_a_file_that_is_not_in_view_leaves_the_rest_open() -> None:
    found = server(f"{MODEL} --max_seq_len 8192 --extra_llm_api_options elsewhere.yaml")
    assert value(found, "window") == 8192
    assert isinstance(found.get("batch_width"), Unknown)


def test_a_file_that_is_no_mapping_is_refused() -> None:
    report = check_files(
        {"run.sh": f"#!/bin/sh\nexec trtllm-serve {MODEL} --extra_llm_api_options x.yaml\n", "x.yaml": "- 1\n"}, KNOWN
    )
    assert ("malformed-value", "error") in {(each.rule, each.severity) for each in report.findings}


def test_the_pool_is_a_share_of_what_is_free() -> None:
    """0.9 of 40 GiB over 131,072 bytes a token, in blocks of 32: 294,912 tokens."""
    found = server(f"{MODEL} --max_seq_len 8192", config=KNOWN + FREE)
    assert value(found, "pool_tokens") == int(40 * 2**30 * Fraction(9, 10) / 131072) // 32 * 32
    bounded = server(
        f"{MODEL} --extra_llm_api_options extra.yaml", "kv_cache_config: {max_tokens: 20000}\n", KNOWN + FREE
    )
    assert (value(bounded, "pool_tokens"), value(bounded, "pool_limit_tokens")) == (20000, 20000)
