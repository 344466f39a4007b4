"""GGUF metadata to architectures: the keys of real files, and what must be refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kvlint.models.architecture import Attention, Latent, State, UnknownArchitecture
from kvlint.models.gguf import architecture, is_gguf

MODELS = Path(__file__).resolve().parents[2] / "../shared/observed/llama-server-models"


def gguf(name: str, **values: Any) -> dict[str, Any]:
    common = {
        "block_count": 12, "context_length": 8192, "embedding_length": 1024, "attention.head_count": 8,
        "attention.head_count_kv": 2, "attention.key_length": 128, "attention.value_length": 128,
    }  # fmt: skip
    given = {key.replace("__", "."): value for key, value in values.items()}
    merged = {key: value for key, value in {**common, **given}.items() if value is not None}
    return {"general.architecture": name, **{f"{name}.{key}": value for key, value in merged.items()}}


def windows(metadata: dict[str, Any]) -> list[int]:
    """Indices of the sliding layers."""
    return [
        index
        for index, layer in enumerate(architecture(metadata).layers)
        if any(isinstance(part, Attention) and (part.window or part.chunk) for part in layer)
    ]


def test_plain() -> None:
    found = architecture(gguf("llama", vocab_size=32000))
    assert found.layers == ((Attention(2, 128, 128),),) * 12
    assert (found.model_type, found.positions, found.heads, found.vocab_size) == ("llama", 8192, 8, 32000)
    # head_count_kv defaults to head_count, sizes to embedding_length / head_count
    bare = gguf("gpt2", attention__head_count_kv=None, attention__key_length=None, attention__value_length=None)
    assert architecture(bare).layers[0] == (Attention(8, 128, 128),)


def test_per_layer_heads() -> None:
    found = architecture(gguf("deci", attention__head_count_kv=[2, 0] * 6))
    assert [len(layer) for layer in found.layers] == [1, 0] * 6


@pytest.mark.parametrize(
    ("name", "values", "sliding"),
    [
        ("gemma2", {}, [0, 2, 4, 6, 8, 10]),  # every second layer is full; the window is 4096 unless stated
        ("gemma3", {"attention__sliding_window": 512}, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]),
        ("gemma3", {}, []),
        ("gpt-oss", {"attention__sliding_window": 128}, [0, 2, 4, 6, 8, 10]),
        ("cohere2", {"attention__sliding_window": 4096}, [0, 1, 2, 4, 5, 6, 8, 9, 10]),
        ("cohere2moe", {"attention__sliding_window": 4096}, [1, 2, 3, 5, 6, 7, 9, 10, 11]),
        ("llama4", {}, [0, 1, 2, 4, 5, 6, 8, 9, 10]),
        ("llama4", {"attention__sliding_window": 0}, []),
        ("phi3", {"attention__sliding_window": 2047}, []),
        ("llama", {"attention__sliding_window": 4096}, []),
        ("exaone4", {"attention__sliding_window": 4096}, []),  # only the 64 layers of the 32B
        (
            "gemma3",
            {"attention__sliding_window": 512, "attention__sliding_window_pattern": [1, 0] * 6},
            [0, 2, 4, 6, 8, 10],
        ),
        (
            "olmo2",
            {"attention__sliding_window": 512, "attention__sliding_window_pattern": 3},
            [0, 1, 3, 4, 6, 7, 9, 10],
        ),
    ],
)
def test_sliding(name: str, values: dict[str, Any], sliding: list[int]) -> None:
    assert windows(gguf(name, **values)) == sliding


def test_gemma4_shares_its_last_layers() -> None:
    found = architecture(
        gguf(
            "gemma4", attention__sliding_window=512, attention__sliding_window_pattern=[1, 1, 0] * 4,
            attention__key_length=512, attention__value_length=512, attention__key_length_swa=256,
            attention__value_length_swa=256, attention__shared_kv_layers=6,
        )
    )  # fmt: skip
    assert found.layers[0] == (Attention(2, 256, 256, window=512),)
    assert found.layers[2] == (Attention(2, 512, 512),)
    assert [part.shared for layer in found.layers for part in layer if isinstance(part, Attention)] == [False] * 6 + [
        True
    ] * 6


def test_gemma3n_keeps_twenty_layers() -> None:
    found = architecture(gguf("gemma3n", block_count=30, attention__sliding_window=512))
    assert sum(not part.shared for part in found.parts(Attention)) == 20


def test_latent() -> None:
    values = {
        "attention__head_count_kv": 1, "attention__kv_lora_rank": 512, "attention__key_length": 576,
        "attention__value_length": 512, "attention__key_length_mla": 192, "attention__value_length_mla": 128,
    }  # fmt: skip
    found = architecture(gguf("deepseek2", **values))
    assert found.layers[0] == (Latent(rank=512, rope_dim=64, heads=8, nope_dim=128, value_dim=128),)
    # a file from before latent attention keeps every head
    old = gguf("deepseek2", attention__head_count_kv=8, attention__key_length=192, attention__kv_lora_rank=512)
    assert architecture(old).layers[0] == (Attention(8, 192, 128),)
    indexed = gguf("deepseek32", **values, attention__indexer__key_length=128)
    assert architecture(indexed).layers[0][0].indexer_dim == 128  # type: ignore[union-attr]
    listed = gguf("glm-dsa", **values, attention__indexer__key_length=128, attention__indexer__types=[1, 0] * 6)
    assert [part.indexer_dim for part in architecture(listed).parts(Latent)] == [128, None] * 6


def test_hybrids() -> None:
    ssm = {"ssm__conv_kernel": 4, "ssm__inner_size": 256, "ssm__state_size": 128, "ssm__group_count": 2}
    found = architecture(gguf("qwen3next", **ssm))
    assert [type(layer[0]) for layer in found.layers] == [State, State, State, Attention] * 3
    assert next(found.parts(State)).conv_channels == 256 + 2 * 2 * 128
    by_heads = gguf("jamba", **ssm, attention__head_count_kv=[2, 0, 0, 0] * 3)
    assert [type(layer[0]) for layer in architecture(by_heads).layers] == [Attention, State, State, State] * 3
    assert next(architecture(by_heads).parts(State)).conv_channels == 256  # jamba reads no groups
    nemotron = gguf("nemotron_h", **ssm, attention__head_count_kv=[0, 0, 2] * 4, feed_forward_length=[0, 64, 0] * 4)
    kinds = [[type(part) for part in layer] for layer in architecture(nemotron).layers]
    assert kinds == [[State], [], [Attention]] * 4
    both = architecture(gguf("falcon-h1", **ssm)).layers[0]
    assert [type(part) for part in both] == [Attention, State]
    assert [len(layer) for layer in architecture(gguf("mamba2", **ssm)).layers] == [1] * 12


def test_short_convolution_and_others() -> None:
    found = architecture(gguf("lfm2", shortconv__l_cache=3, attention__head_count_kv=[0, 2] * 6))
    assert found.layers[0] == (State("short-conv", conv_channels=1024, conv_kernel=3, recurrent=0),)
    rwkv = architecture(gguf("rwkv7", wkv__head_size=64, attention__head_count=0, attention__head_count_kv=0))
    assert rwkv.layers[0] == (State("rwkv", conv_channels=1024, conv_kernel=3, recurrent=1024 * 64),)
    assert architecture(gguf("bert")).layers == ((),) * 12


def test_drafting_layers_stand_apart() -> None:
    found = architecture(gguf("glm4moe", block_count=13, nextn_predict_layers=1))
    assert (len(found.layers), found.draft_layers) == (12, ((Attention(2, 128, 128),),))


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({}, "general.architecture"),
        (gguf("unheard-of"), "general.architecture"),
        (gguf("glm5-next"), "general.architecture"),
        (gguf("deepseek4"), "deepseek4.attention.compress_ratios"),
        (gguf("deepseek4", attention__compress_ratios=[3] * 12), "deepseek4.attention.compress_ratios"),
        (gguf("llama", block_count=None), "llama.block_count"),
        (gguf("llama", block_count=10**9), "llama.block_count"),
        (gguf("llama", block_count="12"), "llama.block_count"),
        (gguf("llama", context_length=None), "llama.context_length"),
        (gguf("llama", attention__head_count_kv=[2] * 11), "llama.attention.head_count_kv"),
        (gguf("llama", attention__head_count_kv=[2.5] * 12), "llama.attention.head_count_kv"),
        (gguf("llama", attention__head_count_kv=-1), "llama.attention.head_count_kv"),
        (gguf("llama", nextn_predict_layers=13), "llama.nextn_predict_layers"),
        (gguf("gpt-oss"), "gpt-oss.attention.sliding_window"),
        (gguf("gemma4", attention__sliding_window=512), "gemma4.attention.sliding_window_pattern"),
        (gguf("qwen35"), "qwen35.ssm.inner_size"),
        (gguf("lfm2", attention__head_count_kv=[0, 2] * 6), "lfm2.shortconv.l_cache"),
    ],
)
def test_refused(metadata: dict[str, Any], field: str) -> None:
    with pytest.raises(UnknownArchitecture) as caught:
        architecture(metadata)
    assert caught.value.field == field


def test_is_gguf() -> None:
    assert is_gguf(gguf("llama"))
    assert not is_gguf({"model_type": "llama"})


@pytest.mark.skipif(not MODELS.is_dir(), reason="the observed models are not here")
def test_observed_models() -> None:
    """Layers by kind, as the start logs of these models count them."""
    counts = {
        path.stem: Counter(
            "+".join(sorted(type(part).__name__ for part in layer))
            for layer in architecture(json.loads(path.read_text())).layers
        )
        for path in MODELS.glob("*.json")
    }
    assert counts["falcon-h1-dense"] == {"Attention+State": 2}
    assert counts["granitehybrid-dense"] == {"Attention": 1, "State": 1}
    assert counts["mamba2-dense"] == {"State": 12}
    assert counts["qwen35-dense"] == {"Attention": 6, "State": 6}
    assert counts["deepseek2-moe"] == {"Latent": 12}
