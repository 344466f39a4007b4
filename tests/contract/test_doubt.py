"""What is not known: unseen arguments, versions, ranges."""

from __future__ import annotations

from typing import Any

import pytest
from contract_inputs import deployment

SERVE = "uvx --from vllm==0.11.0 vllm serve Qwen/Qwen3-32B"


def severities(found: Any) -> dict[str, str]:
    return {each["rule"]: each["severity"] for each in found["findings"]}


def missing(found: Any, rule: str) -> list[str]:
    return [each["missing"] for each in found["unchecked"] if each["rule"] == rule]


@pytest.mark.parametrize("splice", ["$EXTRA_ARGS", '"$@"', "--config elsewhere.yaml"])
def test_an_absent_flag_is_unknown_and_a_written_one_capped(project: Any, splice: str) -> None:
    found = project.write({"serve.sh": f"{SERVE} --max-model-len 409600 {splice}\n"}).check()
    assert severities(found)["window-beyond-model"] == "warning"
    assert missing(found, "heads-not-divisible") == ["arguments.tensor_parallel_size"]
    assert "tensor_parallel" not in project.server()["settings"]
    found = project.write({"serve.sh": f"{SERVE} --max-model-len 409600\n"}).check()
    assert severities(found)["window-beyond-model"] == "error"
    assert missing(found, "heads-not-divisible") == []


def test_an_unseen_environment_hides_a_variable(project: Any) -> None:
    """llama-server reads LLAMA_ARG_N_PARALLEL: without the flag, the slots are unknown."""
    opened = "          envFrom: [{secretRef: {name: elsewhere}}]\n"
    line = {"image": "ghcr.io/ggml-org/llama.cpp:server-b11434", "args": '[-m, /m/x.gguf, -c, "8192"]'}
    assert "batch_width" in project.write({"q.yaml": deployment(**line)}).server()["settings"]
    assert "batch_width" not in project.write({"q.yaml": deployment(**line, container=opened)}).server()["settings"]


def test_a_variables_default_is_in_doubt(project: Any) -> None:
    text = (
        "services:\n  a:\n    image: vllm/vllm-openai:v0.11.0\n    command: --model Qwen/Qwen3-32B --max-model-len {}\n"
    )
    found = project.write({"compose.yaml": text.format("${LEN:-409600}")}).check()
    assert severities(found)["window-beyond-model"] == "warning"
    found = project.write({"compose.yaml": text.format("${LEN}"), ".env": "LEN=409600\n"}).check()
    assert severities(found)["window-beyond-model"] == "error"


def test_false_in_some_worlds_asks_for_the_version(project: Any) -> None:
    """`--swap-space` was gone in 0.18.0."""
    floating = deployment(image="vllm/vllm-openai:latest", args="[--model=Qwen/Qwen3-32B, --swap-space=4]")
    found = project.write({"q.yaml": floating}).check()
    assert missing(found, "removed-flag") == ["engine.version"]
    assert "removed-flag" not in severities(found)
    found = project.write({"q.yaml": floating.replace("latest", "v0.18.0")}).check()
    assert severities(found)["removed-flag"] == "error"
    assert "removed-flag" not in severities(project.write({"q.yaml": floating.replace("latest", "v0.17.1")}).check())


@pytest.mark.parametrize(
    ("image", "severity", "told"),
    [
        ("vllm/vllm-openai:v0.11.0", "error", "has no flag"),
        ("vllm/vllm-openai:v0.18.0", "error", "has no flag"),
        ("vllm/vllm-openai:v0.18.0rc1", "warning", "no release between 0.17.1 and 0.18.0"),
        ("vllm/vllm-openai:v0.99.0", "warning", "kvlint's data ends at 0.33.0"),
        ("vllm/vllm-openai:v0.3.0", "warning", "kvlint's data begins at 0.6.0"),
        ("vllm/vllm-openai", "warning", "has no flag"),
    ],
)
def test_a_flag_that_no_release_has(project: Any, image: str, severity: str, told: str) -> None:
    project.write({"q.yaml": deployment(image=image, args="[--model=Qwen/Qwen3-32B, --no-such-thing=1]")})
    (finding,) = project.findings("unknown-flag")
    assert finding["severity"] == severity
    assert told in finding["message"]


def test_a_tag_of_another_image_is_no_version(project: Any) -> None:
    project.write({"q.yaml": deployment(image="acme/vllm:v0.11.0", args="[vllm, serve, Qwen/Qwen3-32B]")})
    assert len(project.server()["engine_versions"]) > 10


def test_a_range_on_both_sides_is_a_margin(project: Any) -> None:
    """The pool of 0.88 of an A100 is 6.0 to 8.6 GiB beside these weights: 6.3 GiB may fit, 8.2 GiB rather not, 10 GiB never."""
    seen = {}
    for window in (24000, 26000, 33500, 40960):
        args = f"[--model=Qwen/Qwen3-32B, --max-model-len={window}, --gpu-memory-utilization=0.88]"
        project.write({"q.yaml": deployment(args=args, device="NVIDIA-A100-SXM4-80GB")})
        found = project.findings("window-exceeds-pool")
        seen[window] = [(each["severity"], each["certainty"]) for each in found]
        if window == 33500:
            message = found[0]["message"]
    assert seen == {24000: [], 26000: [], 33500: [("warning", "margin")], 40960: [("error", "certain")]}
    assert "between 6.0" in message
    assert "% of the limit" in message


def test_what_is_unknown_is_counted_and_no_finding(project: Any) -> None:
    found = project.write({"serve.sh": "uvx --from vllm==0.11.0 vllm serve acme/unheard-of --revision a\n"}).check()
    assert found["findings"] == []
    assert found["summary"]["unchecked"] == len(found["unchecked"]) > 0
    text = project.run("check").out
    assert f"{len(found['unchecked'])} checks could not be made" in text
    assert "serve.sh#serve: model.architecture unknown" in text


def test_no_severity_lifts_a_cap(project: Any) -> None:
    table = '[severity]\nwindow-beyond-model = "error"\n'
    found = project.write({"serve.sh": f"{SERVE} --max-model-len 409600 $EXTRA\n", "kvlint.toml": table}).check()
    assert severities(found)["window-beyond-model"] == "warning"
