"""Ollama's slots, contexts and types; numbers from its own documentation and logs (facts/engines/ollama.md)."""

from __future__ import annotations

from typing import Any

import pytest

from kvlint.facts import Range, Unknown
from kvlint.sizing.llama.sizes import Plan, Refusal
from kvlint.sizing.ollama.sizes import (
    Release,
    Settings,
    boolean,
    context,
    flash_attention,
    kv_type,
    max_loaded_models,
    max_queue,
    plan,
    pool_bytes,
    release,
    slots,
    tier,
    variable,
)

NEWEST = (0, 33, 0)
GIB = 1 << 30
MIB = 1 << 20


def gguf(name: str, **values: Any) -> dict[str, Any]:
    common = {
        "block_count": 28, "context_length": 8192, "embedding_length": 3072, "attention.head_count": 16,
        "attention.head_count_kv": 16, "attention.key_length": 256, "attention.value_length": 256,
    }  # fmt: skip
    given = {key.replace("__", "."): value for key, value in values.items()}
    return {"general.architecture": name, **{f"{name}.{key}": value for key, value in {**common, **given}.items()}}


# gemma:7b; 28 x 16 x 512 x 2 bytes = 448 KiB a token
GEMMA_7B = gguf("gemma")
# Muse Glimmer: 52 layers, 13 of them full, window 2048, 2 KV heads of 128
MUSE = gguf(
    "muse-glimmer", block_count=52, context_length=262144, attention__head_count_kv=2, attention__key_length=128,
    attention__value_length=128, attention__sliding_window=2048,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [("v0.33.0-rc2", (0, 33, 0)), ("0.16", (0, 16, 0)), ("0.6.8", (0, 6, 8)), ("latest", None), ("rocm", None)],
)
def test_release(text: str, found: Release | None) -> None:
    assert release(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, None), ("", None), ('""', None), ("1", True), ("true", True), ("0", False), ("f", False), ("FALSE", False),
        ("off", True), ("no", True), ("disabled", True), ("auto", True), (" '0' ", False),
    ],
)  # fmt: skip
def test_boolean(text: str | None, found: bool | None) -> None:
    assert boolean(text) is found


def test_variable() -> None:
    assert variable(' "q8_0" ') == "q8_0"


def test_flash_attention() -> None:
    assert flash_attention("off", NEWEST) == "on"
    assert flash_attention("0", NEWEST) == "off"
    assert flash_attention(None, NEWEST) == "auto"
    assert isinstance(flash_attention(None, (0, 9, 0)), Unknown)
    assert flash_attention("1", (0, 9, 0)) == "on"


@pytest.mark.parametrize(
    ("devices", "overhead", "found"),
    [
        ((), 0, 4096), ((22 * GIB,), 0, 4096), ((23 * GIB,), 0, 32768), ((24 * GIB, 24 * GIB), 0, 262144),
        ((47 * GIB,), 0, 262144), ((47 * GIB,), 1, 32768), ((24 * GIB, 24 * GIB), GIB, 32768),
        ((8 * GIB,), 9 * GIB, 262144),  # the unsigned difference wraps around
    ],
)  # fmt: skip
def test_tier(devices: tuple[int, ...], overhead: int, found: int) -> None:
    assert tier(devices, overhead) == found


@pytest.mark.parametrize(
    ("settings", "version", "found"),
    [
        ({"request_context": 1024, "model_context": 2048, "environment_context": 4096}, NEWEST, 1024),
        ({"model_context": 2048, "environment_context": 4096}, NEWEST, 2048),
        ({"environment_context": 4096}, NEWEST, 4096),
        ({"environment_context": 262144}, NEWEST, 131072),  # never above the trained context
        ({"devices": (24 * GIB,)}, NEWEST, 32768),
        ({"environment_context": 0, "devices": ()}, NEWEST, 4096),
        ({}, (0, 11, 4), 4096),
        ({}, (0, 7, 0), 4096),
        ({}, (0, 6, 5), 2048),
    ],
)
def test_context(settings: dict[str, Any], version: Release, found: int) -> None:
    assert context(Settings(**settings), 131072, version) == found


def test_context_unknown() -> None:
    missing = context(Settings(), 131072, NEWEST)
    assert isinstance(missing, Unknown)
    assert missing.missing == "hardware.memory"
    assert isinstance(context(Settings(), 131072, (0, 15, 3)), Unknown)
    assert isinstance(context(Settings(), 131072, None), Unknown)


@pytest.mark.parametrize(
    ("settings", "family", "version", "found"),
    [
        ({}, "llama", NEWEST, 1),
        ({"parallel": 0}, "llama", NEWEST, 1),
        ({"parallel": 4}, "llama", NEWEST, 4),
        ({"parallel": 4}, "qwen35", NEWEST, 1),
        ({"parallel": 4, "embedding": True}, "bert", NEWEST, 1),
        ({"parallel": 4}, "llama", (0, 5, 0), 4),
        ({}, "qwen35", (0, 16, 0), 1),
    ],
)
def test_slots(settings: dict[str, Any], family: str, version: Release, found: int) -> None:
    assert slots(Settings(**settings), family, version) == found


def test_slots_unknown() -> None:
    assert isinstance(slots(Settings(), "llama", (0, 6, 0)), Unknown)  # four if they fit
    assert isinstance(slots(Settings(parallel=4), "qwen35", (0, 16, 0)), Unknown)
    assert isinstance(slots(Settings(), "llama", None), Unknown)


def test_kv_type() -> None:
    assert kv_type(Settings(), "auto", NEWEST) is None
    assert kv_type(Settings(kv_cache_type="Q8_0"), "off", NEWEST) == "q8_0"
    # the own runner dropped it without a word
    assert kv_type(Settings(kv_cache_type="q8_0"), "off", (0, 9, 0)) == "f16"
    assert kv_type(Settings(kv_cache_type="q8_0"), "on", (0, 9, 0)) == "q8_0"


def test_limits() -> None:
    assert (max_loaded_models(None, 2), max_loaded_models(0, 0), max_loaded_models(1, 2)) == (6, 3, 1)
    assert (max_queue(None), max_queue(0)) == (512, 0)


def test_plan() -> None:
    # a log of gemma:7b: 896 MiB at 2,048 tokens
    assert pool_bytes(GEMMA_7B, Settings(environment_context=2048, parallel=1), (0, 6, 0)) == 896 * MIB
    found = plan(GEMMA_7B, Settings(environment_context=2048, parallel=4), NEWEST)
    assert isinstance(found, Plan)
    assert (found.slots, found.window, found.unified, found.pool_bytes) == (4, 2048, False, 4 * 896 * MIB)
    # every slot has its whole context, whatever its siblings do
    assert pool_bytes(GEMMA_7B, Settings(environment_context=2048, parallel=2), (0, 9, 0)) == 2 * 896 * MIB


def test_a_log_of_muse_glimmer() -> None:
    settings = Settings(environment_context=32768, parallel=1)
    found = plan(MUSE, settings, NEWEST)
    assert isinstance(found, Plan)
    assert {cache.role: cache.bytes / MIB for cache in found.caches} == {"full": 416, "sliding": 97.5}
    # 39 layers x 1 KiB: 2,304 cells at a batch of 256, 2,560 at 512, 4,096 at 2,048
    size = pool_bytes(MUSE, settings, NEWEST)
    assert size == Range((416 + 87.75) * MIB, (416 + 97.5) * MIB, (416 + 156) * MIB)
    assert pool_bytes(MUSE, Settings(environment_context=32768, batch=512), (0, 31, 0)) == (416 + 97.5) * MIB
    assert isinstance(plan(MUSE, settings, (0, 9, 0)), Unknown)


def test_refusal() -> None:
    found = plan(GEMMA_7B, Settings(environment_context=2048, kv_cache_type="q8_0", flash_attention="0"), NEWEST)
    assert isinstance(found, Refusal)
    assert found.kind == "quantized-v-without-flash-attention"
    assert isinstance(plan(GEMMA_7B, Settings(environment_context=2048, kv_cache_type="q8_0"), NEWEST), Plan)
    assert isinstance(plan(GEMMA_7B, Settings(environment_context=2048, kv_cache_type="q6_K"), NEWEST), Refusal)
