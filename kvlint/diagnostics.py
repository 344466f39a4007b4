"""Findings and the report that carries them: what every output is rendered from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kvlint.records import dataclass, field
from kvlint.source import Span

if TYPE_CHECKING:
    from kvlint.subjects import Admission, ServerGroup

SEVERITIES = ("note", "warning", "error")


def rank(severity: str) -> int:
    return SEVERITIES.index(severity)


class Placed:
    """The ends of a `span`, 1-based, columns in code points, the end exclusive."""

    __slots__ = ()
    span: Span

    @property
    def path(self) -> str:
        return self.span.path

    @property
    def line(self) -> int:
        return self.span.line

    @property
    def column(self) -> int:
        return self.span.column

    @property
    def end_line(self) -> int:
        return self.span.end_line

    @property
    def end_column(self) -> int:
        return self.span.end_column


@dataclass(frozen=True, slots=True)
class Related(Placed):
    """Another place of a finding.  `role`: cause, counterpart or use."""

    span: Span
    role: str
    message: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A value of `setting` that would satisfy the rule."""

    setting: str
    value: Any
    message: str


@dataclass(frozen=True, slots=True)
class Edit(Placed):
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """`safety`: safe (applied by `--fix`) or unsafe (only shown)."""

    safety: str
    message: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Diagnostic(Placed):
    """One finding.  `certainty`: certain, or margin where a range straddles the limit.  `values` use contract names only."""

    rule: str
    severity: str
    certainty: str
    message: str
    span: Span
    related: tuple[Related, ...] = ()
    server: str | None = None
    servers: tuple[str, ...] = ()
    admissions: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    suggestions: tuple[Suggestion, ...] = ()
    fix: Fix | None = None
    inputs: tuple[Span, ...] = ()
    subject: str = ""  # the setting or flag that the fingerprint names
    fingerprint: str = ""

    @property
    def text(self) -> str:
        """The underlined characters."""
        return self.span.text

    def spans(self) -> tuple[Span, ...]:
        """Every place of the finding, its inputs included."""
        return (self.span, *(related.span for related in self.related), *self.inputs)


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A check that could not be made, and what would supply what is missing."""

    rule: str
    server: str | None
    missing: str
    supply: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    path: str
    line: int
    message: str


@dataclass(slots=True)
class Report:
    """What a run found.  Counts are after selection and suppression.  `prefix`: the project's directory in its repository."""

    findings: list[Diagnostic] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)
    not_understood: list[NotUnderstood] = field(default_factory=list)
    groups: list[ServerGroup] = field(default_factory=list)
    admissions: list[Admission] = field(default_factory=list)
    files_read: int = 0
    files_recognized: int = 0
    suppressed: int = 0
    internal: list[str] = field(default_factory=list)
    prefix: str = ""

    @property
    def summary(self) -> dict[str, int]:
        """The counts of `check --format json`."""
        from kvlint.reports.json import summary

        return summary(self)

    def count(self, severity: str) -> int:
        return sum(finding.severity == severity for finding in self.findings)

    def worst(self) -> str | None:
        found = {finding.severity for finding in self.findings}
        return max(found, key=rank) if found else None
