"""The list of rules, and a rule's page for the terminal."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from kvlint.ruleset.load import Example, Rule, pages, rules

WIDTH = 100


def severity(rule: Rule) -> str:
    """The severities that a rule can have, gravest first."""
    found = {part for choice in rule.severity for part in choice.what.split("?")}
    return " or ".join(name for name in ("error", "warning", "note") if name in found)


def listing(format_: str) -> str:
    if format_ == "json":
        rows = [
            {"name": rule.name, "theme": rule.theme, "severity": severity(rule), "summary": rule.summary}
            for rule in rules().values()
        ]
        return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    lines: list[str] = []
    theme = ""
    width = max(len(name) for name in rules())
    for rule in rules().values():
        if rule.theme != theme:
            theme = rule.theme
            lines += ["", theme] if lines else [theme]
        lines.append(f"  {rule.name.ljust(width)}  {severity(rule).ljust(16)}  {rule.summary}")
    return "\n".join(lines) + "\n"


def page(name: str, format_: str) -> str:
    rule, prose = rules()[name], pages()[name]
    if format_ == "json":
        data = {"name": name, "theme": rule.theme, "severity": severity(rule), "summary": rule.summary}
        data |= {"why": prose.why, "fix": prose.fix, "notes": prose.notes, "since": prose.since}
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return "\n".join(_page(rule)) + "\n"


def _page(rule: Rule) -> Iterator[str]:
    prose = pages()[rule.name]
    yield f"{rule.name}  ({severity(rule)}; theme {rule.theme}; since {prose.since})"
    yield ""
    yield rule.summary
    for title, text in (("Why", prose.why), ("How to fix it", prose.fix), ("Notes", prose.notes)):
        if text:
            yield ""
            yield title
            yield from _wrapped(text)
    for title, key in (("Reported", "bad"), ("Accepted", "good"), ("Silent", "silent")):
        yield ""
        yield from _example(title, prose.examples[key])
    if prose.references:
        yield ""
        yield from prose.references


def _wrapped(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from textwrap.wrap(paragraph, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _example(title: str, example: Example) -> Iterator[str]:
    yield f"{title}: {example.note}" if example.note else title
    for path, text in example.files.items():
        yield f"  {path}"
        yield textwrap.indent(text.rstrip("\n"), "    ")
    if example.config:
        yield "  kvlint.toml"
        yield textwrap.indent(example.config.rstrip("\n"), "    ")
