"""A suggestion satisfies its own rule; where another would still speak, a second one says where all are satisfied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from contract_inputs import MAC, chat, deployment

from kvlint.pipeline import check_files
from kvlint.source import Source

RULES = Path(__file__).resolve().parents[2] / "rules"


def test_the_largest_of_the_rule_and_the_largest_of_all(project: Any) -> None:
    """⌊24 GiB × 0.9⌋ - 16 GiB = 6,012,954,214 B hold 61,166 tokens of 98,304 B: 3 slots of 20,388, or 4 of 15,291."""
    table = MAC.replace("0.31.3", "0.31.0")
    project.write({"chat.sh": chat("window=40000 streams=2", " --prompt-cache-size 2"), "kvlint.toml": table})
    (finding,) = project.findings("cold-prompt-cache", "slots-below-streams")
    first, second = finding["suggestions"]
    assert (first["setting"], first["value"]) == ("window", 20388)
    assert (second["setting"], second["value"]) == ("window", 15291)
    assert "satisfies every rule" in second["message"]
    for value, rules in ((20389, ["cold-prompt-cache"]), (20388, ["slots-below-streams"]), (15291, [])):
        project.write({"chat.sh": chat(f"window={value} streams=2", " --prompt-cache-size 2")})
        assert [each["rule"] for each in project.findings("cold-prompt-cache", "slots-below-streams")] == rules


def test_what_asks_for_something_else_is_named(project: Any) -> None:
    project.write({"chat.sh": chat("window=40000 streams=2"), "kvlint.toml": MAC})
    finding = next(each for each in project.findings() if each["rule"] == "cold-prompt-cache")
    assert [each["value"] for each in finding["suggestions"]] == [20388, 15291, 5097]
    assert finding["suggestions"][1]["message"].endswith("satisfies every rule but unbounded-prompt-cache")
    project.write({"chat.sh": chat("window=5097 streams=2")})
    assert project.findings("prompt-cache") == []


def test_near_the_border_nothing_is_suggested_that_would_be_warned_of(project: Any) -> None:
    args = "[--model=Qwen/Qwen3-32B, --max-model-len={}]"
    device = "NVIDIA-A100-SXM4-80GB"
    project.write({"q.yaml": deployment(args=args.format(40960), device=device)})
    (finding,) = project.findings("window-exceeds-pool")
    value = finding["suggestions"][0]["value"]
    for window, count in ((value, 0), (value + 1, 1)):
        project.write({"q.yaml": deployment(args=args.format(window), device=device)})
        assert len(project.findings("window-exceeds-pool")) == count


def examples() -> list[Any]:
    """Every bad example whose finding suggests another number for what it underlines."""
    found = []
    for path in sorted(RULES.glob("*/*.yaml")):
        text = path.read_text(encoding="utf-8")
        if "\n  largest: " not in text:
            continue
        rule = yaml.load(text, yaml.BaseLoader)
        bad = rule["examples"]["bad"]
        for number, example in enumerate(bad if isinstance(bad, list) else [bad]):
            found.append(pytest.param(rule["name"], example, id=f"{rule['name']}-{number}"))
    return found


@pytest.mark.parametrize(("rule", "example"), examples())
def test_a_suggestion_put_in_place_silences_its_rule(rule: str, example: Any) -> None:
    files, config = dict(example["files"]), example.get("config")
    report = check_files(files, config)
    tried = 0
    for finding in report.findings:
        wanted = next((each for each in finding.suggestions if isinstance(each.value, int)), None)
        if finding.rule != rule or wanted is None or not underlined(finding, wanted.setting):
            continue
        changed = put(finding.span, str(wanted.value), files, config)
        later = check_files(*changed)
        assert not [each for each in later.findings if each.rule == rule and each.server == finding.server]
        tried += 1
    assert tried or not [each for each in report.findings if each.rule == rule and underlined(each, "window")]


def underlined(finding: Any, setting: str) -> bool:
    """Whether what is underlined is the number of a setting."""
    return bool(finding.span.text.isdigit() and finding.values.get(setting) == int(finding.span.text))


def put(span: Any, text: str, files: dict[str, str], config: str | None) -> tuple[dict[str, str], str | None]:
    """The files with other characters at a place; the configuration counts as one of them."""
    source: Source = span.source
    whole = source.text[: span.start] + text + source.text[span.end :]
    if source.path == "kvlint.toml":
        return files, whole
    return {**files, source.path: whole}, config
