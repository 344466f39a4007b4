"""The one maker of diagnostics: from a rule's outcome to a finding with its places, values and suggestions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from kvlint.diagnostics import Diagnostic, Edit, Fix, Related, Suggestion
from kvlint.facts import Derived, Fact, Written
from kvlint.records import replace
from kvlint.ruleset.judge import Outcome, doubts
from kvlint.ruleset.load import Rule, units
from kvlint.ruleset.messages import show, within
from kvlint.sizing.server import DERIVED
from kvlint.source import Span
from kvlint.subjects import SETTINGS

MAX_RELATED = 8
# What a message says in passing: a place of its own would explain nothing.
WORDS = frozenset(
    {
        "engine",
        "name",
        "system",
        "per",
        "excess",
        "version",
        "agree",
        "agrees",
        "kind",
        "text",
        "server",
        "relation",
        "source",
    }
    | {"literal", "quantity", "computed", "values", "pinned", "expired", "known", "used", "rule"}
)

DOUBTS = {
    "splice": "something unseen may follow",
    "default": "a variable's default is taken",
    "claimed": "nothing enforces what is claimed",
    "supposed": "that it calls this server is supposed, by port and name",
    "named": "only the name in its path says which model it is",
}


def diagnose(outcome: Outcome, suggestions: Iterable[Suggestion] = ()) -> Diagnostic:
    """The finding of a broken rule."""
    rule, subject, case, verdict = outcome.rule, outcome.subject, outcome.case, outcome.verdict
    span = subject.mark(case, rule.mark)
    facts = dict(_facts(rule, case.lookup))
    related = [Related(place, role, words) for role, place, words in subject.related]
    told = {(id(each.span.source), each.span.start, each.span.end) for each in related}
    written = _written(facts)
    here = [origin for _, _, origin in written if origin.span == span]
    related += [Related(place, "use", "used here") for place in dict.fromkeys(use for each in here for use in each.via)]
    related += [each for key, each in _causes(written, here).items() if key not in told]
    inputs = [place for _, _, origin in written for place in (origin.span, *origin.via)]
    known = {id(fact) for fact in facts.values()}
    inputs += [place for fact in verdict.facts if id(fact) not in known for place in fact.spans()]
    message = rule.message_of(verdict, case.lookup, case.engine, case.releases)
    if verdict.straddles:
        message += f"; {within(verdict.compared)}"
    found = doubts(verdict.facts)
    doubt = subject.doubt or next((each for each in ("supposed", "named") if each in found), None)
    if doubt:
        message += f"; {DOUBTS.get(doubt, doubt)}"
    return Diagnostic(
        rule=rule.name,
        severity=outcome.severity,
        certainty="margin" if outcome.margin else "certain",
        message=message,
        span=span,
        related=tuple(related[:MAX_RELATED]),
        server=subject.server,
        servers=subject.servers,
        admissions=subject.admissions,
        values=_values(facts),
        suggestions=tuple(suggestions),
        fix=_fix(outcome, span),
        inputs=tuple(dict.fromkeys(inputs)),
        subject=subject.identity or rule.mark,
    )


def _facts(rule: Rule, lookup: Any) -> Iterator[tuple[str, Fact[Any]]]:
    for name in rule.names:
        found = lookup(name)
        if isinstance(found, Fact):
            yield name, found


def _values(facts: Mapping[str, Fact[Any]]) -> dict[str, Any]:
    """By the contract's names; of a link, the values of its server."""
    found: dict[str, Any] = {}
    for name, fact in facts.items():
        head, _, tail = name.rpartition(".")
        if (not head or head.endswith("server")) and (tail in SETTINGS or tail in DERIVED):
            found[tail] = fact.value
    return found


Leaf = tuple[str, Fact[Any], Written]  # its name, and where it is written


def _written(facts: Mapping[str, Fact[Any]]) -> list[Leaf]:
    """The written leaves behind the values, in their order."""
    return [
        (label, leaf, leaf.origin)
        for name, fact in facts.items()
        for label, leaf in named_leaves(name, fact)
        if isinstance(leaf.origin, Written)
    ]


def _causes(written: Iterable[Leaf], here: list[Written]) -> dict[tuple[int, int, int], Related]:
    """The written leaves, each place once, but for what is underlined already."""
    causes: dict[tuple[int, int, int], Related] = {}
    for label, leaf, origin in written:
        name = label.rpartition(".")[2]
        place = origin.span
        key = (id(place.source), place.start, place.end)
        if name not in WORDS and key not in causes and not any(origin is each for each in here):
            causes[key] = Related(place, "cause", f"{name} = {show_value(label, leaf.value)}")
    return causes


def named_leaves(name: str, fact: Fact[Any]) -> Iterator[tuple[str, Fact[Any]]]:
    seen: set[int] = set()
    stack = [(name, fact)]
    while stack:
        label, each = stack.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each.origin, Derived):
            stack.extend(reversed(each.origin.inputs))
        else:
            yield label, each


def show_value(name: str, value: Any) -> str:
    return show(value, unit_of(name))


def unit_of(name: str) -> str:
    if name.endswith("_bytes"):
        return "bytes"
    known = units("server")
    return known.get(name, {"B": "bytes"}.get(DERIVED.get(name, ""), "text"))


def _fix(outcome: Outcome, span: Span) -> Fix | None:
    edit = outcome.rule.edit
    if edit is None:
        return None
    found = outcome.case.lookup(edit.to)
    if not isinstance(found, Fact) or found.value is None:
        return None
    text = str(found.value)
    place = _replaced(span) if outcome.subject.kind == "problem" else span
    return Fix(edit.safety, f"replace {place.text!r} with {text!r}", (Edit(place, text),)) if place else None


def _replaced(span: Span) -> Span | None:
    """Of `--flag=value` the flag alone; None where the two cannot be told apart in the file."""
    flag, equals, _ = span.text.partition("=")
    if not equals or not flag.startswith("-"):
        return span
    return span.source.span(span.start, span.start + len(flag)) if len(span.pieces) == 1 else None


def merged(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """What is said of one place in the same words for several servers, as a macro's users, is said once."""
    found: dict[tuple[str, str, Span, str], Diagnostic] = {}
    for each in findings:
        key = (each.rule, each.severity, each.span, each.message)
        first = found.get(key)
        if first is not None:
            servers = tuple(dict.fromkeys((*first.servers, *each.servers)))
            related = tuple(dict.fromkeys((*first.related, *each.related)))
            each = replace(first, servers=servers, related=related)
        found[key] = each
    return list(found.values())


def numbered(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Findings in the order of their places, each with its fingerprint: rule, path, server, setting or flag, occurrence."""
    ordered = sorted(findings, key=lambda each: (each.path, each.span.start, each.rule, each.message))
    counts: dict[tuple[str, str, str, str], int] = {}
    result = []
    for each in ordered:
        server = (each.server or "").partition("#")[2]
        key = (each.rule, each.path, server, each.subject)
        counts[key] = occurrence = counts.get(key, 0) + 1
        digest = _sha256()("\0".join((*key, str(occurrence))).encode("utf-8", "surrogatepass"))
        result.append(replace(each, fingerprint=digest.hexdigest()[:24]))
    return result


@cache
def _sha256() -> Callable[[bytes], Any]:
    """The hash as the interpreter itself has it: `hashlib` loads OpenSSL first, which takes longer than many a run."""
    for module in ("_sha2", "_sha256", "hashlib"):
        with suppress(ImportError):
            found: Callable[[bytes], Any] = import_module(module).sha256
            return found
    raise ImportError("no SHA-256")
