"""Nothing that a configuration holds acts on whoever reads a report: terminals, runners, browsers, parsers."""

from __future__ import annotations

import html.parser
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.diagnostics import Diagnostic, Edit, Fix, NotUnderstood, Related, Report, Suggestion, Unchecked
from kvlint.reports import escape
from kvlint.ruleset.diagnose import numbered
from kvlint.source import Source

sys.path.insert(0, str(Path(__file__).parent))
from samples import report as sample

FORMATS = ("full", "concise", "json", "github", "sarif", "gitlab", "junit", "markdown")
HOSTILE = (
    "::error::taken",
    "   ::add-mask::e",
    "::stop-commands::token",
    "x ##[error]taken",
    "###[add-path]/tmp",
    "##vso[task.setvariable variable=a]b",
    "a%0A::error::b",
    "a\n::error::b\r\n::warning::c\r##[group]d",
    "a\u2028::error::b\u2029\x0b\x0c\x85::error::c",
    "`code` ``more`` \\` \\| `|",
    "<script>alert(1)</script> <img src=x onerror=alert(1)> <!-- x",
    "]]> <![CDATA[ &amp; &lt; ' \"",
    "| a | b |\n|---|---|",
    "[click](https://evil.example) ![i](https://evil.example) [x]: y",
    "https://evil.example www.evil.example a@evil.example @team #1 :tada: $x$ **b** _i_ ~~s~~ GH-1",
    "\x1b[31mred\x1b]8;;https://evil.example\x07link\x1b]8;;\x07\x9b31m",
    "\u202eright to left\u2066\u200f\u061c\u200b\ufeff",
    "nul\x00 del\x7f \ufffe \uffff",
    "lone \ud800 \udcff surrogates",
    "{0} {{1}} %s %(a)s ${{ secrets.TOKEN }}",
    "```\n# title\n",
    " ",
)


def hostile(text: str) -> Report:
    """`text` wherever a file, a path or a name may carry it."""
    source = Source(text, f"a: {text}\nb: {text}\n")
    span = source.span(3, 3 + len(text))
    finding = Diagnostic(
        rule="unknown-flag",
        severity="error",
        certainty="certain",
        message=text,
        span=span,
        related=(Related(span, "cause", text), Related(source.span(0, len(source.text)), "use", text)),
        server=f"{text}#{text}",
        servers=(text,),
        admissions=(text,),
        values={"model": text},
        suggestions=(Suggestion("model", text, text),),
        fix=Fix("safe", text, (Edit(span, text),)),
        subject=text,
    )
    return Report(
        findings=numbered([finding, finding]),
        unchecked=[Unchecked("unknown-flag", text, text, text), Unchecked("unknown-flag", None, "x", text)],
        not_understood=[NotUnderstood(text, 1, text)],
        internal=[text],
    )


def rendered(name: str, report: Report) -> str:
    return str(import_module(f"kvlint.reports.{name}").render(report))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_inert(name: str, text: str) -> None:
    check(name, text)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=40, deadline=None)
@given(
    text=st.text(
        st.sampled_from("::##[]()<>&|`\\\n\r\t \x00\x1b\x7f\x85\u2028\u202e\ud800\udcff%,a1@'\"{}$-🦊"), max_size=24
    )
)
def test_any_text_is_inert(name: str, text: str) -> None:
    check(name, text or "x")


def check(name: str, text: str) -> None:
    report = hostile(text)
    output = rendered(name, report)
    output.encode("utf-8")
    assert not [c for c in output if not c.isprintable() and c != "\n"]
    assert commands(output) == (["error", "error"] if name == "github" else [])
    {"json": as_json, "sarif": as_sarif, "gitlab": as_json, "junit": as_xml, "markdown": as_markdown}.get(
        name, lambda output, text: None
    )(output, text)
    assert output.count("\n") == rendered(name, hostile(masked(text))).count("\n")


def masked(text: str) -> str:
    """The same lines and spaces, and nothing else."""
    return "".join(c if c in "\r\n" else " " if c.isspace() else "x" for c in text)


def commands(output: str) -> list[str]:
    """The workflow commands that a runner would find, by its own rules."""
    found = []
    for line in re.split(r"[\r\n\x0b\x0c\x85\u2028\u2029]", output):
        if match := re.match(r"\s*::([^ ]*?)(?: .*?)?::", line):
            found.append(match[1])
        elif match := re.search(r"##(?:vso)?\[([^\]]*)\]", line):
            found.append(match[0])
    return found


def as_json(output: str, text: str) -> None:
    assert output.isascii()
    document = json.loads(output)
    path = escape.well_formed(text)
    if isinstance(document, dict):
        assert document["findings"][0]["path"] == path
        assert document["findings"][0]["fix"]["edits"][0]["text"] == path
    else:
        assert [issue["location"]["path"] for issue in document] == [path, path]
        assert len({issue["fingerprint"] for issue in document}) == 2


def as_sarif(output: str, text: str) -> None:
    assert output.isascii()
    run = json.loads(output)["runs"][0]
    for result in run["results"]:
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"(?:[\w.~/-]|%[0-9A-F]{2})+", uri, re.ASCII)
        message = result["message"]["text"]
        links = re.findall(r"(?<!\\)\[(?:[^\[\]\\]|\\.)*\]\(([^)]*)\)", message)
        assert links == ["1", "2"]
        assert message.count("](") == 2


def as_xml(output: str, text: str) -> None:
    root = ElementTree.fromstring(output)
    assert {each.tag for each in root.iter()} == {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
        "system-out",
    }
    cases = root.findall("./testsuite/testcase")
    assert [case[0].tag for case in cases] == ["failure", "failure", "error"]
    assert cases[0].get("classname") == escape.line(text)


class Tags(html.parser.HTMLParser):
    """Every tag outside of code spans."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(tag)

    def handle_comment(self, data: str) -> None:
        self.found.append("comment")


def as_markdown(output: str, text: str) -> None:
    """Code spans are paired by single backticks; what is outside of them is plain words, bars of the table, and `<br>`."""
    for line in output.splitlines():
        assert line.count("`") % 2 == 0
        assert "``" not in line
        if not line.startswith("|"):
            continue
        outside = re.sub(r"`[^`]*`", "", line)
        assert all("|" not in span for span in re.findall(r"`([^`]*)`", line))
        tags = Tags()
        tags.feed(outside)
        assert set(tags.found) <= {"br"}
        assert not re.search(r"[\[\]@$*_~\\&#!]|://|www\.", outside.replace("<br>", ""))


def test_an_ordinary_report_has_only_its_own_commands() -> None:
    assert commands(rendered("github", sample())) == ["error", "error", "warning", "notice"]
    assert all(not commands(rendered(name, sample())) for name in FORMATS if name != "github")


def test_a_rows_cells_stay_cells() -> None:
    rows = [line for line in rendered("markdown", hostile("a | b")).splitlines() if line.startswith("| error")]
    assert [len(re.split(r"(?<!\\)\|", row)) for row in rows] == [5, 5]


def test_runner_rules() -> None:
    assert escape.line("  ::error::x") == r"  \x3a:error::x"
    assert escape.line("a ::error::x") == "a ::error::x"
    assert escape.line("x ##[error]y") == r"x #\x23[error]y"
    assert escape.line("## title [1]") == "## title [1]"
    assert "".join(escape.cells("a\t##[b]\x1b")) == r"a #\x23[b]\x1b"


def test_carets_stand_below_wide_and_written_out_characters() -> None:
    source = Source("a.sh", "日\x1b🦊é --flag\n")
    start = source.text.index("--flag")
    finding = Diagnostic("unknown-flag", "error", "certain", "m", source.span(start, start + 6))
    lines = rendered("full", Report(findings=[finding])).splitlines()
    assert lines[3:5] == [r"1 | 日\x1b🦊é --flag", "  | " + " " * (2 + 4 + 2 + 1 + 1) + "^" * 6]


@given(st.text(max_size=40), st.integers(3, 30))
def test_shortened(text: str, units: int) -> None:
    cut = escape.shortened(text, units)
    assert len(cut.encode("utf-16-le", "surrogatepass")) <= 2 * units
    assert cut == text or cut.endswith("...")
