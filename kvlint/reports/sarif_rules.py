"""The tool and its rules, as SARIF lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvlint import __version__
from kvlint.diagnostics import rank
from kvlint.ruleset.load import UNDECIDED, Page, Rule, pages, rules

HOME = "urn:kvlint"  # the project has no site; names that are nobody else's
PROBLEM = {"error": "error", "warning": "warning", "note": "recommendation"}


def driver() -> dict[str, Any]:
    """All rules in their order, findings or not."""
    texts = pages()
    return {
        "name": "kvlint",
        "informationUri": HOME,
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(rule, texts[name]) for name, rule in rules().items()],
    }


def _rule(rule: Rule, page: Page) -> dict[str, Any]:
    level = max(("error" if each.what == UNDECIDED else each.what for each in rule.severity), key=rank)
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": page.why},
        "help": {
            "text": "\n\n".join((page.why, page.fix, *filter(None, (page.notes,)))),
            "markdown": "\n".join(_markdown(rule, page)),
        },
        "helpUri": f"{HOME}:rules:{rule.name}",
        "defaultConfiguration": {"level": level},
        "properties": {"tags": ["correctness", rule.theme], "problem.severity": PROBLEM[level]},
    }


def _markdown(rule: Rule, page: Page) -> Iterator[str]:
    yield from (f"# {rule.name}", "", rule.summary, "", "## Why it matters", "", page.why)
    yield from ("", "## What to do", "", page.fix)
    if page.notes:
        yield from ("", "## Notes", "", page.notes)
    if page.references:
        yield from ("", "## References", "", *(f"- <{reference}>" for reference in page.references))
    yield from ("", "## To keep it as it is", "", f"`# kvlint: ignore[{rule.name}] the reason` above the line.")
