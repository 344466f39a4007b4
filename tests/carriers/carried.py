"""What the carriers find in files held in memory."""

from __future__ import annotations

from kvlint.carriers.registry import Findings, find
from kvlint.pipeline import memory_project
from kvlint.subjects import Admission, Process


def found(files: dict[str, str]) -> Findings:
    project = memory_project(files)
    project.scan()
    result = find(project)
    assert result.internal == []
    return result


def processes(files: dict[str, str]) -> dict[str, Process]:
    """Processes by identity."""
    return dict(found(files).processes)


def process(files: dict[str, str]) -> Process:
    """The one process."""
    (only,) = found(files).processes
    return only[1]


def admission(files: dict[str, str]) -> Admission:
    (only,) = found(files).admissions
    return only


def words(process_: Process) -> list[str]:
    return [word.value for word in process_.line.words]


def value(fact: object) -> object:
    """The value of a fact; the fact itself where there is none."""
    return getattr(fact, "value", fact)
