"""Why an engine stops at start, at the written settings without which it would not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kvlint.facts import Derived, Fact, Value, Written, quantity
from kvlint.sizing.spans import Refusal


@quantity("start_refusal", unit="", formula="what the engine compares when it starts", source="the engine's own checks")
def said(**decisive: Any) -> str:
    """The words stand in the fact; the formula only names what they rest on."""
    return ""


def start_refusal(
    found: Value[Any] | None, refusal: Callable[[Any], Refusal | None], model: Value[Any] | None
) -> Value[str] | None:
    """The reason as a fact that rests on the settings that make it; None where the engine starts, or nobody knows.

    `refusal` reads it from an outcome of the quantity that `found` comes from.  Without such settings it rests on the model.
    """
    if not isinstance(found, Fact) or not isinstance(found.origin, Derived):
        return None
    why = refusal(found.value)
    if why is None:
        return None
    inputs = dict(_decisive(found.origin, refusal, why))
    if not inputs:
        inputs = {"model": model} if isinstance(model, Fact) else {}
    return Fact(why.reason, Derived(said, tuple(inputs.items())))


def _decisive(
    origin: Derived, refusal: Callable[[Any], Refusal | None], why: Refusal
) -> Iterator[tuple[str, Fact[Any]]]:
    inputs = dict(origin.inputs)
    for name, fact in inputs.items():
        if name in ("architecture", "release") or not any(isinstance(leaf.origin, Written) for leaf in fact.leaves()):
            continue
        others = {other: each.value for other, each in inputs.items() if other != name}
        if refusal(origin.quantity.plain(**others)) != why:
            yield name, fact
