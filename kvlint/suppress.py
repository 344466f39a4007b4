"""Which rules run, and which findings the project has chosen not to hear of."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kvlint import directives
from kvlint.config import Config, ConfigError
from kvlint.diagnostics import Diagnostic
from kvlint.directives import Directive
from kvlint.globs import matches_path, matches_server
from kvlint.ruleset.load import Rule, rules
from kvlint.source import Span
from kvlint.tree import List, Map, Scalar, walk

if TYPE_CHECKING:
    from kvlint.pipeline import Evaluation
    from kvlint.parsing import Parsed


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
    suggestion = nearest_rule(name, known)
    return f"; did you mean {suggestion!r}?" if suggestion else ""


def nearest_rule(name: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1)), None)


@dataclass(eq=False, slots=True)
class Suppression:
    """One rule name of an `ignore`, in a comment or in kvlint.toml; `lines` are what a comment covers in its file."""

    rule: str
    span: Span
    until: datetime.date | None = None
    lines: tuple[int, int] | None = None
    at: str | None = None
    used: bool = field(default=False)

    @property
    def expired(self) -> bool:
        return self.until is not None and self.until < datetime.date.today()

    def covers(self, finding: Diagnostic) -> bool:
        if finding.rule != self.rule:
            return False
        if self.lines is not None:
            first, last = self.lines
            places = (span for span in finding.spans() if span.source is self.span.source)
            return any(span.line <= last and span.end_line >= first for span in places)
        return self.at is None or _addressed(self.at, finding)


def _addressed(at: str, finding: Diagnostic) -> bool:
    """`path` or `path#server`, against the finding's places and servers."""
    if "#" in at:
        return any(matches_server(at, server) for server in finding.servers)
    return any(matches_path(at, span.path) for span in (finding.span, *(each.span for each in finding.related)))


def apply(evaluation: Evaluation, findings: list[Diagnostic]) -> tuple[list[Diagnostic], int, list[Suppression]]:
    """The findings that stay, how many were suppressed, and every suppression with whether it was of use."""
    config = evaluation.project.config
    known = [*_inline(evaluation), *_configured(config)]
    kept = []
    for finding in findings:
        hiding = [each for each in known if each.covers(finding)]
        for each in hiding:
            each.used = True
        if not any(not each.expired for each in hiding) and not _per_file(config, finding):
            kept.append(finding)
    return kept, len(findings) - len(kept), known


def _per_file(config: Config, finding: Diagnostic) -> bool:
    return any(
        finding.rule in table.get("rules") and matches_path(table.get("match"), finding.path)
        for table in config.all("per_file_ignore")
    )


def _configured(config: Config) -> Iterator[Suppression]:
    for table in config.all("ignore"):
        yield Suppression(table.get("rule"), table.span, table.get("until"), at=table.get("at"))


def _inline(evaluation: Evaluation) -> Iterator[Suppression]:
    for path in evaluation.project.seeds:
        parsed = evaluation.project.parsed(path)
        if parsed is None or "kvlint:" not in parsed.source.text:
            continue
        extents: dict[int, int] | None = None
        for directive in directives.of(parsed):
            if directive.kind != "ignore":
                continue
            extents = _extents(parsed) if extents is None else extents
            lines = _covered(directive, parsed, extents)
            for rule in directive.rules:
                yield Suppression(rule, directive.span, directive.until, lines)


def _covered(directive: Directive, parsed: Parsed, extents: dict[int, int]) -> tuple[int, int]:
    """Its own line, or the line below it; a scalar or a continued command that begins there is covered to its end."""
    line = directive.line
    if directive.own_line:
        total = len(parsed.source.line_starts)
        line += 1
        while line < total and _skippable(parsed.source.line(line)):
            line += 1
    return directive.line, extents.get(line, line)


def _skippable(text: str) -> bool:
    bare = text.strip()
    return not bare or bare.startswith(("#", "//", "<!--"))


def _extents(parsed: Parsed) -> dict[int, int]:
    """The last line of the scalar or command that begins on a line."""
    ends: dict[int, int] = {}
    for document in parsed.documents:
        for node in walk(document.node) if document.node is not None else ():
            if isinstance(node, Map):
                for entry in node.entries:
                    if isinstance(entry.value, Scalar):
                        _extend(ends, entry.key.span.line, entry.value.span.end_line)
            elif isinstance(node, List):
                for item in node.items:
                    if isinstance(item, Scalar):
                        _extend(ends, item.span.line, item.span.end_line)
    if parsed.kind == "shell":
        from kvlint.formats import shell
        from kvlint.source import Text

        for command in shell.commands(Text.of(parsed.source, 0, len(parsed.source.text))).commands:
            if command.span is not None and command.span.source is parsed.source:
                _extend(ends, command.span.line, command.span.end_line)
    return ends


def _extend(ends: dict[int, int], first: int, last: int) -> None:
    ends[first] = max(ends.get(first, first), last)
