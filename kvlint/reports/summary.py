"""The closing lines of a run: what was found, what could not be checked, what was not understood."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvlint.diagnostics import Report, Unchecked
from kvlint.ruleset.messages import clean

Style = Callable[[str, str], str]
SHOWN = 8


def summary_lines(report: Report, style: Style, verbose: bool = False) -> Iterator[str]:
    counts = [
        style(plural(report.count(severity), severity), severity)
        for severity in ("error", "warning", "note")
        if report.count(severity)
    ]
    suppressed = f", {report.suppressed} suppressed" if report.suppressed else ""
    yield (", ".join(counts) or "no findings") + suppressed
    yield (
        f"{plural(report.files_read, 'file')} read, {report.files_recognized} recognised, "
        f"{len(report.not_understood)} not understood; {plural(len(report.groups), 'server')}, "
        f"{plural(len(report.admissions), 'admission limit')}; {plural(len(report.unchecked), 'check')} could not be made"
    )
    for each in report.not_understood[: None if verbose else SHOWN]:
        yield f"  not understood: {clean(each.path)}:{each.line}: {clean(each.message)}"
    yield from unchecked_lines(report, verbose)


def unchecked_lines(report: Report, verbose: bool) -> Iterator[str]:
    """What is missing, each once, with the checks that wait for it."""
    waiting: dict[tuple[str | None, str, str], list[Unchecked]] = {}
    for each in report.unchecked:
        waiting.setdefault((each.server, each.missing, each.supply), []).append(each)
    for number, ((server, missing, supply), checks) in enumerate(waiting.items()):
        if number == SHOWN and not verbose:
            yield f"  … and {len(waiting) - SHOWN} more (-v shows all)"
            return
        rules = ", ".join(sorted({check.rule for check in checks}))
        where = f"{clean(server)}: " if server else ""
        yield f"  unchecked: {where}{missing} unknown ({rules}); {clean(supply)}"


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
