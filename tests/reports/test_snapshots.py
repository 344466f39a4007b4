"""Each output of one report, as it is read.  KVLINT_SNAPSHOTS=write takes what is printed as the new snapshots."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

from kvlint import __version__
from kvlint.reports.full import plain

sys.path.insert(0, str(Path(__file__).parent))
from samples import report

SNAPSHOTS = Path(__file__).parent / "snapshots"
ENDINGS = {
    "full": "txt",
    "concise": "txt",
    "json": "json",
    "github": "txt",
    "sarif": "json",
    "gitlab": "json",
    "junit": "xml",
    "markdown": "md",
}


@pytest.mark.parametrize("name", ENDINGS)
def test_snapshot(name: str) -> None:
    text = import_module(f"kvlint.reports.{name}").render(report())
    if name == "sarif":
        text = without_rules(text)
    text = text.replace(f'"{__version__}"', '"VERSION"')
    file = SNAPSHOTS / f"{name}.{ENDINGS[name]}"
    if os.environ.get("KVLINT_SNAPSHOTS") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def without_rules(text: str) -> str:
    """The rules, and the numbers of the rules, change with every new rule."""
    document = json.loads(text)
    run = document["runs"][0]
    rules = run["tool"]["driver"].pop("rules")
    for result in run["results"]:
        assert rules[result.pop("ruleIndex")]["id"] == result["ruleId"]
    return json.dumps(document, indent=2) + "\n"


def test_roles_are_styled() -> None:
    full = import_module("kvlint.reports.full")
    styled = full.render(report(), lambda text, role: f"<{role}>{text}</{role}>")
    assert "<error>error[cold-prompt-cache]</error>" in styled
    assert full.render(report()) == full.render(report(), plain)
