"""What the outputs say of a finding, in the same words everywhere."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.diagnostics import Diagnostic, Fix
from kvlint.records import dataclass
from kvlint.reports.escape import line
from kvlint.source import Span


@dataclass(frozen=True, slots=True)
class Region:
    """Lines and columns, 1-based in code points, ends exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


def region(span: Span) -> Region:
    """What a viewer should mark: no line break at its end, and one character at least where its line has any."""
    text, start, end = span.source.text, span.start, span.end
    while end > start and text[end - 1] in "\r\n":
        end -= 1
    if start == end and text[end : end + 1].strip("\r\n"):
        end += 1
    elif start == end and text[start - 1 : start].strip("\r\n"):
        start -= 1
    return Region(*span.source.position(start), *span.source.position(end))


def place(span: Span) -> str:
    number, column = span.source.position(span.start)
    return f"{line(span.path)}:{number}:{column}"


def headline(finding: Diagnostic) -> str:
    """The message on one line."""
    return line(finding.message)


def details(finding: Diagnostic) -> Iterator[str]:
    """The other places with their roles, then what would help: a line each."""
    for related in finding.related:
        yield f"{related.role}: {place(related.span)}: {line(related.message)}"
    yield from advice(finding)


def advice(finding: Diagnostic) -> Iterator[str]:
    for suggestion in finding.suggestions:
        yield f"help: {line(suggestion.message)}"
    if finding.fix is not None:
        yield f"fix: {repair(finding.fix)}"


def repair(fix: Fix) -> str:
    return line(fix.message) + ("" if fix.safety == "safe" else " (not applied by --fix)")
