"""Findings with snippets and carets over several files, for people at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvlint.diagnostics import Diagnostic, Report
from kvlint.reports.summary import summary_lines
from kvlint.ruleset.messages import clean
from kvlint.source import Span

Style = Callable[[str, str], str]  # text, role
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
    doubt = " (within the margin)" if finding.certainty == "margin" else ""
    yield style(head, finding.severity) + ": " + style(clean(finding.message) + doubt, "strong")
    gutter = len(str(max(span.end_line for span in (finding.span, *(r.span for r in finding.related)))))
    yield from _snippet(finding.span, "-->", "", finding.severity, gutter, style)
    for related in finding.related:
        yield from _snippet(related.span, ":::", f"{related.role}: {clean(related.message)}", "related", gutter, style)
    pad = " " * gutter
    for suggestion in finding.suggestions:
        yield f"{pad} {style('=', 'frame')} {style('help', 'help')}: {clean(suggestion.message)}"
    if finding.fix is not None:
        note = "" if finding.fix.safety == "safe" else " (not applied by --fix)"
        yield f"{pad} {style('=', 'frame')} {style('fix', 'help')}: {clean(finding.fix.message)}{note}"


def _snippet(span: Span, arrow: str, label: str, role: str, gutter: int, style: Style) -> Iterator[str]:
    pad, bar = " " * gutter, style("|", "frame")
    yield f"{pad}{style(arrow, 'frame')} {clean(span.path)}:{span.line}:{span.column}" + (f"  {label}" if label else "")
    yield f"{pad} {bar}"
    shown = 0
    for number, start, end in underlined(span):
        if shown == MAX_LINES:
            yield f"{pad} {bar} …"
            break
        shown += 1
        text, mark = _window(span.source.line(number), start, end)
        yield f"{style(str(number).rjust(gutter), 'frame')} {bar} {clean(text)}".rstrip()
        yield f"{pad} {bar} {style(mark, role)}"


def underlined(span: Span) -> Iterator[tuple[int, int, int]]:
    """Line, first column and end column (0-based, exclusive) of every underlined run."""
    source = span.source
    for start, end in span.pieces:
        line, column = source.position(start)
        last, last_column = source.position(max(start, end - 1)) if end > start else (line, column)
        for number in range(line, last + 1):
            text = source.line(number)
            first = column - 1 if number == line else len(text) - len(text.lstrip())
            stop = last_column if number == last else len(text)
            if number == line and start == end:
                stop = first + 1
            if stop > first:
                yield number, first, stop


def _window(text: str, start: int, end: int) -> tuple[str, str]:
    """The part of a long line around the underlined run, tabs as single spaces, with its carets."""
    text = text.replace("\t", " ")
    if len(text) <= MAX_WIDTH:
        return text, " " * start + "^" * max(1, end - start)
    left = max(0, start - MAX_WIDTH // 3)
    piece = text[left : left + MAX_WIDTH]
    lead = "…" if left else ""
    tail = "…" if left + MAX_WIDTH < len(text) else ""
    return lead + piece + tail, " " * (start - left + len(lead)) + "^" * max(1, min(end, left + MAX_WIDTH) - start)
