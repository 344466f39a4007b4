"""Values that must agree: literals marked as derived, in a comment or in kvlint.toml, and declared parity sets."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kvlint import directives, literals
from kvlint.addresses import Found, resolve, server_named, value_of
from kvlint.directives import Directive
from kvlint.facts import Fact, Range, Unknown, Value
from kvlint.literals import Literal
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.sizing.server import DERIVED
from kvlint.source import Source, Span, Text
from kvlint.subjects import SETTINGS, Problem
from kvlint.tree import List, Map, Scalar, walk

if TYPE_CHECKING:
    from kvlint.evaluation import Evaluation
    from kvlint.parsing import Parsed

_CLAIM = regex(r"\s*(?P<quantity>[a-z_]+)\s+of\s+(?P<server>.+?)\s*")


@dataclass(frozen=True, slots=True)
class Claim:
    """A literal, and what it claims: `relation` is == or <=; `until` and `pinned` of a pin beside it."""

    relation: str
    quantity: str
    server: str
    literal: Literal
    value: Value[Any]
    pinned: bool = False
    until: datetime.date | None = None
    pin: Span | None = None

    @property
    def agrees(self) -> bool | Unknown:
        """A range cannot be equalled, only bounded."""
        if isinstance(self.value, Unknown):
            return self.value
        exact = self.value.value
        if self.relation == "<=":
            return self.literal.bounds(exact)
        if isinstance(exact, Range):
            return Unknown(
                self.quantity, f"{self.quantity} is a range here, which cannot be equalled", "derived <= instead"
            )
        return self.literal.equals(exact)

    @property
    def computed(self) -> str | None:
        if isinstance(self.value, Unknown):
            return None
        exact = self.value.value
        if isinstance(exact, Range):
            return f"{self.literal.spelled(Fraction(exact.low))} to {self.literal.spelled(Fraction(exact.high))}"
        return self.literal.spelled(Fraction(exact))


def claims(evaluation: Evaluation) -> tuple[list[Claim], list[Problem]]:
    """Every marked literal of the project, and directives that mark nothing."""
    found: list[Claim] = []
    problems: list[Problem] = []
    for path in sorted(evaluation.project.marked):
        parsed = evaluation.project.parsed(path)
        if parsed is None:
            continue
        known = directives.of(parsed)
        marked = {_target_line(each, parsed.source) for each in known if each.kind == "derived"}
        for directive in known:
            if directive.kind == "pin" and _target_line(directive, parsed.source) not in marked:
                problems.append(_misplaced(directive.span, "no literal that is marked as derived stands here"))
            if directive.kind == "derived":
                made = _of_directive(directive, known, parsed, evaluation)
                (found if isinstance(made, Claim) else problems).append(made)  # type: ignore[arg-type]
    for table in evaluation.project.config.all("derived"):
        made = _of_table(table, evaluation)
        (found if isinstance(made, Claim) else problems).append(made)  # type: ignore[arg-type]
    for table in evaluation.project.config.all("parity"):
        if len(_addresses(table)) < 2:
            problems.append(_misplaced(table.span, "equal or at_most lists two addresses or more"))
    return found, problems


def _of_directive(
    directive: Directive, known: list[Directive], parsed: Parsed, evaluation: Evaluation
) -> Claim | Problem:
    line = _target_line(directive, parsed.source)
    text = _literal_at(parsed, line, directive)
    literal = literals.read(text) if text is not None else None
    if literal is None:
        return _misplaced(directive.span, "no number stands at this comment")
    pin = next((each for each in known if each.kind == "pin" and _target_line(each, parsed.source) == line), None)
    return _claim(directive.relation, directive.quantity, directive.server, literal, directive.span, evaluation, pin)


def _claim(
    relation: str,
    quantity: str,
    server: str,
    literal: Literal,
    span: Span,
    evaluation: Evaluation,
    pin: Directive | None = None,
) -> Claim | Problem:
    if quantity not in DERIVED and quantity not in SETTINGS:
        return _misplaced(span, f"{quantity} is no derived value{_near(quantity)}")
    group = server_named(server, evaluation, span.path)
    if group is None:
        return _misplaced(span, f"no single server is called {server}")
    return Claim(
        relation=relation,
        quantity=quantity,
        server=group.id,
        literal=literal,
        value=value_of(group, quantity),
        pinned=pin is not None,
        until=pin.until if pin else None,
        pin=pin.span if pin else None,
    )


def _of_table(table: Any, evaluation: Evaluation) -> Claim | Problem:
    relation = "==" if "is" in table else "<="
    match = _CLAIM.fullmatch(table.get("is") or table.get("at_most") or "")
    if match is None:
        return _misplaced(table.span, 'write is = "<quantity> of <server>"')
    at = resolve(table.get("at"), evaluation)
    if isinstance(at.value, Unknown):
        return _misplaced(table.span, at.value.reason)
    literal = literals.read(at.text) if at.text is not None else None
    if literal is None:
        return _misplaced(table.span, f"no number stands at {table.get('at')}")
    return _claim(relation, match["quantity"], match["server"], literal, table.span, evaluation)


def _misplaced(span: Span, reason: str) -> Problem:
    return Problem("misplaced-directive", span, {"why": reason})


def _near(quantity: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(quantity, list(DERIVED), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _target_line(directive: Directive, source: Source) -> int:
    """The line that a directive speaks of: its own, or the first one below that is no comment."""
    line = directive.line
    if not directive.own_line:
        return line
    line = directive.span.end_line + 1
    while line < len(source.line_starts) and source.line(line).strip().startswith(("#", "//", "<!--")):
        line += 1
    return line


def _literal_at(parsed: Parsed, line: int, directive: Directive) -> Text | None:
    """The number that stands on a line: the value of the tree's entry that begins there, else the last number written there."""
    for document in parsed.documents:
        for node in walk(document.node) if document.node is not None else ():
            for scalar in _scalars(node):
                if scalar.span.line == line and literals.read(scalar.text) is not None:
                    return scalar.text
    source = parsed.source
    if line > len(source.line_starts):
        return None
    start = source.line_starts[line - 1]
    end = start + len(source.line(line))
    if not directive.own_line and directive.line == line:
        end = min(end, directive.span.start)
    numbers = list(literals.on_line(Text.of(source, start, end)))
    return numbers[-1].text if numbers else None


def _scalars(node: Any) -> Iterator[Scalar]:
    if isinstance(node, Map):
        yield from (entry.value for entry in node.entries if isinstance(entry.value, Scalar))
    elif isinstance(node, List):
        yield from (item for item in node.items if isinstance(item, Scalar))


@dataclass(frozen=True, slots=True)
class ParitySet:
    """Members of a `[[parity]]`: `relation` equal, or at_most (each no larger than the next)."""

    name: str
    relation: str
    members: tuple[Found, ...]
    span: Span

    @property
    def agree(self) -> bool | Unknown:
        if any(member.gone for member in self.members):
            return False
        values = []
        for member in self.members:
            if isinstance(member.value, Unknown):
                return member.value
            values.append(number(member))
        if self.relation == "equal":
            return all(value == values[0] for value in values[1:])
        pairs = list(pairwise(values))
        if not all(isinstance(value, (int, Fraction)) for value in values):
            return Unknown("parity", "a member of a bound is no number", "members that are numbers")
        return all(small <= large for small, large in pairs)


def number(member: Found) -> Any:
    """A member as it is compared: a literal's number in bytes or tokens, else its text."""
    assert isinstance(member.value, Fact)
    value = member.value.value
    if isinstance(value, str):
        text = member.text if member.text is not None else None
        literal = literals.read(text) if text is not None else None
        return literal.value if literal is not None else value
    return value


def _addresses(table: Any) -> tuple[str, ...]:
    return table.get("equal") or table.get("at_most") or ()


def parity_sets(evaluation: Evaluation) -> Iterator[ParitySet]:
    for table in evaluation.project.config.all("parity"):
        relation = "equal" if "equal" in table else "at_most"
        members = tuple(resolve(address, evaluation) for address in _addresses(table))
        yield ParitySet(table.get("name") or "parity", relation, members, table.span)
