"""Annotations for GitHub Actions: workflow commands, by the rules of the runner rather than of its documentation.

The runner drops both columns where a span crosses lines, cuts a message at 4,096 characters, and forwards ten of each severity
(actions/runner, ActionCommandManager.cs and ExecutionContext.cs).
"""

from __future__ import annotations

from kvlint.diagnostics import SEVERITIES, Diagnostic, Report
from kvlint.reports.escape import line, shortened
from kvlint.reports.summary import plural
from kvlint.reports.words import details, headline, place, region

COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
ANNOTATIONS = 10  # a severity
MESSAGE = 4096

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def render(report: Report) -> str:
    """Worst first; what is past the limit is counted in a closing line."""
    lines: list[str] = []
    left: list[str] = []
    for severity in reversed(SEVERITIES):
        found = [finding for finding in report.findings if finding.severity == severity]
        lines += [command(finding, report.prefix) for finding in found[:ANNOTATIONS]]
        if len(found) > ANNOTATIONS:
            left.append(plural(len(found) - ANNOTATIONS, severity))
    if left:
        lines.append(f"not annotated, as GitHub shows {ANNOTATIONS} of a severity: {', '.join(left)}")
    return "".join(f"{each}\n" for each in lines)


def command(finding: Diagnostic, prefix: str = "") -> str:
    marked = region(finding.span)
    properties = {
        "title": f"kvlint {finding.rule}",
        "file": line(prefix + finding.path),
        "line": str(marked.line),
        "endLine": str(marked.end_line),
    }
    if marked.line == marked.end_line:
        properties |= {"col": str(marked.column), "endColumn": str(marked.end_column)}
    given = ",".join(f"{name}={value.translate(_PROPERTY)}" for name, value in properties.items())
    return f"::{COMMANDS[finding.severity]} {given}::{_message(finding).translate(_DATA)}"


def _message(finding: Diagnostic) -> str:
    """The log shows the message without its properties, so it begins with the place."""
    first = f"{place(finding.span)}: {finding.rule}: {headline(finding)}"
    return shortened("\n".join((first, *details(finding))), MESSAGE)
