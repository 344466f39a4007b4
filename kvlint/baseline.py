"""A file of findings that are accepted for now: it hides them, and it only ever shrinks.

An entry is a fingerprint with the values of the finding: a finding whose numbers changed is heard again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from kvlint.config import ConfigError
from kvlint.diagnostics import Diagnostic, Report
from kvlint.files import replace_file
from kvlint.records import dataclass, field
from kvlint.reports.json import plain

VERSION = 1


@dataclass(slots=True)
class Baseline:
    """The entries of a file by fingerprint.  `stale`, once applied: what the run would have found and did not."""

    path: Path
    entries: dict[str, dict[str, Any]]
    stale: list[dict[str, Any]] = field(default_factory=list)

    def apply(self, findings: Iterable[Diagnostic], active: Collection[str]) -> tuple[list[Diagnostic], int]:
        """The findings that are not accepted, and how many are.  `findings`: all of the project, whatever the focus;
        `active`: the rules of this run; an entry of another rule is left alone.
        """
        from kvlint.ruleset.load import rules

        known = set(rules())
        findings = list(findings)
        accepted = {each.fingerprint for each in findings if self._holds(each)}
        self.stale = [
            entry
            for fingerprint, entry in self.entries.items()
            if fingerprint not in accepted and (entry["rule"] in active or entry["rule"] not in known)
        ]
        return [each for each in findings if each.fingerprint not in accepted], len(accepted)

    def _holds(self, finding: Diagnostic) -> bool:
        entry = self.entries.get(finding.fingerprint)
        return entry is not None and entry["values"] == _values(finding)

    def shrink(self) -> None:
        """Take out of the file what is stale.  Raises `ConfigError` where it cannot be written."""
        gone = {entry["fingerprint"] for entry in self.stale}
        if gone:
            _write(self.path, [entry for key, entry in self.entries.items() if key not in gone])


def read(path: Path) -> Baseline:
    """Raises `ConfigError` for a file that is no baseline."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: no baseline: {error}") from error
    rows = document.get("findings") if isinstance(document, dict) and document.get("version") == VERSION else None
    if not isinstance(rows, list) or not all(_sound(row) for row in rows):
        raise ConfigError(f"{path}: no baseline of version {VERSION}")
    return Baseline(path, {row["fingerprint"]: row for row in rows})


def _sound(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(key), str) for key in ("fingerprint", "rule"))
        and "values" in row
    )


def adopt(path: Path, report: Report) -> int:
    """Write a first baseline of everything that a report holds, and take it out of the report; the number of entries."""
    _write(path, [_entry(each) for each in report.findings])
    accepted, report.findings = len(report.findings), []
    report.suppressed += accepted
    return accepted


def _entry(finding: Diagnostic) -> dict[str, Any]:
    return {
        "fingerprint": finding.fingerprint,
        "rule": finding.rule,
        "path": finding.path,
        "server": finding.server,
        "values": _values(finding),
    }


def _values(finding: Diagnostic) -> Any:
    """The values as they come back from the file: JSON has no difference between a tuple and a list."""
    return json.loads(json.dumps(plain(finding.values)))


def _write(path: Path, entries: list[dict[str, Any]]) -> None:
    ordered = sorted(entries, key=lambda entry: (str(entry.get("path")), entry["rule"], entry["fingerprint"]))
    text = json.dumps({"version": VERSION, "findings": ordered}, indent=2, sort_keys=True)
    try:
        replace_file(path, (text + "\n").encode("ascii"))
    except OSError as error:
        raise ConfigError(f"{path} could not be written: {error.strerror or error}") from error
