"""Applying fixes: only safe ones, only to files that are still as they were read, and never a change that makes an error.

The rounds are made in memory: every round judges the project with the changes so far laid over it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from difflib import unified_diff
from pathlib import Path

from kvlint.diagnostics import Diagnostic, Edit, Fix, Report
from kvlint.files import Overlay, Unreadable, decode, encode_like, replace_file
from kvlint.patterns import regex
from kvlint.pipeline import Options, check
from kvlint.project import Project
from kvlint.records import dataclass, field
from kvlint.reports.escape import line

MAX_ROUNDS = 8

# What means the same in every quoting and escaping that a file may have; a fix that needs anything else is not applied.
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,=-")
_LINE = regex(r"[^\n]*\n|[^\n]+")
_UNSAFE = regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


@dataclass(slots=True)
class Fixed:
    """`report`: what is found with the fixes in place; `before` and `after`: the bytes of the files that change."""

    report: Report
    before: dict[str, bytes] = field(default_factory=dict)
    after: dict[str, bytes] = field(default_factory=dict)
    applied: int = 0
    skipped: list[str] = field(default_factory=list)


def fix(project: Project, options: Options) -> Fixed:
    """Fix what can be fixed, in memory."""
    fixed = Fixed(check(project, options))
    for _ in range(MAX_ROUNDS):
        made, count = _round(project, fixed)
        if not made:
            break
        over = Overlay(project.files, {**fixed.after, **made})
        report = check(_over(project, over), options)
        worse = _worse(fixed.report, report)
        if worse is not None:
            fixed.skipped.append(f"a round of fixes was dropped, because it would cause {worse.rule} in {worse.path}")
            break
        for path in made:
            fixed.before.setdefault(path, project.files.read(path))
        fixed.after |= made
        fixed.applied += count
        fixed.report = report
    return fixed


def _over(project: Project, files: Overlay) -> Project:
    return Project(files, project.config, project.focus, project.given, name=project.name)


def _worse(before: Report, after: Report) -> Diagnostic | None:
    """An error that was not there."""
    known = {each.fingerprint for each in before.findings}
    return next((each for each in after.findings if each.severity == "error" and each.fingerprint not in known), None)


def _round(project: Project, fixed: Fixed) -> tuple[dict[str, bytes], int]:
    """The new bytes of every file that safe fixes of the report change, and how many fixes that are."""
    chosen: dict[str, list[Edit]] = {}
    texts: dict[str, tuple[bytes, str]] = {}
    count = 0
    for each in _safe(fixed.report.findings):
        if not all(_current(project, fixed, edit, texts) for edit in each.edits) or _clashes(each, chosen):
            continue
        for edit in each.edits:
            chosen.setdefault(edit.span.path, []).append(edit)
        count += 1
    made = {path: _edited(*texts[path], edits) for path, edits in chosen.items()}
    return {path: data for path, data in made.items() if data != texts[path][0]}, count


def _safe(findings: Iterable[Diagnostic]) -> Iterator[Fix]:
    for finding in findings:
        found = finding.fix
        if found is not None and found.safety == "safe" and found.edits and all(_plain(edit) for edit in found.edits):
            yield found


def _plain(edit: Edit) -> bool:
    """One run of characters, replaced by characters that need no quoting, or that stood there before."""
    old = edit.span.text
    return len(edit.span.pieces) == 1 and edit.text != old and _PLAIN.union(old).issuperset(edit.text)


def _current(project: Project, fixed: Fixed, edit: Edit, texts: dict[str, tuple[bytes, str]]) -> bool:
    """Whether the file still holds the text in which the edit was found."""
    path = edit.span.path
    if path not in texts:
        try:
            data = fixed.after[path] if path in fixed.after else project.files.read(path)
            texts[path] = data, decode(data)
        except Unreadable:
            return False
    return texts[path][1] == edit.span.source.text


def _clashes(each: Fix, chosen: Mapping[str, list[Edit]]) -> bool:
    """Whether an edit overlaps another one's characters; the same edit made twice is one."""
    for edit in each.edits:
        for other in chosen.get(edit.span.path, ()):
            same = other.span.pieces == edit.span.pieces and other.text == edit.text
            if not same and edit.span.start <= other.span.end and other.span.start <= edit.span.end:
                return True
    return False


def _edited(data: bytes, text: str, edits: Iterable[Edit]) -> bytes:
    unique = {(edit.span.start, edit.span.end): edit.text for edit in edits}
    for (start, end), new in sorted(unique.items(), reverse=True):
        text = text[:start] + new + text[end:]
    return encode_like(data, text)


def save(fixed: Fixed, root: Path) -> list[str]:
    """Write the changed files below `root`; what could not be written, and why."""
    failures = []
    for path, data in fixed.after.items():
        problem = _refusal(root, path, fixed.before[path])
        if problem is None:
            try:
                replace_file(root / path, data)
                continue
            except OSError as error:
                problem = error.strerror or str(error)
        failures.append(f"{path}: {problem}; left as it is")
    return failures


def _refusal(root: Path, path: str, before: bytes) -> str | None:
    target = Path(os.path.realpath(root / path))
    if Path(os.path.realpath(root)) not in target.parents:
        return "lies outside the project"
    try:
        if target.read_bytes() != before:
            return "changed while it was read"
        if not target.stat().st_mode & 0o222 or not os.access(target, os.W_OK):
            return "is read-only"
    except OSError as error:
        return error.strerror or str(error)
    return None


def diff(fixed: Fixed) -> str:
    """What the fixes change, as a unified diff with paths from the project's root."""
    return "".join(
        _shown(each)
        for path in sorted(fixed.after)
        for each in unified_diff(
            _lines(fixed.before[path]), _lines(fixed.after[path]), f"a/{line(path)}", f"b/{line(path)}", lineterm="\n"
        )
    )


def _lines(data: bytes) -> list[str]:
    return _LINE.findall(decode(data))


def _shown(text: str) -> str:
    """A line of the diff; what would act on a terminal, or on a runner that reads logs, is written out."""
    body = text.rstrip("\r\n")
    end = text[len(body) :] or "\n\\ No newline at end of file\n"
    if _UNSAFE.search(body) or body[1:].lstrip(" ").startswith("::") or "##" in body:
        body = body[:1] + line(body[1:])
    return body + end
