"""GitLab's code quality report: a JSON array of issues."""

from __future__ import annotations

import hashlib
from typing import Any

from kvlint.diagnostics import Diagnostic, Report
from kvlint.reports.escape import to_json, well_formed
from kvlint.reports.words import advice, headline, region

SEVERITIES = {"error": "major", "warning": "minor", "note": "info"}


def render(report: Report) -> str:
    return to_json(document(report))


def document(report: Report) -> list[dict[str, Any]]:
    """Issues of one fingerprint are shown once, so a fingerprint that repeats is salted until it is new."""
    seen: set[str] = set()
    issues = []
    for finding in report.findings:
        fingerprint = finding.fingerprint
        while fingerprint in seen or not fingerprint:
            fingerprint = hashlib.sha256(f"{fingerprint}\0{finding.rule}".encode()).hexdigest()[:24]
        seen.add(fingerprint)
        issues.append(_issue(finding, fingerprint, report.prefix))
    return issues


def _issue(finding: Diagnostic, fingerprint: str, prefix: str) -> dict[str, Any]:
    """The rule's name leads the description, since GitLab does not show `check_name`."""
    marked = region(finding.span)
    return {
        "description": "; ".join((f"{finding.rule}: {headline(finding)}", *advice(finding))),
        "check_name": finding.rule,
        "fingerprint": fingerprint,
        "severity": SEVERITIES[finding.severity],
        "location": {
            "path": well_formed(prefix + finding.path),
            "lines": {"begin": marked.line, "end": marked.end_line},
        },
    }
