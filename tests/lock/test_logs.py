"""What engines print at their start becomes receipts that replace estimates."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from kvlint.facts import Range
from kvlint.lock import Figure
from kvlint.lock_logs import read

from .conftest import DENSE

GIB = 2**30
OBSERVED = Path(__file__).resolve().parents[2] / "../shared/observed/sglang.jsonl"

# Two tensor-parallel workers; the pool is what the poorer one has.  The spelling of the lines is vLLM's own.
VLLM = """\
(APIServer pid=1) INFO 09-24 20:52:01 [api_server.py:1896] vLLM API server version 0.13.0
(Worker_TP0 pid=9) \x1b[36mINFO\x1b[0m 09-24 20:54:00 [gpu_worker.py:298] Available KV cache memory: 10.64 GiB
(Worker_TP1 pid=10) INFO 09-24 20:54:00 [gpu_worker.py:298] Available KV cache memory: 10.60 GiB
(EngineCore_DP0 pid=5) INFO 09-24 20:54:01 [kv_cache_utils.py:1087] GPU KV cache size: 154,368 tokens
(EngineCore_DP0 pid=5) INFO 09-24 20:54:01 [kv_cache_utils.py:1091] Maximum concurrency for 16,384 tokens per request: 9.42x
"""
EXACT = "Replace gpu_memory_utilization config with `--kv-cache-memory=7564378828` to fit into requested memory. Current kv cache memory in use is 11423138508 bytes.\n"  # noqa: E501
SGLANG = """\
[2026-01-05 10:00:00] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', tp_size=2)
[2026-01-05 10:00:40 TP1] KV Cache is allocated. #tokens: 992896, K size: 34.09 GB, V size: 34.09 GB
[2026-01-05 10:00:40 TP0] KV Cache is allocated. #tokens: 992896, K size: 34.09 GB, V size: 34.09 GB
[2026-01-05 10:00:44 TP0] max_total_num_tokens=992896, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=4096, context_len=40960, available_gpu_mem=17.22 GB
"""  # noqa: E501
LLAMA = """\
build: 6900 (1ae74882f) with cc (Debian 14.2.0) for x86_64-linux-gnu
llama_context: n_ctx         = 32768
srv    load_model: initializing slots, n_slots = 4
slot   load_model: id  0 | task -1 | new slot, n_ctx = 8192
slot   load_model: id  1 | task -1 | new slot, n_ctx = 8192
"""


def figures(engine: str, text: str) -> dict[str, Figure]:
    return read(engine, text.splitlines())


def rounded(low: str, middle: str, high: str) -> Range:
    return Range(*(int(Fraction(each) * GIB) for each in (low, middle, high)))


def test_vllm() -> None:
    """A figure with two decimals is everything that rounds to it."""
    assert figures("vllm", VLLM) == {
        "available_kv": Figure(rounded("10.595", "10.6", "10.605"), 3),
        "pool_tokens": Figure(154_368, 4),
        "window": Figure(16_384, 5),
    }


def test_vllm_prints_bytes_in_some_releases() -> None:
    assert figures("vllm", VLLM + EXACT)["available_kv"] == Figure(11_423_138_508, 6)


@pytest.mark.parametrize(
    "line",
    [
        "the rest of the memory reserved for KV Cache is 3.81GiB.",
        "Memory profiling results: total_gpu_memory=23.58GiB non_torch_memory=0.35GiB kv_cache_size=3.81GiB",
    ],
)
def test_older_vllm(line: str) -> None:
    assert figures("vllm", line)["available_kv"].value == rounded("3.805", "3.81", "3.815")


def test_a_start_that_had_no_memory_gives_nothing_and_the_last_start_counts() -> None:
    failed = "vLLM API server version 0.13.0\nAvailable KV cache memory: -2.81 GiB\n"
    assert figures("vllm", failed) == {}
    assert figures("vllm", failed + VLLM)["available_kv"].line == 5
    assert figures("vllm", VLLM + failed) == {}


def test_sglang() -> None:
    """34.09 and 34.09 hundredths add up to 68.18; SGLang's GB is 2^30 bytes."""
    found = figures("sglang", SGLANG)
    assert found["available_kv"].value == int(Fraction("68.18") * GIB)
    assert (found["pool_tokens"].value, found["window"].value) == (992_896, 40_960)


def test_sglang_with_a_second_pool() -> None:
    """A sliding pool belongs to the pool; a draft model's, of as many tokens, does not."""
    full = "[x TP0] KV Cache is allocated. #tokens: 1000, K size: 4.31 GB, V size: 4.31 GB"
    sliding = "[x TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 800, K size: 2.70 GB, V size: 2.70 GB"
    said = "Use sliding window memory pool. full_layer_tokens=1000, swa_layer_tokens=800"
    draft = "[x TP0] KV Cache is allocated. #tokens: 1000, KV size: 0.40 GB"
    even = [said.replace("800", "1000"), full, sliding.replace("800", "1000")]
    for lines in ([said, full, sliding], [said, sliding, full], [said, full, sliding, draft], even):
        assert read("sglang", lines)["available_kv"].value == int(Fraction("14.02") * GIB)
    assert read("sglang", [full, draft])["available_kv"].value == int(Fraction("8.62") * GIB)


@pytest.mark.skipif(not OBSERVED.exists(), reason="the observed rows are not here")
def test_sglang_as_observed() -> None:
    """The rows' own sums, which their publishers rounded once more."""
    checked = 0
    for row in map(json.loads, OBSERVED.read_text().splitlines()):
        said = row["reported"]
        if said.get("swa_k_gb") is None or said.get("full_k_gb") is None or said.get("kv_size_gb") is None:
            continue
        lines = [f"full_layer_tokens={said['full_tokens']}, swa_layer_tokens={said['swa_tokens']}"] + [
            f"KV Cache is allocated. #tokens: {said[f'{kind}_tokens']}, K size: {said[f'{kind}_k_gb']} GB, "
            f"V size: {said[f'{kind}_v_gb']} GB"
            for kind in ("full", "swa")
        ]
        found = read("sglang", lines)["available_kv"].value
        assert isinstance(found, int)
        assert abs(found - Fraction(str(said["kv_size_gb"])) * GIB) <= Fraction(2, 100) * GIB, row["id"]
        checked += 1
    assert checked > 5


def test_llama_server() -> None:
    found = figures("llama-server", LLAMA)
    assert {name: each.value for name, each in found.items()} == {"batch_width": 4, "window": 8192}
    newer = "build_info: b11434\nsrv load_model: initializing, n_slots = 2, n_ctx_slot = 65024, kv_unified = 'true'"
    assert {name: each.value for name, each in figures("llama-server", newer).items()} == {
        "batch_width": 2,
        "window": 65_024,
    }


SERVE = "#!/bin/sh\nexec uvx --from vllm==0.13.0 vllm serve Qwen/Qwen3-8B --max-model-len 16384 {}\n"


def test_a_receipt_replaces_the_estimate(folder: Any) -> None:
    """10.6 GiB at 147,456 bytes x 16 tokens a block: 4824 blocks, 77,184 tokens; its ends round to 4821 and 4826."""
    folder.write({"serve.sh": SERVE.format(""), "logs/start.log": VLLM, "models/own/config.json": DENSE})
    assert "pool_bytes" not in folder.server()["sizing"]
    done = folder.kvlint("lock", "--from-log", "logs/start.log", "--server", "serve")
    assert (done.status, done.err) == (0, "")
    assert "serve.sh#serve: available_kv 11,381,663,334 (line 3)\n" in done.out
    (receipt,) = folder.lock["receipts"]
    assert (receipt["server"], receipt["log"]) == ("serve.sh#serve", "logs/start.log")

    sizing = folder.server()["sizing"]
    assert sizing["pool_bytes"]["value"]["nominal"] == int(Fraction("10.6") * GIB)
    assert sizing["blocks"]["value"]["nominal"] == int(Fraction("10.6") * GIB) // (147_456 * 16) == 4824
    assert sizing["pool_tokens"]["value"]["nominal"] == 4824 * 16
    assert "printed by the engine, logs/start.log:3" in folder.kvlint("explain", "serve.sh").out


def test_a_receipt_alone_locks_no_model(folder: Any) -> None:
    folder.write({"serve.sh": SERVE.format(""), "start.log": VLLM})
    folder.kvlint("lock", "--from-log", "start.log")
    assert "models" not in folder.lock
    assert folder.drift() == []
    assert folder.kvlint("lock", "--check").status == 0
    folder.hub.add("Qwen/Qwen3-8B", config__json=DENSE)
    folder.kvlint("lock")
    folder.kvlint("lock", "--from-log", "start.log")
    assert (len(folder.lock["models"]), len(folder.lock["receipts"])) == (1, 1)


def test_sglang_in_a_server(folder: Any) -> None:
    """The pool that the log prints holds the tokens that it prints, to the hundredth of a GiB that it is rounded to."""
    line = "exec uvx --from sglang==0.5.5 python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp-size 2"
    hardware = '[[hardware]]\nmatch = "**"\ndevice = "nvidia-b200"\ncount = 2\n'
    folder.write({"serve.sh": f"#!/bin/sh\n{line}\n", "start.log": SGLANG, "kvlint.toml": hardware})
    assert folder.kvlint("lock", "--from-log", "start.log").status == 0
    tokens = folder.server()["sizing"]["pool_tokens"]["value"]
    assert abs(tokens - 992_896) * 147_456 // 2 <= GIB // 100


def test_the_configuration_wins_over_a_receipt(folder: Any) -> None:
    folder.write(
        {
            "serve.sh": SERVE.format(""),
            "start.log": VLLM,
            "kvlint.toml": '[[hardware]]\nmatch = "**"\navailable_kv = "2GiB"\n',
        }
    )
    assert folder.kvlint("lock", "--from-log", "start.log").status == 0
    assert folder.server()["sizing"]["pool_bytes"]["value"] == 2 * GIB


def test_a_receipt_of_other_settings_is_not_used(folder: Any) -> None:
    """The window may move: it takes no memory from the pool.  The memory fraction may not."""
    folder.write({"serve.sh": SERVE.format("--gpu-memory-utilization 0.90"), "start.log": VLLM})
    folder.kvlint("lock", "--from-log", "start.log")
    folder.hub.add("Qwen/Qwen3-8B", config__json=DENSE)
    folder.kvlint("lock")
    assert folder.kvlint("lock", "--check").status == 0
    folder.write({"serve.sh": SERVE.format("--gpu-memory-utilization 0.9").replace("16384", "32768")})
    assert folder.drift() == []
    assert "pool_bytes" in folder.server()["sizing"]
    folder.write({"serve.sh": SERVE.format("--gpu-memory-utilization 0.80")})
    assert "pool_bytes" not in folder.server()["sizing"]
    ((severity, path, line, message),) = folder.drift()
    assert (severity, path, line) == ("warning", "serve.sh", 2)
    assert "was measured (start.log) with another memory_fraction" in message
    assert folder.kvlint("lock", "--check").status == 1
    folder.write({"chat.sh": SERVE.format("")})
    (folder.root / "serve.sh").unlink()
    assert "no server is called serve.sh#serve any more" in folder.kvlint("lock", "--check").out


def test_a_window_that_only_the_log_knows(folder: Any) -> None:
    folder.write({"serve.sh": "#!/bin/sh\nexec llama-server -m /models/x.gguf -c 0 -np 4\n", "start.log": LLAMA})
    assert "value" not in folder.server()["settings"].get("window", {})
    assert folder.kvlint("lock", "--from-log", "start.log").status == 0
    window = folder.server()["settings"]["window"]
    assert window == {"value": 8192, "origin": {"kind": "receipt", "path": "start.log", "line": 4}}


def test_logs_that_say_nothing(folder: Any) -> None:
    folder.write({"a.sh": SERVE.format(""), "b.sh": SERVE.format(""), "start.log": "nothing\n"})
    assert folder.kvlint("lock", "--from-log", "start.log", "--server", "a").status == 2
    done = folder.kvlint("lock", "--from-log", "start.log")
    assert (done.status, done.err) == (2, "kvlint: --from-log needs --server: a.sh#a, b.sh#b\n")
    assert folder.kvlint("lock", "--from-log", "start.log", "--server", "c").status == 2
    folder.write({"c.sh": "#!/bin/sh\nexec uvx --from mlx-lm==0.32.2 mlx_lm.server --model Qwen/Qwen3-8B\n"})
    assert "of mlx-lm" in folder.kvlint("lock", "--from-log", "start.log", "--server", "c").err
