"""llama-server's memory model on small models, without the observed rows.

Expected numbers are llama.cpp's own log lines, or the arithmetic shown beside them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.facts import Range, Unknown
from kvlint.models.architecture import Architecture, Attention, Latent, State, UnknownArchitecture
from kvlint.sizing.llama.host import (
    checkpoint_bytes,
    checkpoints_bytes,
    host_cache_bytes,
    slot_state_bytes,
    storable,
)
from kvlint.sizing.llama.releases import build_number, semantic_class, semantic_classes
from kvlint.sizing.llama.sizes import Plan, Refusal, Settings, cache_bytes, plan

MIB = 1 << 20


def gguf(name: str, **values: Any) -> dict[str, Any]:
    """12 layers of 2 heads of 128: 12 x 2 x 2 x 128 x 2 bytes = 12 KiB a token in f16."""
    common = {
        "block_count": 12, "context_length": 131072, "embedding_length": 256, "attention.head_count": 2,
        "attention.head_count_kv": 2, "attention.key_length": 128, "attention.value_length": 128,
    }  # fmt: skip
    given = {key.replace("__", "."): value for key, value in values.items()}
    return {"general.architecture": name, **{f"{name}.{key}": value for key, value in {**common, **given}.items()}}


LLAMA = gguf("llama")
GEMMA = gguf("gemma3", attention__sliding_window=512, attention__sliding_window_pattern=[1, 0] * 6)
QWEN = gguf(
    "qwen35", attention__recurrent_layers=[1, 0] * 6, ssm__inner_size=256, ssm__conv_kernel=4, ssm__state_size=128,
    ssm__time_step_rank=2, ssm__group_count=2,
)  # fmt: skip
DEEPSEEK = gguf(
    "deepseek2", attention__head_count_kv=1, attention__kv_lora_rank=512, attention__key_length=576,
    attention__value_length=512, attention__key_length_mla=192, attention__value_length_mla=128,
)  # fmt: skip
# a Qwen3.5 27B: 64 layers of which 16 attend, 4 KV heads of 256, and one layer for multi-token prediction
QWEN_27B = {
    "general.architecture": "qwen35",
    **{
        f"qwen35.{key}": value
        for key, value in {
            "block_count": 65, "nextn_predict_layers": 1, "context_length": 262144, "embedding_length": 5120,
            "attention.head_count": 24, "attention.head_count_kv": 4, "attention.key_length": 256, "attention.value_length": 256,
            "full_attention_interval": 4, "ssm.conv_kernel": 4, "ssm.inner_size": 6144, "ssm.state_size": 128,
            "ssm.group_count": 16, "ssm.time_step_rank": 48,
        }.items()
    },
}  # fmt: skip


def start(model: Any, build: int | None = 11434, **settings: Any) -> Plan:
    found = plan(model, Settings(**settings), build)
    assert isinstance(found, Plan), found
    return found


@pytest.mark.parametrize(
    ("settings", "slots", "context", "window", "mib"),
    [
        # log lines of b11434: -c 4096; with -np 3; -c 100 -np 4; -c above the trained context
        ({"context": 4096}, 4, 4096, 4096, 48),
        ({"context": 4096, "parallel": 3}, 3, 4608, 1536, 54),
        ({"context": 100, "parallel": 4}, 4, 1024, 256, 12),
        ({"context": 262144, "parallel": 1}, 1, 262144, 131072, 3072),
        ({"context": 4096, "parallel": 4, "unified": True}, 4, 4096, 4096, 48),
        ({"per_slot": 2048}, 4, 8192, 2048, 96),
        ({"context": 4096, "per_slot": 8192}, 4, 4096, 4096, 48),
        ({"context": 0, "parallel": 2}, 2, 262144, 131072, 3072),
        ({"parallel": 2, "fit": False}, 2, 131072, 65536, 1536),
    ],
)
def test_slots(settings: dict[str, Any], slots: int, context: int, window: int, mib: int) -> None:
    found = start(LLAMA, **settings)
    assert (found.slots, found.context, found.window, found.pool_bytes) == (slots, context, window, mib * MIB)


def test_a_context_above_the_trained_one_is_paid_and_not_used() -> None:
    assert start(LLAMA, context=262144, parallel=1).capped
    assert not start(LLAMA, context=131072, parallel=1).capped


def test_an_omitted_context_may_be_shrunk() -> None:
    found = start(LLAMA)
    # 131,072 and 4,096 tokens of 12 KiB
    assert found.ranged("pool_bytes") == Range(48 * MIB, 1536 * MIB, 1536 * MIB)
    assert found.ranged("window") == Range(4096, 131072, 131072)
    assert found.ranged("slots") == 4
    assert start(LLAMA, context=0).ranged("window") == 131072
    assert start(LLAMA, fit=False).ranged("window") == 131072
    assert start(LLAMA, build=4748).window == 4096


@pytest.mark.parametrize(
    ("types", "mib"),
    [
        # log lines of b11434 at 4,096 tokens; 12 KiB x 4,096 = 48 MiB in f16
        (("f16", "f16"), 48), (("bf16", "bf16"), 48), (("f32", "f32"), 96), (("q8_0", "q8_0"), 25.5), (("q4_0", "q4_0"), 13.5),
        (("q4_1", "q4_1"), 15), (("q5_0", "q5_1"), 17.25), (("iq4_nl", "iq4_nl"), 13.5), (("q8_0", "f16"), 36.75),
    ],
)  # fmt: skip
def test_types(types: tuple[str, str], mib: float) -> None:
    found = start(LLAMA, context=4096, parallel=1, cache_type_k=types[0], cache_type_v=types[1])
    assert found.pool_bytes == mib * MIB


@pytest.mark.parametrize(
    ("settings", "cells"),
    [
        ({"parallel": 1}, 1024),  # 512 + 512
        ({"parallel": 4, "unified": True}, 2560),  # 4 x 512 + 512
        ({"parallel": 4}, 1024),
        ({"parallel": 1, "ubatch": 2048}, 2560),
        ({"parallel": 1, "ubatch": 2048, "batch": 128}, 768),  # 512 + 128 = 640, whole cells
        ({"parallel": 1, "swa_full": True}, 8192),
    ],
)
def test_sliding_cells(settings: dict[str, Any], cells: int) -> None:
    found = start(GEMMA, context=8192, **settings)
    sliding = next(cache for cache in found.caches if cache.role == "sliding")
    expected = min(cells, found.sequence)
    assert (sliding.cells, sliding.layers) == (expected, 6)


def test_recurrent_state_is_paid_for_every_slot_and_drafted_token() -> None:
    # 6 layers x (3 x (256 + 2 x 2 x 128) + 128 x 256) x 4 bytes = 841,728 a slot; the log says 0.80 and 3.21 MiB
    assert start(QWEN, context=8192, parallel=1).recurrent_bytes == 841728
    assert start(QWEN, context=8192).recurrent_bytes == 4 * 841728
    # log lines of b9849: 1795.50 MiB = 4 slots x (1 + 2) x 149.62; the draft's own layer 32.00 MiB
    found = start(QWEN_27B, build=9849, context=8192, spec_types=("draft-mtp",), drafted=2)
    assert found.recurrent_bytes == 1795.5 * MIB
    assert {cache.role: cache.bytes for cache in found.caches} == {"full": 512 * MIB, "draft-full": 32 * MIB}
    assert start(QWEN_27B, build=9849, context=8192, spec_types=("ngram-mod",)).recurrent_bytes == 598.5 * MIB


def test_a_draft_has_its_own_types() -> None:
    found = start(LLAMA, context=8192, parallel=2, draft=LLAMA, cache_type_k="q8_0", cache_type_v="q8_0")
    assert [(c.role, c.bytes) for c in found.caches] == [("full", 51 * MIB), ("draft-full", 96 * MIB)]
    found = start(LLAMA, context=2048, parallel=1, draft=LLAMA, draft_type_k="q8_0", draft_type_v="q8_0")
    assert found.caches[1].bytes == 12.75 * MIB


@pytest.mark.parametrize(
    ("model", "settings", "build", "kind"),
    [
        (LLAMA, {"cache_type_v": "q8_0", "flash_attention": "off"}, 11434, "quantized-v-without-flash-attention"),
        (LLAMA, {"cache_type_v": "q8_0"}, 4748, "quantized-v-without-flash-attention"),
        (gguf("grok"), {"cache_type_v": "q8_0"}, 11434, "quantized-v-without-flash-attention"),
        (LLAMA, {"cache_type_k": "fp8"}, 11434, "cache-type"),
        (LLAMA, {"cache_type_k": "Q8_0"}, 11434, "cache-type"),
        (DEEPSEEK, {"cache_type_k": "q8_0"}, 11434, "kv-types-differ"),
        (LLAMA, {"context": -1}, 11434, "context-size"),
        (LLAMA, {"parallel": 0}, 11434, "parallel"),
        (LLAMA, {"parallel": 257}, 11434, "too-many-slots"),
        (gguf("llama", attention__key_length=80), {"cache_type_k": "q8_0"}, 11434, "head-not-divisible"),
        (LLAMA, {"spec_types": ("draft-mtp",)}, 11434, "no-draft-layers"),
        (LLAMA, {"split_tensor": True, "flash_attention": "off"}, 11434, "split-without-flash-attention"),
        (
            LLAMA,
            {"draft": LLAMA, "draft_type_v": "q4_0", "flash_attention": "off"},
            11434,
            "quantized-v-without-flash-attention",
        ),
    ],
)
def test_refusals(model: Any, settings: dict[str, Any], build: int, kind: str) -> None:
    found = plan(model, Settings(**{"context": 4096, **settings}), build)
    assert isinstance(found, Refusal), found
    assert found.kind == kind
    assert found.message


@pytest.mark.parametrize(
    ("model", "settings", "build"),
    [
        (LLAMA, {"cache_type_v": "q8_0"}, 11434),  # flash attention is switched on for it
        (LLAMA, {"cache_type_k": "q8_0", "flash_attention": "off"}, 11434),
        (DEEPSEEK, {"cache_type_k": "q8_0"}, 9849),
        (DEEPSEEK, {"cache_type_k": "q8_0", "cache_type_v": "q8_0"}, 11434),
        (gguf("llama", attention__key_length=96), {"cache_type_k": "q8_0"}, 11434),
    ],
)
def test_neighbours_that_start(model: Any, settings: dict[str, Any], build: int) -> None:
    assert isinstance(plan(model, Settings(context=4096, **settings), build), Plan)


def test_values_are_as_wide_as_the_widest_without_flash_attention() -> None:
    model = gguf(
        "gemma4", attention__sliding_window=512, attention__sliding_window_pattern=[1] * 6 + [0] * 6,
        attention__key_length_swa=64, attention__value_length_swa=64,
    )  # fmt: skip
    sliding = start(model, context=1024, parallel=1, flash_attention="off").caches[1]
    # 6 layers x 1,024 cells x 2 heads x 2 bytes, keys of 64, values stored as 128
    assert (sliding.key_bytes, sliding.value_bytes) == (6 * 1024 * 2 * 2 * 64, 6 * 1024 * 2 * 2 * 128)


def test_builds_differ() -> None:
    assert (start(LLAMA, build=4748, context=4096).slots, start(LLAMA, build=7445, context=4096).slots) == (1, 4)
    # one buffer of 4,096 cells, of which each of 4 slots gets a quarter
    old = start(LLAMA, build=4748, context=4096, parallel=4)
    assert (old.window, old.pool_bytes, old.unified) == (1024, 48 * MIB, True)
    # before sliding layers had a window of their own they kept the whole context
    assert start(GEMMA, build=4748, context=8192).pool_bytes == 96 * MIB
    # A log of August 2025 without flash attention: 640 cells, in steps of 32
    mid = start(GEMMA, build=6325, context=8192, flash_attention="off", ubatch=128)
    assert next(cache.cells for cache in mid.caches if cache.role == "sliding") == 640


def test_uncertain_builds() -> None:
    assert isinstance(plan(LLAMA, Settings(context=4096), 6900), Unknown)
    assert start(LLAMA, build=6900, context=4096, parallel=1).pool_bytes == 48 * MIB
    assert isinstance(plan(LLAMA, Settings(context=4096), None), Unknown)
    assert start(LLAMA, build=None, context=4096, parallel=1, flash_attention="on").pool_bytes == 48 * MIB
    assert plan(LLAMA, Settings(context=4096), 99999) == plan(LLAMA, Settings(context=4096), 11434)
    assert plan(LLAMA, Settings(context=4096), 1) == plan(LLAMA, Settings(context=4096), 4748)


def test_semantic_classes() -> None:
    assert semantic_class(11434) == semantic_class(12000)
    assert semantic_class(7000) != semantic_class(9093)
    assert len(semantic_classes(11434)) == 1
    assert len(semantic_classes(6900)) > 1
    names = {
        "b11434": 11434,
        "11434": 11434,
        "version: 8185 (2afcdb977)": 8185,
        "2026-08": None,
        "2026": None,
        "latest": None,
    }
    assert {name: build_number(name) for name in names} == names


def test_host_memory() -> None:
    llama = start(LLAMA, context=8192, parallel=1)
    # 601 tokens of 12 KiB: 7.04 MiB, logged as 7.05 with the cells' positions
    assert slot_state_bytes(llama, 601) == 601 * 12 * 1024
    assert slot_state_bytes(llama) == 96 * MIB
    assert checkpoint_bytes(llama, Settings()) == 0
    assert host_cache_bytes(Settings(), 11434) == 8192 * MIB
    assert host_cache_bytes(Settings(), 4748) == 0
    assert host_cache_bytes(Settings(cache_ram=-1), None) is None
    assert isinstance(host_cache_bytes(Settings(), 6700), Unknown)
    assert storable(2, None, 11434) is True
    assert storable(2, 1, 11434) is False
    assert storable(2, 1, 7500) is True


def test_checkpoints() -> None:
    # 32 x 4 slots x 149.62 MiB = 18.7 GiB
    settings = Settings(context=8192)
    found = start(QWEN_27B, context=8192)
    assert checkpoint_bytes(found, settings) == 149.625 * MIB
    assert checkpoints_bytes(found, settings, 11434) == 128 * 149.625 * MIB
    assert checkpoints_bytes(found, Settings(checkpoints=0), 11434) == 0
    # 6 sliding layers x 512 positions x 1 KiB
    gemma = start(GEMMA, context=8192, parallel=1)
    assert checkpoint_bytes(gemma, Settings()) == 3 * MIB
    assert checkpoint_bytes(gemma, Settings(swa_full=True)) == 0
    assert slot_state_bytes(gemma) == (48 + 3) * MIB
    drafting = start(QWEN_27B, context=8192, parallel=1, spec_types=("draft-mtp",), drafted=2)
    assert checkpoint_bytes(drafting, settings) == Range(149.625 * MIB, 165.625 * MIB, 181.625 * MIB)


def test_library_function() -> None:
    assert cache_bytes(LLAMA, 4096) == 48 * MIB
    assert cache_bytes(LLAMA, 4000, sequences=2) == 96 * MIB
    assert cache_bytes(LLAMA, 4096, sequences=1, slots=3) == 144 * MIB
    assert cache_bytes(LLAMA, 4096, kv_dtype="q8_0") == 25.5 * MIB
    assert cache_bytes(QWEN, 8192, slots=4) == 4 * 48 * MIB + 4 * 841728
    with pytest.raises(UnknownArchitecture):
        cache_bytes({"general.architecture": "unheard-of"}, 4096)
    with pytest.raises(ValueError, match="no cache type"):
        cache_bytes(LLAMA, 4096, kv_dtype="fp8")


def test_compressed_rows_are_kept_for_every_slot() -> None:
    # DeepSeek V4's kind: 2 layers of windows, 6 with a row for 4 tokens and an indexer, 4 with a row for 128 tokens
    model = gguf(
        "deepseek4", attention__key_length=512, attention__head_count_kv=1, attention__sliding_window=128,
        attention__compress_ratios=[0, 0, *[4] * 6, *[128] * 4, 0], attention__indexer__key_length=128,
    )  # fmt: skip
    found = start(model, context=8192, parallel=1)
    sizes = {cache.role: (cache.cells, cache.layers, cache.bytes) for cache in found.caches}
    assert sizes == {
        "sliding": (768, 12, 768 * 12 * 1024),  # 128 + 512 = 640, whole cells
        "compressed-4": (2048, 6, 2048 * 6 * 1024),
        "indexer": (2048, 6, 2048 * 6 * 256),
        "compressed-128": (256, 4, 256 * 4 * 1024),  # 64 rows, whole cells
    }
    # f32 rows and scores: 6 x 2 x 8 x 2 x (512 + 128) and 4 x 2 x 128 x 512 elements
    assert found.recurrent_bytes == 4 * (6 * 2 * 8 * 2 * 640 + 4 * 2 * 128 * 512)
    shared = start(model, context=8192)
    assert shared.unified
    assert shared.pool_bytes == 4 * found.pool_bytes
    assert slot_state_bytes(found, 1000) == (128 * 12 + 250 * 6 + 7 * 4) * 1024 + 250 * 6 * 256 + found.state_bytes
    assert isinstance(plan(model, Settings(context=8192), 9849), Unknown)


def hugging_face(model_type: str, *layers: Any) -> Architecture:
    return Architecture(model_type, (), tuple((layer,) for layer in layers), 256, 2, None, "bfloat16", 131072)


def test_hugging_face_shapes() -> None:
    full, sliding = Attention(2, 128, 128), Attention(2, 128, 128, window=512)
    assert start(hugging_face("llama", full, full), context=4096, parallel=1).pool_bytes == 8 * MIB
    gemma = start(hugging_face("gemma3_text", sliding, full), context=8192, parallel=1)
    assert [(cache.role, cache.cells) for cache in gemma.caches] == [("full", 8192), ("sliding", 1024)]
    mistral = start(hugging_face("mistral", sliding, full), context=8192, parallel=1)
    assert [(cache.role, cache.layers) for cache in mistral.caches] == [("full", 2)]
    latent = Latent(rank=512, rope_dim=64, heads=2, nope_dim=128, value_dim=128)
    assert start(hugging_face("deepseek_v3", latent), context=1024, parallel=1).pool_bytes == 1024 * 576 * 2
    # MiniCPM3 keeps expanded heads: 2 x (192 + 128)
    assert start(hugging_face("minicpm3", latent), context=1024, parallel=1).pool_bytes == 1024 * 640 * 2
    state = State("gdn", conv_channels=768, conv_kernel=4, recurrent=32768)
    assert start(hugging_face("qwen3_next", state), context=1024, parallel=1).pool_bytes == 841728 // 6
    with pytest.raises(UnknownArchitecture):
        plan(hugging_face("unheard_of", sliding), Settings(context=1024), 11434)


@given(
    context=st.integers(1, 300_000),
    parallel=st.integers(1, 32),
    unified=st.booleans(),
    ubatch=st.integers(1, 4096),
    model=st.sampled_from([LLAMA, GEMMA, QWEN, DEEPSEEK]),
)
def test_more_context_never_costs_less(context: int, parallel: int, unified: bool, ubatch: int, model: Any) -> None:
    settings = {"parallel": parallel, "unified": unified, "ubatch": ubatch}
    less, more = start(model, context=context, **settings), start(model, context=context + 1, **settings)
    assert less.pool_bytes <= more.pool_bytes
    assert less.window <= more.window
    assert less.sequence % 256 == 0
    assert less.context >= min(context, less.sequence)


def test_the_data_is_compiled() -> None:
    script = Path(__file__).resolve().parents[2] / "scripts/build_llama_memory.py"
    assert subprocess.run([sys.executable, str(script), "--check"], check=False).returncode == 0
