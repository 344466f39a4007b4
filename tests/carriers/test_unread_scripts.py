"""Scripts whose rest stays unread say so where an engine stands in it: never a silent pass, and never an error of ours."""

from __future__ import annotations

import pytest

from kvlint.formats.shell.parser import parse
from kvlint.pipeline import check_files
from kvlint.source import Source, Text

SERVE = "vllm serve Qwen/Qwen3-8B --max-model-len 8192\n"


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ('echo "starting\n', "a quote is not closed"),
        ("echo 'starting\n", "a quote is not closed"),
        ("now=$(date\n", "a parenthesis is not closed"),
        ("if true; then " * 3000 + "\n", "nests deeper than is followed"),
    ],
)
def test_what_is_not_read_is_told(before: str, reason: str) -> None:
    report = check_files({"serve.sh": f"#!/bin/bash\n{before}{SERVE}".encode()})
    assert report.internal == []
    assert [(each.path, each.line, each.message) for each in report.not_understood] == [("serve.sh", 2, reason)]
    assert [(each.rule, each.severity) for each in report.findings] == [("unreadable-config", "warning")]


def test_what_was_read_before_is_still_checked() -> None:
    report = check_files({"serve.sh": f"#!/bin/bash\n{SERVE.replace('8192', '65536')}echo 'done\n{SERVE}".encode()})
    assert {each.rule for each in report.findings if each.severity != "note"} == {
        "window-beyond-model",
        "unreadable-config",
    }


@pytest.mark.parametrize("after", ["echo 'done\n", "if true; then\n", "now=$(date\n"])
def test_a_fault_that_hides_no_engine_is_silent(after: str) -> None:
    report = check_files({"serve.sh": f"#!/bin/bash\n{SERVE}{after}".encode()})
    assert not any(each.rule == "unreadable-config" for each in report.findings)


POD = """apiVersion: v1
kind: Pod
metadata: {{name: chat}}
spec:
  containers:
    - name: vllm
      image: vllm/vllm-openai:v0.11.0
      command: [bash, -c]
      args:
        - |
          {0}
          vllm serve Qwen/Qwen3-8B --max-model-len 8192
"""
COMPOSE = """services:
  chat:
    image: vllm/vllm-openai:v0.11.0
    entrypoint: [bash, -c]
    command:
      - |
        {0}
        vllm serve Qwen/Qwen3-8B --max-model-len 8192
"""


@pytest.mark.parametrize(("path", "text", "line"), [("pod.yaml", POD, 11), ("compose.yaml", COMPOSE, 7)])
def test_a_container_that_is_told_by_a_script_cut_short_is_not_silent(path: str, text: str, line: int) -> None:
    report = check_files({path: text.format('echo "starting').encode()})
    assert report.internal == []
    assert [(each.line, each.message) for each in report.not_understood] == [(line, "a quote is not closed")]
    assert [(each.rule, each.severity) for each in report.findings] == [("unreadable-config", "warning")]
    sound = check_files({path: text.format("echo starting").encode()})
    assert sound.not_understood == []
    assert [group.first.engine for group in sound.groups] == ["vllm"]


def test_a_container_that_starts_something_else_is_silent() -> None:
    text = POD.replace("vllm serve", "curl").replace("vllm/vllm-openai:v0.11.0", "acme/tool:1").format('echo "starting')
    assert check_files({"pod.yaml": text.encode()}).findings == []


def nested(levels: int, inside: str) -> str:
    return "if probe; then\n" * levels + inside + "\nfi" * levels + "\n"


@pytest.mark.parametrize(("entered", "levels", "faults"), [(0, 15, 0), (22, 15, 0), (0, 300, 1)])
def test_a_script_that_is_sourced_too_deep_is_read_all_the_same(entered: int, levels: int, faults: int) -> None:
    """Where neither nests deep by itself, what ends is the following of the one into the other."""
    source = Source("library.sh", nested(levels, SERVE.strip()))
    assert len(parse(Text.of(source, 0, len(source.text)), entered)[1].faults) == faults


def test_a_fault_of_a_sourced_script_is_told_once_and_there() -> None:
    report = check_files(
        {
            "serve.sh": f"#!/bin/bash\n. ./library.sh\n{SERVE}".encode(),
            "library.sh": b"#!/bin/bash\nexport HF_HOME=/models\necho 'done\n" + SERVE.encode(),
        }
    )
    found = [each for each in report.findings if each.rule == "unreadable-config"]
    assert [(each.path, each.line) for each in found] == [("library.sh", 3)]
