"""The contract's JSON: `check --format json`."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from kvlint import __version__
from kvlint.diagnostics import Diagnostic, Fix, Report
from kvlint.facts import Range
from kvlint.reports.escape import line, to_json, well_formed
from kvlint.source import Span


def render(report: Report) -> str:
    return to_json(plain(document(report)))


def document(report: Report) -> dict[str, Any]:
    return {
        "version": 1,
        "tool": {"name": "kvlint", "version": __version__},
        "summary": summary(report),
        "findings": [finding(each) for each in report.findings],
        "unchecked": [
            {"rule": each.rule, "server": each.server, "missing": each.missing, "supply": line(each.supply)}
            for each in report.unchecked
        ],
        "not_understood": [
            {"path": each.path, "line": each.line, "message": line(each.message)} for each in report.not_understood
        ],
    }


def summary(report: Report) -> dict[str, int]:
    return {
        "files_read": report.files_read,
        "files_recognized": report.files_recognized,
        "files_not_understood": len(report.not_understood),
        "servers": len(report.groups),
        "admissions": len(report.admissions),
        "errors": report.count("error"),
        "warnings": report.count("warning"),
        "notes": report.count("note"),
        "suppressed": report.suppressed,
        "unchecked": len(report.unchecked),
    }


def finding(each: Diagnostic) -> dict[str, Any]:
    return {
        "rule": each.rule,
        "severity": each.severity,
        "certainty": each.certainty,
        "message": line(each.message),
        "path": each.path,
        **place(each.span),
        "server": each.server,
        "servers": list(each.servers),
        "admissions": list(each.admissions),
        "related": [
            {"path": related.span.path, **place(related.span), "role": related.role, "message": line(related.message)}
            for related in each.related
        ],
        "values": plain(each.values),
        "suggestions": [
            {"setting": suggestion.setting, "value": plain(suggestion.value), "message": line(suggestion.message)}
            for suggestion in each.suggestions
        ],
        "fingerprint": each.fingerprint,
        "fix": _fix(each.fix) if each.fix else None,
    }


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [{"path": edit.span.path, **place(edit.span), "text": edit.text} for edit in fix.edits]
    return {"safety": fix.safety, "message": line(fix.message), "edits": edits}


def place(span: Span) -> dict[str, int]:
    return {"line": span.line, "column": span.column, "end_line": span.end_line, "end_column": span.end_column}


def plain(value: Any) -> Any:
    """A value as JSON has it: whole numbers stay whole, ratios become decimals, ranges an object, text well-formed."""
    if isinstance(value, Range):
        if value.exact:
            return plain(value.nominal)
        return {"low": plain(value.low), "nominal": plain(value.nominal), "high": plain(value.high)}
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    if isinstance(value, Mapping):
        return {well_formed(str(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in value]
    return value if isinstance(value, int | float | type(None)) else well_formed(str(value))
