"""What of a paged pool is asked: by each rank, in the engine's own layout."""

from __future__ import annotations

from typing import Any

import pytest

from kvlint.facts import Unknown
from kvlint.pipeline import check_files, evaluate, memory_project

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec:
  nodeSelector: {{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
  containers:
    - name: engine
      image: vllm/vllm-openai:v0.24.0
      args: [{args}]
      resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}
"""


def pod(*args: str, gpus: int = 1) -> dict[str, str]:
    return {"a.yaml": POD.format(args=", ".join(f'"{each}"' for each in args), gpus=gpus)}


@pytest.mark.parametrize(
    ("ranks", "streams", "found"), [(1, 2, []), (1, 3, ["error"]), (2, 4, []), (2, 5, ["error"]), (3, 6, [])]
)
def test_streams_are_spread_over_the_ranks(ranks: int, streams: int, found: list[str]) -> None:
    """A request of 32,768 tokens takes 32,768 × 147,456 bytes; the pool of each rank holds two."""
    pool = 2 * 32768 * 147456
    toml = f'[[hardware]]\nmatch = "**"\navailable_kv = {pool}\n[[workload]]\nmatch = "**"\nstreams = {streams}\n'
    files = pod("--model", "Qwen/Qwen3-8B", "--max-model-len", "32768", "-dp", str(ranks), gpus=ranks)
    assert [each.severity for each in check_files(files, toml).findings if each.rule == "streams-exceed-pool"] == found


@pytest.mark.parametrize(
    ("dtype", "each"),
    [
        ("bfloat16", (512 + 64) * 2 + 132),  # kv-formulas 4: the indexer keeps 8-bit keys and a scale, 128 + 4 bytes
        ("fp8_ds_mla", 656 + 132),  # vllm.md 3
    ],
)
def test_one_copy_of_a_sparse_latent_cache(dtype: str, each: int) -> None:
    (group,) = evaluate(
        memory_project(pod("--model", "deepseek-ai/DeepSeek-V3.2", "-tp", "8", "--kv-cache-dtype", dtype))
    ).groups
    got: Any = group.first.get("kv_bytes_per_token")
    assert got.value == 61 * each
    device: Any = group.first.get("kv_bytes_per_token_per_device")
    assert device.value == 61 * each  # latents are the same on every device


@pytest.mark.parametrize("model", ["deepseek-ai/DeepSeek-V3.2", "deepseek-ai/DeepSeek-V4-Flash"])
def test_no_figure_where_the_layout_is_not_known(model: str) -> None:
    """What `auto` is for sparse attention differs by backend; V4's groups of several kinds were not worked out."""
    (group,) = evaluate(memory_project(pod("--model", model, "-tp", "8"))).groups
    assert isinstance(group.first.get("kv_bytes_per_token"), Unknown)


def test_a_default_width_is_no_matter_of_the_window() -> None:
    """1,024 sequences by the device, against 200 blocks of 784 × 4,096 × 16 bytes: the window has no part in it."""
    toml = f'[[hardware]]\nmatch = "**"\navailable_kv = {200 * 784 * 4096 * 16}\n'
    found = check_files(pod("--model", "Qwen/Qwen3.5-27B", "--max-model-len", "32768"), toml).findings
    assert [each.text for each in found if each.rule == "state-blocks-below-width"] == ["NVIDIA-H100-80GB-HBM3"]


@pytest.mark.parametrize(("release", "found"), [("0.28.4", []), ("0.29.1", ["warning"])])
def test_a_chunked_cache_is_served_alone_since_the_class_is_asked(release: str, found: list[str]) -> None:
    """mlx_lm==0.29.1 server.py:510-512 asks the class of each layer's cache; 0.28.4 asks nothing."""
    line = f"#!/bin/sh\nuvx --from mlx-lm=={release} mlx_lm.server --model meta-llama/Llama-4-Scout-17B-16E-Instruct\n"
    report = check_files({"a.sh": line})
    assert [each.severity for each in report.findings if each.rule == "unmergeable-cache"] == found


@pytest.mark.parametrize(
    ("start", "found"), [(19999, ["quantized-kv-sliding-window"]), (20000, ["quantized-kv-never-starts"])]
)
def test_a_start_at_the_window_is_not_reached(start: int, found: list[str]) -> None:
    line = "#!/bin/sh\n# kvlint: window=20000\nuvx --from mlx-lm==0.32.2 mlx_lm.server --model openai/gpt-oss-20b --kv-bits 8"
    report = check_files({"a.sh": f"{line} --quantized-kv-start {start}\n"})
    rules = ("quantized-kv-sliding-window", "quantized-kv-never-starts")
    assert [each.rule for each in report.findings if each.rule in rules] == found


SGLANG = """\
apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec:
  nodeSelector: {selector}
  containers:
    - name: engine
      image: lmsysorg/sglang:v0.5.23
      args: [python3, -m, sglang.launch_server, --model-path, deepseek-ai/DeepSeek-V3.2, --tp, "8"]
      resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""


@pytest.mark.parametrize(
    ("selector", "each"),
    [
        ("{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}", 576 * 2 + 132),  # sglang-pool.md 2.1: 16 bits on sm 90
        ("{nvidia.com/gpu.product: NVIDIA-B200}", 576 + 132),  # fp8 for the backend of sm 100
        ("{}", None),
    ],
)
def test_the_device_decides_the_type_of_a_sparse_cache(selector: str, each: int | None) -> None:
    (group,) = evaluate(memory_project({"a.yaml": SGLANG.format(selector=selector)})).groups
    got: Any = group.first.get("kv_bytes_per_token")
    assert (None if isinstance(got, Unknown) else got.value) == (each and 61 * each)
