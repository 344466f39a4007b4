"""Every selected rule over every subject of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from kvlint.diagnostics import Diagnostic, Unchecked
from kvlint.ruleset import views
from kvlint.ruleset.diagnose import diagnose, merged, numbered
from kvlint.ruleset.judge import Outcome, Subject, judge
from kvlint.ruleset.load import Rule
from kvlint.ruleset.suggest import suggestions

if TYPE_CHECKING:
    from kvlint.evaluation import Evaluation
    from kvlint.suppress import Suppression


def run(evaluation: Evaluation, rules: Iterable[Rule]) -> tuple[list[Diagnostic], list[Unchecked]]:
    """Findings in the order of their places, numbered; and what could not be checked."""
    by_kind: dict[str, list[Rule]] = {}
    for rule in rules:
        by_kind.setdefault(rule.subject, []).append(rule)
    outcomes: list[Outcome] = []
    unchecked: list[Unchecked] = []
    asked: dict[tuple[str, str, str | None], list[Rule]] = {}
    for subject in subjects(evaluation):
        key = (subject.kind, subject.problem, _engine(subject))
        if key not in asked:
            asked[key] = [rule for rule in by_kind.get(subject.kind, ()) if _speaks(rule, *key[1:])]
        for rule in asked[key]:
            result = judge(rule, subject)
            if isinstance(result, Outcome):
                outcomes.append(result)
            elif isinstance(result, Unchecked):
                unchecked.append(result)
    server_rules = by_kind.get("server", [])
    findings = [diagnose(each, suggestions(each, server_rules, evaluation.coefficients)) for each in outcomes]
    return numbered(merged(findings)), unchecked


def _engine(subject: Subject) -> str | None:
    """The one engine of a subject; None where it has none, or several."""
    engine = subject.cases[0].engine if subject.cases else None
    return engine if all(case.engine == engine for case in subject.cases) else None


def _speaks(rule: Rule, problem: str, engine: str | None) -> bool:
    """Whether a rule may have anything to say of a problem and an engine."""
    if rule.kind and rule.kind != problem:
        return False
    return engine is None or not rule.engines or any(scope.engine == engine for scope in rule.engines)


def lint(evaluation: Evaluation, known: Iterable[Suppression], rules: list[Rule]) -> list[Diagnostic]:
    """The rules about suppressions themselves: judged last, and by nothing suppressed."""
    from kvlint.ruleset.relations import suppressions

    own = [rule for rule in rules if rule.subject == "suppression"]
    active = {rule.name for rule in rules}
    outcomes = [
        outcome
        for subject in suppressions(evaluation, known, active)
        for rule in own
        if isinstance(outcome := judge(rule, subject), Outcome)
    ]
    return numbered(diagnose(outcome) for outcome in outcomes)


def subjects(evaluation: Evaluation) -> Iterator[Subject]:
    """Everything that rules speak about; where one kind cannot be made, by a fault of ours, the others are."""
    from kvlint.ruleset import relations

    kinds: tuple[Callable[[Evaluation], Iterator[Subject]], ...] = (
        *(_servers, _problems, _admissions),
        *(
            relations.links,
            relations.devices,
            relations.groups,
            relations.parity,
            relations.declared,
            relations.templates,
            relations.figures,
        ),
    )
    for kind in kinds:
        try:
            yield from list(kind(evaluation))
        except Exception as error:
            fault = f"{kind.__name__.strip('_')}: {type(error).__name__}: {error}"
            if fault not in evaluation.findings.internal:
                evaluation.findings.internal.append(fault)


def _servers(evaluation: Evaluation) -> Iterator[Subject]:
    coefficient = evaluation.coefficients.get
    for group in evaluation.groups:
        yield views.server(group, coefficient)
        yield from views.problems(group, coefficient)


def _problems(evaluation: Evaluation) -> Iterator[Subject]:
    return (views.problem(problem, evaluation.coefficients.get) for problem in evaluation.findings.problems)


def _admissions(evaluation: Evaluation) -> Iterator[Subject]:
    return (views.admission(each, evaluation.coefficients.get) for each in evaluation.findings.admissions)
