"""Annotations by the runner's rules (actions/runner@258d6c85, ActionCommandManager.cs and ExecutionContext.cs)."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from kvlint.diagnostics import Diagnostic, Report
from kvlint.reports import github
from kvlint.source import Source, Span

sys.path.insert(0, str(Path(__file__).parent))
from samples import at, findings


def finding(source: Source, span: Span, message: str = "m", severity: str = "error") -> Diagnostic:
    return Diagnostic("unknown-flag", severity, "certain", message, span)


def one(source: Source, span: Span, message: str = "m") -> str:
    return github.render(Report(findings=[finding(source, span, message)]))


def test_columns_only_on_one_line() -> None:
    source = Source("a.sh", "vllm serve\nmodel\n")
    assert "line=1,endLine=1,col=6,endColumn=11::" in one(source, at(source, "serve"))
    assert "line=1,endLine=2::" in one(source, at(source, "serve\nmodel"))


def test_a_line_break_at_the_end_is_not_marked() -> None:
    source = Source("a.sh", "vllm serve\r\nmodel\r\n")
    assert "line=1,endLine=1,col=6,endColumn=11::" in one(source, at(source, "serve\r\n"))


def test_an_empty_place_is_one_character_wide() -> None:
    source = Source("a.sh", "ab\n\nc")
    assert "col=2,endColumn=3::" in one(source, source.span(1, 1))
    assert "line=1,endLine=1,col=2,endColumn=3::" in one(source, source.span(2, 2))
    assert "line=2,endLine=2,col=1,endColumn=1::" in one(source, source.span(3, 3))
    assert "line=3,endLine=3,col=1,endColumn=2::" in one(source, source.span(5, 5))


def test_columns_count_code_points() -> None:
    source = Source("a.sh", "é日🦊 x\n")
    assert "col=5,endColumn=6::" in one(source, at(source, "x"))


def test_escapes_of_properties_and_data() -> None:
    source = Source("C:/a,b%.sh", "x\n")
    text = one(source, source.span(0, 1), "100%: a, b")
    assert text == (
        "::error title=kvlint unknown-flag,file=C%3A/a%2Cb%25.sh,line=1,endLine=1,col=1,endColumn=2"
        "::C:/a,b%25.sh:1:1: unknown-flag: 100%25: a, b\n"
    )


def test_ten_of_a_severity_and_the_rest_in_one_line() -> None:
    source = Source("a.sh", "x\n" * 40)
    made = [finding(source, source.span(2 * n, 2 * n + 1), severity=("note", "error")[n < 24]) for n in range(35)]
    lines = github.render(Report(findings=made[::-1])).splitlines()
    assert [line.split(" ")[0] for line in lines[:-1]] == ["::error"] * 10 + ["::notice"] * 10
    assert lines[-1] == "not annotated, as GitHub shows 10 of a severity: 14 errors, 1 note"


def test_a_long_message_is_cut_where_the_runner_would() -> None:
    source = Source("a.sh", "x\n")
    long = replace(findings()[0], message="🦊" * 3000)
    text = github.render(Report(findings=[long])).rstrip("\n").split("::", 2)[2].replace("%0A", "\n")
    assert len(text.encode("utf-16-le")) // 2 <= 4096
    assert text.endswith("🦊...")
    assert one(source, source.span(0, 1), "short").endswith(": short\n")


def test_nothing_found_prints_nothing() -> None:
    assert github.render(Report()) == ""
