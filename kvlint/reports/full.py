"""Findings with snippets and carets over several files, for people at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvlint.diagnostics import Diagnostic, Report
from kvlint.reports.escape import cells, line, width
from kvlint.reports.summary import summary_lines
from kvlint.reports.words import headline, place, repair
from kvlint.source import Span

Style = Callable[[str, str], str]  # text, role
Run = tuple[int, int]  # first column and end column, 0-based, exclusive
MAX_WIDTH = 160
MAX_LINES = 6


def plain(text: str, role: str) -> str:
    return text


def render(report: Report, style: Style = plain, verbose: bool = False) -> str:
    blocks = ["\n".join(_finding(finding, style)) for finding in report.findings]
    blocks.append("\n".join(summary_lines(report, style, verbose)))
    return "\n\n".join(blocks) + "\n"


def _finding(finding: Diagnostic, style: Style) -> Iterator[str]:
    head = f"{finding.severity}[{finding.rule}]"
    yield style(head, finding.severity) + ": " + style(headline(finding), "strong")
    gutter = len(str(max(span.end_line for span in (finding.span, *(r.span for r in finding.related)))))
    yield from _snippet(finding.span, "", finding.severity, gutter, style)
    for related in finding.related:
        yield from _snippet(related.span, f"{related.role}: {line(related.message)}", "related", gutter, style)
    pad = " " * gutter
    for suggestion in finding.suggestions:
        yield f"{pad} {style('=', 'frame')} {style('help', 'help')}: {line(suggestion.message)}"
    if finding.fix is not None:
        yield f"{pad} {style('=', 'frame')} {style('fix', 'help')}: {repair(finding.fix)}"


def _snippet(span: Span, label: str, role: str, gutter: int, style: Style) -> Iterator[str]:
    pad, bar = " " * gutter, style("|", "frame")
    yield f"{pad}{style('-->', 'frame')} {place(span)}" + (f"  {label}" if label else "")
    yield f"{pad} {bar}"
    most = 1 if role == "related" else MAX_LINES
    for shown, (number, runs) in enumerate(underlined(span).items()):
        if shown == most:
            yield f"{pad} {bar} …"
            break
        text, marks = _window(span.source.line(number), runs)
        yield f"{style(str(number).rjust(gutter), 'frame')} {bar} {text}".rstrip()
        yield f"{pad} {bar} {style(marks, role)}"


def underlined(span: Span) -> dict[int, list[Run]]:
    """The underlined runs of each line that has any."""
    found: dict[int, list[Run]] = {}
    source = span.source
    for start, end in span.pieces:
        first, column = source.position(start)
        last, last_column = source.position(max(start, end - 1))
        for number in range(first, last + 1):
            text = source.line(number)
            left = column - 1 if number == first else len(text) - len(text.lstrip())
            right = left + 1 if start == end else min(last_column, len(text)) if number == last else len(text)
            if right > left:
                found.setdefault(number, []).append((left, right))
    return found


def _window(text: str, runs: list[Run]) -> tuple[str, str]:
    """The part of a long line around its first run, and the carets below."""
    left = max(0, runs[0][0] - MAX_WIDTH // 3) if len(text) > MAX_WIDTH else 0
    shown = cells(text[left : left + MAX_WIDTH])
    lead = "…" if left else ""
    tail = "…" if left + MAX_WIDTH < len(text) else ""
    marks, column = [" " * len(lead)], left
    for start, end in runs:
        start, end = max(start, column), min(end, left + MAX_WIDTH)
        if start > left + len(shown):
            break
        marks.append(" " * width("".join(shown[column - left : start - left])))
        marks.append("^" * max(1, width("".join(shown[start - left : end - left]))))
        column = max(end, start)
    return lead + "".join(shown) + tail, "".join(marks)
