"""Hostile input: a finding or a counted skip, in bounded time and memory, never a traceback; neighbours are still checked."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kvlint.discovery import open_project
from kvlint.pipeline import check, check_files

GOOD = """apiVersion: apps/v1
kind: Deployment
metadata: {name: qwen}
spec:
  template:
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
          args: [--model=Qwen/Qwen3-8B, --max-model-len=65536]
"""
BEYOND = ["window-beyond-model"]  # 65,536 against the model's 40,960 positions


def rules(report) -> list[str]:
    assert report.internal == []
    return sorted(finding.rule for finding in report.findings if finding.severity != "note")


ALIAS_BOMB = "a: &a [vllm, vllm]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}, *{chr(97 + n)}, *{chr(97 + n)}]\n"
    for n in range(20)
)
HOSTILE = {
    "nul": b"kind: Deployment\nvllm: \x00\n",
    "invalid utf-8": b"kind: Deployment\nvllm: \xff\xfe\xfa\n",
    "deep flow": b"vllm: " + b"[" * 10_000 + b"]" * 10_000,
    "deep block": b"".join(b" " * n + b"vllm:\n" for n in range(2_000)),
    "alias bomb": ALIAS_BOMB.encode(),
    "cyclic anchor": b"a: &a\n  vllm: *a\n",
    "only tabs": b"\t\tvllm:\n\t\t\t- x\n",
    "bom and nothing": b"\xef\xbb\xbfvllm",
    "conflict markers": b"<<<<<<< HEAD\nvllm: 1\n=======\nvllm: 2\n>>>>>>> x\n",
    "huge line": b"vllm: " + b"x" * 2_000_000,
    "many documents": b"---\nvllm: x\n" * 5_000,
    "unclosed quote": b'vllm: "abc\n',
    "bare dollar": b"command: ${${${${vllm\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("name", ["x.yaml", "x.json", "x.sh", "x.nix", "x.plist", "x.service", "x.env", "Dockerfile"])
def test_a_hostile_file_loses_nothing(kind: str, name: str) -> None:
    start = time.process_time()
    report = check_files({name: HOSTILE[kind], "good.yaml": GOOD})
    assert BEYOND[0] in rules(report)
    assert time.process_time() - start < 20


def test_a_broken_document_does_not_hide_its_neighbours() -> None:
    report = check_files(
        {"two.yaml": "kind: [vllm\n---\n" + GOOD + "---\na: b: c: vllm\n---\n" + GOOD.replace("qwen", "two")}
    )
    assert [rule for rule in rules(report) if rule == BEYOND[0]] == BEYOND * 2
    assert "unreadable-config" in rules(report)


def test_files_that_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "directory.yaml").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "dangling.yaml").symlink_to(tmp_path / "nowhere.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    with open(tmp_path / "large.yaml", "wb") as file:
        file.write(b"vllm: 1\n")
        file.truncate(50 * 2**20)
    report = check(open_project([str(tmp_path)]))
    assert rules(report) == BEYOND
    assert [each.path for each in report.not_understood] == ["large.yaml"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_counted(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "closed.yaml").write_text(GOOD)
    (tmp_path / "closed.yaml").chmod(0)
    report = check(open_project([str(tmp_path)]))
    assert rules(report) == BEYOND
    assert [each.path for each in report.not_understood] == ["closed.yaml"]


def test_a_failure_of_ours_is_told_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from kvlint.carriers import compose

    def fail(*_: object) -> object:
        raise RuntimeError("boom")

    monkeypatch.setattr(compose.Compose, "read", fail)
    report = check_files({"good.yaml": GOOD, "compose.yaml": "services: {a: {image: vllm/vllm-openai:v0.11.0}}\n"})
    assert BEYOND[0] in [finding.rule for finding in report.findings]
    assert any("boom" in line for line in report.internal)


def test_a_gateway_of_many_models_ends_soon() -> None:
    """Each model's address is looked up among all others: 4,000 took seven seconds, and 10,000 three quarters of a minute."""
    row = "  - {{model_name: m{0}, litellm_params: {{model: openai/m{0}, api_base: 'http://127.0.0.1:9000/v1'}}}}\n"
    text = "model_list:\n" + "".join(row.format(number) for number in range(4000))
    start = time.process_time()
    assert rules(check_files({"litellm.yaml": text.encode()})) == []
    assert time.process_time() - start < 4
