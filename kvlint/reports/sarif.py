"""SARIF 2.1.0, as code scanning and editors read it: one run, columns in code points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from kvlint.diagnostics import Diagnostic, Fix, Related, Report
from kvlint.reports.escape import line, to_json
from kvlint.reports.json import plain, summary
from kvlint.reports.sarif_rules import driver
from kvlint.reports.summary import gaps
from kvlint.reports.words import Region, advice, headline, place, region, repair
from kvlint.ruleset.load import rules
from kvlint.source import Span

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"
_LINKED = str.maketrans({"[": "(", "]": ")", "\\": "\\\\"})
_CAMEL = {"line": "startLine", "column": "startColumn", "end_line": "endLine", "end_column": "endColumn"}


def render(report: Report) -> str:
    return to_json(plain(document(report)))


def document(report: Report) -> dict[str, Any]:
    """Every rule is listed, and a run without findings has an empty list of results: it closes the alerts of earlier runs."""
    index = {name: number for number, name in enumerate(rules())}
    run = {
        "tool": {"driver": driver()},
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the project that was checked."}}},
        "columnKind": "unicodeCodePoints",
        "newlineSequences": ["\r\n", "\n", "\r"],
        "invocations": [
            {
                "executionSuccessful": not report.internal,
                "toolExecutionNotifications": list(_notifications(report)),
                "properties": summary(report),
            }
        ],
        "results": [_result(finding, index) for finding in report.findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [_below(report.prefix, run) if report.prefix else run]}


def _below(prefix: str, node: Any) -> Any:
    """The same with every file as it is found from the top of the repository, which is where code scanning looks for it."""
    if isinstance(node, list):
        return [_below(prefix, each) for each in node]
    if not isinstance(node, dict):
        return node
    if node.get("uriBaseId") == ROOT:
        return {**node, "uri": quote(_bytes(prefix), safe="/") + node["uri"]}
    return {key: _below(prefix, value) for key, value in node.items()}


def _result(finding: Diagnostic, index: Mapping[str, int]) -> dict[str, Any]:
    return {
        "ruleId": finding.rule,
        **({"ruleIndex": index[finding.rule]} if finding.rule in index else {}),
        "level": finding.severity,
        "message": {"text": _message(finding)},
        "locations": [_place_of(finding)],
        "relatedLocations": [_related(number, each) for number, each in enumerate(finding.related, 1)],
        "partialFingerprints": {"kvlint/v1": finding.fingerprint},
        **({"fixes": [_fix(finding.fix)]} if finding.fix else {}),
        "properties": {"certainty": finding.certainty, "values": finding.values},
    }


def _message(finding: Diagnostic) -> str:
    """Code scanning shows a related place only where the message links to it by its number."""
    lines = [_unlinked(headline(finding))]
    lines += [
        f"{related.role}: [{_link_text(line(related.message) or place(related.span))}]({number})"
        for number, related in enumerate(finding.related, 1)
    ]
    return "\n".join((*lines, *map(_unlinked, advice(finding))))


def _unlinked(text: str) -> str:
    """Text in which a viewer finds no link."""
    return text.replace("](", "] (")


def _link_text(text: str) -> str:
    """Text within a link, which not every viewer ends at the same bracket."""
    return text.translate(_LINKED)


def _place_of(finding: Diagnostic) -> dict[str, Any]:
    found = _location(finding.span)
    if len(finding.span.pieces) > 1:
        source = finding.span.source
        found["annotations"] = [_region(region(source.span(*piece))) for piece in finding.span.pieces]
    if finding.server:
        found["logicalLocations"] = [{"fullyQualifiedName": line(finding.server), "kind": "resource"}]
    return found


def _location(span: Span) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": artifact(span.path), "region": _region(region(span))}}


def _related(number: int, each: Related) -> dict[str, Any]:
    return {
        "id": number,
        **_location(each.span),
        "message": {"text": _unlinked(f"{each.role}: {line(each.message)}")},
        "properties": {"role": each.role},
    }


def _region(marked: Region) -> dict[str, int]:
    return {_CAMEL[name]: value for name, value in asdict(marked).items()}


def artifact(path: str) -> dict[str, str]:
    """A file by its URI: below the root where the path is relative.  A byte that is no UTF-8 keeps its value."""
    uri = quote(_bytes(path), safe="/")
    return {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": ROOT}


def _bytes(path: str) -> bytes:
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogatepass")


def _fix(fix: Fix) -> dict[str, Any]:
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        span = edit.span
        deleted = Region(span.line, span.column, span.end_line, span.end_column)
        replacement = {"deletedRegion": _region(deleted), "insertedContent": {"text": edit.text}}
        changes.setdefault(span.path, []).append(replacement)
    return {
        "description": {"text": _unlinked(repair(fix))},
        "artifactChanges": [
            {"artifactLocation": artifact(path), "replacements": replacements} for path, replacements in changes.items()
        ],
        "properties": {"safety": fix.safety},
    }


def _notifications(report: Report) -> Iterator[dict[str, Any]]:
    """What the results do not say: files that were not understood, checks that could not be made, errors of our own."""
    for message in report.internal:
        yield {"descriptor": {"id": "internal"}, "level": "error", "message": {"text": line(message)}}
    for each in report.not_understood:
        where = {"artifactLocation": artifact(each.path), "region": {"startLine": max(1, each.line)}}
        yield {
            "descriptor": {"id": "not-understood"},
            "level": "warning",
            "message": {"text": _unlinked(line(each.message))},
            "locations": [{"physicalLocation": where}],
        }
    for gap in gaps(report):
        server = f"{line(gap.server)}: " if gap.server else ""
        text = f"{server}{line(gap.missing)} unknown ({', '.join(gap.rules)}); {line(gap.supply)}"
        yield {"descriptor": {"id": "unchecked"}, "level": "note", "message": {"text": _unlinked(text)}}
