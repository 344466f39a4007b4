"""Write docs/rules/ from the compiled rules: `python scripts/build_docs.py [--check]`, after scripts/build_data.py.

One page a rule, README.md as the index by theme, names.md for what a condition may name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import build_data

from kvlint.ruleset import load
from kvlint.ruleset.load import Choice, Example, Page, Rule

DOCS = build_data.ROOT / "docs/rules"
LANGUAGES = {
    ".sh": "sh",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".json": "json",
    ".nix": "nix",
    ".plist": "xml",
}
LANGUAGES |= {".service": "ini", ".conf": "nginx"}
SHOWN = {"bad": "Reported", "good": "Accepted", "silent": "Not meant"}
GENERATED = "<!-- written by scripts/build_docs.py from rules/ -->"


def build() -> dict[str, str]:
    """The text of every page by its file name."""
    rules, pages = load.rules(), load.pages()
    texts = {f"{name}.md": lines(page_of(rule, pages[name])) for name, rule in rules.items()}
    return {"README.md": lines(index(rules)), "names.md": lines(names()), **texts}


def lines(parts: Iterator[str]) -> str:
    return "\n".join((GENERATED, "", *parts)) + "\n"


def page_of(rule: Rule, page: Page) -> Iterator[str]:
    yield from (f"# {rule.name}", "", rule.summary, "")
    yield from table(rule, page)
    yield from ("", "## Why it matters", "", page.why, "", "## What to do", "", page.fix)
    yield from condition(rule)
    if page.notes:
        yield from ("", "## Notes", "", page.notes)
    yield from ("", "## Examples")
    for kind, example in page.examples.items():
        yield from shown(kind, example)
    if page.references:
        yield from ("", "## References", "", *(f"- <{reference}>" for reference in page.references))
    yield from ("", "## To keep it as it is", "", f"`# kvlint: ignore[{rule.name}] the reason` above the line.")


def table(rule: Rule, page: Page) -> Iterator[str]:
    yield from ("| | |", "|---|---|")
    yield f"| Severity | {'<br>'.join(case(choice) for choice in rule.severity)} |"
    yield f"| Theme | [{rule.theme}](README.md#{rule.theme}) |"
    yield f"| Asked of | {rule.subject.replace('_', ' ')} |"
    yield f"| Engines | {', '.join(map(str, rule.engines)) or 'all'} |"
    yield f"| Since | {page.since} |"


def case(choice: Choice) -> str:
    scopes = f" for {' or '.join(map(str, choice.scopes))}" if choice.scopes else ""
    condition = f" if `{choice.condition}`" if choice.condition else ""
    return f"{choice.what}{scopes}{condition}"


def condition(rule: Rule) -> Iterator[str]:
    if not rule.holds:
        return
    yield from ("", "## What must hold", "", "```python", rule.holds, "```")
    if rule.when:
        yield from ("", "where", "", "```python", rule.when, "```")
    yield from ("", "The names are explained in [names](names.md).")


def shown(kind: str, example: Example) -> Iterator[str]:
    yield from ("", f"### {SHOWN[kind]}")
    if example.note:
        yield from ("", example.note)
    files = {**example.files, **({"kvlint.toml": example.config} if example.config else {})}
    for path, text in files.items():
        fence = "````" if "```" in text else "```"
        yield from ("", f"`{path}`", "", fence + LANGUAGES.get(Path(path).suffix, ""), text.rstrip("\n"), fence)
    for find in example.finds:
        yield from ("", f"Underlined: `{find.text}`{f' ({find.severity})' if find.severity else ''}.")


def index(rules: Mapping[str, Rule]) -> Iterator[str]:
    yield from ("# Rules", "", "Each rule is one file under `rules/`; [how to add one](../../rules/README.md).")
    for theme, members in groupby(rules.values(), key=lambda rule: rule.theme):
        yield from ("", f"## {theme}", "", "| rule | severity | what it says |", "|---|---|---|")
        for rule in members:
            severities = " or ".join(dict.fromkeys(choice.what for choice in rule.severity))
            yield f"| [{rule.name}]({rule.name}.md) | {severities} | {rule.summary} |"


def names() -> Iterator[str]:
    data = build_data.read_toml("names.toml")
    subjects: dict[str, dict[str, str]] = data["subjects"]
    yield from (
        "# Names",
        "",
        "What the conditions and messages of rules may name. Of any name, `<name>.origin` says how its",
    )
    yield from (
        "value came about: `written`, `default`, `catalog`, `device`, `lock`, `receipt`, `coefficient`, `assumed`, `derived`.",
    )
    yield from ("", "| subject | reads |", "|---|---|")
    for subject, prefixes in subjects.items():
        groups = (
            f"`{prefix}.*` ([{group}](#{group}))" if prefix else f"[{group}](#{group})"
            for prefix, group in prefixes.items()
        )
        yield f"| `{subject}` | {', '.join(groups)} |"
    for group in (*(key for key in data if key not in ("engines", "subjects")), "coefficient"):
        yield from named(group, data.get(group) or build_data.read_toml("coefficients.toml"))


def named(group: str, entries: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"## {group}", "", "| name | unit | meaning |", "|---|---|---|")
    for name, entry in entries.items():
        shown_name = f"coefficient.{name}" if group == "coefficient" else name
        yield f"| `{shown_name}` | {entry['unit']} | {entry.get('is') or entry['reason']} |"


def stale(texts: Mapping[str, str]) -> list[str]:
    """Pages that are missing, out of date, or of no rule any more."""
    orphans = [path.name for path in DOCS.glob("*.md") if path.name not in texts]
    return [name for name, text in texts.items() if not build_data.holds(DOCS / name, text)] + orphans


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a page is stale")
    check = parser.parse_args().check
    texts = build()
    changed = stale(texts)
    if check:
        print("\n".join(f"docs/rules/{name} is stale: run scripts/build_docs.py" for name in changed))
        return 1 if changed else 0
    DOCS.mkdir(parents=True, exist_ok=True)
    for name in changed:
        if name in texts:
            (DOCS / name).write_text(texts[name], encoding="utf-8", newline="\n")
        else:
            (DOCS / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
