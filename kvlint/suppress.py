"""Which rules run, and which findings the project has chosen not to hear of."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kvlint.config import Config, ConfigError
from kvlint.diagnostics import Diagnostic, Unchecked
from kvlint.globs import matches_path, matches_server
from kvlint.records import dataclass, field
from kvlint.ruleset.load import Rule, rules
from kvlint.source import Source, Span

if TYPE_CHECKING:
    from kvlint.directives import Directive
    from kvlint.evaluation import Evaluation
    from kvlint.parsing import Parsed


def selected(config: Config, select: tuple[str, ...], ignore: tuple[str, ...]) -> list[Rule]:
    """The rules of a run, in the order of the themes; a name may be a rule's or a theme's.  Raises `ConfigError`."""
    wanted = set(select or config.select)
    unwanted = {*ignore, *(name for name, severity in config.severity.items() if severity == "off")}
    known = {rule.name for rule in rules().values()} | {rule.theme for rule in rules().values()} | {"all"}
    for name in (*select, *ignore, *config.named):
        if name not in known:
            place = None if name in (*select, *ignore) else config.named[name]
            raise ConfigError(f"unknown rule {name!r}{_near(name, known)}", place)

    def runs(rule: Rule) -> bool:
        names = {rule.name, rule.theme}
        asked = names & set(select)  # what the command line asks for by name, the file does not take away
        stands = rule.name in asked or not (names - asked) & set(config.ignore)
        return stands and (not wanted or bool(wanted & {*names, "all"})) and not unwanted & names

    return [rule for rule in rules().values() if runs(rule)]


def _near(name: str, known: Iterable[str]) -> str:
    suggestion = nearest_rule(name, known)
    return f"; did you mean {suggestion!r}?" if suggestion else ""


def nearest_rule(name: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1)), None)


@dataclass(eq=False, slots=True)
class Suppression:
    """One rule name of an `ignore`, in a comment or in kvlint.toml; `lines` are what a comment covers in its file.

    `rule`: None where kvlint.toml names none, which means each.  `places`: of what `at` is the address of.
    """

    rule: str | None
    span: Span
    until: datetime.date | None = None
    lines: tuple[int, int] | None = None
    at: str | None = None
    places: tuple[Span, ...] = ()
    used: bool = field(default=False)

    @property
    def expired(self) -> bool:
        return self.until is not None and self.until < datetime.date.today()

    def covers(self, finding: Diagnostic) -> bool:
        if self.rule not in (None, finding.rule):
            return False
        if self.lines is not None:
            first, last = self.lines
            places = (span for span in finding.spans() if _same(span.source, self.span.source))
            return any(span.line <= last and span.end_line >= first for span in places)
        if any(_meets(span, place) for span in finding.spans() for place in self.places):
            return True
        return self.at is None or _addressed(self.at, finding)

    def concerns(self, rule: str, path: str) -> bool:
        """Whether it may hide what a rule says of a file."""
        if self.rule not in (None, rule):
            return False
        return matches_path(self.at.partition("#")[0], path) if self.at is not None else self.span.path == path


def _same(one: Source, other: Source) -> bool:
    """One file, though it may have been read twice: kvlint.toml is, for what it says and for its comments."""
    return one is other or (one.path == other.path and one.text == other.text)


def _meets(one: Span, other: Span) -> bool:
    return one.source is other.source and one.start < other.end and other.start < one.end


def _addressed(at: str, finding: Diagnostic) -> bool:
    """`path` or `path#server`, against the finding's places and servers."""
    if "#" in at:
        return any(matches_server(at, server) for server in finding.servers)
    return any(matches_path(at, span.path) for span in (finding.span, *(each.span for each in finding.related)))


def apply(evaluation: Evaluation, findings: list[Diagnostic]) -> tuple[list[Diagnostic], int, list[Suppression]]:
    """The findings that stay, how many were suppressed, and every suppression with whether it was of use."""
    config = evaluation.project.config
    known = [*_inline(evaluation), *_configured(evaluation)]
    kept = []
    for finding in findings:
        hiding = [each for each in known if each.covers(finding)]
        for each in hiding:
            each.used = True
        if not any(not each.expired for each in hiding) and not _per_file(config, finding):
            kept.append(finding)
    return kept, len(findings) - len(kept), known


def spare(known: Iterable[Suppression], unchecked: Iterable[Unchecked]) -> None:
    """Whether a suppression still hides something is not known where its rule could not be checked in that file."""
    doubtful = {(each.rule, path) for each in unchecked for path in _paths(each)}
    for suppression in known:
        suppression.used = suppression.used or any(suppression.concerns(*each) for each in doubtful)


def _paths(unchecked: Unchecked) -> set[str]:
    server = {unchecked.server.partition("#")[0]} if unchecked.server is not None else set()
    return server | ({unchecked.span.path} if unchecked.span is not None else set())


def _per_file(config: Config, finding: Diagnostic) -> bool:
    if not config.all("per_file_ignore"):
        return False
    names = {finding.rule, rules()[finding.rule].theme, "all"}
    return any(
        ("rules" not in table or names & set(table.get("rules"))) and matches_path(table.get("match"), finding.path)
        for table in config.all("per_file_ignore")
    )


def _configured(evaluation: Evaluation) -> Iterator[Suppression]:
    for table in evaluation.project.config.all("ignore"):
        path, hash_, rest = table.get("at").partition("#")
        places: tuple[Span, ...] = ()
        if hash_:
            from kvlint import addresses

            places = addresses.places(path, rest, evaluation)
        yield Suppression(table.get("rule"), table.span, table.get("until"), at=table.get("at"), places=places)


def _inline(evaluation: Evaluation) -> Iterator[Suppression]:
    lost = {problem.span for problem in evaluation.findings.problems if problem.kind == "misplaced-directive"}
    for path in evaluation.project.seeds:
        parsed = evaluation.project.parsed(path)
        if parsed is None or "kvlint:" not in parsed.source.text:
            continue
        from kvlint import directives
        from kvlint.extents import ends

        extents: dict[int, int] | None = None
        for directive in directives.of(parsed):
            if directive.kind != "ignore" or directive.span in lost:
                continue
            extents = ends(parsed) if extents is None else extents
            lines = _covered(directive, parsed, extents)
            for rule in directive.rules:
                yield Suppression(rule, directive.span, directive.until, lines)


def _covered(directive: Directive, parsed: Parsed, extents: dict[int, int]) -> tuple[int, int]:
    """Its own line, or the line below it; a scalar or a continued command that begins there is covered to its end."""
    line = directive.line
    if directive.own_line:
        total = len(parsed.source.line_starts)
        line = directive.span.end_line + 1
        while line < total and _skippable(parsed.source.line(line)):
            line += 1
    return directive.line, extents.get(line, line)


def _skippable(text: str) -> bool:
    bare = text.strip()
    return not bare or bare.startswith(("#", "//", "<!--", "/*", ";"))
