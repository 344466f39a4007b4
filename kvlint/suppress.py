"""Which rules run, and which findings the project has chosen not to hear of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kvlint.config import Config, ConfigError
from kvlint.diagnostics import Diagnostic
from kvlint.globs import matches_path
from kvlint.ruleset.load import Rule, rules

if TYPE_CHECKING:
    from kvlint.check import Evaluation


def selected(config: Config, select: tuple[str, ...], ignore: tuple[str, ...]) -> list[Rule]:
    """The rules of a run, in the order of the themes; a name may be a rule's or a theme's.  Raises `ConfigError`."""
    wanted = set(select or config.select)
    unwanted = {*ignore, *config.ignore} | {name for name, severity in config.severity.items() if severity == "off"}
    known = {rule.name for rule in rules().values()} | {rule.theme for rule in rules().values()} | {"all"}
    for name in (*wanted, *unwanted, *config.severity):
        if name not in known:
            raise ConfigError(f"unknown rule {name!r}{_near(name, known)}")
    return [
        rule
        for rule in rules().values()
        if (not wanted or wanted & {rule.name, rule.theme, "all"}) and not unwanted & {rule.name, rule.theme}
    ]


def _near(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def apply(evaluation: Evaluation, findings: list[Diagnostic], rules: list[Rule]) -> tuple[list[Diagnostic], int]:
    """The findings that stay, and how many were suppressed."""
    config = evaluation.project.config
    kept = [each for each in findings if not _per_file(config, each)]
    return kept, len(findings) - len(kept)


def _per_file(config: Config, finding: Diagnostic) -> bool:
    return any(
        finding.rule in table.get("rules") and matches_path(table.get("match"), finding.path)
        for table in config.all("per_file_ignore")
    )
