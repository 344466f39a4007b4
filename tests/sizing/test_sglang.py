"""SGLang's memory model by arithmetic shown beside each figure."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture, UnknownArchitecture
from kvlint.models.config import architecture
from kvlint.sizing.sglang import sizes as sglang
from kvlint.sizing.sglang.releases import rules

ROOT = Path(__file__).resolve().parents[2]
GIB = 1 << 30
H100 = sglang.Device(81559, 90, 78 * GIB, 60 * GIB)
B200 = sglang.Device(183359, 100, 177 * GIB, 150 * GIB)
L40 = sglang.Device(49140, 89, 47 * GIB, 30 * GIB)

# Sizes as Qwen3-8B states them: 8 heads of 128 in 36 layers.
DENSE = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 4096,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16",
    "vocab_size": 151936,
}
# 12 sliding and 12 full layers in turn, as in gpt-oss-20b.
SLIDING = {
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "num_hidden_layers": 24,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "vocab_size": 201088,
}


def settings(release: str = "0.5.23", **given: Any) -> sglang.Settings:
    return sglang.Settings(release=release, **given)


def dense(**changes: Any) -> Architecture:
    return architecture({**DENSE, **changes})


def found(result: Any, kind: type[Any]) -> Any:
    assert isinstance(result, kind), result
    return result


def test_the_compiled_data_is_current() -> None:
    script = [sys.executable, str(ROOT / "scripts/build_sglang_memory.py"), "--check"]
    assert subprocess.run(script, check=False).returncode == 0


def test_releases_follow_one_set_of_rules_or_two() -> None:
    assert all(len(rules(release)) == 1 for release in sglang.known_releases())
    assert len({sglang.semantic_class(release) for release in sglang.known_releases()}) == len(sglang.known_releases())
    assert sglang.semantic_class("0.5.10") == sglang.semantic_class("0.5.10.post1")
    assert sglang.semantic_class("0.6.0") == sglang.semantic_class("0.5.23")
    assert len(rules("0.5.12")) == 2
    with pytest.raises(ValueError, match="nightly"):
        rules("nightly")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, 8 * 256 * 36 * 2),
        ({"tp_size": 8}, 1 * 256 * 36 * 2),
        ({"tp_size": 16}, 1 * 256 * 36 * 2),
        ({"tp_size": 8, "dp_size": 4, "enable_dp_attention": True}, 4 * 256 * 36 * 2),
        ({"kv_cache_dtype": "fp8_e4m3"}, 8 * 256 * 36),
    ],
)
def test_heads_are_split_over_ranks_and_never_below_one(given: dict[str, Any], expected: int) -> None:
    assert sglang.bytes_per_token_per_rank(dense(), settings(**given), H100) == expected


def test_four_bits_cost_half_a_byte_and_a_scale_of_every_sixteen() -> None:
    one_byte = 8 * 256 * 36
    given = settings(kv_cache_dtype="nvfp4")
    assert sglang.bytes_per_token_per_rank(dense(), given, B200) == one_byte // 2 + one_byte // 16
    assert isinstance(sglang.pool(dense(), given, H100), sglang.Refusal)


def test_the_pool_is_what_the_fraction_leaves_in_whole_pages() -> None:
    given = settings(mem_fraction_static=Fraction("0.8"), page_size=64)
    pool = found(sglang.pool(dense(), given, H100), sglang.Pool)
    rest = int((60.0 - 78.0 * (1 - 0.8)) * GIB)
    assert pool.tokens == rest // 147456 // 64 * 64


def test_a_cap_lowers_and_never_raises() -> None:
    free = found(sglang.pool(dense(), settings(), H100), sglang.Pool).tokens
    lowered = found(sglang.pool(dense(), settings(max_total_tokens=5000, page_size=64), H100), sglang.Pool)
    raised = found(sglang.pool(dense(), settings(max_total_tokens=10 * free), H100), sglang.Pool)
    assert (lowered.tokens, raised.tokens) == (4992, free)


def test_requests_are_half_the_tokens_at_most() -> None:
    pool = found(sglang.pool(dense(), settings(max_total_tokens=1000, max_running_requests=800), H100), sglang.Pool)
    assert pool.requests == 500
    older = settings("0.5.10.post1", max_total_tokens=1000, max_running_requests=800)
    assert found(sglang.pool(dense(), older, H100), sglang.Pool).requests == 800


def test_sliding_layers_have_a_pool_by_the_ratio() -> None:
    arch = architecture(SLIDING)
    given = settings(swa_full_tokens_ratio=Fraction("0.5"), mem_fraction_static=Fraction("0.8"))
    pool = found(sglang.pool(arch, given, H100), sglang.Pool)
    layer = 8 * 128 * 2
    assert sglang.bytes_per_token_per_rank(arch, given, H100) == 12 * layer + Fraction(1, 2) * 12 * layer
    assert pool.sliding == int(pool.full * 0.5)
    assert pool.tokens == int((60.0 - 78.0 * (1 - 0.8)) * GIB) // (18 * layer)
    undivided = settings("0.5.5", mem_fraction_static=Fraction("0.8"))
    assert found(sglang.pool(arch, undivided, H100), sglang.Pool).full is None


def test_a_sliding_pool_of_a_window_and_a_page_is_refused() -> None:
    arch = architecture(SLIDING)
    given = settings(swa_full_tokens_ratio=Fraction("0.1"), max_total_tokens=1280)
    assert isinstance(sglang.pool(arch, given, H100), sglang.Refusal)
    assert isinstance(sglang.pool(arch, settings("0.5.15", max_total_tokens=1280), H100), sglang.Pool)


def test_the_fraction_is_what_is_reserved() -> None:
    """512 + 1.5 x 8192 + 2 x 256 + 128 MiB for a rank + 8 for each of 58 prefill graphs, of 81,559 MiB."""
    arguments = found(sglang.resolve(dense(), settings(), H100), sglang.Arguments)
    reserved = 512 + 1.5 * 8192 + 2 * 256 + 128 + 8 * 58
    assert arguments.mem_fraction_static == round((81559 - reserved) / 81559, 3) == 0.83
    older = found(sglang.resolve(dense(), settings("0.4.6", tp_size=8), H100), sglang.Arguments)
    assert older.mem_fraction_static == 0.81


def test_a_draft_model_limits_requests_to_48() -> None:
    given = settings(speculative_algorithm="EAGLE", draft_layers=1)
    pool = found(sglang.pool(dense(), given, H100), sglang.Pool)
    assert pool.requests == 48
    assert sglang.bytes_per_token_per_rank(dense(), given, H100) == 8 * 256 * 37 * 2
    unsaid = settings(speculative_algorithm="EAGLE")
    assert isinstance(sglang.pool(dense(), unsaid, H100), Unknown)


def test_a_window_above_the_model_is_refused_since_0_5_5() -> None:
    assert isinstance(sglang.pool(dense(), settings(context_length=65536), H100), sglang.Refusal)
    assert isinstance(sglang.pool(dense(), settings("0.4.10.post2", context_length=65536), H100), sglang.Pool)


def test_neighbours_that_differ_are_unknown() -> None:
    given = settings("0.5.20", mem_fraction_static=Fraction("0.8"))
    assert isinstance(sglang.pool(dense(), given, H100), sglang.Pool)
    assert isinstance(sglang.resolve(dense(), settings("0.5.20"), L40), sglang.Arguments)
    small = sglang.Device(24564, 89, 23 * GIB, 15 * GIB)
    assert isinstance(sglang.resolve(dense(), settings("0.5.20"), small), Unknown)


def test_what_was_not_worked_out_is_unknown() -> None:
    strange = architecture({**DENSE, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]})
    assert isinstance(sglang.pool(strange, settings(pp_size=2), H100), Unknown)


def test_whole_tokens_of_sequences() -> None:
    assert sglang.cache_bytes(dense(), 1000, sequences=3) == 3 * 1000 * 8 * 256 * 36 * 2
    assert sglang.cache_bytes(dense(), 1000, kv_dtype="fp8") == 1000 * 8 * 256 * 36
    assert sglang.cache_bytes(dense(), 0) == 0
    with pytest.raises(UnknownArchitecture, match="q8_0"):
        sglang.cache_bytes(dense(), 10, kv_dtype="q8_0")
    with pytest.raises(ValueError, match="negative"):
        sglang.cache_bytes(dense(), -1)
