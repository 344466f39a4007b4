"""vLLM's memory model on architectures written out by hand: every number is the engine's own or worked out beside it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from kvlint.facts import Unknown
from kvlint.models.architecture import (
    Architecture,
    Attention,
    Compressed,
    Cross,
    Latent,
    Layer,
    State,
    UnknownArchitecture,
)
from kvlint.sizing.vllm import sizes as vllm

GIB = 1 << 30


def model(*layers: Layer, model_type: str = "llama", **config: object) -> Architecture:
    return Architecture(model_type, (), layers, 4096, 32, None, "bfloat16", 131072, config=config)


def settings(release: str = "0.33.0", window: int = 131072, batch: int = 8192, **more: Any) -> vllm.Settings:
    return vllm.Settings(release, window, batch, **more)


def laid_out(arch: Architecture, given: vllm.Settings) -> vllm.Layout:
    found = vllm.layout(arch, given)
    assert isinstance(found, vllm.Layout), found
    return found


LLAMA_8B = model(*[(Attention(8, 128, 128),)] * 32)
GEMMA_27B = model(
    *[(Attention(16, 128, 128, window=None if i % 6 == 5 else 1024),) for i in range(62)], model_type="gemma3_text"
)
DELTA = State("gdn", 2 * 16 * 128 + 48 * 128, 4, 48 * 128 * 128, 48, 16, 128, 128)
QWEN_27B = model(
    *[(Attention(4, 256, 256),) if i % 4 == 3 else (DELTA,) for i in range(64)],
    model_type="qwen3_5_text",
    mamba_ssm_dtype="float32",
)
KIMI_DELTA = State("kda", 3 * 4096, 4, 32 * 128 * 128, 32, 32, 128, 128)
KIMI_LINEAR = model(
    *[(Latent(512, 64, 32, 128, 128),) if i in (3, 7, 11, 15, 19, 23, 26) else (KIMI_DELTA,) for i in range(27)],
    model_type="kimi_linear",
)
# inner 48 x 64, one group of 128 states: convolution 3072 + 2 x 128
GRANITE_1B = model(
    *[
        (Attention(4, 128, 128),) if i % 10 == 5 else (State("mamba2", 3328, 4, 48 * 64 * 128, 48, 1, 128, 64, 1),)
        for i in range(40)
    ],
    model_type="granitemoehybrid",
    mamba_chunk_size=256,
)


class TestOneGroup:
    def test_llama_at_its_window_needs_sixteen_gib(self) -> None:
        """131,072 tokens x 32 layers x 8 heads x 256 x 2 bytes = 16 GiB, as the engine prints it."""
        for release in vllm.known_releases():
            assert vllm.request_bytes(laid_out(LLAMA_8B, settings(release))) == 16 * GIB

    def test_a_pool_of_exactly_the_need_is_one_block_short_since_0_29(self) -> None:
        assert vllm.fits(laid_out(LLAMA_8B, settings("0.27.1")), 16 * GIB)
        new = laid_out(LLAMA_8B, settings("0.29.0"))
        assert not vllm.fits(new, 16 * GIB)
        assert vllm.fits(new, 16 * GIB + 16 * 131072)
        assert vllm.least_available(new) == 16 * GIB + 16 * 131072
        assert vllm.blocks(new, 16 * GIB) == 8192

    def test_the_estimated_length_stands_on_a_block_border(self) -> None:
        """vllm-0049: 4.92 GiB give an estimate of 40,304 tokens: 4.92 GiB // (16 x 131,072 B) blocks of 16."""
        pool = 4920 * GIB // 1000
        assert vllm.largest_window(laid_out(LLAMA_8B, settings("0.11.0")), pool) == pool // (16 * 131072) * 16 == 40304

    def test_heads_are_split_then_repeated(self) -> None:
        assert laid_out(LLAMA_8B, settings(tensor_parallel=4)).bytes_per_block == 16 * 131072 // 4
        assert laid_out(LLAMA_8B, settings(tensor_parallel=16)).bytes_per_block == 16 * 131072 // 8

    def test_a_latent_is_held_whole_by_every_device(self) -> None:
        """DeepSeek V3, fp8: 61 layers x 576 bytes, blocks of 64."""
        arch = model(*[(Latent(512, 64, 128, 128, 128),)] * 61, model_type="deepseek_v3")
        found = laid_out(arch, settings(tensor_parallel=8, kv_cache_dtype="fp8"))
        assert (found.block_size, found.bytes_per_block) == (64, 61 * 576 * 64)

    def test_sparse_latents_keep_an_indexer(self) -> None:
        """656 + 132 bytes a token and layer: 64 x 61 x 788 = 3,076,352, as executed."""
        arch = model(*[(Latent(512, 64, 128, 128, 128, 128),)] * 61, model_type="deepseek_v32")
        assert laid_out(arch, settings(kv_cache_dtype="fp8_ds_mla")).bytes_per_block == 3076352
        assert isinstance(vllm.layout(arch, settings()), Unknown)

    def test_layers_that_share_keep_nothing(self) -> None:
        arch = model(*[(Attention(8, 128, 128),)] * 4, *[(Attention(8, 128, 128, shared=True),)] * 4)
        assert laid_out(arch, settings()).bytes_per_block == 4 * 16 * 4096

    def test_decode_context_parallel_cuts_the_request(self) -> None:
        found = laid_out(LLAMA_8B, settings("0.19.1", tensor_parallel=16, decode_context_parallel=2))
        assert vllm.request_blocks(found) == 4096
        assert vllm.logged_tokens(found, 2 * GIB) == (2 * GIB // (16 * 131072 // 8) * 16 * 2,)


class TestSeveralGroups:
    def test_gemma_groups(self) -> None:
        """vllm-allocator.md 4: slices of ten up to 0.10.2, dealt out nearly even from 0.11."""
        old = [
            group.layers for group in laid_out(GEMMA_27B, settings("0.10.2")).whole.groups if group.kind == "sliding"
        ]
        new = [
            group.layers for group in laid_out(GEMMA_27B, settings("0.11.2")).whole.groups if group.kind == "sliding"
        ]
        assert (old, new) == ([10, 10, 10, 10, 10, 2], [9, 9, 9, 9, 8, 8])

    @pytest.mark.parametrize(
        ("release", "blocks"), [("0.10.2", 11654), ("0.25.1", 11654), ("0.27.1", 14726), ("0.33.0", 14726)]
    )
    def test_gemma_request(self, release: str, blocks: int) -> None:
        """131,072 / 16 + 6 x (⌈(1,023 + batch) / 16⌉ + 1); two batches are in flight from 0.27.1."""
        assert vllm.request_blocks(laid_out(GEMMA_27B, settings(release))) == blocks

    @pytest.mark.parametrize(
        ("release", "tokens"),
        [("0.10.2", 37440), ("0.19.1", 37440), ("0.24.0", 184270), ("0.27.1", 145829), ("0.33.0", 145829)],
    )
    def test_gemma_logs(self, release: str, tokens: int) -> None:
        assert vllm.logged_tokens(laid_out(GEMMA_27B, settings(release)), 20 * GIB) == (tokens,)

    def test_only_the_first_group_was_checked_for_a_while(self) -> None:
        pool = 4 * GIB
        assert vllm.fits(laid_out(GEMMA_27B, settings("0.18.1")), pool)
        assert vllm.max_concurrency(laid_out(GEMMA_27B, settings("0.18.1")), pool) < 1
        assert not vllm.fits(laid_out(GEMMA_27B, settings("0.19.1")), pool)

    def test_without_the_manager_windows_are_full(self) -> None:
        found = laid_out(GEMMA_27B, settings(hybrid_manager=False))
        assert vllm.request_bytes(found) == 62 * 131072 * 8192

    def test_chunks_turn_the_manager_off(self) -> None:
        """vllm-0093: Llama 4 Scout, TP 8, 10,485,760 tokens x 48 layers x 512 bytes = 240 GiB.

        Up to 0.13.0 the length check precedes the promotion of chunks; from 0.16.0 the manager stays on (envs.py).
        """
        arch = model(*[(Attention(8, 128, 128, chunk=None if i % 4 == 3 else 8192),) for i in range(48)])
        off = laid_out(arch, settings("0.19.1", 10485760, tensor_parallel=8, hybrid_manager=False))
        assert vllm.request_bytes(off) == 240 * GIB
        for release, kinds in (("0.13.0", {"full"}), ("0.16.0", {"full", "chunked"}), ("0.33.0", {"full", "chunked"})):
            found = laid_out(arch, settings(release, 131072, tensor_parallel=8))
            assert {group.kind for group in found.whole.groups} == kinds, release

    def test_pages_of_different_size(self) -> None:
        """Sliding 8 x 256, full 2 x 512 heads: the smaller page takes blocks of 32."""
        arch = model(
            *[(Attention(2, 512, 512) if i % 6 == 5 else Attention(8, 256, 256, window=1024),) for i in range(30)]
        )
        assert isinstance(vllm.layout(arch, settings("0.11.2")), vllm.Refusal)
        sizes = {group.kind: group.block_size for group in laid_out(arch, settings("0.20.2")).whole.groups}
        assert sizes == {"sliding": 16, "full": 32}


class TestHybrids:
    @pytest.mark.parametrize(
        ("arch", "given", "block"),
        [
            (QWEN_27B, settings("0.19.1"), 784),
            (QWEN_27B, settings("0.19.1", kv_cache_dtype="fp8"), 1568),
            (QWEN_27B, settings("0.30.0", kv_cache_dtype="fp8", tensor_parallel=2, speculative_tokens=3), 1600),
            (QWEN_27B, settings("0.30.0", prefix_caching=True), 784),
            (QWEN_27B, settings("0.33.0", prefix_caching=True, gdn_prefill="flashinfer"), 832),
            (KIMI_LINEAR, settings("0.25.1", tensor_parallel=2), 960),
            (KIMI_LINEAR, settings("0.27.1", tensor_parallel=2), 1024),
            (GRANITE_1B, settings("0.19.1"), 400),
            (GRANITE_1B, settings("0.19.1", block_size=64), 400),
            (GRANITE_1B, settings("0.20.2", block_size=64), 448),
            (GRANITE_1B, settings("0.24.0", prefix_caching=True), 512),
        ],
    )
    def test_the_block_holds_one_state(self, arch: Architecture, given: vllm.Settings, block: int) -> None:
        """Printed as `Setting attention block size to N tokens` (vllm.md 3, vllm-allocator.md 3.7)."""
        assert laid_out(arch, given).block_size == block
        assert vllm.smallest_block_size(arch, given) == block

    def test_0_9_2_does_not_raise_the_block(self) -> None:
        refused = vllm.layout(GRANITE_1B, settings("0.9.2"))
        assert isinstance(refused, vllm.Refusal)
        assert refused.smallest_block_size == 400
        assert laid_out(GRANITE_1B, settings("0.9.2", block_size=400)).block_size == 400

    @pytest.mark.parametrize(
        ("release", "more", "pages"),
        [
            ("0.10.2", {}, 1),
            ("0.24.0", {"prefix_caching": False, "speculative_tokens": 2}, 3),
            ("0.24.0", {"prefix_caching": True, "speculative_tokens": 2}, 4),
            ("0.33.0", {"gdn_prefill": "triton"}, 2),
            ("0.33.0", {"gdn_prefill": "flashinfer"}, 3),
        ],
    )
    def test_state_pages(self, release: str, more: dict[str, Any], pages: int) -> None:
        found = laid_out(QWEN_27B, settings(release, **more))
        full = -(-131072 // found.block_size)
        assert vllm.request_blocks(found) == full + 3 * pages

    def test_prefix_caching_of_hybrids_is_on_since_0_28(self) -> None:
        """vllm==0.27.1:vllm/engine/arg_utils.py:2602-2606, 0.28.0:same without `not model_config.is_hybrid`."""
        assert laid_out(QWEN_27B, settings("0.27.1")).mode == "none"
        assert laid_out(QWEN_27B, settings("0.28.0")).mode == "align"
        assert laid_out(GRANITE_1B, settings("0.27.1", prefix_caching=True)).mode == "all"
        assert laid_out(GRANITE_1B, settings("0.28.0")).mode == "align"

    def test_a_checkpoint_page_needs_the_device(self) -> None:
        unknown = vllm.layout(QWEN_27B, settings("0.33.0"))
        assert isinstance(unknown, Unknown)
        assert unknown.missing == "hardware.device"

    def test_states_bound_the_batch_width(self) -> None:
        found = laid_out(QWEN_27B, settings("0.27.1"))
        assert vllm.state_blocks(found, 10 * GIB) == 10 * GIB // (16 * 784 * 4096)
        assert vllm.state_blocks(laid_out(LLAMA_8B, settings()), 10 * GIB) is None

    def test_they_cannot_start_without_the_manager(self) -> None:
        assert isinstance(vllm.layout(QWEN_27B, settings("0.27.1", hybrid_manager=False)), vllm.Refusal)

    def test_heads_that_do_not_divide_are_refused(self) -> None:
        assert isinstance(vllm.layout(QWEN_27B, settings("0.27.1", tensor_parallel=5)), vllm.Refusal)


class TestStages:
    def test_the_remainder_goes_before_the_last_stage(self) -> None:
        found = laid_out(model(*[(Attention(8, 128, 128),)] * 31), settings(pipeline_parallel=4))
        assert [len(stage.specs) for stage in found.stages] == [8, 8, 8, 7]
        old = laid_out(model(*[(Attention(8, 128, 128),)] * 31), settings("0.6.6.post1", pipeline_parallel=4))
        assert [len(stage.specs) for stage in old.stages] == [7, 7, 7, 10]

    def test_0_16_0_holds_all_layers_against_one_stage(self) -> None:
        for release, fits in (("0.13.0", True), ("0.16.0", False), ("0.17.1", True)):
            assert vllm.fits(laid_out(LLAMA_8B, settings(release, pipeline_parallel=2)), 9 * GIB) is fits

    def test_the_smallest_stage_decides(self) -> None:
        found = laid_out(LLAMA_8B, settings(pipeline_parallel=2))
        assert vllm.blocks(found, (9 * GIB, 10 * GIB)) == 9 * GIB // GIB * 1024
        with pytest.raises(ValueError, match="2 stages"):
            vllm.blocks(found, (9 * GIB,))

    def test_a_draft_stands_behind_the_last_layer(self) -> None:
        found = laid_out(LLAMA_8B, settings(pipeline_parallel=2, draft=(LLAMA_8B.layers[0],)))
        assert [len(stage.specs) for stage in found.stages] == [16, 17]


class TestUnknown:
    @pytest.mark.parametrize(
        ("arch", "given"),
        [
            (model((Compressed(4, 128, 512, 128),)), settings()),
            (model((Cross(8, 128, 128),)), settings()),
            (model((State("rwkv", 0, 1, 64),)), settings()),
            (model((DELTA,)), settings()),
            (LLAMA_8B, settings(kv_cache_dtype="turboquant_3bit_nc")),
            (LLAMA_8B, settings(kv_cache_dtype="int8_per_token_head")),
            (model((Latent(512, 64, 8, 128, 128),)), settings("0.7.3")),
            (QWEN_27B, settings("0.8.5")),
            (model((Attention(4, 192, 128),)), settings("0.11.2")),
            (model(), settings()),
        ],
    )
    def test_never_a_number(self, arch: Architecture, given: vllm.Settings) -> None:
        found = vllm.layout(arch, given)
        assert isinstance(found, Unknown)
        assert found.reason
        assert found.missing

    def test_a_release_between_two_that_differ(self) -> None:
        """0.14.0rc1 lies between 0.13.0 and 0.14.0."""
        found = vllm.layout(GEMMA_27B, settings("0.14.0rc1"))
        assert isinstance(found, Unknown)
        assert found.missing == "engine.version"
        assert len(vllm.layouts(GEMMA_27B, settings("0.14.0rc1"))) == 2
        assert vllm.request_bytes(laid_out(LLAMA_8B, settings("0.14.0rc1"))) == 16 * GIB
        assert vllm.request_blocks(laid_out(GEMMA_27B, settings("0.20.0"))) == 11654


class TestCacheBytes:
    def test_full_attention(self) -> None:
        assert vllm.cache_bytes(LLAMA_8B, 1000) == 63 * 16 * 131072
        assert vllm.cache_bytes(LLAMA_8B, 1000, sequences=3, kv_dtype="fp8", block_size=32) == 3 * 32 * 32 * 65536

    def test_windows_hold_their_batch(self) -> None:
        assert vllm.cache_bytes(GEMMA_27B, 131072, version="0.24.0", batched_tokens=8192) == 11654 * 10 * 16 * 8192

    def test_one_state_a_sequence(self) -> None:
        """784 tokens of one block for each of four groups of sixteen layers."""
        assert vllm.cache_bytes(QWEN_27B, 784) == 4 * 16 * 784 * 4096

    def test_not_understood(self) -> None:
        with pytest.raises(UnknownArchitecture):
            vllm.cache_bytes(model((Cross(8, 128, 128),)), 100)
        with pytest.raises(UnknownArchitecture) as refused:
            vllm.cache_bytes(GRANITE_1B, 100, version="0.9.2")
        assert refused.value.field == "block_size"
        with pytest.raises(UnknownArchitecture) as between:
            vllm.cache_bytes(GEMMA_27B, 131072, version="0.26.0rc1", batched_tokens=8192)
        assert between.value.field == "version"


def test_concurrency_is_exact() -> None:
    """vllm-0001: 1,952 blocks of 16 tokens are 1.56 requests of 20,000."""
    found = laid_out(LLAMA_8B, settings("0.6.0", 20000))
    assert vllm.max_concurrency(found, 1952 * found.bytes_per_block) == Fraction(1952, 1250)
    assert vllm.pool_tokens(found, 1952 * found.bytes_per_block) == 1952 * 20000 // 1250


@drawn(
    st.sampled_from([LLAMA_8B, GEMMA_27B, QWEN_27B, KIMI_LINEAR, GRANITE_1B]),
    st.sampled_from(["0.10.2", "0.13.0", "0.16.0", "0.19.1", "0.24.0", "0.27.1", "0.30.0", "0.33.0"]),
    st.integers(1, 200_000),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2]),
)
def test_the_border_is_sharp(arch: Architecture, release: str, window: int, devices: int, stages: int) -> None:
    """The least pool passes and one byte less does not; the largest window passes and one token more does not."""
    more: dict[str, Any] = {"tensor_parallel": devices, "pipeline_parallel": stages, "gdn_prefill": "triton"}
    found = vllm.layout(arch, settings(release, window, **more))
    if isinstance(found, vllm.Refusal | Unknown):
        return
    least = vllm.least_available(found)
    assert vllm.fits(found, least)
    assert not vllm.fits(found, least - 1)
    largest = vllm.largest_window(found, least, 2 * window)
    assert largest >= window
    assert vllm.fits(found, least, largest)
    assert largest == 2 * window or not vllm.fits(found, least, largest + 1)
