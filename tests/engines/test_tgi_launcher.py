"""Text Generation Inference on the pipeline: flags, variables, limits.  Read from the launcher's source at each tag."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kvlint.facts import Fact, Unknown
from kvlint.pipeline import check_files, evaluate, memory_project
from kvlint.subjects import Server

IMAGE = "ghcr.io/huggingface/text-generation-inference"


def pod(args: list[str], env: dict[str, str], image: str) -> dict[str, str]:
    container = {
        "name": "tgi",
        "image": image,
        "args": args,
        "env": [{"name": name, "value": text} for name, text in env.items()],
        "resources": {"limits": {"nvidia.com/gpu": "2"}},
    }
    if not args:
        del container["args"]
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": {"containers": [container]}}
    return {"pod.yaml": json.dumps(body)}


def server(args: str = "", image: str = f"{IMAGE}:3.3.7", config: str | None = None, **env: str) -> Server:
    evaluation = evaluate(memory_project(pod(args.split(), {"MODEL_ID": "Qwen/Qwen3-8B", **env}, image), config))
    assert evaluation.findings.internal == []
    (group,) = evaluation.groups
    return group.live[0]


def findings(args: str = "", image: str = f"{IMAGE}:3.3.7", **env: str) -> list[tuple[str, str, str]]:
    report = check_files(pod(args.split(), {"MODEL_ID": "Qwen/Qwen3-8B", **env}, image))
    return [(each.rule, each.severity, each.text) for each in report.findings if each.severity != "note"]


def value(found: Server, name: str) -> Any:
    fact = found.get(name)
    return fact.value if isinstance(fact, Fact) else fact


def test_variables_alone_configure_it() -> None:
    found = server(
        NUM_SHARD="2", MAX_INPUT_TOKENS="3000", MAX_TOTAL_TOKENS="4096", CUDA_MEMORY_FRACTION="0.93", PORT="8080"
    )
    assert (found.engine, found.releases, value(found, "model")) == ("tgi", ("3.3.7",), "Qwen/Qwen3-8B")
    assert (value(found, "window"), value(found, "window_kind"), value(found, "tensor_parallel")) == (4096, "refuse", 2)
    assert (float(value(found, "memory_fraction")), value(found, "port")) == (0.93, 8080)
    assert findings(NUM_SHARD="2", MAX_INPUT_TOKENS="3000", MAX_TOTAL_TOKENS="4096") == []


def test_a_flag_wins_over_its_variable() -> None:
    assert value(server("--max-total-tokens 8192", MAX_TOTAL_TOKENS="4096"), "window") == 8192
    assert ("overridden-flag", "warning", "4096") in findings("--max-total-tokens 8192", MAX_TOTAL_TOKENS="4096")


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"MAX_TOTAL_TOKENS": "4k"}, "4k"),
        ({"QUANTIZE": "int4"}, "int4"),
        ({"MAX_INPUT_TOKENS": "1000", "MAX_INPUT_LENGTH": "1001"}, "1001"),
    ],
)
def test_what_the_launcher_refuses_in_a_variable(env: dict[str, str], text: str) -> None:
    assert ("malformed-value", "error", text) in findings(**env)


def test_misspelt_variables_on_its_own_image() -> None:
    assert ("unknown-environment", "warning", "4096") in findings(MAX_TOTAL_TOKEN="4096")
    assert findings(MY_TOTAL="4096", HF_TOKEN="x") == []


@pytest.mark.parametrize(
    ("image", "window"),
    [(f"{IMAGE}:1.4.5", 2048), (f"{IMAGE}:2.2.0", 4096), (f"{IMAGE}:3.3.7", None), (f"{IMAGE}:2.4.1", None)],
)
def test_an_unset_window_follows_the_release(image: str, window: int | None) -> None:
    found = value(server(image=image), "window")
    assert found == window if window else isinstance(found, Unknown)


def test_limits_that_do_not_go_together() -> None:
    refused = ("engine-refuses-settings", "error")
    assert [each[:2] for each in findings(MAX_INPUT_TOKENS="4096", MAX_TOTAL_TOKENS="4096")] == [refused]
    assert (*refused, "8192") in findings(MAX_TOTAL_TOKENS="8192", MAX_BATCH_TOTAL_TOKENS="4096")
    older = {"MAX_INPUT_TOKENS": "4000", "MAX_TOTAL_TOKENS": "8000", "MAX_BATCH_PREFILL_TOKENS": "2000"}
    assert [each[:2] for each in findings(image=f"{IMAGE}:2.2.0", **older)] == [refused]
    assert findings(**older) == []


def test_shards_are_the_devices_that_it_sees() -> None:
    assert value(server(), "tensor_parallel") == 2
    assert value(server(SHARDED="false"), "tensor_parallel") == 1
    assert value(server(CUDA_VISIBLE_DEVICES="0"), "tensor_parallel") == 1


def test_the_pool_of_a_measured_device() -> None:
    """36 layers of 4 KV heads of 128 a shard: 73,728 bytes a token; 7,372,800,000 bytes are 100,000 tokens."""
    found = server(config='[[hardware]]\nmatch = "**"\navailable_kv = 7372800000\n', MAX_TOTAL_TOKENS="4096")
    assert (value(found, "kv_bytes_per_token_per_device"), value(found, "pool_tokens")) == (73728, 100000)


def test_the_image_of_a_cloud_is_its_own() -> None:
    repository = "us-docker.pkg.dev/deeplearning-platform-release/gcr.io"
    cloud = f"{repository}/huggingface-text-generation-inference-cu124.2-3.ubuntu2204.py311"
    found = server(image=cloud, MAX_TOTAL_TOKENS="2048")
    assert (found.engine, value(found, "window")) == ("tgi", 2048)
    assert "unpinned-engine" not in {each.rule for each in check_files(pod([], {"MODEL_ID": "x/y"}, cloud)).findings}
