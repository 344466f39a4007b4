"""Markdown for a job's summary: findings as a table, what could not be checked, what was not understood.

Words that come from files are written so that no Markdown dialect finds anything in them: a word of plain letters, or a plain
number, stands as it is; every other is a code span, in which nothing is special but the backtick.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kvlint.diagnostics import SEVERITIES, Diagnostic, Report
from kvlint.patterns import regex
from kvlint.reports.escape import line
from kvlint.reports.summary import counts, gaps, scope
from kvlint.reports.words import advice, headline, place

# GitHub refuses a step's summary above 1 MiB.
MAX_BYTES = 900 * 1024

_WORD = regex(r"\S+")
_STOPS = "),.;:?"
_PLAIN = regex(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|-?\d[\d.,]*%?|[=+×÷–—…-]")
_MARKS = str.maketrans({"`": r"\x60", "|": r"\x7c"})


def render(report: Report) -> str:
    text = [f"## kvlint: {counts(report, lambda text, role: text)}", "", f"{scope(report)}.", ""]
    room = MAX_BYTES - sum(len(each) + 1 for each in text)
    for title, header, rows in _tables(report):
        block, room = _table(title, header, rows, room)
        text += block
    return "\n".join(text)


def _tables(report: Report) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    worst_first = sorted(report.findings, key=lambda each: -SEVERITIES.index(each.severity))
    yield "Findings", ("severity", "place", "finding"), [_finding(each) for each in worst_first]
    yield (
        "Could not be checked",
        ("server", "unknown", "what would supply it", "rules"),
        [
            (code(gap.server) if gap.server else "", code(gap.missing), prose(gap.supply), listed(gap.rules))
            for gap in gaps(report)
        ],
    )
    yield (
        "Not understood",
        ("place", "reason"),
        [(code(f"{line(each.path)}:{each.line}"), prose(each.message)) for each in report.not_understood],
    )
    yield "Internal errors", ("what happened",), [(prose(each),) for each in report.internal]


def _finding(finding: Diagnostic) -> tuple[str, ...]:
    lines = [f"{code(finding.rule)} {prose(headline(finding))}"]
    lines += [f"{related.role} {code(place(related.span))} {prose(related.message)}" for related in finding.related]
    lines += [prose(each) for each in advice(finding)]
    return finding.severity, code(place(finding.span)), "<br>".join(lines)


def _table(title: str, header: tuple[str, ...], rows: list[tuple[str, ...]], room: int) -> tuple[list[str], int]:
    """The lines of a table, and the bytes left after it; rows for which there is no room are counted."""
    if not rows:
        return [], room
    lines = [f"### {title}", "", _row(header), "|" + "---|" * len(header)]
    for number, row in enumerate(rows):
        text = _row(row)
        room -= len(text.encode("utf-8")) + 1
        if room < 0:
            lines += ["", f"{len(rows) - number} more do not fit into a summary."]
            break
        lines.append(text)
    return [*lines, ""], room


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def listed(names: Iterable[str]) -> str:
    return ", ".join(code(name) for name in names)


def prose(text: str) -> str:
    """A sentence whose words are plain or code; what stands between paired backticks is code as it is."""
    parts = line(text).split("`")
    if len(parts) % 2 == 0:
        parts = ["`".join(parts)]
    shown = (code(part) if number % 2 else _WORD.sub(_shown, part) for number, part in enumerate(parts))
    return "".join(shown).replace("``", "` `")


def _shown(word: re.Match[str]) -> str:
    lead = "(" if word[0].startswith("(") else ""
    core = word[0][len(lead) :].rstrip(_STOPS)
    return word[0] if not core or _PLAIN.fullmatch(core) else f"{lead}{code(core)}{word[0][len(lead) + len(core) :]}"


def code(text: str) -> str:
    """A code span that stays one span and one cell: backticks and bars are written out."""
    shown = line(text).translate(_MARKS)
    return f"`{shown}`" if shown.strip() else "` `"
