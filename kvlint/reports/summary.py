"""The closing lines of a run: what was found, what could not be checked, what was not understood."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvlint.diagnostics import SEVERITIES, Report
from kvlint.records import dataclass
from kvlint.reports.escape import line

Style = Callable[[str, str], str]
SHOWN = 8


@dataclass(frozen=True, slots=True)
class Gap:
    """Something missing, with the rules that wait for it."""

    server: str | None
    missing: str
    supply: str
    rules: tuple[str, ...]


def summary_lines(report: Report, style: Style, verbose: bool = False) -> Iterator[str]:
    yield counts(report, style)
    yield scope(report)
    for each in report.not_understood[: None if verbose else SHOWN]:
        yield f"  not understood: {line(each.path)}:{each.line}: {line(each.message)}"
    if not verbose and len(report.not_understood) > SHOWN:
        yield f"  … and {len(report.not_understood) - SHOWN} more not understood (-v shows all)"
    yield from unchecked_lines(report, verbose)


def counts(report: Report, style: Style) -> str:
    """`2 errors, 1 note, 3 suppressed`."""
    found = [
        style(plural(report.count(severity), severity), severity)
        for severity in reversed(SEVERITIES)
        if report.count(severity)
    ]
    suppressed = f", {report.suppressed} suppressed" if report.suppressed else ""
    return (", ".join(found) or "no findings") + suppressed


def scope(report: Report) -> str:
    """What the run covered."""
    return (
        f"{plural(report.files_read, 'file')} read, {report.files_recognized} recognised, "
        f"{len(report.not_understood)} not understood; {plural(len(report.groups), 'server')}, "
        f"{plural(len(report.admissions), 'admission limit')}; {plural(len(report.unchecked), 'check')} could not be made"
    )


def gaps(report: Report) -> list[Gap]:
    """What is missing, each once."""
    waiting: dict[tuple[str | None, str, str], set[str]] = {}
    for each in report.unchecked:
        waiting.setdefault((each.server, each.missing, each.supply), set()).add(each.rule)
    return [Gap(*key, tuple(sorted(rules))) for key, rules in waiting.items()]


def unchecked_lines(report: Report, verbose: bool) -> Iterator[str]:
    found = gaps(report)
    for gap in found[: None if verbose else SHOWN]:
        where = f"{line(gap.server)}: " if gap.server else ""
        yield f"  unchecked: {where}{line(gap.missing)} unknown ({', '.join(gap.rules)}); {line(gap.supply)}"
    if not verbose and len(found) > SHOWN:
        yield f"  … and {len(found) - SHOWN} more (-v shows all)"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
