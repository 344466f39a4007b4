"""What the estimate of activations says far beyond the batches that were measured."""

from __future__ import annotations

from kvlint.pipeline import check_files
from kvlint.sizing.vllm.memory import activation_bytes

MODEL = """apiVersion: kubeai.org/v1
kind: Model
metadata: {name: llama}
spec:
  features: [TextGeneration]
  url: hf://neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8
  engine: VLLM
  args: [--max-model-len=32768, --max-num-batched-token=32768, --kv-cache-dtype=fp8, --tensor-parallel-size=2, -pp=4]
  resourceProfile: nvidia-gpu-l4:8
"""


def test_further_tokens_cost_what_depends_on_them() -> None:
    assert activation_bytes.plain(2_000, 10, 8_000, 3) == 20_000
    assert activation_bytes.plain(10_000, 10, 8_000, 3) == 80_000 + 6_000


def test_a_large_batch_on_small_devices_is_no_finding() -> None:
    """70.6 GB over eight devices of 22 GiB: 8.2 GiB each; one request is 32,768 × 160 KiB ÷ 8 = 640 MiB."""
    assert [each.rule for each in check_files({"m.yaml": MODEL}).findings if each.severity != "note"] == []
