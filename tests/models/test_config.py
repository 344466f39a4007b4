"""Configurations read into layers, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kvlint.models.architecture import Attention, Compressed, Cross, Latent, State, UnknownArchitecture
from kvlint.models.config import architecture
from kvlint.models.families import READERS, compiled

SHARED = Path(__file__).resolve().parents[2] / "../shared"
GROUND_TRUTH = SHARED / "observed" / "vllm-model-arch-groundtruth.jsonl"
MODELS = SHARED / "facts" / "models"

BASE: dict[str, Any] = {
    "hidden_size": 4096,
    "num_hidden_layers": 8,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
LATENT: dict[str, Any] = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}


def kinds(config: dict[str, Any]) -> str:
    """A letter a layer: F full, W window, C chunk, L latent, S state, B state and attention, - nothing."""
    letters = []
    for layer in architecture(config).layers:
        if not layer:
            letters.append("-")
        elif len(layer) > 1:
            letters.append("B")
        elif isinstance(layer[0], Attention):
            letters.append("W" if layer[0].window else "C" if layer[0].chunk else "F")
        else:
            letters.append({Latent: "L", State: "S", Cross: "X", Compressed: "D"}[type(layer[0])])
    return "".join(letters)


@pytest.mark.parametrize(
    ("model_type", "more", "expected"),
    [
        ("llama", {}, "FFFFFFFF"),
        ("llama", {"sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 4}, "WFWFWFWF"),
        ("gemma2", {"sliding_window": 128}, "WFWFWFWF"),
        ("gemma3_text", {"sliding_window": 128}, "WWWWWFWW"),
        ("gemma3_text", {"sliding_window": 128, "sliding_window_pattern": 3}, "WWFWWFWW"),
        ("cohere2", {"sliding_window": 128}, "WWWFWWWF"),
        ("exaone4", {"sliding_window": 128, "sliding_window_pattern": "LLLG"}, "WWWFWWWF"),
        ("exaone4", {"sliding_window": None, "sliding_window_pattern": None}, "FFFFFFFF"),
        ("olmo3", {"sliding_window": 128}, "WWWFWWWF"),
        ("cwm", {"sliding_window": 128}, "FWWWFWWW"),
        ("gpt_oss", {"sliding_window": 128, "head_dim": 64}, "WFWFWFWF"),
        ("qwen2", {"sliding_window": 128, "use_sliding_window": False, "max_window_layers": 2}, "FFFFFFFF"),
        ("qwen2", {"sliding_window": 128, "use_sliding_window": True, "max_window_layers": 5}, "FFFFFWWW"),
        ("qwen3_moe", {"sliding_window": 128, "use_sliding_window": True}, "WWWWWWWW"),
        ("mistral", {"sliding_window": None}, "FFFFFFFF"),
        ("mistral", {}, "WWWWWWWW"),
        ("mixtral", {}, "FFFFFFFF"),
        ("llama4_text", {"attention_chunk_size": 64, "no_rope_layers": []}, "CCCFCCCF"),
        ("llama4_text", {"attention_chunk_size": 64, "no_rope_layers": [1, 0] * 4}, "CFCFCFCF"),
        ("smollm3", {"sliding_window": 64, "use_sliding_window": True, "no_rope_layer_interval": 4}, "FFFWFFFW"),
        ("deepseek_v3", LATENT, "LLLLLLLL"),
        ("jamba", {"attn_layer_period": 4, "attn_layer_offset": 1}, "SFSSSFSS"),
        ("minimax_m1", {"attn_type_list": [0, 0, 0, 1] * 2, "head_dim": 128}, "SSSFSSSF"),
        (
            "kimi_linear",
            {
                **LATENT,
                "linear_attn_config": {
                    "full_attn_layers": [4, 8],
                    "num_heads": 4,
                    "head_dim": 64,
                    "short_conv_kernel_size": 4,
                },
            },
            "SSSLSSSL",
        ),
        (
            "falcon_h1",
            {"mamba_n_heads": 8, "mamba_d_head": 64, "mamba_d_state": 16, "mamba_d_ssm": 512},
            "BBBBBBBB",
        ),
        (
            "nemotron_h",
            {"hybrid_override_pattern": "M-M*ME-*", "mamba_num_heads": 8, "mamba_head_dim": 64, "ssm_state_size": 16},
            "S-SFS--F",
        ),
        ("mllama_text_model", {"cross_attention_layers": [3, 7]}, "FFFXFFFX"),
    ],
)
def test_patterns(model_type: str, more: dict[str, Any], expected: str) -> None:
    assert kinds({**BASE, "model_type": model_type, **more}) == expected


def test_longcat_has_two_attentions_a_layer() -> None:
    found = architecture({**BASE, **LATENT, "model_type": "longcat_flash"})
    assert len(found.layers) == 8
    assert sum(1 for _ in found.parts(Latent)) == 16


def test_shared_layers_store_nothing() -> None:
    config = {**BASE, "model_type": "gemma3n_text", "num_kv_shared_layers": 3, "sliding_window": 512}
    assert [part.shared for part in architecture(config).parts()] == [False] * 5 + [True] * 3
    crossing = architecture({**BASE, "model_type": "hunyuan", "use_cla": True, "cla_share_factor": 2})
    assert [part.elements for part in crossing.parts()] == [2048, 0] * 4
    apart = architecture({**BASE, "model_type": "hunyuan", "use_cla": False, "cla_share_factor": 2})
    assert [part.elements for part in apart.parts()] == [2048] * 8


def test_sizes_that_differ_by_kind_of_layer() -> None:
    config = {
        **BASE, "model_type": "gemma4_text", "head_dim": 256, "global_head_dim": 512, "num_global_key_value_heads": 2,
        "attention_k_eq_v": True, "sliding_window": 1024,
    }  # fmt: skip
    first, *_, last = architecture(config).parts()
    assert (first.kv_heads, first.key_dim, first.window) == (8, 256, 1024)
    assert (last.kv_heads, last.key_dim, last.window) == (2, 512, None)


def test_indexers_by_list_and_pattern() -> None:
    config = {**BASE, **LATENT, "model_type": "glm_moe_dsa", "num_hidden_layers": 4, "index_head_dim": 128}
    assert [part.indexer_dim for part in architecture(config).parts()] == [128] * 4
    some = {**config, "indexer_types": ["full", "shared", "shared", "full"]}
    assert [part.indexer_dim for part in architecture(some).parts()] == [128, None, None, 128]
    assert architecture({**config, "index_topk_pattern": "FSSF"}).layers == architecture(some).layers


def test_blocks_with_their_own_groups() -> None:
    def block(**attention: Any) -> dict[str, Any]:
        return {"attention": attention, "ffn": {}}

    config = {**BASE, "model_type": "nemotron-nas", "num_key_value_heads": None, "num_hidden_layers": 3}
    config["block_configs"] = [block(n_heads_in_group=8), block(no_op=True), block(n_heads_in_group=4)]
    assert [[part.kv_heads for part in layer] for layer in architecture(config).layers] == [[4], [], [8]]


def test_nested_text_models() -> None:
    text = {**BASE, "model_type": "qwen3", "head_dim": 128}
    for key in ("text_config", "llm_config", "language_config"):
        found = architecture({"model_type": "internvl", "hidden_size": 1, key: text, "torch_dtype": "bfloat16"})
        assert (found.model_type, found.hidden_size, found.dtype) == ("qwen3", 4096, "bfloat16")
    thinker = {
        "model_type": "qwen3_omni_moe",
        "thinker_config": {"text_config": {**text, "model_type": "qwen3_omni_moe_text"}},
    }
    assert len(architecture(thinker).layers) == 8


def test_a_nested_text_model_written_as_differences() -> None:
    """llava-hf/llava-1.5-7b-hf leaves out everything that equals the class: 32 layers of 32 heads of 128."""
    text = {"model_type": "llama", "vocab_size": 32064, "torch_dtype": "float16"}
    found = architecture({"model_type": "llava", "text_config": text})
    assert found.layers == ((Attention(32, 128, 128),),) * 32
    with pytest.raises(UnknownArchitecture) as error:
        architecture({"model_type": "llava", "text_config": {**text, "hidden_size": 5120}})
    assert error.value.field in ("num_hidden_layers", "num_attention_heads")
    with pytest.raises(UnknownArchitecture):
        architecture(text)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"model_type": "llama"}, "num_hidden_layers"),
        ({**BASE, "model_type": "llama", "num_hidden_layers": "32"}, "num_hidden_layers"),
        ({**BASE, "model_type": "llama", "num_hidden_layers": True}, "num_hidden_layers"),
        ({**BASE, "model_type": "llama", "num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({**BASE, "model_type": "llama", "num_key_value_heads": -8}, "num_key_value_heads"),
        ({**BASE, "model_type": "llama", "hidden_size": 4095}, "head_dim"),
        ({**BASE, "model_type": "qwen2", "num_key_value_heads": None}, "num_key_value_heads"),
        ({**BASE, "model_type": "llama", "layer_types": ["full_attention"] * 3}, "layer_types"),
        ({**BASE, "model_type": "llama", "layer_types": ["new_attention"] * 8}, "layer_types"),
        ({**BASE, "model_type": "deepseek_v3"}, "v_head_dim"),
        ({**BASE, **LATENT, "model_type": "deepseek_v32"}, "index_head_dim"),
        ({**BASE, **LATENT, "model_type": "kimi_linear"}, "linear_attn_config.full_attn_layers"),
        ({**BASE, "model_type": "minimax_m1", "head_dim": 128}, "attn_type_list"),
        ({**BASE, "model_type": "deepseek_v4", "compress_ratios": [4] * 3}, "compress_ratios"),
        ({**BASE, "model_type": "deepseek_v4", "compress_ratios": [7] * 8}, "compress_ratios"),
        ({**BASE, "model_type": "zaya"}, "model_type"),
        ({**BASE, "model_type": "acme", "recurrent_width": 64}, "recurrent_width"),
        ({**BASE, "model_type": "acme", "num_key_value_heads": None}, "num_key_value_heads"),
        ({}, "model_type"),
    ],
)
def test_what_cannot_be_read_is_named(config: dict[str, Any], field: str) -> None:
    with pytest.raises(UnknownArchitecture) as error:
        architecture(config)
    assert error.value.field == field


def test_an_unknown_type_that_is_plainly_plain() -> None:
    config = {
        **BASE,
        "model_type": "acme",
        "attention_bias": False,
        "sliding_window": None,
        "rope_theta": 1e6,
        "vocab_size": 10,
    }
    assert architecture(config).layers == ((Attention(8, 128, 128),),) * 8


def test_draft_layers_are_of_the_last_growing_kind() -> None:
    latent = architecture({**BASE, **LATENT, "model_type": "deepseek_v3", "num_nextn_predict_layers": 2})
    assert latent.draft_layers == latent.layers[:1] * 2
    window = architecture(
        {
            **BASE, "model_type": "mimo_v2_flash", "head_dim": 192, "v_head_dim": 128, "sliding_window": 128,
            "swa_num_key_value_heads": 4, "swa_head_dim": 192, "swa_v_head_dim": 128, "hybrid_layer_pattern": [0, 1] * 4,
            "num_nextn_predict_layers": 1,
        }
    )  # fmt: skip
    assert window.draft_layers == window.layers[1:2]


def test_layer_types_that_go_on_are_the_drafts() -> None:
    config = {**BASE, "model_type": "step3p5", "head_dim": 128, "sliding_window": 512, "num_nextn_predict_layers": 2}
    found = architecture({**config, "layer_types": ["full_attention"] * 8 + ["sliding_attention"] * 2})
    assert len(found.layers) == 8
    assert found.draft_layers == ((Attention(8, 128, 128, window=512),),) * 2


def test_latent_types_that_switch_latents_off() -> None:
    config = {**BASE, "model_type": "deepseek_v2", "use_mla": False, "kv_lora_rank": None}
    assert architecture(config).layers == ((Attention(32, 128, 128),),) * 8


def test_every_family_has_a_reader_and_a_source() -> None:
    assert {family["reader"] for family in compiled()["families"]} == set(READERS)
    assert all(family["source"] for family in compiled()["families"])


@pytest.mark.skipif(not GROUND_TRUTH.exists(), reason="the recorded rows are not here")
def test_heads_as_vllm_derives_them() -> None:
    """Where the catalogue has the file.  vLLM gives an MLA model the latent and rope size as head size."""
    files = {row["id"]: row["file"] for row in map(json.loads, (MODELS / "INDEX.jsonl").read_text().splitlines())}
    compared = 0
    for row in map(json.loads, GROUND_TRUTH.read_text().splitlines()):
        if row["model"] not in files:
            continue
        found = architecture(json.loads((MODELS / files[row["model"]]).read_text()))
        assert (len(found.layers), found.heads, found.hidden_size) == (row["layers"], row["heads"], row["hidden_size"])
        for part in found.parts((Attention, Latent)):
            size = part.elements if isinstance(part, Latent) else part.key_dim
            assert size == row["head_size"]
            assert isinstance(part, Latent) or part.kv_heads == row["kv_heads"]
        compared += 1
    assert compared >= 8
