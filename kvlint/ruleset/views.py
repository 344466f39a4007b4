"""The subjects of rules, seen through the names that rules may read (data/names.toml)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Union

from kvlint.facts import Assumed, Fact, Unknown, Value, Written
from kvlint.ruleset.judge import Case, Subject
from kvlint.source import Span
from kvlint.subjects import Admission, Problem, Server, ServerGroup

Coefficients = Callable[[str], Value[Any]]
Found = Union[Fact[Any], Unknown, None]


def server(group: ServerGroup, coefficient: Coefficients) -> Subject:
    """A server in the worlds whose engine accepts its line."""
    cases = tuple(server_case(world, coefficient) for world in group.live)
    by_case = {id(case): world for case, world in zip(cases, group.live, strict=True)}
    return Subject(
        kind="server",
        cases=cases,
        mark=lambda case, name: place(by_case[id(case)], name),
        server=group.id,
        servers=(group.id,),
        data=group,
    )


def server_case(world: Server, coefficient: Coefficients) -> Case:
    return Case(partial(server_value, world, coefficient), world.engine, world.releases)


def server_value(world: Server, coefficient: Coefficients, name: str) -> Found:
    found = world.settings.get(name)
    if found is not None:
        return found
    if name.startswith("coefficient."):
        return coefficient(name.partition(".")[2])
    if name == "engine":
        return Fact(world.engine, Written(world.program))
    if name == "name":
        return Fact(world.id.partition("#")[2], Written(world.program))
    if name == "version":
        return Fact(world.version.text, world.version.origin) if world.version else None
    return world.sizing.get(name)


def place(world: Server, name: str) -> Span:
    """Where a name's value is written; a default or an assumption is marked at the program word."""
    if name in ("", "program", "engine"):
        return world.program
    found = world.get(name)
    return (written(found) if isinstance(found, Fact) else None) or world.program


def written(fact: Fact[Any]) -> Span | None:
    """The first written leaf of a value."""
    for leaf in fact.leaves():
        if isinstance(leaf.origin, Written):
            return leaf.origin.span
    return None


def problems(group: ServerGroup, coefficient: Coefficients) -> Iterator[Subject]:
    """Each problem of a server once, present in the worlds that have it; worlds that refuse the line for another do not count."""
    live = {id(world) for world in group.live}
    seen: dict[tuple[str, int, int, int], dict[int, Problem]] = {}
    for number, world in enumerate(group.worlds):
        for problem in world.problems:
            key = (problem.kind, id(problem.span.source), problem.span.start, problem.span.end)
            seen.setdefault(key, {})[number] = problem
    for by_world in seen.values():
        first = next(iter(by_world.values()))
        cases = tuple(
            Case(
                partial(_problem_value, by_world.get(number, first), world, coefficient),
                world.engine,
                world.releases,
                number in by_world,
            )
            for number, world in enumerate(group.worlds)
            if number in by_world or id(world) in live
        )
        yield _problem_subject(first, cases, group.id)


def problem(each: Problem, coefficient: Coefficients, server: str | None = None) -> Subject:
    """A problem that no server's parser has: a document, a proxy's key, a file that a server is given."""
    case = Case(partial(_problem_value, each, None, coefficient), each.data.get("engine"))
    return _problem_subject(each, (case,), server)


def _problem_subject(each: Problem, cases: tuple[Case, ...], server_id: str | None) -> Subject:
    return Subject(
        kind="problem",
        cases=cases,
        mark=lambda case, name: each.span,
        identity=str(each.data.get("flag") or each.span.text[:80]),
        problem=each.kind,
        server=server_id,
        servers=(server_id,) if server_id else (),
        doubt=each.doubt,
        related=tuple((role, span, words) for role, span, words in each.related),
        data=each,
    )


def _problem_value(each: Problem, world: Server | None, coefficient: Coefficients, name: str) -> Found:
    head, _, rest = name.partition(".")
    if head == "coefficient":
        return coefficient(rest)
    if name == "problem.kind":
        return Fact(each.kind, Written(each.span))
    if name == "problem.text":
        return Fact(each.span.text, Written(each.span))
    if name.startswith("problem.data."):
        value = each.data.get(name.removeprefix("problem.data."))
        if isinstance(value, (Fact, Unknown)):
            return value
        return None if value is None else Fact(value, Written(each.span))
    if name.startswith("problem.server.") and world is not None:
        return server_value(world, coefficient, name.removeprefix("problem.server."))
    return None


def admission(each: Admission, coefficient: Coefficients, span: Span | None = None) -> Subject:
    return Subject(
        kind="admission",
        cases=(Case(partial(_prefixed, "admission", partial(admission_value, each), coefficient)),),
        mark=lambda case, name: _admission_place(each, name),
        identity=each.name,
        servers=each.servers,
        admissions=(each.id,),
        data=each,
    )


def admission_value(each: Admission, name: str) -> Found:
    direct: Mapping[str, Any] = {"name": each.name, "system": each.system, "per": each.per, "excess": each.excess}
    if name in direct:
        return Fact(direct[name], Written(each.place))
    if name == "limit":
        return each.limit
    return each.settings.get(name)


def _admission_place(each: Admission, name: str) -> Span:
    found = admission_value(each, name.rpartition(".")[2])
    return (written(found) if isinstance(found, Fact) else None) or each.place


def _prefixed(prefix: str, value: Callable[[str], Found], coefficient: Coefficients, name: str) -> Found:
    if name.startswith("coefficient."):
        return coefficient(name.partition(".")[2])
    if name.startswith(prefix + "."):
        return value(name[len(prefix) + 1 :])
    return None


def link(
    front: Admission,
    group: ServerGroup,
    facts: Mapping[str, Found],
    coefficient: Coefficients,
    identity: str = "",
    doubt: str | None = None,
) -> Subject:
    """An admission limit and a server that it proves to stand in front of.  `facts`: the names `link.*` of this pair."""
    cases = []
    worlds: dict[int, Server] = {}
    for world in group.live:
        case = Case(partial(_link_value, front, world, facts, coefficient), world.engine, world.releases)
        cases.append(case)
        worlds[id(case)] = world

    def mark(case: Case, name: str) -> Span:
        if name.startswith("link.server."):
            return place(worlds[id(case)], name.removeprefix("link.server."))
        found = case.lookup(name) if name else None
        return (written(found) if isinstance(found, Fact) else None) or front.place

    return Subject(
        kind="link",
        cases=tuple(cases),
        mark=mark,
        identity=identity or front.name,
        server=group.id,
        servers=(group.id,),
        admissions=(front.id,),
        data=(front, group),
        doubt=doubt,
    )


def _link_value(
    front: Admission, world: Server, facts: Mapping[str, Found], coefficient: Coefficients, name: str
) -> Found:
    if name.startswith("link.front."):
        return admission_value(front, name.removeprefix("link.front."))
    if name.startswith("link.server."):
        return server_value(world, coefficient, name.removeprefix("link.server."))
    if name.startswith("link."):
        return facts.get(name.removeprefix("link."))
    return coefficient(name.partition(".")[2]) if name.startswith("coefficient.") else None


def plain(
    kind: str,
    facts: Mapping[str, Found],
    place_: Span,
    coefficient: Coefficients,
    *,
    identity: str = "",
    server: str | None = None,
    servers: Iterable[str] = (),
    related: Iterable[tuple[str, Span, str]] = (),
    doubt: str | None = None,
) -> Subject:
    """A subject whose names are all at hand: device, parity_set, group, declared, suppression."""

    def mark(case: Case, name: str) -> Span:
        found = case.lookup(name) if name else None
        return (written(found) if isinstance(found, Fact) else None) or place_

    return Subject(
        kind=kind,
        cases=(Case(partial(_prefixed, kind, lambda name: facts.get(name), coefficient)),),
        mark=mark,
        identity=identity,
        server=server,
        servers=tuple(servers),
        related=tuple(related),
        doubt=doubt,
    )


def stated(value: Any, span: Span) -> Fact[Any]:
    return Fact(value, Written(span))


def assumed(value: Any, why: str) -> Fact[Any]:
    return Fact(value, Assumed(why))
