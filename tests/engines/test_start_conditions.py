"""Options that SGLang, TGI, LMDeploy and vllm-mlx refuse together, each read in the release's own checks.

SGLang: srt/server_args.py (0.4.6, 0.4.10, 0.5.5), srt/arg_groups/kv_cache_hook.py and hisparse_hook.py (0.5.23).
TGI: launcher/src/main.rs, server/text_generation_server/models/globals.py and model.py (v2.4.1 to v3.3.7).
LMDeploy: lmdeploy/messages.py (v0.9.2, v0.16.0), pytorch/engine/cache_engine.py (v0.16.0).
vllm-mlx: vllm_mlx/cli.py (0.4.1, 0.6.0).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import kvlint


def errors(tmp_path: Path, line: str, config: str = "") -> str:
    (tmp_path / "chat.sh").write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    (tmp_path / "kvlint.toml").write_text(config, encoding="utf-8")
    report = kvlint.check([str(tmp_path)])
    return "\n".join(each.message for each in report.findings if each.severity == "error")


def sglang(release: str, arguments: str, model: str = "Qwen/Qwen3-8B") -> str:
    return f"exec uvx --from sglang=={release} python -m sglang.launch_server --model-path {model} {arguments}"


def tgi(release: str, arguments: str, variables: str = "") -> str:
    image = f"ghcr.io/huggingface/text-generation-inference:{release}"
    return f"docker run {variables} {image} --model-id Qwen/Qwen3-8B {arguments}"


def vllm_mlx(release: str, arguments: str) -> str:
    return f"exec uvx --from vllm-mlx=={release} vllm-mlx serve mlx-community/x {arguments}"


def lmdeploy(release: str, arguments: str, model: str = "Qwen/Qwen3-8B") -> str:
    return f"exec uvx --from lmdeploy=={release} lmdeploy serve api_server {model} --backend pytorch {arguments}"


SPARSE = "deepseek-ai/DeepSeek-V3.2"
DRAFT = "--mllm --mllm-draft-model y"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (sglang("0.4.6", "--lora-paths a=b --disable-radix-cache"), "needs --disable-cuda-graph"),
        (sglang("0.4.10", "--lora-paths a=b"), "needs --disable-radix-cache"),
        (sglang("0.5.5", "--enable-hierarchical-cache --disable-radix-cache"), "does not go with --disable-radix"),
        (sglang("0.5.23", "--enable-lmcache --enable-hierarchical-cache"), "does not go with --enable-hierarchical"),
        (sglang("0.5.23", "--enable-hisparse"), "needs --disable-radix-cache"),
        (sglang("0.5.5", "--page-size 0"), "`0`"),
        (sglang("0.5.5", "--tp 0"), "`0`"),
        (tgi("3.3.7", "--quantize exl2 --num-shard 2"), "exl2 weights cannot be split over 2 shards"),
        (tgi("2.4.1", "", "-e ATTENTION=paged -e PREFIX_CACHING=1"), "does not go with paged attention"),
        (
            tgi("3.3.7", "--max-input-tokens 8000 --max-batch-prefill-tokens 4000", "-e ATTENTION=paged"),
            "max_batch_prefill_tokens 4000 is below max_input_tokens 8000",
        ),
        (
            tgi("3.3.7", "--max-input-tokens 8000 --max-batch-prefill-tokens 4000 --speculate 2"),
            "max_batch_prefill_tokens 4000 is below max_input_tokens 8000",
        ),
        (lmdeploy("0.16.0", "--quant-policy 8", SPARSE), "takes quant_policy 0 or 16, not 8"),
        (lmdeploy("0.9.2", "--quant-policy 8 --device maca"), "CUDA and Ascend only, not on maca"),
        (vllm_mlx("0.6.0", f"{DRAFT} --lazy-load-model"), "does not go with --lazy-load-model"),
        (vllm_mlx("0.6.0", f"{DRAFT} --auto-unload-idle-seconds 60"), "does not go with --auto-unload"),
        (vllm_mlx("0.6.0", f"{DRAFT} --continuous-batching"), "needs --mllm-draft-kind"),
        (vllm_mlx("0.4.1", f"{DRAFT} --mllm-draft-kind mtp --continuous-batching"), "does not go with --continuous"),
    ],
)
def test_what_they_refuse(tmp_path: Path, line: str, told: str) -> None:
    assert told in errors(tmp_path, line)


@pytest.mark.parametrize(
    "line",
    [
        sglang("0.4.6", "--lora-paths a=b --disable-radix-cache --disable-cuda-graph"),
        sglang("0.5.5", "--lora-paths a=b"),
        sglang("0.5.23", "--enable-hierarchical-cache"),
        tgi("3.3.7", "--quantize exl2 --num-shard 1"),
        tgi("3.3.7", "", "-e ATTENTION=flashinfer -e PREFIX_CACHING=1"),
        tgi("2.0.0", "", "-e PREFIX_CACHING=1"),  # nobody reads it yet
        tgi("3.3.7", "--max-input-tokens 8000 --max-batch-prefill-tokens 4000"),
        lmdeploy("0.16.0", "--quant-policy 16", SPARSE),
        lmdeploy("0.9.2", "--quant-policy 8 --device ascend"),
        lmdeploy("0.9.2", "--device maca"),
        vllm_mlx("0.6.0", f"{DRAFT} --auto-unload-idle-seconds 0"),
        vllm_mlx("0.6.0", f"{DRAFT} --mllm-draft-kind mtp --continuous-batching"),
        vllm_mlx("0.6.0", f"{DRAFT} --mllm-draft-kind mtp"),
    ],
)
def test_what_they_take(tmp_path: Path, line: str) -> None:
    assert errors(tmp_path, line) == ""


def test_a_share_above_one_asks_for_more_than_there_is(tmp_path: Path) -> None:
    """Free after loading 40 GiB of 80: the cache would be 40 - 80 × (1 - 1.5) = 80 GiB."""
    memory = '[[hardware]]\nmatch = "**"\nmemory = "80GiB"\nfree = "80GiB"\nloaded_free = "40GiB"\ncapability = 9.0\n'
    told = "mem_fraction_static above 1 makes a cache larger than the memory that is free"
    assert told in errors(tmp_path, sglang("0.5.5", "--mem-fraction-static 1.5"), memory)
    assert told not in errors(tmp_path, sglang("0.5.5", "--mem-fraction-static 0.9"), memory)
    capped = sglang("0.5.5", "--mem-fraction-static 1.5 --max-total-tokens 50000")
    assert told not in errors(tmp_path, capped, memory)
