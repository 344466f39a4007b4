"""vLLM's own allocator against `show`: a command line made of each row's inputs, the row's memory as `available_kv`.

Request bytes, blocks and concurrency exactly; `check` refuses where, and only where, the allocator did not fit.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kvlint.facts import Fact
from kvlint.pipeline import check, evaluate, memory_project
from kvlint.reports.show import document

OBSERVED = Path(__file__).resolve().parents[2] / "shared/observed"
ROWS = OBSERVED / "vllm-allocator.jsonl"


def command_line(row: dict[str, Any]) -> str:
    given = row["inputs"]
    release = tuple(int(part) for part in row["vllm"].split("."))
    words = ["vllm", "serve", row["model"]]
    words += ["--max-model-len", str(given["max_model_len"])]
    words += ["--max-num-batched-tokens", str(given["max_num_batched_tokens"])]
    words += ["--tensor-parallel-size", str(given["tp"]), "--dtype", given["model_dtype"]]
    if given["kv_cache_dtype"] != "auto":
        words += ["--kv-cache-dtype", given["kv_cache_dtype"]]
    elif "NVFP4" in row["model"] and release >= (0, 16):
        words += [
            "--kv-cache-dtype",
            "bfloat16",
        ]  # the row's pages are 16 bit; `auto` would follow the checkpoint to fp8
    if not given["hybrid_manager"]:
        words.append("--disable-hybrid-kv-cache-manager")
    words.append("--enable-prefix-caching" if given["prefix_caching"] else "--no-enable-prefix-caching")
    if given["block_size_flag"]:
        words += ["--block-size", str(given["block_size_flag"])]
    if given.get("mamba_cache_mode") and release >= (0, 16):
        words += ["--mamba-cache-mode", given["mamba_cache_mode"]]
    for key in ("mamba_cache_dtype", "mamba_ssm_cache_dtype"):
        if given.get(key) not in (None, "auto"):
            words += ["--" + key.replace("_", "-"), given[key]]
    if given.get("num_speculative_tokens"):
        drafts = {"method": "mtp", "num_speculative_tokens": given["num_speculative_tokens"]}
        words += ["--speculative-config", json.dumps(drafts)]
    if release >= (0, 11):
        words.append("--async-scheduling" if given["async_scheduling"] else "--no-async-scheduling")
    if "prefill_checkpoint" in given and any(spec.get("type") == "gdn" for spec in given["specs"] or ()):
        words += ["--gdn-prefill-backend", "flashinfer" if given["prefill_checkpoint"] else "triton"]
    return shlex.join(words)


def project(row: dict[str, Any]) -> Any:
    config = (
        f'[[hardware]]\nmatch = "**"\navailable_kv = {row["inputs"]["available_bytes"]}\n'
        f'[[engine]]\nmatch = "**"\nversion = "{row["vllm"]}"\n'
    )
    return memory_project({"serve.sh": f"#!/bin/sh\nexec {command_line(row)}\n"}, config)


def compare(row: dict[str, Any]) -> dict[str, bool]:
    """Which of the row's figures `show` gives, and whether `check` says what the allocator said."""
    out = row["out"]
    shown = document(evaluate(project(row)))["servers"][0]["sizing"]
    wanted = {"request_kv_bytes": out.get("request_bytes"), "blocks": out.get("num_blocks")}
    same = {name: shown.get(name, {}).get("value") == value for name, value in wanted.items() if value is not None}
    if out.get("max_concurrency_exact") is not None:
        value = shown.get("max_concurrency", {}).get("value")
        same["max_concurrency"] = value is not None and abs(value - out["max_concurrency_exact"]) < 1e-5
    refused = any(finding.rule in ("window-exceeds-pool", "layout-refused") for finding in check(project(row)).findings)
    same["fits"] = refused == (not out["fits"])
    return same


@pytest.mark.skipif(not ROWS.exists(), reason="the observed rows are not here")
def test_the_allocators_own_figures(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    single = [row for row in rows if row["inputs"]["pp"] == 1 and "available_bytes" in row["inputs"]]
    sample = single[::7]
    good: Counter[str] = Counter()
    bad: list[str] = []
    for row in sample:
        same = compare(row)
        good[row["vllm"]] += all(same.values())
        if not all(same.values()):
            bad.append(f"{row['id']} {row['vllm']} {row['model']}: {', '.join(k for k, v in same.items() if not v)}")
    with capsys.disabled():
        totals = Counter(row["vllm"] for row in sample)
        print("\n" + "\n".join(f"{release}: {good[release]} of {count}" for release, count in sorted(totals.items())))
        print("\n".join(bad))
    assert sum(good.values()) >= 0.99 * len(sample)


def test_one_row_by_hand() -> None:
    """Qwen3-30B-A3B on 8 devices, fp8: 48 layers × 1 KV head × 2 × 128 B × 32 tokens = 393,216 B a block (vo-000002)."""
    row = {
        "vllm": "0.9.2",
        "model": "Qwen/Qwen3-30B-A3B",
        "inputs": {
            "tp": 8,
            "kv_cache_dtype": "fp8",
            "max_model_len": 4096,
            "max_num_batched_tokens": 8192,
            "hybrid_manager": True,
            "prefix_caching": True,
            "async_scheduling": False,
            "block_size_flag": 32,
            "available_bytes": 50724864,
            "model_dtype": "bfloat16",
            "specs": [],
        },
        "out": {"request_bytes": 128 * 393216, "num_blocks": 129, "max_concurrency_exact": 129 / 128, "fits": True},
    }
    assert all(compare(row).values()), compare(row)
    world = evaluate(project(row)).groups[0].live[0]
    found = world.sizing.get("kv_bytes_per_token_per_device")
    assert isinstance(found, Fact)
    assert found.value == 48 * 2 * 128  # one KV head a device, one byte an element
