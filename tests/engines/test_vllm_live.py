"""vLLM's parser, run on these lines: releases whose parsers had been read only, at each edge that the run showed."""

from __future__ import annotations

import pytest

from kvlint.engines.argparse import Reading, read
from kvlint.engines.options import options
from kvlint.source import Source, Text


def reading(release: str, line: str, file: str = "", entry: str = "serve") -> Reading:
    source, config = Source("line", line), Source("c.yaml", file)
    found, at = [], 0
    for word in line.split(" "):
        found.append(Text.of(source, at, at + len(word)))
        at += len(word) + 1
    return read("vllm", release, found, entry=entry, load=lambda name: Text.of(config, 0, len(config.text)))


def stage(found: Reading) -> str:
    """Where the line ends: in the parser, in the checks of what was parsed, or nowhere."""
    stages = [problem.stage for problem in found.problems if problem.stage != "note"]
    return stages[0] if stages else "accepted"


@pytest.mark.parametrize(
    ("release", "line", "outcome"),
    [
        # argument --quantization/-q: invalid choice: 'awq4' (choose from 'aqlm', 'awq', ..., None)
        ("0.6.1", "m -q awq4", "parser"),
        ("0.6.1", "m -q modelopt", "accepted"),
        ("0.6.4.post1", "m -q squeezellm", "parser"),
        ("0.6.1", "m -q ipex", "parser"),
        ("0.6.4.post1", "m -q ipex", "accepted"),
        ("0.8.3", "m --quantization None", "accepted"),
        ("0.8.3", "m --quantization nvfp4", "accepted"),
        ("0.7.1", "m --quantization nvfp4", "parser"),
        ("0.8.0", "m --speculative-model-quantization x", "parser"),
        (
            "0.9.1",
            "m --quantization None",
            "parser",
        ),  # choose from ..., 'None': the word, while the type made None of it
        # argument --reasoning-parser: invalid choice: 'qwen3' (choose from 'deepseek_r1', 'granite')
        ("0.8.3", "m --reasoning-parser qwen3", "parser"),
        ("0.9.1", "m --reasoning-parser qwen3", "accepted"),
        ("0.9.1", "m --reasoning-parser step3", "parser"),
        ("0.10.1.1", "m --reasoning-parser step3", "accepted"),
        ("0.10.1.1", "m --reasoning-parser openai_gptoss", "parser"),
        ("0.10.1.1", "m --reasoning-parser GptOss", "accepted"),
        ("0.11.1", "m --reasoning-parser anything", "accepted"),  # of a plug-in
        # argument --collect-detailed-traces: invalid choice: 'cpu' (choose from 'all', 'model', 'worker', ...)
        ("0.8.3", "m --collect-detailed-traces cpu", "accepted"),
        ("0.9.1", "m --collect-detailed-traces cpu", "parser"),
        ("0.29.0", "m --collect-detailed-traces cpu", "parser"),
        ("0.29.0", "m --collect-detailed-traces worker,model", "accepted"),
        ("0.31.0", "m --collect-detailed-traces worker,model", "parser"),
        # argument --spec-method: invalid choice: None (choose from ..., 'None')
        ("0.21.0", "m --mm-encoder-attn-dtype None", "parser"),
        ("0.29.0", "m --spec-method None", "parser"),
        ("0.29.0", "m --safetensors-load-strategy=None", "parser"),
        ("0.31.0", "m --spec-method None", "accepted"),
        ("0.32.0", "m --safetensors-load-strategy=None", "accepted"),
        ("0.9.1", "m --distributed-executor-backend=None", "parser"),
        ("0.10.1.1", "m --task None", "parser"),
        ("0.9.1", "m --max-log-len None", "parser"),
        ("0.10.1.1", "m --max-log-len None", "accepted"),
        ("0.32.0", "m --max-log-len None", "accepted"),
        # ValueError: not enough values to unpack (expected 2, got 1)
        ("0.8.3", "m --prompt-adapters 1", "parser"),
        ("0.9.1", "m --prompt-adapters a=b", "accepted"),
        # argument --override-pooler-config: invalid from_json value: '{"nope":3}'
        ("0.6.4.post1", 'm --override-pooler-config {"nope":3}', "parser"),
        ("0.8.3", 'm --override-pooler-config {"nope":3}', "parser"),
        # validate_parsed_serve_args
        ("0.23.0", "m -dpm", "post"),
        ("0.32.0", "m -dpm", "post"),
        ("0.28.0", "m -dpm --data-parallel-size 2 --grpc", "post"),
        ("0.7.1", "m --enable-reasoning", "post"),
        ("0.8.3", "m --enable-reasoning", "post"),
        ("0.8.3", "m --enable-reasoning --reasoning-parser granite", "accepted"),
        ("0.9.1", "m --enable-reasoning", "accepted"),
        ("0.29.0", "m --sse-keep-alive-interval -1", "post"),
        ("0.29.0", "m --sse-keep-alive-interval 0", "accepted"),
    ],
)
def test_lines(release: str, line: str, outcome: str) -> None:
    assert stage(reading(release, line)) == outcome


def test_a_switch_with_an_optional_word_is_true_alone() -> None:
    """StoreBoolean stored true, of every release up to 0.8.3."""
    assert reading("0.6.4.post1", "m --enable-chunked-prefill").typed("enable_chunked_prefill") is True
    assert reading("0.8.3", "m --enable-chunked-prefill False").typed("enable_chunked_prefill") is False


@pytest.mark.parametrize("release", ["0.6.4.post1", "0.8.3", "0.9.1", "0.10.1.1", "0.21.0", "0.32.0"])
@pytest.mark.parametrize("file", ["", "\n", "# nothing\n", "~\n", "- a\n"])
def test_a_file_without_a_mapping_ends_the_start(release: str, file: str) -> None:
    """AttributeError: 'NoneType' object has no attribute 'items', in load_config_file."""
    found = reading(release, "m --config c.yaml", file)
    assert [problem.kind for problem in found.problems] == ["config-file"]


def test_an_empty_mapping_is_a_file() -> None:
    assert stage(reading("0.32.0", "m --config c.yaml", "{}\n")) == "accepted"


def test_a_repeated_key_has_its_last_value() -> None:
    """Seen as max_num_seqs=2, seed=3; the first value would have left the word `true` over."""
    found = reading("0.9.1", "m --config c.yaml", "max-num-seqs: 1\nseed: 3\nmax-num-seqs: 2\n")
    assert stage(found) == "accepted"
    assert (found.typed("max_num_seqs"), found.typed("seed"), len(found.options)) == (2, 3, 3)
    file = "disable-log-requests: 'true'\ndisable-log-requests: false\n"
    assert stage(reading("0.9.1", "m --config c.yaml", file)) == "accepted"


def test_a_merged_key_counts() -> None:
    """Seen as seed=3."""
    file = "additional-config: &a {seed: 3}\n<<: *a\n"
    assert reading("0.32.0", "m --config c.yaml", file).typed("seed") == 3


def test_choices_do_not_hold_none_itself() -> None:
    known = options("vllm")
    records = [option for option in known.options if option.choices is not None]
    assert records
    assert not any(None in option.choices for option in records if option.choices)
