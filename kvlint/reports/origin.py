"""Where a value came from, as JSON and in words."""

from __future__ import annotations

from typing import Any

from kvlint.facts import (
    Assumed,
    Catalog,
    Coefficient,
    Default,
    Derived,
    Device,
    Fact,
    Lock,
    Receipt,
    Written,
)
from kvlint.ruleset.messages import clean


def as_json(fact: Fact[Any]) -> dict[str, Any]:
    """The contract's `origin` object."""
    origin = fact.origin
    found: dict[str, Any] = {"kind": origin.kind}
    if isinstance(origin, Written):
        found |= {"path": origin.span.path, "line": origin.span.line, "column": origin.span.column}
        if origin.via:
            found["via"] = [{"path": use.path, "line": use.line, "column": use.column} for use in origin.via]
    elif isinstance(origin, Default):
        found |= {"engine": origin.engine, "versions": list(origin.versions), "flag": origin.flag}
    elif isinstance(origin, Catalog):
        found |= {"model": origin.model, "field": origin.field, "source": origin.source}
    elif isinstance(origin, Device):
        found |= {"name": origin.name, "source": origin.source}
    elif isinstance(origin, Coefficient):
        found |= {"name": origin.name, "reason": origin.reason}
    elif isinstance(origin, Assumed):
        found["why"] = origin.why
    elif isinstance(origin, Derived):
        found |= {"formula": origin.quantity.formula, "inputs": [name for name, _ in origin.inputs]}
    elif isinstance(origin, Lock):
        found |= {"model": origin.model, "revision": origin.revision}
    elif isinstance(origin, Receipt):
        found |= {"path": origin.path, "line": origin.line}
    return found


def in_words(fact: Fact[Any]) -> str:
    origin = fact.origin
    if isinstance(origin, Written):
        via = f" (via {', '.join(_at(use) for use in origin.via)})" if origin.via else ""
        doubt = {
            "splice": ", something unseen may follow",
            "default": ", a default",
            "claimed": ", a claim",
            "supposed": ", supposed to call it",
        }
        return f"{_at(origin.span)}{via}{doubt.get(origin.doubt or '', '')}"
    if isinstance(origin, Default):
        releases = f" in {span_of(origin.versions)}" if origin.versions else ""
        return f"default of {origin.flag}{releases}" if origin.flag else releases.strip()
    if isinstance(origin, Catalog):
        named = ", by the name in its path" if origin.doubt == "named" else ""
        return f"{clean(origin.model)}{named} ({clean(origin.source)})"
    if isinstance(origin, Device):
        return f"{origin.name} ({origin.source})"
    if isinstance(origin, Coefficient):
        return f"coefficient {origin.name}: {clean(origin.reason)}"
    if isinstance(origin, Assumed):
        return f"assumed: {clean(origin.why)}"
    if isinstance(origin, Derived):
        return origin.quantity.formula
    if isinstance(origin, Lock):
        return f"kvlint.lock, {origin.model}"
    return f"printed by the engine, {origin.path}:{origin.line}"


def span_of(releases: tuple[str, ...]) -> str:
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _at(span: Any) -> str:
    return f"{clean(span.path)}:{span.line}:{span.column}"
