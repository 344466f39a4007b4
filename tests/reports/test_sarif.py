"""SARIF 2.1.0: its schema, its rules, and what code scanning asks of it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kvlint.diagnostics import Diagnostic, Report
from kvlint.reports import sarif
from kvlint.ruleset.diagnose import numbered
from kvlint.ruleset.load import rules
from kvlint.source import Source

sys.path.insert(0, str(Path(__file__).parent))
from samples import report

SCHEMA = Path(__file__).resolve().parents[2] / "../shared/schemas/sarif-2.1.0.json"


def document(made: Report) -> dict[str, Any]:
    return dict(json.loads(sarif.render(made)))


def run(made: Report) -> dict[str, Any]:
    return dict(document(made)["runs"][0])


@pytest.mark.skipif(not SCHEMA.exists(), reason="the schema is not here")
@pytest.mark.parametrize("made", [Report(), report(), Report(internal=["broken"])], ids=["empty", "full", "internal"])
def test_valid(made: Report) -> None:
    import jsonschema

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(schema).validate(document(made))


def test_an_empty_run_lists_every_rule() -> None:
    empty = run(Report())
    assert empty["results"] == []
    assert [rule["id"] for rule in empty["tool"]["driver"]["rules"]] == list(rules())
    for rule in empty["tool"]["driver"]["rules"]:
        assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
        assert rule["help"]["markdown"]
        assert rule["helpUri"].endswith(f":{rule['id']}")
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
        assert "correctness" in rule["properties"]["tags"]


def test_a_run_that_broke_says_so() -> None:
    assert run(Report())["invocations"][0]["executionSuccessful"] is True
    broken = run(Report(internal=["vllm: KeyError"]))["invocations"][0]
    assert broken["executionSuccessful"] is False
    assert broken["toolExecutionNotifications"][0]["level"] == "error"


def test_columns_are_code_points_and_said_to_be() -> None:
    source = Source("a.sh", "é日🦊 x\n")
    found = run(Report(findings=[Diagnostic("unknown-flag", "error", "certain", "m", source.span(4, 5))]))
    assert found["columnKind"] == "unicodeCodePoints"
    region = found["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 1, "startColumn": 5, "endLine": 1, "endColumn": 6}


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a b/c#1%.yaml", "a%20b/c%231%25.yaml"),
        ("日.nix", "%E6%97%A5.nix"),
        ("c:d", "c%3Ad"),
        ("bad\udcff", "bad%FF"),
        ("../up.sh", "../up.sh"),
    ],
)
def test_uris(path: str, uri: str) -> None:
    assert sarif.artifact(path) == {"uri": uri, "uriBaseId": "%SRCROOT%"}
    assert "%SRCROOT%" in run(Report())["originalUriBaseIds"]


def test_an_absolute_path_has_no_base() -> None:
    assert sarif.artifact("/etc/a b") == {"uri": "file:///etc/a%20b"}


def test_fixes_delete_exactly_the_edit() -> None:
    fix = run(report())["results"][3]["fixes"][0]
    replacement = fix["artifactChanges"][0]["replacements"][0]
    assert replacement["deletedRegion"] == {"startLine": 1, "startColumn": 31, "endLine": 1, "endColumn": 50}
    assert replacement["insertedContent"] == {"text": "--max-num-seqs"}
    assert fix["properties"] == {"safety": "unsafe"}


def test_a_rule_that_is_not_listed_has_no_index() -> None:
    source = Source("a.sh", "x\n")
    results = run(Report(findings=[Diagnostic("of-a-plugin", "note", "certain", "m", source.span(0, 1))]))["results"]
    assert "ruleIndex" not in results[0]


def fingerprints(text: str) -> list[str]:
    source = Source("a.sh", text)
    starts = [n for n in range(len(text)) if text.startswith("--bad", n)]
    made = [
        Diagnostic("unknown-flag", "error", "certain", "m", source.span(n, n + 5), server="a.sh#a", subject="--bad")
        for n in starts
    ]
    return [each["partialFingerprints"]["kvlint/v1"] for each in run(Report(findings=numbered(made)))["results"]]


def test_fingerprints_stay_when_lines_move_and_differ_between_equal_findings() -> None:
    before = fingerprints("vllm serve --bad 1\nvllm serve --bad 2\n")
    assert len(set(before)) == 2
    assert fingerprints("# a comment\n" * 40 + "vllm serve --bad 1\nvllm serve --bad 2\n") == before
    assert fingerprints("vllm serve --bad 1\n" + "\n" * 40 + "vllm serve --bad 2\n") == before


def test_related_places_are_linked_by_number() -> None:
    result = run(report())["results"][2]
    assert "cause: [streams = 2](1)" in result["message"]["text"]
    assert [(each["id"], each["properties"]["role"]) for each in result["relatedLocations"]] == [
        (1, "cause"),
        (2, "use"),
    ]


def test_severity_of_a_finding_is_its_own() -> None:
    lower = [replace(finding, severity="note") for finding in report().findings]
    assert {each["level"] for each in run(Report(findings=lower))["results"]} == {"note"}
