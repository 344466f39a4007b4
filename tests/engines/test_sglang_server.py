"""SGLang on the pipeline: how it is started, and what its settings come to.  Figures: facts/engines/sglang-pool.md."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvlint.facts import Fact, Unknown
from kvlint.pipeline import check_files, evaluate, memory_project
from kvlint.subjects import Server

# `so-0001` of the executed rows: an Ada card of 49,140 MiB, free before loading and after.
CARD = """[[hardware]]
match = "**"
memory = "49140MiB"
capability = 8.9
free = "47.03GiB"
loaded_free = "32.92GiB"
"""


def servers(compose: str, config: str | None = CARD) -> list[Server]:
    evaluation = evaluate(memory_project({"compose.yaml": compose}, config))
    assert evaluation.findings.internal == []
    return [group.live[0] for group in evaluation.groups]


def server(command: str, tag: str = "v0.5.23", config: str | None = CARD) -> Server:
    service = {"services": {"chat": {"image": f"lmsysorg/sglang:{tag}", "command": command}}}
    (found,) = servers(json.dumps(service), config)
    return found


def value(found: Server, name: str) -> Any:
    fact = found.get(name)
    return fact.value if isinstance(fact, Fact) else fact


@pytest.mark.parametrize(
    "command",
    [
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --context-length 4096",
        "sglang serve Qwen/Qwen3-8B --context-length 4096",
        "sglang serve --model-path Qwen/Qwen3-8B --context-length=4096",
        'bash -c "pip install -q x && exec python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --context-length 4096"',
        "env SGLANG_X=1 python -m sglang.launch_server --model Qwen/Qwen3-8B --context-length 4k",
    ],
)
def test_it_is_known_however_an_image_runs_it(command: str) -> None:
    found = server(command)
    assert (found.engine, found.releases, value(found, "model")) == ("sglang", ("0.5.23",), "Qwen/Qwen3-8B")
    assert value(found, "window") == (4000 if command.endswith("4k") else 4096)


def test_other_programs_of_the_package_are_none() -> None:
    compose = {
        "services": {"a": {"image": "lmsysorg/sglang:v0.5.5", "command": "python3 -m sglang_router.launch_router"}}
    }
    assert servers(json.dumps(compose)) == []


def test_an_executed_row() -> None:
    """`so-0001`: 168,484 tokens of 147,456 bytes, 256 requests, a fraction of 0.792 and chunks of 8,192."""
    words = "--page-size 1 --context-length 4096 --max-running-requests 256 --disable-radix-cache --disable-cuda-graph"
    found = server(f"python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B {words}", "v0.4.10.post2")
    assert (value(found, "pool_tokens"), value(found, "pool_token_bytes"), value(found, "batch_width")) == (
        168484,
        147456,
        256,
    )
    assert (float(value(found, "memory_fraction")), value(found, "batched_tokens")) == (0.792, 8192)
    assert value(found, "prefix_caching") is False


def test_data_parallel_ranks_count_together() -> None:
    line = "sglang serve Qwen/Qwen3-8B --tp 4 --max-running-requests 64 --mem-fraction-static 0.85"
    alone, split = server(line), server(f"{line} --dp 4 --enable-dp-attention")
    assert (value(alone, "devices_needed"), value(split, "devices_needed")) == (4, 4)
    assert value(split, "kv_bytes_per_token_per_device") == 4 * value(alone, "kv_bytes_per_token_per_device")
    assert (value(split, "batch_width"), value(split, "width_per_rank")) == (64, 16)
    copies = server(f"{line} --dp 2")
    assert (value(copies, "devices_needed"), value(copies, "pool_tokens")) == (8, 2 * value(alone, "pool_tokens"))


def test_the_window_is_the_models_own_unless_it_is_written() -> None:
    found = server("sglang serve Qwen/Qwen3-8B --allow-auto-truncate")
    assert (value(found, "window"), value(found, "window_kind")) == (40960, "truncate")
    longer = "sglang serve Qwen/Qwen3-8B --context-length 65536"
    version = '[[engine]]\nmatch = "**"\nversion = "0.5.23"\n'
    rules = {each.rule for each in check_files({"run.sh": f"#!/bin/sh\n{longer}\n"}, version).findings}
    assert "window-beyond-model" in rules
    allowed = f"#!/bin/sh\nSGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 {longer}\n"
    assert "window-beyond-model" not in {each.rule for each in check_files({"run.sh": allowed}).findings}


def test_what_no_device_changes_is_known_without_one() -> None:
    found = server("sglang serve Qwen/Qwen3-8B --tp 2", config=None)
    assert value(found, "kv_bytes_per_token_per_device") == 147456 // 2
    assert isinstance(found.get("pool_tokens"), Unknown)
    assert isinstance(found.get("memory_fraction"), Unknown)


def test_a_spliced_line_leaves_absent_flags_open() -> None:
    found = server('bash -c "sglang serve Qwen/Qwen3-8B --tp 2 $EXTRA"')
    assert value(found, "tensor_parallel") == 2
    assert isinstance(found.get("window"), Unknown)
    assert isinstance(found.get("pool_tokens"), Unknown)


def test_without_memory_for_the_cache_it_does_not_start() -> None:
    found = server("sglang serve Qwen/Qwen3-8B --mem-fraction-static 0.2")
    assert "leave no memory" in value(found, "start_refusal")
    report = check_files(
        {"run.sh": "#!/bin/sh\nsglang serve Qwen/Qwen3-8B --mem-fraction-static 0.2\n"},
        CARD + '[[engine]]\nmatch = "**"\nversion = "0.5.23"\n',
    )
    assert [each.text for each in report.findings if each.rule == "engine-refuses-settings"] == ["0.2"]


def test_an_image_encoder_of_unknown_size_leaves_the_fraction_open() -> None:
    found = server("sglang serve Qwen/Qwen3.5-27B")
    assert isinstance(found.get("memory_fraction"), Unknown)
    stated = server("sglang serve Qwen/Qwen3.5-27B --tp 2 --mem-fraction-static 0.9")
    assert isinstance(value(stated, "pool_tokens"), int)


def test_the_generator_of_images_is_no_server_of_text() -> None:
    """`sglang serve` starts either, by the model; these options only the generator has."""
    service = "services: {{draw: {{image: 'lmsysorg/sglang:v0.5.23', command: sglang serve --model-path a/b {}}}}}\n"
    assert servers(service.format("--num-gpus 4 --ulysses-degree=4 --backend sglang")) == []
    assert servers(service.format("--model-type diffusion")) == []
    assert len(servers(service.format("--model-type llm"))) == 1
    assert len(servers(service.format("--tp-size 4"))) == 1


@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("v0.5.6.post2", ["unknown-flag"]),  # not yet, there
        ("v0.5.7", []),
        ("v0.5.9", []),
        ("v0.5.19", []),
        ("v0.5.20", ["removed-flag"]),
        ("v0.5.23", ["removed-flag"]),
        ("latest", ["breaks-when-updated"]),
    ],
)
def test_a_flag_that_came_and_went(tag: str, said: list[str]) -> None:
    """`--mamba-scheduler-strategy` stands in sglang 0.5.7 to 0.5.19, and no more in 0.5.20 (server_args.py of these wheels)."""
    command = "python3 -m sglang.launch_server --model-path a/b --mamba-scheduler-strategy extra_buffer"
    service = {"services": {"chat": {"image": f"lmsysorg/sglang:{tag}", "command": command, "shm_size": "8g"}}}
    report = check_files({"compose.yaml": json.dumps(service)})
    assert [each.rule for each in report.findings if each.severity != "note"] == said


@pytest.mark.parametrize(
    ("tag", "refused"), [("v0.4.10.post2", False), ("v0.5.1", True), ("v0.5.3", True), ("v0.5.9", True)]
)
def test_since_when_a_longer_window_is_refused(tag: str, refused: bool) -> None:
    """The override of the window was on by default up to 0.4.10.post2, and no more in 0.5.1 (srt/configs/model_config.py:176)."""
    command = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --context-length 90000"
    service = {"services": {"chat": {"image": f"lmsysorg/sglang:{tag}", "command": command, "shm_size": "8g"}}}
    report = check_files({"compose.yaml": json.dumps(service)})
    assert ("window-beyond-model" in {each.rule for each in report.findings}) is refused


def test_between_releases_that_differ_the_pool_stays_undecided() -> None:
    """0.5.12 cuts the pools of sliding layers as 0.5.10 does or as 0.5.15 does: which was not read, unlike its flags."""
    for tag, known in (("v0.5.10.post1", True), ("v0.5.12", False), ("v0.5.15", True)):
        found = server("python -m sglang.launch_server --model-path openai/gpt-oss-20b", tag)
        assert isinstance(found.get("pool_tokens"), Unknown) is not known
