"""Pools that vLLM measured lie within what is predicted, and no start is called impossible that took place.

The overhead of a profiling run follows the model's width and the batch, and small models need little of it.
"""

from __future__ import annotations

import pytest

from kvlint.facts import Fact, Range
from kvlint.pipeline import check_files

GIB = 1 << 30


@pytest.mark.parametrize(
    ("model", "line", "device", "pool"),
    [
        # 14.56 GiB x 0.50 - 2.89 weights - 2.02 activations - 0.01 = 2.36 GiB, vLLM 0.7.2 on a T4
        ("Qwen/Qwen2.5-1.5B-Instruct", "--gpu-memory-utilization 0.5 --dtype half --max-model-len 32768", "T4", 2.36),
        # 22.07 GiB x 0.90 - 14.99 weights - 0.22 activations - 0.05 = 4.60 GiB, vLLM 0.7.2 on an A10
        ("meta-llama/Llama-3.1-8B-Instruct", "--gpu-memory-utilization 0.9 --max-model-len 37696", "A10", 4.60),
    ],
)
def test_a_measured_pool_lies_within_the_prediction(model: str, line: str, device: str, pool: float) -> None:
    files = {"serve.sh": f"#!/bin/sh\nexec vllm serve {model} --revision abc {line}\n"}
    config = f'[[hardware]]\nmatch = "**"\ndevice = "{device}"\n[[engine]]\nmatch = "**"\nversion = "0.7.2"\n'
    report = check_files(files, config)
    found = report.groups[0].first.sizing.get("pool_bytes")
    assert isinstance(found, Fact)
    assert isinstance(found.value, Range)
    assert found.value.low <= pool * GIB <= found.value.high
    assert [each.rule for each in report.findings if each.severity == "error"] == []


def test_what_a_small_batch_leaves_is_doubted_and_not_refused() -> None:
    """0.17 x 94.97 GiB = 16.14 - 14.19 weights = 1.96 GiB for the overhead and 8192 x 56 KiB = 0.44."""
    files = {
        "serve.sh": "#!/bin/sh\nexec vllm serve Qwen/Qwen2.5-7B-Instruct --revision abc --dtype bfloat16"
        " --max-model-len 8192 --max-num-seqs 2 --gpu-memory-utilization 0.17\n"
    }
    config = '[[hardware]]\nmatch = "**"\ndevice = "rtx-pro-6000"\n[[engine]]\nmatch = "**"\nversion = "0.27.0"\n'
    report = check_files(files, config)
    assert [(each.rule, each.severity) for each in report.findings] == [("window-exceeds-pool", "warning")]
