"""GitLab, JUnit and Markdown: what each service asks beyond its syntax."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

from kvlint.diagnostics import NotUnderstood, Report
from kvlint.reports import full, gitlab, junit, markdown
from kvlint.source import Source, Span

sys.path.insert(0, str(Path(__file__).parent))
from samples import findings, report


def test_gitlab_severities_and_empty_report() -> None:
    issues = json.loads(gitlab.render(report()))
    assert [each["severity"] for each in issues] == ["minor", "info", "major", "major"]
    assert json.loads(gitlab.render(Report())) == []


def test_gitlab_shows_every_finding_of_one_fingerprint() -> None:
    same = replace(findings()[0], fingerprint="f")
    bare = replace(findings()[0], fingerprint="")
    issues = json.loads(gitlab.render(Report(findings=[same, same, bare, bare])))
    assert issues[0]["fingerprint"] == "f"
    assert len({each["fingerprint"] for each in issues}) == 4


def test_junit_counts() -> None:
    root = ElementTree.fromstring(junit.render(report()))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("4", "4", "0")
    assert len(root.findall("./testsuite")) == 1
    assert len({(case.get("classname"), case.get("name")) for case in root.iter("testcase")}) == 4


def test_junit_of_nothing_is_one_passing_case() -> None:
    cases = list(ElementTree.fromstring(junit.render(Report())).iter("testcase"))
    assert len(cases) == 1
    assert len(cases[0]) == 0


def test_junit_reports_an_internal_error_as_error() -> None:
    root = ElementTree.fromstring(junit.render(Report(internal=["vllm: KeyError"])))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("1", "0", "1")


def test_markdown_is_cut_below_what_a_summary_may_hold() -> None:
    many = Report(findings=findings() * 2000, not_understood=[NotUnderstood("a", 1, "b")] * 9000)
    text = markdown.render(many)
    assert 850 * 1024 < len(text.encode("utf-8")) < 1000 * 1024
    assert "more do not fit into a summary." in text


def test_markdown_of_nothing_has_the_summary_only() -> None:
    assert markdown.render(Report(files_read=2)) == (
        "## kvlint: no findings\n\n"
        "2 files read, 0 recognised, 0 not understood; 0 servers, 0 admission limits; 0 checks could not be made.\n"
    )


def test_words_of_a_sentence() -> None:
    assert markdown.prose("a 131,072 token conversation (90%) caches 12.207 GiB, not 3.") == (
        "a 131,072 token conversation (90%) caches 12.207 GiB, not 3."
    )
    assert markdown.prose("no --max-num-seqs, (Qwen/Qwen3) a_b.") == "no `--max-num-seqs`, (`Qwen/Qwen3`) `a_b`."
    assert markdown.prose("no flag `--max-num-seqs`, nor `a | b`.") == r"no flag `--max-num-seqs`, nor `a \x7c b`."
    assert markdown.prose("did you mean `--max-num-seqs`?") == "did you mean `--max-num-seqs`?"
    assert markdown.prose("a`b c_d`e_f`` x") == "a`b c_d` `e_f` ` ` x"
    assert markdown.prose("one ` alone") == r"one `\x60` alone"
    assert markdown.code("") == "` `"


def test_full_shows_runs_of_one_line_once() -> None:
    source = Source("a.sh", "echo one two\n")
    finding = replace(findings()[0], span=Span(source, ((5, 8), (9, 12))), related=(), suggestions=())
    lines = full.render(Report(findings=[finding])).splitlines()
    assert lines[3:6] == ["1 | echo one two", "  |      ^^^ ^^^", ""]


def test_full_shows_a_part_of_a_long_line() -> None:
    source = Source("a.json", "x" * 5000 + "FLAG" + "y" * 5000)
    finding = replace(findings()[0], span=source.span(5000, 5004), related=(), suggestions=())
    text, marks = full.render(Report(findings=[finding])).splitlines()[3:5]
    assert len(text) < 180
    assert text[marks.index("^") : marks.rindex("^") + 1] == "FLAG"


def test_full_keeps_a_long_message_whole() -> None:
    finding = replace(findings()[0], message="word " * 100)
    assert "word " * 100 in full.render(Report(findings=[finding])).splitlines()[0] + " "
