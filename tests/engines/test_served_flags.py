"""Every flag of SGLang, TGI, TensorRT-LLM and LMDeploy on the pipeline: known ones are heard, others are spoken of."""

from __future__ import annotations

import json

import pytest

from kvlint.engines.options import Option, options
from kvlint.pipeline import check_files, evaluate, memory_project

MODEL = "Qwen/Qwen3-8B"
IMAGES = {
    "sglang": "lmsysorg/sglang:v{}",
    "tgi": "ghcr.io/huggingface/text-generation-inference:{}",
    "trtllm": "nvcr.io/nvidia/tensorrt-llm/release:{}",
    "lmdeploy": "openmmlab/lmdeploy:v{}",
}
COMMANDS = {
    "sglang": ["python3", "-m", "sglang.launch_server", "--model-path", MODEL],
    "tgi": ["text-generation-launcher", "--model-id", MODEL],
    "trtllm": ["trtllm-serve", MODEL],
    "lmdeploy": ["lmdeploy", "serve", "api_server", MODEL],
}
VALUES = {"float": "0.5", "rust_float": "0.5", "json": "{}", "json_loads": "{}", "json_list": "[]", "rust_bool": "true"}
WHOLE = ("int", "u16", "u32", "u64", "si_int")


def pod(engine: str, release: str | None, words: list[str]) -> dict[str, str]:
    tag = IMAGES[engine].format(release) if release else IMAGES[engine].split(":")[0]
    container = {"name": "it", "image": tag, "command": [*COMMANDS[engine], *words]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": {"containers": [container]}}
    return {"pod.yaml": json.dumps(body), "config.yaml": "{}\n"}


def found(engine: str, release: str | None, words: list[str]) -> list[tuple[str, str, str, str]]:
    report = check_files(pod(engine, release, words))
    assert report.internal == []
    assert len(report.groups) == 1
    return [(each.rule, each.severity, each.text, each.message) for each in report.findings]


def argument(option: Option) -> list[str]:
    """The option with a value that its parser takes."""
    if option.nargs == 0:
        return [option.name]
    if option.dest in ("config", "extra_llm_api_options"):
        return [option.name, "config.yaml"]
    choices = [choice for choice in option.choices or option.later or () if choice is not None]
    value = str(choices[0]) if choices else "1" if option.type in WHOLE else VALUES.get(option.type, "0")
    return [option.name, *[value] * (2 if option.nargs == 2 else 1)]


@pytest.mark.parametrize("engine", IMAGES)
def test_every_flag_of_the_newest_release_parses(engine: str) -> None:
    known = options(engine)
    newest = known.releases[-1]
    given = {
        "model_path",
        "model_id",
        "model",
        "help",
        "version",
        "max_input_length",
    }  # an older name of max_input_tokens
    given |= {guard["given"] for guard in known.guards_at(newest) if "forbids" in guard}  # not beside every other flag
    words = [argument(o) for o in known.at(newest).options if o.dest not in given and not o.positional]
    files = pod(engine, None, [word for each in words for word in each])
    (group,) = evaluate(memory_project(files, f'[[engine]]\nmatch = "**"\nversion = "{newest}"\n')).groups
    worlds = [world for world in group.worlds if newest in world.releases]
    assert [
        (each.kind, each.span.text) for world in worlds for each in world.problems if each.data.get("refuses")
    ] == []


@pytest.mark.parametrize(
    ("engine", "release", "word", "says"),
    [
        ("sglang", "0.5.5", "--contxt-length", "did you mean `--context-length`?"),
        ("sglang", "0.5.23", "--max-model-len", "vllm"),
        ("tgi", "3.3.7", "--max-total-token", "did you mean `--max-total-tokens`?"),
        ("tgi", "3.3.7", "--gpu-memory-utilization", "vllm"),
        ("trtllm", "1.1.0rc6", "--max_seq_length", "did you mean `--max_seq_len`?"),
        ("trtllm", "1.1.0rc6", "--tensor-parallel-size", "vllm"),
        ("trtllm", "1.1.0rc6", "--max-model-len", "vllm"),
        ("lmdeploy", "0.16.0", "--sesion-len", "did you mean `--session-len`?"),
        ("lmdeploy", "0.16.0", "--context-length", "sglang"),
    ],
)
def test_an_invented_flag_is_corrected_or_given_to_its_owner(engine: str, release: str, word: str, says: str) -> None:
    unknown = [each for each in found(engine, release, [word, "4096"]) if each[0] == "unknown-flag"]
    assert [(each[1], each[2]) for each in unknown] == [("error", word)]
    assert says in unknown[0][3]


@pytest.mark.parametrize(
    ("engine", "release", "words", "gone", "instead"),
    [
        ("sglang", "0.5.23", ["--nsa-prefill-backend", "fa3"], "0.5.20", "--dsa-prefill-backend"),
        ("tgi", "2.4.1", ["--enable-cuda-graphs"], "2.0.0", "--cuda-graphs"),
        ("lmdeploy", "0.12.3", ["--enable-metrics"], "0.11.0", "on unless --disable-metrics"),
        ("lmdeploy", "0.16.0", ["--disable-vision-encoder"], "0.15.0", "--language-model-only"),
    ],
)
def test_a_removed_flag_says_since_when_and_what_to_write(
    engine: str, release: str, words: list[str], gone: str, instead: str | None
) -> None:
    removed = [each for each in found(engine, release, words) if each[0] == "removed-flag"]
    assert [(each[1], each[2]) for each in removed] == [("error", words[0])]
    assert gone in removed[0][3]
    assert instead is None or instead in removed[0][3]


def test_the_old_name_is_known_in_its_own_release() -> None:
    assert [each for each in found("sglang", "0.5.5", ["--nsa-prefill-backend", "fa3"]) if each[1] == "error"] == []


def test_an_ambiguous_prefix_is_no_unknown_flag() -> None:
    """argument-parsing.md: --cuda-graph-max-bs was one flag, and is the beginning of two in 0.5.23."""
    rules = {(each[0], each[2]) for each in found("sglang", "0.5.23", ["--cuda-graph-max-bs", "8"])}
    assert ("ambiguous-flag", "--cuda-graph-max-bs") in rules
