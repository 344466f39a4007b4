"""How many findings each rule has, most first: `check --statistics`."""

from __future__ import annotations

from collections import Counter

from kvlint.diagnostics import Report, rank


def render(report: Report) -> str:
    counts = Counter((each.rule, each.severity) for each in report.findings)
    rows = sorted(counts.items(), key=lambda row: (-row[1], -rank(row[0][1]), row[0][0]))
    width = max((len(str(count)) for _, count in rows), default=0)
    return "".join(f"{count:>{width}}  {severity:<7}  {rule}\n" for (rule, severity), count in rows)
