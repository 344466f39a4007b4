"""`size`, the library, and what every command does with a bad question or a closed pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from contract_inputs import MAC, chat

import kvlint
from kvlint.config import ConfigError

WINDOWS = (32768, 65536, 100000, 107315, 107316, 131072, 143086, 143087, 200000, 214630, 214631)
SIZE = ("size", "--weights", "17GiB", "--kv-bytes-per-token", "65536", "--budget", "48GiB", "--streams", "2")
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "intermediate_size": 14336,
    "torch_dtype": "bfloat16",
    "max_position_embeddings": 131072,
}


def test_the_sizing_table(project: Any) -> None:
    """48 GiB less a tenth is ⌊43.2 GiB⌋ = 46,385,646,796 B; 17 GiB of weights leave 28,132,035,788 B: 429,260 tokens of 65,536 B,
    a half, a third and a quarter of which are 214,630, 143,086 and 107,315."""
    found = project.run(*SIZE, "--windows", ",".join(map(str, WINDOWS)), "--format", "json").json
    assert list(found) == ["version", "inputs", "rows", "largest"]
    usable, weights = 46_385_646_796, 17 * 2**30
    assert found["inputs"] == {
        "kv_bytes_per_token": 65536,
        "weights_bytes": weights,
        "usable_bytes": usable,
        "streams": 2,
    }
    for window, row in zip(WINDOWS, found["rows"], strict=True):
        slot = window * 65536
        left = usable - weights - 2 * slot
        assert row == {
            "window": window,
            "live_kv_bytes": 2 * slot,
            "prompt_cache_capacity_bytes": left,
            "slot_bytes": slot,
            "warm_slots": max(0, left) / slot,
            "fits": window <= 214630,
            "one_warm_slot": window <= 143086,
            "slot_per_stream": window <= 107315,
        }
    assert found["largest"] == {"fits": 214630, "one_warm_slot": 143086, "slot_per_stream": 107315}


def test_a_state_of_each_sequence(project: Any) -> None:
    found = project.run(*SIZE, "--state-bytes", "153944064", "--format", "json").json
    assert found["largest"] == {"fits": 212281, "one_warm_slot": 140737, "slot_per_stream": 104966}


@pytest.mark.parametrize(
    ("model", "rate", "window", "slot"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", 327_680, 8192, 327_680 * 8192),
        ("deepseek-ai/DeepSeek-V3", 70_272, 32768, 70_272 * 32768),
    ],
)
def test_a_model_without_a_budget(project: Any, model: str, rate: int, window: int, slot: int) -> None:
    """80 layers × 2 × 8 × 128 × 2 B; 61 layers × (512 + 64) × 2 B, of which 32,768 tokens take 2.1445 GiB."""
    found = project.run("size", model, "--windows", str(window), "--format", "json").json
    assert (found["inputs"]["kv_bytes_per_token"], found["rows"][0]["slot_bytes"]) == (rate, slot)
    assert (found["inputs"]["usable_bytes"], found["rows"][0]["fits"]) == (None, None)


def test_bytes_of_a_cache() -> None:
    """32 layers × 8 KV heads × 128 × 2 × 2 B is 131,072 B a token: 1 GiB at 8,192, 64 GiB for 16 × 32,768."""
    assert kvlint.kv_cache_bytes(LLAMA, 1) == 131_072
    assert kvlint.kv_cache_bytes(LLAMA, 8192) == 2**30
    assert kvlint.kv_cache_bytes(LLAMA, 32768, sequences=16) == 64 * 2**30
    assert kvlint.kv_cache_bytes(LLAMA, 100, kv_dtype="fp8") == 100 * 131_072 // 2
    assert kvlint.kv_cache_bytes(LLAMA, 100, engine="mlx-lm") == 256 * 131_072  # steps of 256
    assert kvlint.kv_cache_bytes(LLAMA, 100, engine="vllm", version="0.11.0") == 112 * 131_072  # blocks of 16
    assert kvlint.kv_cache_bytes(LLAMA, 100, engine="vllm", block_size=32) == 128 * 131_072
    assert kvlint.kv_cache_bytes(LLAMA, 100, engine="llama-server", slots=1) == 256 * 131_072  # cells in 256
    assert kvlint.kv_cache_bytes(LLAMA, 100, engine="sglang") == 100 * 131_072


def test_an_architecture_that_is_not_understood() -> None:
    for config, field in (
        ({"model_type": "llama"}, "num_hidden_layers"),
        ({"general.architecture": "llama"}, "block_count"),
    ):
        with pytest.raises(kvlint.UnknownArchitecture, match=field):
            kvlint.kv_cache_bytes(config, 1)
    with pytest.raises(ValueError, match="unknown engine 'nope'"):
        kvlint.kv_cache_bytes(LLAMA, 1, engine="nope")


def test_the_library_has_the_content_of_the_document(project: Any) -> None:
    project.write({"chat.sh": chat("window=40000 streams=2"), "kvlint.toml": MAC, "own.toml": MAC.replace("24", "90")})
    document, report = project.check(), kvlint.check([project.root])
    assert report.summary == document["summary"]
    for each, finding in zip(document["findings"], report.findings, strict=True):
        for key in ("rule", "severity", "certainty", "message", "path", "line", "column", "end_line", "end_column"):
            assert getattr(finding, key) == each[key]
        assert (finding.server, list(finding.servers), finding.fingerprint) == (
            *(each["server"], each["servers"], each["fingerprint"]),
        )
        assert [(place.path, place.line, place.role) for place in finding.related] == [
            (place["path"], place["line"], place["role"]) for place in each["related"]
        ]
    assert kvlint.check(str(project.root / "chat.sh"), config=project.root / "own.toml").count("error") == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--bogus"),
        ("check", "nowhere"),
        ("check", "--format", "nope"),
        ("check", "--fail-on", "nope"),
        ("check", "--select", "nope"),
        ("check", "-"),
        ("check", "-", ".", "--stdin-filename", "a.sh"),
        ("check", "--isolated", "--config", "kvlint.toml"),
        ("show", "nowhere"),
        ("explain", "nope"),
        ("rules", "nope"),
        ("derive", "--format", "nope"),
        ("size",),
        ("size", "--engine", "nope", "--kv-bytes-per-token", "1"),
        ("size", "no/model"),
        ("diff",),
        ("nope",),
    ],
)
def test_a_bad_question_is_two(project: Any, arguments: tuple[str, ...]) -> None:
    result = project.run(*arguments)
    assert (result.status, result.out) == (2, "")
    assert result.err


def test_a_path_outside_the_project_is_never_passed_over(project: Any) -> None:
    """One project a run: what the first path's configuration does not hold for is not quietly left out."""
    project.write({"a/kvlint.toml": MAC, "a/chat.sh": chat("window=40000"), "b/chat.sh": chat("window=40000")})
    for paths in (("a", "b"), ("a/chat.sh", "b/chat.sh")):
        result = project.run("check", *paths)
        assert (result.status, result.out) == (2, "")
        assert f"{paths[1]}: outside " in result.err
    assert project.run("check", "b", "a").status == 0
    with pytest.raises(ConfigError, match="outside"):
        kvlint.check([project.root / "a", project.root / "b"])


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"CLICOLOR_FORCE": "1"}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_by_the_environment(
    project: Any, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    project.write({"chat.sh": chat("window=40000 streams=2"), "kvlint.toml": MAC})
    assert ("\033[" in project.run("check").out) is coloured


def test_a_missing_file_is_said_in_words(project: Any) -> None:
    assert project.run("size", "--config", "no.json").err == "kvlint: no.json: No such file or directory\n"


@pytest.mark.parametrize("arguments", [("check", "--format", "json"), ("rules",), ("--help",)])
def test_a_closed_pipe_is_quiet(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "chat.sh").write_text(chat("window=40000"), encoding="utf-8")
    (tmp_path / "kvlint.toml").write_text(MAC, encoding="utf-8")
    command = [sys.executable, "-m", "kvlint", *arguments]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert (run.stderr.read(), run.wait()) == (b"", 0)


def test_several_formats_in_one_run(project: Any) -> None:
    project.write({"chat.sh": chat("window=40000 streams=2"), "kvlint.toml": MAC})
    result = project.run("check", "--format", "json=out.json", "--format", "concise")
    assert result.status == 1
    assert result.out.startswith("chat.sh:2:18: error[cold-prompt-cache] ")
    assert json.loads((project.root / "out.json").read_text(encoding="utf-8"))["summary"]["errors"] == 1
