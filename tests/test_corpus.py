"""The public configurations beside the repository: each file alone, and all of them as one tree."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kvlint.diagnostics import Report
from kvlint.pipeline import Options, evaluate, memory_project, report

CORPUS = Path(__file__).resolve().parents[1] / "../shared/corpus"
ENGINES = ("vllm", "llama.cpp", "ollama", "mlx-lm", "sglang", "tgi", "lmdeploy")
# Files in which a person would list no server of these engines: why.
WITHOUT_SERVERS = {
    "k8s-vllm/llama31-8b-lora-broken-yaml.yaml": "its YAML cannot be read",
    "ray/gke-llama3-8b.yaml": "Python that is fetched from elsewhere makes the arguments",
    "ray/aws-mistral-rayserve.yaml": "the user's own Python makes the arguments",
    "helm-values/castai-vllm.yaml": "a chart's defaults without a model",
    "systemd/engineering87-env.env": "variables only",
}

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the repository")


@cache
def index() -> list[dict[str, Any]]:
    text = (CORPUS / "INDEX.jsonl").read_text(encoding="utf-8") if CORPUS.is_dir() else ""
    return [row for line in text.splitlines() if (row := json.loads(line))["stored"]]


@cache
def alone(name: str) -> Report:
    return report(evaluate(memory_project({name: (CORPUS / name).read_bytes()})), Options())


def names() -> list[str]:
    return [row["file"] for row in index()]


def row_of(name: str) -> dict[str, Any]:
    return next(row for row in index() if row["file"] == name)


def met(name: str, expected: dict[str, Any], found: Report) -> bool:
    """A finding of that rule on that line, whose span and the expected text cover one another."""
    for each in found.findings:
        text = each.span.text
        near = each.span.path == name and abs(each.span.line - expected["line"]) <= 1
        if each.rule == expected["rule"] and near and (expected["text"] in text or text in expected["text"]):
            return True
    return False


@pytest.mark.parametrize("name", names())
def test_each_file_alone(name: str) -> None:
    row, found = row_of(name), alone(name)
    assert found.internal == []
    if row["verdict"] == "sound":
        assert [each.rule for each in found.findings if each.severity == "error"] == []


@pytest.mark.parametrize("name", names())
def test_servers_that_a_person_would_list(name: str) -> None:
    row, found = row_of(name), alone(name)
    if row["engine"] not in ENGINES or name in WITHOUT_SERVERS:
        pytest.skip(WITHOUT_SERVERS.get(name, row["engine"]))
    wanted = {"llama.cpp": "llama-server"}.get(row["engine"], row["engine"])
    assert wanted in {group.first.engine for group in found.groups}


@pytest.mark.parametrize("name", names())
def test_expected_findings(name: str) -> None:
    found = alone(name)
    missing = [(each["rule"], each["line"]) for each in row_of(name)["expect"] if not met(name, each, found)]
    assert missing == []


def test_all_as_one_tree(capsys: pytest.CaptureFixture[str]) -> None:
    """No crash, and no error on a sound file; the table of verdicts against the worst finding is printed."""
    files = {name: (CORPUS / name).read_bytes() for name in names()}
    found = report(evaluate(memory_project(files)), Options())
    assert found.internal == []
    by_path: dict[str, list[str]] = {}
    for each in found.findings:
        by_path.setdefault(each.span.path, []).append(each.severity)
    wrong = [row["file"] for row in index() if row["verdict"] == "sound" and "error" in by_path.get(row["file"], ())]
    with capsys.disabled():
        print("\n" + "\n".join(table(by_path)))
    assert wrong == []


def table(by_path: dict[str, list[str]]) -> Iterator[str]:
    """Verdicts in rows, the worst finding of a file in columns."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in index():
        severities = by_path.get(row["file"], [])
        worst = next((each for each in ("error", "warning", "note") if each in severities), "nothing")
        counts[row["verdict"], worst] += 1
    columns = ("error", "warning", "note", "nothing")
    yield f"{'':14}" + "".join(f"{column:>9}" for column in columns)
    for verdict in sorted({verdict for verdict, _ in counts}):
        yield f"{verdict:14}" + "".join(f"{counts[verdict, column]:9}" for column in columns)
