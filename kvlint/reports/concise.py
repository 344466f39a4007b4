"""One line a finding: `path:line:column: severity[rule] message`."""

from __future__ import annotations

from kvlint.diagnostics import Report
from kvlint.reports.full import Style, plain
from kvlint.reports.summary import summary_lines
from kvlint.reports.words import headline, place


def render(report: Report, style: Style = plain, verbose: bool = False) -> str:
    lines = [
        f"{place(finding.span)}: {style(f'{finding.severity}[{finding.rule}]', finding.severity)} {headline(finding)}"
        for finding in report.findings
    ]
    return "\n".join((*lines, *summary_lines(report, style, verbose))) + "\n"
