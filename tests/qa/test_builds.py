"""Builds that go by an engine's name and have options of their own, and releases between two of the data."""

from __future__ import annotations

import pytest

from kvlint.carriers.arguments import another, whose
from kvlint.pipeline import check_files, evaluate, memory_project
from kvlint.source import Source, Text


def rules(files: dict[str, str]) -> list[tuple[str, str]]:
    return [(each.severity, each.rule) for each in check_files(files).findings if each.severity != "note"]


def compose(image: str, command: str) -> dict[str, str]:
    return {
        "compose.yaml": f"services:\n  llm:\n    image: {image}\n    entrypoint: [llama-server]\n    command: {command}\n"
    }


FORKED = "-m /models/a.gguf -c 8192 -np 1 -rtr-max 3 -ctk q9_z"


@pytest.mark.parametrize(
    ("image", "found"),
    [
        ("registry.example/fork-of-llama-cpp:3", []),
        ("ghcr.io/ggml-org/llama.cpp:server-b9093", [("error", "malformed-value"), ("error", "unknown-flag")]),
    ],
)
def test_options_that_only_a_fork_has(image: str, found: list[tuple[str, str]]) -> None:
    assert sorted(rules(compose(image, FORKED))) == found


def test_a_fork_by_its_path() -> None:
    line = "#!/bin/sh\nexec {}llama-server -m a.gguf -c 8192 -np 1 -rtr-max 3\n"
    assert rules({"a.sh": line.format("/opt/ik_llama.cpp/build/bin/")}) == []
    assert rules({"a.sh": line.format("/opt/llama.cpp/build/bin/")}) == []  # few of its releases are known
    assert rules({"a.sh": "#!/bin/sh\nvllm serve a/b --rtr-max 3\n"}) == [("warning", "unknown-flag")]


def test_a_flag_may_have_stood_between_two_releases() -> None:
    """The data has 0.5.11 and 0.5.12 of SGLang and no candidate; what neither has may have come and gone between them."""
    line = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --zz-strategy x"
    pod = "services:\n  llm:\n    image: lmsysorg/sglang:{}\n    shm_size: 8g\n    command: {}\n"
    assert rules({"compose.yaml": pod.format("v0.5.12rc1", line)}) == [("warning", "unknown-flag")]
    assert rules({"compose.yaml": pod.format("v0.5.23", line)}) == [("error", "unknown-flag")]


def words(line: str) -> list[Text]:
    return [Text.at(word, Source("a", line).span(0, 1)) for word in line.split()]


def test_a_program_that_shares_some_flags_of_an_engine() -> None:
    """The server of embeddings has `--model-id` and `--otlp-endpoint`, and `--auto-truncate`, which TGI never had."""
    assert whose(words("--model-id a/b --otlp-endpoint c --auto-truncate")) is None
    assert whose(words("--model-id a/b --otlp-endpoint c --max-total-tokens 4096")) == "tgi"


def test_images_of_servers_of_embeddings() -> None:
    assert another("ghcr.io/huggingface/text-embeddings-inference:cpu-1.5")
    assert not another("ghcr.io/huggingface/text-generation-inference:3.3.7")
    image = "ghcr.io/huggingface/text-embeddings-inference:1.8"
    text = f"services:\n  e:\n    image: {image}\n    command: --model-id a/b --max-concurrent-requests 9\n"
    assert evaluate(memory_project({"compose.yaml": text})).groups == []


def started(files: dict[str, str]) -> list[str]:
    """The command lines of the servers found."""
    return [
        " ".join(word.value for word in group.first.process.line.words)
        for group in evaluate(memory_project(files)).groups
    ]


OWN = "--max-model-len 4096 --max-num-seqs 8"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (f"--model a/b {OWN}", f"vllm serve --model a/b {OWN}"),
        (f"serve a/b {OWN}", f"vllm serve a/b {OWN}"),
        (f"a/b {OWN}", f"vllm serve a/b {OWN}"),
        (f"/models/b {OWN}", f"vllm serve /models/b {OWN}"),
        (f"/mnt/cache/Qwen3-8B/ {OWN}", f"vllm serve /mnt/cache/Qwen3-8B/ {OWN}"),
        (f"/app/start.sh {OWN}", None),  # what a script makes of them is not known
        (f"serve.py {OWN}", None),
        ("serve a/b --port 1", None),
        (
            "serve --model-path a/b --mem-fraction-static 0.8 --schedule-policy lpm",
            None,
        ),  # SGLang's is no word of its image
        ("serve api_server a/b --session-len 9 --quant-policy 8", "lmdeploy {}"),
        ("vllm serve a/b --max-model-len 4096", "{}"),
    ],
)
def test_a_build_of_ones_own_whose_entrypoint_is_the_engine(given: str, line: str | None) -> None:
    expected = [] if line is None else [line.format(given)]
    words = given.split()
    container = f"{{name: lmdeploy, image: corp/llm:7, args: {words}}}"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{containers: [{container}]}}\n"
    assert started({"a.yaml": pod}) == expected
    assert started({"compose.yaml": f"services: {{lmdeploy: {{image: 'corp/llm:7', command: {given}}}}}\n"}) == expected
    assert (
        started(
            {"lmdeploy.sh": f"# lmdeploy or vllm\n#!/bin/sh\nexec docker run --gpus all -p 1:1 corp/llm:7 {given}\n"}
        )
        == expected
    )


def test_variables_that_begin_with_an_engine_s_name_count_as_one_flag() -> None:
    given = "--model a/b --max-model-len 4096"  # the first is SGLang's and llama-server's too
    assert whose(words(given)) is None
    assert whose(words(given), "corp/llm:7", ["HF_HOME", "VLLM_SKIP_WARMUP"]) == "vllm"
    assert whose(words(given), "corp/llm:7", ["SGLANG_LOG"]) is None
    assert whose(words("--model a/b --port 1"), "corp/llm:7", ["VLLM_LOGGING_LEVEL"]) is None


@pytest.mark.parametrize(
    ("image", "pinned"), [("lmcache/vllm-openai:2025-05-05-v1", False), ("vllm/vllm-openai", False), ("", True)]
)
def test_a_requirement_file_says_nothing_of_an_image(image: str, pinned: bool) -> None:
    """The client of a server asks for a release of the engine too; what is in the server's image is another matter."""
    where = f"image: {image}" if image else "build: ."
    text = f"services:\n  llm:\n    {where}\n    entrypoint: [vllm, serve]\n    command: [a/b, -O, '3']\n"
    files = {"deploy/compose.yaml": text, "pyproject.toml": '[project]\ndependencies = ["vllm==0.13.0"]\n'}
    (group,) = evaluate(memory_project(files)).groups
    assert (group.first.releases == ("0.13.0",)) is pinned


@pytest.mark.parametrize(
    ("option", "seen"),
    [
        ('${REVISION:+--revision "$REVISION"}', True),  # this flag or none
        ("${EAGER:+--enforce-eager}", False),
        ("${SEQS:+--max-num-seqs 4}", False),
        ("$EXTRA", False),
    ],
)
def test_an_option_that_a_variable_brings_along(option: str, seen: bool) -> None:
    text = f"FROM vllm/vllm-openai:v0.11.0\nENTRYPOINT vllm serve Qwen/Qwen3-8B {option}\n"
    (group,) = evaluate(memory_project({"Dockerfile": text})).groups
    assert (getattr(group.first.settings["tensor_parallel"], "value", None) == 1) is seen
    assert getattr(group.first.settings.get("revision"), "value", None) is None
