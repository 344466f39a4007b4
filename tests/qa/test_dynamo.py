"""Workers of NVIDIA Dynamo: an engine's options, with some of their own among them."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files, evaluate, memory_project

WORKER = """apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {{name: llm}}
spec:
  services:
    Worker:
      componentType: worker
      replicas: 2
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/{engine}-runtime:0.8.1
          command: [python3, -m, dynamo.{engine}]
          args: {args}
"""


@pytest.mark.parametrize(
    ("engine", "args", "window"),
    [
        (
            "vllm",
            "[--model, Qwen/Qwen3-8B, --max-model-len, '8192', --is-decode-worker, --endpoint, dyn://a.b.c]",
            8192,
        ),
        ("sglang", "[--model-path, Qwen/Qwen3-8B, --context-length, '4096', --disaggregation-mode, decode]", 4096),
    ],
)
def test_a_worker_is_a_server_of_its_engine(engine: str, args: str, window: int) -> None:
    files = {"a.yaml": WORKER.format(engine=engine, args=args)}
    (group,) = evaluate(memory_project(files)).groups
    assert group.first.engine == engine
    assert getattr(group.first.settings["window"], "value", None) == window
    assert [each.rule for each in check_files(files).findings if each.severity != "note"] == []


def test_options_of_its_own_without_an_image() -> None:
    script = "#!/bin/sh\npython3 -m dynamo.vllm --model Qwen/Qwen3-8B --connector nixl --max-model-len 50000\n"
    findings = check_files({"serve.sh": script, "requirements.txt": "vllm==0.12.0\n"}).findings
    assert [each.rule for each in findings if each.severity == "error"] == ["window-beyond-model"]
