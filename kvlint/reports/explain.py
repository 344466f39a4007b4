"""The proof of a server's numbers: each derived value as its formula and terms, down to what is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kvlint.evaluation import Evaluation
from kvlint.facts import Derived, Fact, Unknown
from kvlint.models.architecture import Architecture, Attention, Compressed, Cross, Latent, State
from kvlint.reports import origin
from kvlint.ruleset.diagnose import unit_of
from kvlint.ruleset.messages import clean, show
from kvlint.subjects import ServerGroup

Style = Callable[[str, str], str]


def at(evaluation: Evaluation, path: str, line: int | None) -> list[ServerGroup]:
    """The servers of a file or directory; with a line, the last one that begins at or above it."""
    own = [group for group in evaluation.groups if evaluation.project.in_focus(group.first.site.place.path)]
    if line is None:
        return own
    above = [group for group in own if group.first.site.place.line <= line]
    return above[-1:] or own[:1]


def render(group: ServerGroup, style: Style) -> str:
    return "\n".join(_lines(group, style)) + "\n"


def _lines(group: ServerGroup, style: Style) -> Iterator[str]:
    world = group.live[0]
    yield style(clean(group.id), "strong") + f"  {world.engine} {origin.span_of(world.releases)}"
    if len(group.live) > 1:
        yield f"  the line reads in {len(group.live)} ways, by version; proven for {origin.span_of(world.releases)}"
    seen: dict[int, str] = {}
    for name, value in world.sizing.derived().items():
        yield ""
        if isinstance(value, Unknown):
            yield f"{style(name, 'strong')} is not known: {clean(value.reason)}; what would supply it: {clean(value.supply)}"
            continue
        yield from _term(name, value, 0, seen, style)


def _term(name: str, fact: Fact[Any], depth: int, seen: dict[int, str], style: Style) -> Iterator[str]:
    pad = "  " * depth
    value = value_of(name, fact.value)
    head = f"{pad}{style(name, 'strong') if depth == 0 else name}" + (f" = {value}" if value else "")
    if id(fact) in seen and depth:
        yield f"{head}  {style('(as above)', 'dim')}"
        return
    seen[id(fact)] = name
    if not isinstance(fact.origin, Derived):
        yield f"{head}  {style(origin.in_words(fact), 'dim')}"
        if isinstance(fact.value, Architecture):
            yield from (f"{pad}  {line}" for line in layers(fact.value))
        return
    yield f"{head}  {style('= ' + fact.origin.quantity.formula, 'dim')}"
    yield f"{pad}  {style('by ' + fact.origin.quantity.source, 'dim')}"
    for inner, term in fact.origin.inputs:
        yield from _term(inner, term, depth + 1, seen, style)


def value_of(name: str, value: Any) -> str:
    """A value in words; nothing for a step on the way that has its meaning in its formula alone."""
    if isinstance(value, Architecture):
        return f"{value.model_type}, {len(value.layers)} layers"
    if isinstance(value, (int, float, str, bool)) or hasattr(value, "numerator") or hasattr(value, "nominal"):
        return show(value, unit_of(name))
    if isinstance(value, tuple):
        words = all(isinstance(each, str) for each in value)
        return show(value, "text") if words else f"{len(value)} layers"
    return ""


def layers(architecture: Architecture) -> Iterator[str]:
    """The kinds of layers and how many there are of each."""
    counts: dict[str, int] = {}
    for layer in architecture.layers:
        kind = " and ".join(describe(part) for part in layer) or "nothing cached"
        counts[kind] = counts.get(kind, 0) + 1
    for kind, count in counts.items():
        yield f"{count} × {kind}"


def describe(part: Any) -> str:
    if isinstance(part, Attention):
        if part.shared:
            return "attention that shares an earlier layer's cache"
        limit = f", window {part.window:,}" if part.window else f", chunks of {part.chunk:,}" if part.chunk else ""
        return f"attention of {part.kv_heads} KV heads × ({part.key_dim} + {part.value_dim}){limit}"
    if isinstance(part, Latent):
        index = f", indexer {part.indexer_dim}" if part.indexer_dim else ""
        return f"latent attention of {part.rank} + {part.rope_dim}{index}"
    if isinstance(part, State):
        return f"{part.kind} state of {part.recurrent:,} + convolution {part.conv_channels:,} × {part.conv_kernel}"
    if isinstance(part, Compressed):
        return (
            f"compressed attention, 1 row for {part.ratio} tokens" if part.ratio else "window of compressed attention"
        )
    return "cross attention" if isinstance(part, Cross) else "a layer"
