"""What the carriers find in files held in memory, in a form that a test can compare."""

from __future__ import annotations

from kvlint.carriers.registry import Findings, find
from kvlint.pipeline import memory_project
from kvlint.source import HOLE, Text
from kvlint.subjects import Process


def findings(files: dict[str, str]) -> Findings:
    project = memory_project(files)
    project.scan()
    found = find(project)
    assert found.internal == []
    return found


def processes(files: dict[str, str]) -> dict[str, Process]:
    return dict(findings(files).processes)


def only(files: dict[str, str]) -> tuple[str, Process]:
    (found,) = findings(files).processes
    return found


def line(process: Process) -> str:
    """The words, a hole as `?`; an image where its own entrypoint runs."""
    words = [word.value.replace(HOLE, "?") for word in process.line.words]
    if process.line.program is None and process.line.image is not None:
        words.insert(0, f"[{process.line.image.value}]")
    return " ".join(words)


def lines(files: dict[str, str]) -> dict[str, str]:
    return {identity: line(process) for identity, process in processes(files).items()}


def argument(process: Process, flag: str) -> Text:
    """The argument behind a flag."""
    words = process.line.args
    return words[[word.value for word in words].index(flag) + 1]


def env(process: Process) -> dict[str, str]:
    return {name: value.value.replace(HOLE, "?") for name, value in process.line.env.items()}


def problems(files: dict[str, str]) -> list[tuple[str, str]]:
    return [(problem.kind, problem.span.text) for problem in findings(files).problems]
