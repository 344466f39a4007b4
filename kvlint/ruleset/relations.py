"""Subjects that are made of several things: links, devices, groups of servers, parity sets, declared literals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kvlint.facts import Fact
from kvlint.links import Link, admitted_to
from kvlint.ruleset import views
from kvlint.ruleset.judge import Subject
from kvlint.subjects import Admission, ServerGroup

if TYPE_CHECKING:
    from kvlint.check import Evaluation
    from kvlint.suppress import Suppression


def links(evaluation: Evaluation) -> Iterator[Subject]:
    """Every adjacent front and server, with what all proven paths together admit."""
    for link in evaluation.chain.adjacent():
        facts: dict[str, Any] = dict(_admitted(link.group, evaluation.chain.of(link.group)))
        yield views.link(link.front, link.group, facts, evaluation.coefficients.get)


def _admitted(group: ServerGroup, paths: list[Link]) -> Iterator[tuple[str, Any]]:
    """`admitted`: requests in flight over every proven path; `bounded`: each path has a limit and the port is not open."""
    reaching = admitted_to(paths, written=False)
    bounded = isinstance(reaching, Fact) and not group.first.site.published
    yield "bounded", views.assumed(bounded, "every proven path is counted")
    if reaching is not None:
        yield "admitted", reaching


def devices(evaluation: Evaluation) -> Iterator[Subject]:
    return iter(())


def groups(evaluation: Evaluation) -> Iterator[Subject]:
    return iter(())


def parity(evaluation: Evaluation) -> Iterator[Subject]:
    return iter(())


def declared(evaluation: Evaluation) -> Iterator[Subject]:
    return iter(())


def suppressions(evaluation: Evaluation, known: Iterable[Suppression], active: set[str]) -> Iterator[Subject]:
    """Every rule name of every `ignore`; one whose rule did not run is not judged for its use."""
    from kvlint.ruleset.load import rules
    from kvlint.suppress import nearest_rule

    names = set(rules())
    for each in known:
        exists = each.rule in names
        facts: dict[str, Any] = {
            "rule": views.stated(each.rule, each.span),
            "known": views.stated(exists, each.span),
            "used": views.stated(each.used or each.rule not in active, each.span),
            "expired": views.stated(each.expired, each.span),
        }
        if each.until is not None:
            facts["until"] = views.stated(each.until.isoformat(), each.span)
        if not exists and (suggestion := nearest_rule(each.rule, names)):
            facts["suggestion"] = views.stated(suggestion, each.span)
        yield views.plain("suppression", facts, each.span, evaluation.coefficients.get, identity=each.rule)


def fronts(evaluation: Evaluation) -> dict[str, list[Admission]]:
    """Admissions by the server that they stand before."""
    found: dict[str, list[Admission]] = {}
    for link in evaluation.chain.links:
        found.setdefault(link.group.id, []).append(link.hops[-1])
    return found
