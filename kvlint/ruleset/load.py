"""The compiled rules: what `scripts/build_data.py` made of `rules/`, read when first asked for.

`rules()` is what `check` needs; `pages()` is the prose and the examples, read only by `explain`, `rules` and the documentation.
Expressions and templates are compiled when a rule is first judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from kvlint import compiled
from kvlint.diagnostics import rank
from kvlint.facts import Assumed, Default
from kvlint.records import dataclass
from kvlint.ruleset import conditions, messages, truth
from kvlint.ruleset.conditions import Condition, Lookup
from kvlint.ruleset.messages import Message
from kvlint.ruleset.scopes import Scope, speaks_to
from kvlint.ruleset.truth import Verdict

UNDECIDED = "error?warning"


@dataclass(frozen=True, slots=True)
class Choice:
    """One case of a severity or a message: `what`, for some engines only, under a condition only."""

    what: str
    scopes: tuple[Scope, ...] = ()
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """`how`: `largest` or `smallest`, then `what` names the setting to search; or `text`, then `what` is a template."""

    how: str
    what: str


@dataclass(frozen=True, slots=True)
class Replacement:
    """The marked characters become the value of `to`."""

    to: str
    safety: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, ready to be judged.  Expressions are kept as text; `kind` is set for problems only."""

    name: str
    theme: str
    summary: str
    subject: str
    severity: tuple[Choice, ...]
    message: tuple[Choice, ...]
    mark: str = ""
    kind: str = ""
    engines: tuple[Scope, ...] = ()
    when: str = ""
    holds: str = ""
    suggest: tuple[Advice, ...] = ()
    edit: Replacement | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names whose values make the finding: those of `holds`, then those that a message prints."""
        printed = [
            placeholder.operand.names for choice in self.message for placeholder in self._template(choice).placeholders
        ]
        groups = [self._condition(self.holds).names] if self.holds else []
        return tuple(dict.fromkeys(name for group in (*groups, *printed) for name in group))

    def speaks_to(self, engine: str | None, releases: Iterable[str]) -> bool | None:
        """See `speaks_to`: None asks for the engine's version."""
        return speaks_to(self.engines, engine, releases)

    def judge(self, lookup: Lookup) -> Verdict:
        """Whether the rule is kept.  Without `when` holding it does not apply; without `holds` (a problem) it is broken.

        Where `when` is in doubt, so is the verdict.  Only the facts of `holds` are decisive.
        """
        scope = _condition(self.subject, self.when).evaluate(lookup) if self.when else None
        if scope is not None and (scope.value is False or not scope.applies):
            return truth.SILENT
        kept = _condition(self.subject, self.holds).evaluate(lookup) if self.holds else Verdict(False, False)
        if scope is not None and scope.value is None:
            return conditions.either(truth.negate(scope), kept)
        return kept

    def severity_of(
        self, verdict: Verdict, lookup: Lookup, engine: str | None = None, releases: Iterable[str] = ()
    ) -> str:
        """The first case that holds; where it is in doubt whether one does, the milder of it and those below it.

        `error?warning` is a warning where a decisive value is a default or an assumption.  Caps are the caller's.
        """
        releases = tuple(releases)
        milder: list[str] = []
        for choice in self.severity:
            chosen = self._chosen(choice, lookup, engine, releases)
            if chosen is False:
                continue
            milder.append(_settled(choice.what, verdict))
            if chosen:
                break
        return min(milder, key=rank)

    def message_of(
        self, verdict: Verdict, lookup: Lookup, engine: str | None = None, releases: Iterable[str] = ()
    ) -> str:
        """The words of the first case that certainly holds; the last case always does."""
        releases = tuple(releases)
        cases = (choice for choice in self.message if self._chosen(choice, lookup, engine, releases))
        return self._template(next(cases, self.message[-1])).render(lookup, verdict.compared)

    def text(self, template: str, lookup: Lookup) -> str:
        """Another template of this rule (a suggestion's text) in words."""
        return _template(self.subject, template).render(lookup)

    def _chosen(self, choice: Choice, lookup: Lookup, engine: str | None, releases: tuple[str, ...]) -> bool | None:
        speaks = speaks_to(choice.scopes, engine, releases)
        if speaks is False or not choice.condition:
            return speaks
        verdict = self._condition(choice.condition)(lookup)
        if not verdict.applies or verdict.nominal is False:
            return False
        return speaks and verdict.nominal

    def _condition(self, expression: str) -> Condition:
        return _condition(self.subject, expression)

    def _template(self, choice: Choice) -> Message:
        return _template(self.subject, choice.what)


def _settled(severity: str, verdict: Verdict) -> str:
    if severity != UNDECIDED:
        return severity
    leaves = (leaf for fact in verdict.facts for leaf in fact.leaves())
    return "warning" if any(isinstance(leaf.origin, Default | Assumed) for leaf in leaves) else "error"


@dataclass(frozen=True, slots=True)
class Find:
    """What an example's finding underlines: the text as it stands in the file, a line break read as `\\n`."""

    text: str
    severity: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """A small project.  `excluded`: variants of the test harness that would change what the example shows."""

    files: Mapping[str, str]
    finds: tuple[Find, ...] = ()
    config: str | None = None
    note: str = ""
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """What `explain` prints of a rule."""

    why: str
    fix: str
    since: str
    examples: Mapping[str, Example]
    notes: str = ""
    references: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def rules() -> Mapping[str, Rule]:
    """Every rule by name, in the order of the themes."""
    return {name: read_rule(name, row) for name, row in _compiled()["rules"].items()}


@lru_cache(maxsize=1)
def pages() -> Mapping[str, Page]:
    """Every rule's page by the rule's name."""
    return {name: _page(row) for name, row in compiled.load("rule_pages.json").items()}


@cache
def units(subject: str) -> Mapping[str, str]:
    """The names that a rule about `subject` may read, each with its unit."""
    compiled = _compiled()
    return assemble(compiled["subjects"][subject], compiled["units"])


def assemble(prefixes: Mapping[str, str], units: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """A subject's names: those of each of its groups behind the group's prefix, and the coefficients."""
    groups = {**prefixes, "coefficient": "coefficient"}
    return {
        f"{prefix}.{name}" if prefix else name: unit
        for prefix, group in groups.items()
        for name, unit in units[group].items()
    }


@lru_cache(maxsize=1)
def _compiled() -> Any:
    return compiled.load("rules.json")


@cache
def _condition(subject: str, expression: str) -> Condition:
    return conditions.compile(expression, frozenset(units(subject)))


@cache
def _template(subject: str, template: str) -> Message:
    return messages.compile(template, units(subject))


def _choice(row: Mapping[str, str]) -> Choice:
    """A case from its compiled row: `what`, and optionally `for` (scopes joined by `or`) and `if`."""
    scopes = tuple(Scope.parse(text) for text in row["for"].split(" or ")) if "for" in row else ()
    return Choice(row["what"], scopes, row.get("if", ""))


def read_rule(name: str, row: Mapping[str, Any]) -> Rule:
    """A rule from its compiled row."""
    return Rule(
        name,
        row["theme"],
        row["summary"],
        row["subject"],
        tuple(_choice(case) for case in row["severity"]),
        tuple(_choice(case) for case in row["message"]),
        row.get("mark", ""),
        row.get("kind", ""),
        tuple(Scope.parse(text) for text in row.get("engines", ())),
        row.get("when", ""),
        row.get("holds", ""),
        tuple(Advice(how, what) for how, what in row.get("suggest", ())),
        Replacement(**row["edit"]) if "edit" in row else None,
    )


def _page(row: Mapping[str, Any]) -> Page:
    examples = {kind: _example(example) for kind, example in row["examples"].items()}
    return Page(row["why"], row["fix"], row["since"], examples, row.get("notes", ""), tuple(row.get("references", ())))


def _example(row: Mapping[str, Any]) -> Example:
    finds = tuple(Find(**find) for find in row.get("finds", ()))
    return Example(row["files"], finds, row.get("config"), row.get("note", ""), tuple(row.get("excluded", ())))
