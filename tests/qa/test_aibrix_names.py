"""AIBrix's gateway finds a model's pods by their label and asks the engine for that name."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: chat}}
spec:
  selector: {{matchLabels: {{model.aibrix.ai/name: chat-8b}}}}
  template:
    metadata:
      labels:
        model.aibrix.ai/name: chat-8b
    spec:
      containers:
        - name: engine
          image: {image}
          command: {command}
          args: {args}
        - {{name: runtime, image: "aibrix/runtime:v0.4.0"}}
"""
VLLM = ("vllm/vllm-openai:v0.11.0", '["vllm", "serve"]')
SGLANG = ("lmsysorg/sglang:v0.5.3", '["python3", "-m", "sglang.launch_server"]')


def said(start: tuple[str, str], args: str) -> list[tuple[str, str, int]]:
    report = check_files({"chat.yaml": DEPLOYMENT.format(image=start[0], command=start[1], args=args)})
    return [(each.severity, each.text, each.span.line) for each in report.findings if each.rule == "values-disagree"]


@pytest.mark.parametrize(
    "args",
    [
        '["acme/Chat-8B", "--served-model-name=Chat-8B"]',
        '["acme/Chat-8B"]',
        '["acme/Chat-8B", "--served-model-name", "a", "b"]',
    ],
)
def test_another_name_is_not_found(args: str) -> None:
    assert said(VLLM, args) == [("warning", "chat-8b", 9)]


@pytest.mark.parametrize(
    ("start", "args"),
    [
        (VLLM, '["acme/Chat-8B", "--served-model-name=chat-8b"]'),
        (VLLM, '["acme/Chat-8B", "--served-model-name", "other", "chat-8b"]'),
        (VLLM, '["acme/Chat-8B", "--served-model-name=$(NAME)"]'),
        (SGLANG, '["--model-path", "acme/Chat-8B", "--served-model-name=Chat-8B"]'),  # answers to any name
    ],
)
def test_the_same_name_or_none_that_is_known(start: tuple[str, str], args: str) -> None:
    assert said(start, args) == []


def test_a_name_that_is_still_to_be_filled_in() -> None:
    text = DEPLOYMENT.replace("chat-8b", '"<name>"').format(image=VLLM[0], command=VLLM[1], args='["acme/Chat-8B"]')
    assert [each.rule for each in check_files({"chat.yaml": text}).findings if each.rule == "values-disagree"] == []
