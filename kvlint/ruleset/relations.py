"""Subjects that are made of several things: links, devices, groups of servers, parity sets, declared literals."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kvlint.facts import Fact, Unknown, Value, Written, quantity
from kvlint.links import Link, admitted_to, reaching
from kvlint.ruleset import views
from kvlint.ruleset.diagnose import named_leaves, show_value
from kvlint.ruleset.judge import Subject
from kvlint.source import Span
from kvlint.subjects import Admission, ServerGroup

if TYPE_CHECKING:
    from kvlint.addresses import Found
    from kvlint.evaluation import Evaluation
    from kvlint.suppress import Suppression


def links(evaluation: Evaluation) -> Iterator[Subject]:
    """Every adjacent front and server, with what all proven paths together admit, and what this one promises."""
    from kvlint.ruleset import promises

    for link in evaluation.chain.adjacent():
        facts: dict[str, Any] = dict(_admitted(link.group, evaluation.chain.of(link.group)))
        facts |= dict(promises.of_link(evaluation, link))
        facts |= _front(link)
        doubt = "supposed" if link.supposed else None
        yield views.link(link.front, link.group, facts, evaluation.coefficients.get, doubt=doubt)


def _front(link: Link) -> dict[str, Any]:
    """What one front means for each replica of the server behind it."""
    settings = link.front.settings
    target, share = settings.get("target"), settings.get("share")
    steady = steady_target(target, share) if target is not None and share is not None else target
    facts = {"through": reaching(link.front, link.group), "steady_target": None if "waiting" in settings else steady}
    return {name: value for name, value in facts.items() if value is not None}


@quantity(
    "steady_target",
    unit="count",
    formula="target × utilization percentage",
    source="knative/serving@98e5ef90:config/core/configmaps/autoscaler.yaml#L58-77",
)
def steady_target(target: int, share: int) -> int:
    return target * share // 100


def _admitted(group: ServerGroup, paths: list[Link]) -> Iterator[tuple[str, Any]]:
    """`admitted`: requests in flight over every proven path; `bounded`: each path has a limit and the port is not open."""
    total = admitted_to(paths, written=False)
    scaled = any("max_replicas" in hop.settings for link in paths for hop in link.hops)
    bounded = isinstance(total, Fact) and not group.first.site.published and not scaled
    yield "bounded", views.assumed(bounded, "every proven path is counted")
    if total is not None:
        yield "admitted", total


def devices(evaluation: Evaluation) -> Iterator[Subject]:
    """Devices that several servers use, and machines whose ceiling is stated."""
    from kvlint.ruleset import devices as shared

    return shared.subjects(evaluation)


def groups(evaluation: Evaluation) -> Iterator[Subject]:
    """Names that several servers answer to, where these differ."""
    from kvlint.ruleset import replicas

    return replicas.subjects(evaluation)


def parity(evaluation: Evaluation) -> Iterator[Subject]:
    """Every `[[parity]]` of the configuration, and what must agree by itself."""
    from kvlint.ruleset import agreements

    yield from agreements.subjects(evaluation)
    if not evaluation.project.config.all("parity"):
        return
    from kvlint.parity import parity_sets

    for each in parity_sets(evaluation):
        places = [member.span for member in each.members if member.span is not None]
        values = [member.value for member in each.members]
        words = tuple(_member(member) for member in each.members)
        facts: dict[str, Any] = {
            "name": views.stated(each.name, each.span),
            "source": views.stated("declared", each.span),
            "agree": each.agree if isinstance(each.agree, Unknown) else views.stated(each.agree, each.span),
            "values": views.stated(words, each.span),
        }
        said = [word for word, member in zip(words, each.members, strict=True) if member.span is not None]
        related = [("counterpart", span, said[number]) for number, span in enumerate(places) if number]
        servers = [member.group.id for member in each.members if member.group is not None]
        related += [("cause", each.span, f"[[parity]] {each.name}")]
        place = places[0] if places else each.span
        yield views.plain(
            "parity_set",
            {**facts, **{f"member_{number}": value for number, value in enumerate(values)}},
            place,
            evaluation.coefficients.get,
            identity=each.name,
            server=servers[0] if servers else None,
            servers=servers,
            related=related,
        )


def _member(member: Found) -> str:
    from kvlint.ruleset.messages import clean

    if member.gone:
        return f"{clean(member.address)} is gone: {clean(member.gone)}"
    value = member.value.value if isinstance(member.value, Fact) else "unknown"
    return f"{clean(member.address)} is {clean(str(value))}"


def declared(evaluation: Evaluation) -> Iterator[Subject]:
    """Every literal that is marked as derived; and the marks that mark nothing."""
    config = evaluation.project.config
    if not evaluation.project.marked and not config.all("derived") and not config.all("parity"):
        return
    from kvlint.parity import claims

    found, problems = claims(evaluation)
    for problem in problems:
        yield views.problem(problem, evaluation.coefficients.get)
    for claim in found:
        place = claim.literal.text.span
        agrees = claim.agrees
        today = datetime.date.today()
        facts: dict[str, Any] = {
            "quantity": views.stated(claim.quantity, place),
            "relation": views.stated(claim.relation, place),
            "literal": views.stated(claim.literal.text.value, place),
            "computed": claim.value if isinstance(claim.value, Unknown) else views.stated(claim.computed, place),
            "agrees": agrees if isinstance(agrees, Unknown) else views.stated(agrees, place),
            "pinned": views.stated(claim.pinned, place),
            "expired": views.stated(claim.until is not None and claim.until < today, place),
            "server": views.stated(claim.server, place),
        }
        if claim.until is not None:
            facts["until"] = views.stated(claim.until.isoformat(), place)
        causes = _causes(claim.quantity, claim.value)
        yield views.plain(
            "declared",
            facts,
            place,
            evaluation.coefficients.get,
            identity=f"{claim.quantity} of {claim.server}",
            server=claim.server,
            servers=(claim.server,),
            related=causes,
        )


def _causes(name: str, value: Value[Any]) -> list[tuple[str, Span, str]]:
    """The written leaves of a derived value."""
    if not isinstance(value, Fact):
        return []
    found: dict[tuple[int, int], tuple[str, Span, str]] = {}
    for label, leaf in named_leaves(name, value):
        if isinstance(leaf.origin, Written):
            span = leaf.origin.span
            words = f"{label} = {show_value(label, leaf.value)}"
            found.setdefault((id(span.source), span.start), ("cause", span, words))
    return list(found.values())[:8]


def templates(evaluation: Evaluation) -> Iterator[Subject]:
    """What the chat templates that servers are given print anew for each request."""
    from kvlint.ruleset import templates as given

    return given.subjects(evaluation)


def figures(evaluation: Evaluation) -> Iterator[Subject]:
    """Figures of an engine's log that are used where a server is described."""
    from kvlint.ruleset import figures as logged

    return logged.subjects(evaluation)


def suppressions(evaluation: Evaluation, known: Iterable[Suppression], active: set[str]) -> Iterator[Subject]:
    """Every rule name of every `ignore`; one whose rule did not run is not judged for its use."""
    from kvlint.ruleset.load import rules
    from kvlint.suppress import nearest_rule

    names = set(rules())
    for each in known:
        exists = each.rule is None or each.rule in names
        judged = names <= active if each.rule is None else each.rule in active
        facts: dict[str, Any] = {
            "known": views.stated(exists, each.span),
            "used": views.stated(each.used or not judged, each.span),
            "expired": views.stated(each.expired, each.span),
        }
        if each.until is not None:
            facts["until"] = views.stated(each.until.isoformat(), each.span)
        if each.rule is not None:
            facts["rule"] = views.stated(each.rule, each.span)
        if not exists and each.rule and (suggestion := nearest_rule(each.rule, names)):
            facts["suggestion"] = views.stated(suggestion, each.span)
        yield views.plain("suppression", facts, each.span, evaluation.coefficients.get, identity=each.rule or "")


def fronts(evaluation: Evaluation) -> dict[str, list[Admission]]:
    """Admissions by the server that they stand before."""
    found: dict[str, list[Admission]] = {}
    for link in evaluation.chain.links:
        found.setdefault(link.group.id, []).append(link.hops[-1])
    return found
