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
PER_RANK = {"width_per_rank": "batch_width"}  # a setting of one rank, and the contract's name for all of them


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
    silent = partial(_silent, worlds, setting, coefficients)
    own = largest(partial(silent, [rule]), high(now.value))
    if not 0 < own < high(now.value):
        return
    name, ranks = _named(setting, outcome)
    yield Suggestion(name, own * ranks, f"{name} = {own * ranks} is the largest that satisfies this rule")
    # Rules whose remedy is this setting; and those that ask for something else, though a smaller value would silence them.
    same = [each for each in rules if any(wanted.what == setting for wanted in each.suggest)]
    others = [each for each in rules if each not in same and not silent([each], own) and silent([each], 1)]
    unit, found = UNITS.get(name, ""), own
    for asked in (same, [*same, *others]):
        every = largest(partial(silent, asked), found)
        if 0 < every < found:
            loud = "".join(f", {each.name}" for each in others if not silent([each], every))
            but = f" but {loud[2:]}" if loud else ""
            said = f"{name} = {every * ranks} {unit} satisfies every rule{but}".replace("  ", " ")
            yield Suggestion(name, every * ranks, said)
            found = every


def _named(setting: str, outcome: Outcome) -> tuple[str, int]:
    """The contract's name of a setting, and what a value of it is multiplied by."""
    name = PER_RANK.get(setting, setting)
    one, all_ = outcome.case.lookup(setting), outcome.case.lookup(name)
    if name == setting or not (isinstance(one, Fact) and isinstance(all_, Fact)) or not one.value:
        return setting, 1
    return name, max(1, all_.value // one.value)


def _silent(worlds: list[Server], setting: str, coefficients: Coefficients, rules: list[Rule], value: int) -> bool:
    """Whether none of the rules would say anything with this value: not even that its border is near."""
    for world in worlds:
        lookup = partial(server_value, tried(world, setting, value), coefficients.get)
        for rule in rules:
            if not rule.speaks_to(world.engine, world.releases):
                continue
            verdict = rule.judge(lookup)
            if verdict.value is False or (verdict.straddles and verdict.nominal is False):
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
