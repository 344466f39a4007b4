"""JUnit's XML: one suite, a failing case for each finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kvlint.diagnostics import Diagnostic, Report
from kvlint.reports.escape import xml
from kvlint.reports.summary import summary_lines
from kvlint.reports.words import details, headline, place


def render(report: Report) -> str:
    return "\n".join(_document(report)) + "\n"


def _document(report: Report) -> Iterator[str]:
    cases = [case for finding, name in _named(report) for case in _failure(finding, name)]
    cases += [case for message in report.internal for case in _error(message)]
    failures, errors = len(report.findings), len(report.internal)
    if not cases:  # servers take a suite without cases for a mistake
        cases = ['    <testcase classname="kvlint" name="kvlint"/>']
    counts = f'tests="{max(1, failures + errors)}" failures="{failures}" errors="{errors}"'
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="kvlint" {counts}>'
    yield f'  <testsuite name="kvlint" {counts}>'
    yield from cases
    yield "    <system-out>"
    yield from (xml(each) for each in summary_lines(report, lambda text, role: text, verbose=True))
    yield "    </system-out>"
    yield "  </testsuite>"
    yield "</testsuites>"


def _named(report: Report) -> Iterator[tuple[Diagnostic, str]]:
    """A case's name holds no line number, so that a test keeps its history when lines move."""
    seen: Counter[tuple[str, str]] = Counter()
    for finding in report.findings:
        key = (finding.path, finding.rule)
        seen[key] += 1
        yield finding, finding.rule if seen[key] == 1 else f"{finding.rule} ({seen[key]})"


def _failure(finding: Diagnostic, name: str) -> Iterator[str]:
    path, start = xml(finding.path), finding.span
    yield f'    <testcase classname="{path}" name="{xml(name)}" file="{path}" line="{start.line}" column="{start.column}">'
    yield f'      <failure type="{finding.severity}" message="{xml(headline(finding))}">'
    yield xml(f"{place(start)}: {headline(finding)}")
    yield from (xml(each) for each in details(finding))
    yield "      </failure>"
    yield "    </testcase>"


def _error(message: str) -> Iterator[str]:
    yield '    <testcase classname="kvlint" name="internal error">'
    yield f'      <error type="internal" message="{xml(message)}"/>'
    yield "    </testcase>"
