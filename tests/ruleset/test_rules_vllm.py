"""What the rules say of vLLM, release by release (facts: vllm.md, vllm-allocator.md)."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

POOL = '[[hardware]]\nmatch = "**"\navailable_kv = "{}GiB"\n'
HYBRID = "Qwen/Qwen3.5-27B --max-model-len 32768"


def severity(rule: str, args: str, version: str = "==0.22.1", config: str | None = None, env: str = "") -> str | None:
    """The severity of `rule`, `unchecked`, or None."""
    text = f"#!/bin/sh\n{env}\nexec uvx --from 'vllm{version}' vllm serve {args}\n"
    return said(rule, {"chat.sh": text}, config)


def said(rule: str, files: dict[str, str], config: str | None = None) -> str | None:
    report = check_files(files, config)
    assert report.internal == []
    found = [each.severity for each in report.findings if each.rule == rule]
    assert len(found) <= 1
    if found:
        return found[0]
    return "unchecked" if any(each.rule == rule for each in report.unchecked) else None


# vllm-project/recipes#551: 856 blocks for a default width of 1,024; a block of this model is 784 tokens, 16-bit.
@pytest.mark.parametrize(
    ("args", "version", "expected"),
    [
        ("--max-num-seqs 1024", "==0.20.2", "error"),
        ("--max-num-seqs 1024", "==0.19.1", "warning"),  # capture sizes were capped without a word
        ("--max-num-seqs 1024 --enforce-eager", "==0.22.1", "warning"),
        ("--max-num-seqs 1024 -cc.cudagraph_mode=PIECEWISE", "==0.22.1", "warning"),
        ("--max-num-seqs 1024 -cc.cudagraph_mode=FULL_DECODE_ONLY", "==0.22.1", "error"),
        ("--max-num-seqs 1024 -O1", "==0.22.1", "warning"),
        ("--max-num-seqs 417", "==0.22.1", None),
        ("--max-num-seqs 418", "==0.22.1", "error"),
    ],
)
def test_each_sequence_takes_a_state_block(args: str, version: str, expected: str | None) -> None:
    assert severity("state-blocks-below-width", f"{HYBRID} {args}", version, POOL.format(20)) == expected


def test_the_blocks_are_those_of_one_rank() -> None:
    args = f"{HYBRID} --max-num-seqs 400 --data-parallel-size 2"
    assert severity("state-blocks-below-width", args, config=POOL.format(20)) is None


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("microsoft/phi-4 --tensor-parallel-size 4", "error"),  # 40 heads, 10 KV heads
        ("microsoft/phi-4 --tensor-parallel-size 20", None),
        ("microsoft/phi-4 --tensor-parallel-size 3", None),  # the query heads do not divide: another rule
        ("deepseek-ai/DeepSeek-V3 --tensor-parallel-size 16", None),
    ],
)
def test_kv_heads_are_split_or_copied(args: str, expected: str | None) -> None:
    assert severity("kv-heads-not-divisible", args) == expected


@pytest.mark.parametrize(
    ("model", "flags", "version", "expected"),
    [
        (HYBRID, "--disable-hybrid-kv-cache-manager", "==0.22.1", "error"),
        (HYBRID, '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_both"}\'', "==0.22.1", "error"),
        (HYBRID, '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_both"}\'', "==0.24.0", None),
        (
            HYBRID,
            '--kv-transfer-config \'{"kv_connector":"NixlConnector","kv_role":"kv_both"}\' --no-disable-hybrid-kv-cache-manager',
            "==0.22.1",
            None,
        ),
        ("openai/gpt-oss-20b", "--disable-hybrid-kv-cache-manager", "==0.22.1", "warning"),
        ("Qwen/Qwen3-8B", "--disable-hybrid-kv-cache-manager", "==0.22.1", None),
    ],
)
def test_the_hybrid_manager_is_needed(model: str, flags: str, version: str, expected: str | None) -> None:
    assert severity("hybrid-manager-off", f"{model} {flags}", version) == expected


@pytest.mark.parametrize(
    ("partition", "stages", "expected"),
    [("18,18", 2, None), ("20,20", 2, "error"), ("36", 1, None), ("18,18", 1, "error"), ("", 2, None)],
)
def test_the_partition_adds_up(partition: str, stages: int, expected: str | None) -> None:
    env = f"export VLLM_PP_LAYER_PARTITION={partition}" if partition else ""
    assert severity("pipeline-partition", f"Qwen/Qwen3-8B --pipeline-parallel-size {stages}", env=env) == expected


@pytest.mark.parametrize(
    ("args", "version", "expected"),
    [
        ("--max-num-batched-tokens 8192 --no-enable-chunked-prefill", "==0.27.1", "error"),
        ("--max-num-batched-tokens 8192 --no-enable-chunked-prefill", "==0.9.2", None),  # V1 chunks all the same
        ("--max-num-batched-tokens 8192 --no-enable-chunked-prefill", "==0.11.2", "error"),
        ("--no-enable-chunked-prefill", "==0.27.1", "unchecked"),  # by the device, then raised to the window
        ("--max-num-batched-tokens 8192", "==0.27.1", None),
    ],
)
def test_one_pass_takes_the_window(args: str, version: str, expected: str | None) -> None:
    assert severity("prefill-budget-below-window", f"Qwen/Qwen3-8B --max-model-len 32768 {args}", version) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("Qwen/Qwen3-235B-A22B-FP8 --tensor-parallel-size 8", "warning"),  # 1,536 ÷ 8 = 192
        ("Qwen/Qwen3-235B-A22B-FP8 --tensor-parallel-size 4", None),
        ("Qwen/Qwen3-235B-A22B-FP8 --tensor-parallel-size 8 --enable-expert-parallel", None),
        ("Qwen/Qwen3-32B-FP8 --tensor-parallel-size 8", None),  # 25,600 ÷ 8 = 3,200 = 25 × 128
        ("Qwen/Qwen3-235B-A22B --tensor-parallel-size 8", None),
    ],
)
def test_blocks_of_weights_are_whole(args: str, expected: str | None) -> None:
    assert severity("quantization-not-divisible", args) == expected


DEVICE = '[[hardware]]\nmatch = "**"\ndevice = "{}"\n'


@pytest.mark.parametrize(
    ("args", "device", "expected"),
    [
        ("--dtype bfloat16", "Tesla T4", "error"),
        ("--dtype bfloat16", "NVIDIA L4", None),
        ("", "Tesla T4", None),  # `auto` falls back
        ("--kv-cache-dtype fp8", "NVIDIA A10", "unchecked"),  # FlashInfer can, Triton cannot
        ("--kv-cache-dtype fp8 --attention-backend TRITON_ATTN", "NVIDIA A10", "error"),
        ("--kv-cache-dtype fp8 --attention-backend FLASHINFER", "NVIDIA A10", None),
        ("--kv-cache-dtype fp8", "NVIDIA L4", None),
    ],
)
def test_types_need_the_device(args: str, device: str, expected: str | None) -> None:
    line = f"Qwen/Qwen2.5-0.5B-Instruct --max-model-len 4096 {args}"
    assert severity("kv-dtype-unsupported", line, config=DEVICE.format(device)) == expected


def test_e5m2_does_not_go_with_an_fp8_checkpoint() -> None:
    assert severity("kv-dtype-unsupported", "Qwen/Qwen3-32B-FP8 --kv-cache-dtype fp8_e5m2") == "error"
    assert severity("kv-dtype-unsupported", "Qwen/Qwen3-32B --kv-cache-dtype fp8_e5m2") is None


@pytest.mark.parametrize(
    ("args", "expected"), [("32k", "note"), ("32K", None), ("32000", None), ("1.5k", "note"), ("auto", None)]
)
def test_small_letters_count_in_thousands(args: str, expected: str | None) -> None:
    assert severity("thousand-or-1024", f"Qwen/Qwen3-8B --max-model-len {args}") == expected
