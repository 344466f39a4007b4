"""What a rule says of one subject, over all of its worlds: where doubt is decided, once, for every rule.

false in every world            the rule's severity
false at the nominal values     a warning, the range straddles the limit
false in some worlds only       unchecked: supply the engine's version
unknown                         unchecked: supply what is missing
true                            silent
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Union

from kvlint.diagnostics import SEVERITIES, Unchecked
from kvlint.facts import Catalog, Fact, Unknown, Written
from kvlint.records import dataclass, field
from kvlint.ruleset.load import Rule
from kvlint.ruleset.truth import Verdict
from kvlint.source import Span

Lookup = Callable[[str], Union[Fact[Any], Unknown, None]]

VERSION = Unknown(
    "engine.version",
    "releases of the engine differ here",
    "pin the engine's version (image tag, requirement, or [[engine]] version in kvlint.toml)",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One subject in one world."""

    lookup: Lookup
    engine: str | None = None
    releases: tuple[str, ...] = ()
    present: bool = True  # a problem that this world does not have is not there


@dataclass(frozen=True, slots=True)
class Subject:
    """What a rule is judged on.  `mark` gives the place to underline for a name; `doubt` caps the severity at warning.

    `identity`: the setting or flag that a fingerprint names.
    """

    kind: str
    cases: tuple[Case, ...]
    mark: Callable[[Case, str], Span]
    identity: str = ""
    problem: str = ""
    server: str | None = None
    servers: tuple[str, ...] = ()
    admissions: tuple[str, ...] = ()
    doubt: str | None = None
    related: tuple[tuple[str, Span, str], ...] = ()
    data: Any = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rule that is broken: in which world, by which verdict, how grave, and whether only at nominal values."""

    rule: Rule
    subject: Subject
    case: Case
    verdict: Verdict
    severity: str
    margin: bool


def judge(rule: Rule, subject: Subject) -> Outcome | Unchecked | None:
    """One rule on one subject."""
    broken: list[tuple[Case, Verdict, bool]] = []
    unknown: list[Unknown] = []
    silent = False
    for case in subject.cases:
        spoken = case.present and rule.speaks_to(case.engine, case.releases)
        if spoken is False:
            silent = True
            continue
        verdict = rule.judge(case.lookup)
        if verdict.value is False:
            broken.append((case, verdict, False))
        elif verdict.value is None and verdict.nominal is False:  # a range straddles the limit
            broken.append((case, verdict, True))
        elif verdict.value is None and verdict.unknown:
            unknown.extend(verdict.unknown)
            continue
        else:
            silent = True
            continue
        if spoken is None:
            unknown.append(VERSION)
    if not broken and not unknown:
        return None
    if broken and not silent and not unknown:
        return _outcome(rule, subject, broken)
    return _unchecked(rule, subject, unknown or [VERSION], broken=bool(broken))


def _outcome(rule: Rule, subject: Subject, broken: list[tuple[Case, Verdict, bool]]) -> Outcome:
    """The mildest of the worlds speaks for all."""
    judged = [
        (_severity(rule, subject, case, verdict, margin), number)
        for number, (case, verdict, margin) in enumerate(broken)
    ]
    severity, number = min(judged, key=lambda each: SEVERITIES.index(each[0]))
    case, verdict, _ = broken[number]
    return Outcome(rule, subject, case, verdict, severity, any(margin for _, _, margin in broken))


def _severity(rule: Rule, subject: Subject, case: Case, verdict: Verdict, margin: bool) -> str:
    severity = rule.severity_of(verdict, case.lookup, case.engine, case.releases)
    found = doubts(verdict.facts)
    if severity == "error" and (margin or subject.doubt or found & {"splice", "default", "supposed", "named"}):
        severity = "warning"
    if "claimed" in found:
        severity = {"error": "warning", "warning": "note"}.get(severity, severity)
    return severity


def doubts(facts: Iterable[Fact[Any]]) -> set[str]:
    """What is in doubt of the leaves of facts."""
    leaves = (leaf.origin for fact in facts for leaf in fact.leaves())
    return {origin.doubt for origin in leaves if isinstance(origin, (Written, Catalog)) and origin.doubt}


def _unchecked(rule: Rule, subject: Subject, unknown: list[Unknown], broken: bool) -> Unchecked | None:
    """Of several things missing the first is named; a version alone is asked for only where some world breaks the rule."""
    missing = next((each for each in unknown if each is not VERSION), VERSION)
    if missing is VERSION and not broken:
        return None
    place = subject.mark(subject.cases[0], rule.mark)
    return Unchecked(rule.name, subject.server, missing.missing, missing.supply, place)
