"""What `show` and `explain` print of a value, and what a finding calls a cause."""

from __future__ import annotations

import re
from typing import Any

from contract_inputs import CHAT, MAC, chat, deployment

MEASURED = '[[hardware]]\nmatch = "**"\navailable_kv = "1GiB"\n'


def test_a_value_is_never_an_empty_text(project: Any) -> None:
    """mlx_lm.server's --chat-template is "" where it is not given: the model's own."""
    project.write({"chat.sh": CHAT, "kvlint.toml": MAC})
    assert "chat_template" not in project.server()["settings"]
    assert not re.search(r"(?m)^    \w+ {3,}(default|assumed)", project.run("show").out)
    project.write({"chat.sh": chat("", " --chat-template own.jinja")})
    assert project.server()["settings"]["chat_template"]["value"] == "own.jinja"


def test_a_proof_has_no_term_that_only_repeats_its_name(project: Any) -> None:
    told = project.write({"q.yaml": deployment(device="NVIDIA-H100-80GB-HBM3")}).run("explain", "q.yaml").out
    assert "layout  = layers cut into groups" in told
    assert "layout = layout" not in told
    assert "default of  " not in told
    assert "release = 0.11.0  in 0.11.0" in told


def test_what_a_measured_pool_does_not_rest_on_is_no_cause(project: Any) -> None:
    """No layer of Qwen3-32B has a window: one request takes 32,768 × 256 KiB = 8 GiB, whatever the batch and the device."""
    args = "[--model=Qwen/Qwen3-32B, --max-model-len=32768, --max-num-seqs=16]"
    served = deployment(args=args, device="NVIDIA-A100-SXM4-80GB")
    (found,) = project.write({"q.yaml": served, "kvlint.toml": MEASURED}).findings("window-exceeds-pool")
    assert (found["severity"], found["certainty"]) == ("error", "certain")
    assert found["values"] == {"window": 32768, "pool_bytes": 2**30, "request_kv_bytes": 8 * 2**30}
    assert [each["message"] for each in found["related"]] == ["pool_bytes = 1 GiB"]


def test_what_an_estimated_pool_rests_on_is_a_cause(project: Any) -> None:
    args = "[--model=Qwen/Qwen3-32B, --max-model-len=32768, --gpu-memory-utilization=0.88]"
    (found,) = project.write({"q.yaml": deployment(args=args, device="NVIDIA-A100-SXM4-80GB")}).findings(
        "window-exceeds-pool"
    )
    assert {each["message"].partition(" = ")[0] for each in found["related"]} >= {"memory_fraction", "device_name"}
