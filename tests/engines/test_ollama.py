"""Ollama on the pipeline: the service's environment, and Modelfiles.  Figures: facts/engines/ollama.md."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvlint.facts import Fact, Unknown
from kvlint.pipeline import evaluate, memory_project
from kvlint.subjects import Server

# 2 layers of 2 heads of 64: 1,024 bytes a token at 16 bits
SHAPE = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.context_length": 8192, "llama.embedding_length": 128,
    "llama.attention.head_count": 2, "llama.attention.head_count_kv": 2, "llama.attention.key_length": 64,
    "llama.attention.value_length": 64,
}  # fmt: skip
MODEL = '[[model]]\nid = "tiny.gguf"\nconfig = "tiny.json"\n'


def servers(files: dict[str, str], config: str = "") -> list[Server]:
    evaluation = evaluate(memory_project({"tiny.json": json.dumps(SHAPE), **files}, config))
    assert evaluation.findings.internal == []
    return [world for group in evaluation.groups for world in group.worlds]


def service(variables: dict[str, str], release: str = "0.33.0-rc2", config: str = "") -> Server:
    lines = "".join(f"      {name}: {json.dumps(value)}\n" for name, value in variables.items())
    environment = f"    environment:\n{lines}" if lines else ""
    compose = f"services:\n  chat:\n    image: ollama/ollama:{release}\n{environment}"
    return servers({"compose.yaml": compose}, config)[0]


def modelfile(text: str, release: str = "0.33.0-rc2") -> Server:
    return servers({"Modelfile": text}, f'{MODEL}[[engine]]\nmatch = "**"\nversion = "{release}"\n')[0]


def value(found: Server, name: str) -> Any:
    fact = found.get(name)
    return fact.value if isinstance(fact, Fact) else fact


def problems(found: Server) -> list[tuple[str, str]]:
    return [(each.kind, each.span.text) for each in found.problems]


def test_the_service_says_its_slots_and_their_window() -> None:
    found = service({"OLLAMA_NUM_PARALLEL": "4", "OLLAMA_CONTEXT_LENGTH": "32768", "OLLAMA_KV_CACHE_TYPE": "q8_0"})
    assert (value(found, "batch_width"), value(found, "window"), value(found, "kv_dtype")) == (4, 32768, "q8_0")
    assert (value(found, "window_kind"), value(found, "port")) == ("truncate", 11434)
    assert value(found, "host_cache_bytes") == 8 << 30


@pytest.mark.parametrize(
    ("release", "window", "width"),
    [("0.6.8", 2048, None), ("0.12.6", 4096, 1), ("0.33.0-rc2", None, 1)],
)
def test_defaults_by_release(release: str, window: int | None, width: int | None) -> None:
    found = service({}, release)
    for name, wanted in (("window", window), ("batch_width", width)):
        fact = found.get(name)
        assert isinstance(fact, Unknown) if wanted is None else isinstance(fact, Fact) and fact.value == wanted, name


@pytest.mark.parametrize(("memory", "window"), [("16GiB", 4096), ("24GiB", 32768), ("80GiB", 262144)])
def test_the_default_window_follows_from_the_devices(memory: str, window: int) -> None:
    found = service({}, config=f'[[hardware]]\nmatch = "**"\nmemory = "{memory}"\n')
    assert value(found, "window") == window


def test_blanks_and_quotes_are_trimmed() -> None:
    assert value(service({"OLLAMA_CONTEXT_LENGTH": ' "16384" '}), "window") == 16384


def test_what_does_not_parse_is_passed_over() -> None:
    found = service({"OLLAMA_CONTEXT_LENGTH": "32k", "OLLAMA_NUM_PARALLEL": "many"}, "0.12.6")
    assert problems(found) == [("ineffective-flag", "many"), ("suffix-not-understood", "32k")] or problems(found) == [
        ("suffix-not-understood", "32k"),
        ("ineffective-flag", "many"),
    ]
    assert (value(found, "window"), value(found, "batch_width")) == (4096, 1)


def test_off_switches_flash_attention_on() -> None:
    found = service({"OLLAMA_FLASH_ATTENTION": "off"})
    assert [each.data["effective"] for each in found.problems] == ["on"]


def test_quantized_values_without_flash_attention_do_not_load() -> None:
    variables = {"OLLAMA_FLASH_ATTENTION": "0", "OLLAMA_KV_CACHE_TYPE": "q8_0"}
    assert problems(service(variables)) == [("quantized-v-without-flash-attention", "q8_0")]
    older = service(variables, "0.12.6")  # its own runner drops the type
    assert problems(older) == []
    assert value(older, "kv_dtype") == "f16"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("OLLAMA_NUM_PREDICT", "OLLAMA_NUM_PARALLEL"),
        ("OLLAMA_CONTEXT_LENGHT", "OLLAMA_CONTEXT_LENGTH"),
        ("OLLAMA_MODEL", None),
        ("OLLAMA_KEEP_ALIVE", None),
        ("OLLAMA_BASE_URL", None),
    ],
)
def test_names_that_nothing_reads(name: str, meant: str | None) -> None:
    found = [each.data["suggestion"] for each in service({name: "1"}).problems if each.kind == "unknown-environment"]
    assert found == ([meant] if meant else [])


def test_a_child_keeps_prompts_for_each_loaded_model() -> None:
    variables = {"OLLAMA_MAX_LOADED_MODELS": "3", "LLAMA_ARG_CACHE_RAM": "2048"}
    assert value(service(variables), "host_memory_bytes") == 3 * (2 << 30)
    assert service(variables, "0.12.6").get("host_memory_bytes") is None


def test_the_port() -> None:
    assert value(service({"OLLAMA_HOST": "0.0.0.0:8080"}), "port") == 8080
    assert value(service({"OLLAMA_HOST": "0.0.0.0"}), "port") == 11434


def test_other_commands_are_no_server() -> None:
    assert servers({"run.sh": "#!/bin/sh\nollama pull qwen3:8b\nollama run qwen3:8b\n"}) == []
    assert len(servers({"run.sh": "#!/bin/sh\nOLLAMA_NUM_PARALLEL=2 exec ollama serve\n"})) > 1


def test_a_modelfile_says_the_window_of_its_model() -> None:
    found = modelfile("FROM ./tiny.gguf\n# PARAMETER num_ctx 1\nPARAMETER num_ctx 4096\n")
    assert (value(found, "window"), value(found, "model_window")) == (4096, 8192)
    assert isinstance(found.get("batch_width"), Unknown)  # the service's environment stands elsewhere


def test_a_modelfile_beyond_the_trained_context_is_clamped() -> None:
    assert value(modelfile("FROM tiny.gguf\nPARAMETER num_ctx 131072\n"), "window") == 8192


def test_words_in_a_quoted_block_are_no_instructions() -> None:
    found = modelfile('from tiny.gguf\nSYSTEM """You say\nPARAMETER num_ctx 64\n"""\nparameter num_ctx 2048\n')
    assert value(found, "window") == 2048
