"""llama-server and llama_cpp.server on the pipeline: names, variables, models.  Figures: facts/engines/llama-server.md."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvlint.facts import Fact, Unknown
from kvlint.pipeline import check_files, evaluate, memory_project
from kvlint.subjects import Server

# 2 layers of 2 heads of 64, trained for 8,192 tokens: 2 x 2 x (64 + 64) x 2 bytes = 1,024 bytes a token.
SHAPE = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.context_length": 8192, "llama.embedding_length": 128,
    "llama.attention.head_count": 2, "llama.attention.head_count_kv": 2, "llama.attention.key_length": 64,
    "llama.attention.value_length": 64,
}  # fmt: skip
CONFIG = '[[model]]\nid = "tiny.gguf"\nconfig = "tiny.json"\n[[engine]]\nmatch = "**"\nversion = "b11434"\n'


def server(command: str, config: str = CONFIG, **more: str) -> Server:
    return servers({"run.sh": f"#!/bin/sh\n{command}\n", **more}, config)[0]


def servers(files: dict[str, str], config: str = CONFIG) -> list[Server]:
    evaluation = evaluate(memory_project({"tiny.json": json.dumps(SHAPE), **files}, config))
    assert evaluation.findings.internal == []
    return [world for group in evaluation.groups for world in group.worlds]


def value(found: Server, name: str) -> Any:
    fact = found.get(name)
    return fact.value if isinstance(fact, Fact) else fact


def findings(command: str, config: str = CONFIG) -> list[tuple[str, str]]:
    report = check_files({"tiny.json": json.dumps(SHAPE), "run.sh": f"#!/bin/sh\n{command}\n"}, config)
    return [(finding.rule, finding.text) for finding in report.findings]


def test_a_flag_beats_its_variable_and_the_loser_is_named() -> None:
    found = server("LLAMA_ARG_CTX_SIZE=8192 llama-server -m tiny.gguf -c 4096 -np 1")
    assert value(found, "window") == 4096
    problem = next(each for each in found.problems if each.kind == "overridden-flag")
    assert (problem.data["variable"], problem.data["winner"], problem.span.text) == ("LLAMA_ARG_CTX_SIZE", "-c", "8192")


@pytest.mark.parametrize(
    ("variables", "width", "unified"),
    [
        ("LLAMA_ARG_N_PARALLEL=2", 2, False),
        ("LLAMA_ARG_N_PARALLEL=2 LLAMA_ARG_KV_UNIFIED=1", 2, True),
        ("LLAMA_ARG_N_PARALLEL=2 LLAMA_ARG_KV_UNIFIED=1 LLAMA_ARG_NO_KV_UNIFIED=0", 2, False),
        ("LLAMA_ARG_NO_KV_UNIFIED=1", 4, True),
        ("", 4, True),
    ],
)
def test_variables_are_heard(variables: str, width: int, unified: bool) -> None:
    found = server(f"{variables} llama-server -m tiny.gguf -c 4096".strip())
    assert (value(found, "batch_width"), value(found, "unified_kv")) == (width, unified)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LLAMA_ARG_PARALLEL", "LLAMA_ARG_N_PARALLEL"),
        ("LLAMA_CTX_SIZE", "LLAMA_ARG_CTX_SIZE"),
        ("LLAMA_ARG_CTX_SIZE", None),
        ("LLAMA_ARG_NO_KV_UNIFIED", None),
        ("LLAMA_CACHE", None),
        ("LLAMA_MODEL_NAME", None),
    ],
)
def test_names_that_nothing_reads(name: str, meant: str | None) -> None:
    found = server(f"{name}=1 llama-server -m tiny.gguf -c 4096")
    problems = [each.data["suggestion"] for each in found.problems if each.kind == "unknown-environment"]
    assert problems == ([meant] if meant else [])


@pytest.mark.parametrize(
    "named",
    [
        "-hf unsloth/Qwen3-8B-GGUF:Q4_K_M",
        "-hf unsloth/Qwen3-8B-GGUF",
        "-m /models/unsloth/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf",
        "-m ~/.cache/huggingface/hub/models--unsloth--Qwen3-8B-GGUF/snapshots/0123/Qwen3-8B-Q4_K_M.gguf",
        "-mu https://huggingface.co/unsloth/Qwen3-8B-GGUF/resolve/main/Qwen3-8B-Q4_K_M.gguf",
    ],
)
def test_a_repository_is_found_in_what_names_it(named: str) -> None:
    # 36 layers x 8 heads x (128 + 128) x 2 bytes
    assert value(server(f"llama-server {named} -c 4096"), "kv_bytes_per_token") == 147_456


def test_a_file_name_that_says_no_model() -> None:
    found = server("llama-server -m /models/q8b-Q4_K_M.gguf -c 4096 -np 2")
    assert isinstance(found.get("kv_bytes_per_token"), Unknown)
    assert (value(found, "window"), value(found, "batch_width")) == (2048, 2)


def test_a_stem_in_the_configuration_names_the_file() -> None:
    found = server("llama-server -m /models/tiny.gguf -c 4096", CONFIG.replace('"tiny.gguf"', '"tiny"'))
    assert value(found, "kv_bytes_per_token") == 1024


def test_the_pool_and_what_is_kept_in_host_memory() -> None:
    found = server("llama-server -m tiny.gguf -c 8192 -np 4 --cache-ram 512")
    assert value(found, "pool_bytes") == 8192 * 1024
    assert value(found, "slot_bytes") == value(found, "host_slot_bytes") == 2048 * 1024
    assert value(found, "host_cache_bytes") == 512 << 20
    assert value(found, "warm_slots") == 256
    assert value(found, "checkpoints_bytes") == 0  # a model of plain attention goes back by itself


def test_types_that_differ_have_both_names() -> None:
    found = server("llama-server -m tiny.gguf -c 4096 -np 1 -ctk q8_0 -ctv f16")
    assert value(found, "kv_dtype") == "q8_0/f16"
    assert value(server("llama-server -m tiny.gguf -c 4096 -ctk q8_0 -ctv q8_0"), "kv_dtype") == "q8_0"


def test_a_draft_has_caches_of_its_own() -> None:
    alone = value(server("llama-server -m tiny.gguf -c 4096 -np 1 -ctk q8_0 -ctv q8_0"), "pool_bytes")
    found = server("llama-server -m tiny.gguf -c 4096 -np 1 -ctk q8_0 -ctv q8_0 -md tiny.gguf")
    assert value(found, "pool_bytes") == alone + 4096 * 1024  # f16, not inherited
    assert value(found, "kv_bytes_per_token") == 544  # the target's alone: 1,024 x 34/64


@pytest.mark.parametrize(
    ("image", "args", "build"),
    [
        ("ghcr.io/ggml-org/llama.cpp:server-b9093", "-m tiny.gguf", "b9093"),
        ("ghcr.io/ggerganov/llama.cpp:server-cuda-b4748", "-m tiny.gguf", "b4748"),
        ("ghcr.io/ggml-org/llama.cpp:full-cuda-b9093", "--server -m tiny.gguf", "b9093"),
    ],
)
def test_a_tag_is_the_build(image: str, args: str, build: str) -> None:
    compose = f"services:\n  chat:\n    image: {image}\n    command: {args} -c 4096\n"
    config = '[[model]]\nid = "tiny.gguf"\nconfig = "tiny.json"\n'
    (found,) = servers({"compose.yaml": compose}, config)
    assert found.releases == (build,)
    assert value(found, "kv_bytes_per_token") == 1024


def test_other_entrypoints_of_the_image_are_no_server() -> None:
    compose = "services:\n  chat:\n    image: ghcr.io/ggml-org/llama.cpp:full\n    command: --run -m tiny.gguf\n"
    assert servers({"compose.yaml": compose}) == []


def test_numbers_with_units() -> None:
    assert findings("llama-server -m tiny.gguf -c 32k -np 1") == [("suffix-not-understood", "32k")]
    assert findings("llama-server -m tiny.gguf -c 4096 -np 1 --cache-ram 2GB") == [("suffix-not-understood", "2GB")]
    assert value(server("llama-server -m tiny.gguf -c 4k -np 1"), "window") == 256


def test_what_is_spliced_in_may_be_any_flag() -> None:
    found = server("llama-server -m tiny.gguf -c 4096 $EXTRA")
    assert isinstance(found.get("batch_width"), Unknown)


def test_the_python_server_answers_one_at_a_time() -> None:
    found = server("python -m llama_cpp.server --model tiny.gguf --n_ctx 4096 --type_k 8 --type_v=8 --flash_attn true")
    assert (value(found, "window"), value(found, "batch_width"), value(found, "kv_dtype")) == (4096, 1, "q8_0")
    assert value(found, "pool_bytes") == 4096 * 1024 * 34 // 64
    assert value(server("python -m llama_cpp.server --model tiny.gguf"), "window") == 2048


def test_builds_mean_different_things_by_the_same_line() -> None:
    config = '[[model]]\nid = "tiny.gguf"\nconfig = "tiny.json"\n'
    worlds = servers({"run.sh": "#!/bin/sh\nllama-server -m tiny.gguf -c 4096\n"}, config)
    by_release = {release: value(world, "batch_width") for world in worlds for release in world.releases}
    assert by_release["b4748"] == 1
    assert by_release["b11434"] == 4


@pytest.mark.parametrize("named", ["-m elsewhere.gguf", "-hf unsloth/Qwen3-8B-GGUF"])
def test_layers_that_draft_are_not_denied_where_the_file_is_not_seen(named: str) -> None:
    found = server(f"llama-server {named} -c 4096 -np 1 --spec-type draft-mtp --spec-draft-n-max 2")
    assert found.problems == ()
    assert value(found, "window") == 4096
    assert isinstance(found.get("pool_bytes"), Unknown)


def test_a_file_without_such_layers_does_not_start() -> None:
    assert findings("llama-server -m tiny.gguf -c 4096 -np 1 --spec-type draft-mtp") == [
        ("malformed-value", "draft-mtp")
    ]


def test_written_slots_and_context_are_known_beside_a_splice() -> None:
    found = server("llama-server -m tiny.gguf -c 4096 -np 2 $EXTRA")
    assert value(found, "window") == 2048
    assert isinstance(found.get("pool_bytes"), Unknown)
