"""What a rule makes of a subject: verdict, severity, words."""

from __future__ import annotations

from typing import Any

import pytest

from kvlint.facts import Assumed, Default, Fact, Range, Unknown, Written
from kvlint.ruleset import load
from kvlint.ruleset.load import Choice, Rule
from kvlint.ruleset.scopes import Scope
from kvlint.source import Source

WRITTEN = Written(Source("a.sh", "--max-model-len 65536").span(16, 21))
BUDGET = Unknown("hardware.budget", "no budget is declared", "declare one")


def rule(what: str = "error", **fields: Any) -> Rule:
    row: dict[str, Any] = {
        "theme": "window",
        "summary": "Too long.",
        "subject": "server",
        "message": [{"what": "{window}"}],
    }
    return load.read_rule("a-rule", {**row, "severity": [{"what": what}], "holds": "window <= model_window", **fields})


def facts(**values: Any) -> Any:
    return {
        name: value if isinstance(value, Fact | Unknown) else Fact(value, WRITTEN) for name, value in values.items()
    }.get


LONG = facts(window=65536, model_window=40960)
SHORT = facts(window=32768, model_window=40960)


def test_what_does_not_hold_is_a_finding() -> None:
    assert rule().judge(LONG).value is False
    assert rule().judge(SHORT).value is True
    assert rule().judge(facts(window=65536, model_window=BUDGET)).unknown == (BUDGET,)
    assert not rule().judge(facts(window=65536)).applies


def test_when_says_where_the_rule_applies() -> None:
    guarded = rule(when="streams >= 2")

    def judged(**more: Any) -> Any:
        return guarded.judge(facts(window=65536, model_window=40960, **more))

    assert judged(streams=2).value is False
    assert not judged(streams=1).applies
    assert not judged().applies
    assert judged(streams=BUDGET).unknown == (BUDGET,)
    assert judged(streams=Fact(Range(1, 2, 4), WRITTEN)).straddles
    assert guarded.judge(facts(window=32768, model_window=40960, streams=BUDGET)).value is True


def test_the_facts_of_when_are_not_decisive() -> None:
    guarded = rule("error?warning", when="streams >= 1")
    lookup = facts(window=65536, model_window=40960, streams=Fact(1, Assumed("one")))
    verdict = guarded.judge(lookup)
    assert len(verdict.facts) == 2
    assert guarded.severity_of(verdict, lookup) == "error"


def test_a_default_makes_an_undecided_severity_a_warning() -> None:
    undecided = rule("error?warning")
    assert undecided.severity_of(undecided.judge(LONG), LONG) == "error"
    default = facts(window=Fact(65536, Default("vllm", ("0.11.0",), "--max-model-len")), model_window=40960)
    assert undecided.severity_of(undecided.judge(default), default) == "warning"


@pytest.mark.parametrize(
    ("engine", "releases", "values", "severity"),
    [
        ("sglang", ("0.5.0",), {}, "warning"),
        ("vllm", ("0.11.0",), {}, "error"),
        ("vllm", ("0.11.0",), {"enforce_eager": True}, "note"),
        ("vllm", ("0.11.0",), {"enforce_eager": False}, "error"),
        ("vllm", ("0.11.0",), {"enforce_eager": BUDGET}, "note"),  # in doubt: the milder
        ("vllm", ("0.22.0",), {"enforce_eager": True}, "error"),
        ("vllm", ("0.19.1", "0.22.0"), {"enforce_eager": True}, "note"),
    ],
)
def test_the_first_case_that_holds_gives_the_severity(
    engine: str, releases: tuple[str, ...], values: dict[str, Any], severity: str
) -> None:
    cases = [
        {"what": "warning", "for": "sglang or tgi"},
        {"what": "note", "for": "vllm <0.20.2", "if": "enforce_eager"},
        {"what": "error"},
    ]
    lookup = facts(window=65536, model_window=40960, **values)
    by_case = rule(severity=cases)
    assert by_case.severity_of(by_case.judge(lookup), lookup, engine, releases) == severity


def test_the_first_case_that_certainly_holds_gives_the_words() -> None:
    cases = [
        {"what": "sglang: {window}", "for": "sglang"},
        {"what": "{streams:stream|streams}", "if": "streams >= 2"},
        {"what": "{window} of {model_window}"},
    ]
    told = rule(message=cases)

    def words(engine: str, **more: Any) -> str:
        lookup = facts(window=65536, model_window=40960, **more)
        return told.message_of(told.judge(lookup), lookup, engine, ("1.0",))

    assert words("sglang") == "sglang: 65,536"
    assert words("vllm", streams=2) == "2 streams"
    assert words("vllm", streams=BUDGET) == "65,536 of 40,960"
    assert words("vllm") == "65,536 of 40,960"


def test_a_problem_is_a_finding_by_being_there() -> None:
    problem = rule(subject="problem", kind="unknown-flag", holds="", message=[{"what": "no `{problem.data.flag}`"}])
    assert problem.judge(lambda name: None).value is False
    lookup = facts(**{"problem.data.flag": "--a\x1b"})
    assert problem.message_of(problem.judge(lookup), lookup) == "no `--a\\x1b`"


def test_the_names_whose_values_make_the_finding() -> None:
    assert rule(when="streams >= 2").names == ("window", "model_window")


def test_rows_are_read() -> None:
    read = rule(engines=["vllm >=0.9.0"], suggest=[["largest", "window"]], edit={"to": "window", "safety": "safe"})
    assert read.engines == (Scope("vllm", ((">=", "0.9.0"),)),)
    assert read.severity == (Choice("error"),)
    assert (read.suggest[0].how, read.suggest[0].what) == ("largest", "window")
    assert read.edit is not None
    assert read.edit.safety == "safe"
    assert read.speaks_to("vllm", ("0.8.5", "0.9.2")) is None
