"""Every rule speaks on its bad example and nowhere else, however the example is written.

`finds` names the underlined characters; what is expected is all that the rule finds, no more and no less.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from harness import variants
from harness.variants import Variant

from kvlint.ruleset import load
from kvlint.ruleset.load import Find

check = pytest.importorskip("kvlint.pipeline")


def cases() -> Iterator[Any]:
    for name, page in load.pages().items():
        bad, good, silent = (page.examples[kind] for kind in ("bad", "good", "silent"))
        made = [("bad", variant) for variant in (*variants.of(bad), *variants.joined(bad, good))]
        made += [("good", variant) for variant in variants.of(good)]
        made += [("silent", variant) for variant in variants.of(silent)]
        for kind, variant in made:
            yield pytest.param(name, variant, id=f"{name}-{kind}-{variant.name}")


def found(report: Any, rule: str) -> list[Any]:
    return [finding for finding in report.findings if finding.rule == rule]


def text_of(finding: Any) -> str:
    return str(finding.text).replace("\r\n", "\n")


@pytest.mark.parametrize(("rule", "variant"), list(cases()))
def test_an_example_is_judged_as_it_is_shown(rule: str, variant: Variant) -> None:
    report = check.check_files(dict(variant.files), variant.config)
    findings = found(report, rule)
    assert report.internal == []
    assert sorted(map(text_of, findings)) == sorted(find.text for find in variant.finds), [
        *((each.rule, each.message) for each in report.findings),
        *(each for each in report.unchecked if each.rule == rule),
    ]
    for find in variant.finds:
        assert any(_is(finding, find) for finding in findings), find


def _is(finding: Any, find: Find) -> bool:
    same = text_of(finding) == find.text and finding.path.endswith(find.path)
    return same and find.severity in ("", finding.severity)


@pytest.mark.parametrize("rule", load.rules())
def test_a_good_example_has_no_error_at_all(rule: str) -> None:
    good = load.pages()[rule].examples["good"]
    report = check.check_files(dict(good.files), good.config)
    assert [finding for finding in report.findings if finding.severity == "error"] == []


@pytest.mark.parametrize("rule", load.rules())
def test_a_comment_with_a_reason_hides_the_finding(rule: str) -> None:
    bad = load.pages()[rule].examples["bad"]
    report = check.check_files(dict(bad.files), bad.config)
    files = variants.suppressed(bad.files, rule, [finding.span for finding in found(report, rule)])
    if "suppressed" in bad.excluded or files is None:
        pytest.skip("no comment can stand there")
    silenced = check.check_files(files, bad.config)
    assert found(silenced, rule) == []
    assert found(silenced, "unused-suppression") == []
