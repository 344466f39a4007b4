"""What would make a rule hold: the rule itself, searched over one setting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from kvlint.coefficients import Coefficients
from kvlint.diagnostics import Suggestion
from kvlint.facts import Assumed, Fact, high
from kvlint.ruleset.judge import Outcome
from kvlint.ruleset.load import Rule
from kvlint.ruleset.views import server_value
from kvlint.sizing.search import largest
from kvlint.subjects import Server, ServerGroup

WHY = Assumed("tried as a suggestion")
UNITS = {"window": "tokens", "batch_width": "sequences", "streams": "streams"}


def suggestions(outcome: Outcome, rules: Iterable[Rule], coefficients: Coefficients) -> Iterator[Suggestion]:
    """A value that satisfies the rule; then, where another rule would still speak, one that satisfies all."""
    rule, subject = outcome.rule, outcome.subject
    for wanted in rule.suggest:
        if wanted.how == "text":
            yield Suggestion("", None, rule.text(wanted.what, outcome.case.lookup))
        elif subject.kind == "server" and isinstance(subject.data, ServerGroup):
            yield from _searched(rule, wanted.what, outcome, list(rules), coefficients)


def _searched(
    rule: Rule, setting: str, outcome: Outcome, rules: list[Rule], coefficients: Coefficients
) -> Iterator[Suggestion]:
    worlds = [world for world in outcome.subject.data.live if world.engine == outcome.case.engine]
    now = outcome.case.lookup(setting)
    if not isinstance(now, Fact) or not isinstance(high(now.value), int):
        return
    upper = high(now.value)
    own = largest(partial(_holds, [rule], worlds, setting, coefficients), upper)
    if not 0 < own < upper:
        return
    unit = UNITS.get(setting, "")
    yield Suggestion(setting, own, f"{setting} = {own} is the largest that satisfies this rule")
    related = [each for each in rules if any(wanted.what == setting for wanted in each.suggest)]
    every = largest(partial(_holds, related, worlds, setting, coefficients), own)
    if 0 < every < own:
        yield Suggestion(setting, every, f"{setting} = {every} {unit} satisfies every rule".replace("  ", " "))


def _holds(rules: list[Rule], worlds: list[Server], setting: str, coefficients: Coefficients, value: int) -> bool:
    for world in worlds:
        lookup = partial(server_value, tried(world, setting, value), coefficients.get)
        for rule in rules:
            if not rule.speaks_to(world.engine, world.releases):
                continue
            if rule.judge(lookup).value is False:
                return False
    return True


def tried(world: Server, setting: str, value: int) -> Server:
    """The same server with one setting changed."""
    copy = Server(
        id=world.id,
        engine=world.engine,
        releases=world.releases,
        process=world.process,
        program=world.program,
        settings={**world.settings, setting: Fact(value, WHY)},
        names=world.names,
        architecture=world.architecture,
        hardware=world.hardware,
        version=world.version,
        model=world.model,
        coefficient=world.coefficient,
    )
    copy.sizing = type(world.sizing)(copy)
    return copy
