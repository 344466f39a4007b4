"""SGLang's memory model: its own defaults, what a token costs on a rank, and the pool that a device holds.

Everything is given for the releases that a version may stand for: where two neighbours differ the answer is `Unknown`, a start
that fails is a `Refusal`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar, Union

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture, UnknownArchitecture
from kvlint.records import replace
from kvlint.sizing.sglang import cells as sglang_cells
from kvlint.sizing.sglang import pool as sglang_pool
from kvlint.sizing.sglang.arguments import Arguments, standing_alone
from kvlint.sizing.sglang.arguments import resolve as resolve_one
from kvlint.sizing.sglang.cells import Cells
from kvlint.sizing.sglang.model import Model, read_model
from kvlint.sizing.sglang.pool import Pool, allocated_bytes
from kvlint.sizing.sglang.releases import Rules, known_releases, rules, semantic_class
from kvlint.sizing.sglang.settings import CACHE_NAMES, Device, Settings, loaded
from kvlint.sizing.spans import TYPE_BYTES, Outcome, Refusal

__all__ = [
    "Arguments",
    "Cells",
    "Device",
    "Outcome",
    "Pool",
    "Refusal",
    "Rules",
    "Settings",
    "agreed",
    "allocated_bytes",
    "bytes_per_token_per_rank",
    "cache_bytes",
    "cells",
    "known_releases",
    "loaded",
    "pool",
    "resolve",
    "semantic_class",
    "state_bytes_per_slot",
]

T = TypeVar("T")
Result = Union[T, Outcome]


def resolve(arch: Architecture, settings: Settings, device: Device) -> Result[Arguments]:
    """The arguments as the engine settles them: fraction, chunk, pages, backend, prefix cache, requests."""
    return agreed(settings, lambda each: resolve_one(arch, settings, device, each))


def cells(arch: Architecture, settings: Settings, device: Device) -> Result[Cells]:
    """Bytes of one token on one rank, in full and in sliding layers."""
    return agreed(settings, lambda each: _then(arch, settings, device, each, sglang_cells.cells))


def bytes_per_token_per_rank(arch: Architecture, settings: Settings, device: Device) -> Result[Fraction]:
    """Bytes that the engine divides its memory by: with two pools, of a full token and its share of sliding ones."""

    def price(arguments: Arguments, given: Settings, each: Rules) -> Result[Fraction]:
        found = sglang_cells.cells(arguments, given, each)
        if not isinstance(found, Cells):
            return found
        if each.split != "weighted" or not found.full:
            return Fraction(found.whole)
        return found.full + given.swa_full_tokens_ratio * found.sliding

    return agreed(settings, lambda each: _then(arch, settings, device, each, price))


def state_bytes_per_slot(arch: Architecture, settings: Settings, device: Device) -> Result[int]:
    """Bytes of one state slot over all recurrent layers on one rank; 0 without such layers."""
    return agreed(settings, lambda each: _then(arch, settings, device, each, sglang_cells.state_bytes))


def pool(arch: Architecture, settings: Settings, device: Device) -> Result[Pool]:
    """Tokens, state slots and requests of one rank."""

    def found(each: Rules) -> Result[Pool]:
        arguments = resolve_one(arch, settings, device, each)
        if not isinstance(arguments, Arguments):
            return arguments
        return sglang_pool.cut(arguments, settings, device, each)

    return agreed(settings, found)


def cache_bytes(
    arch: Architecture,
    tokens: int,
    *,
    sequences: int = 1,
    version: str | None = None,
    kv_dtype: str | None = None,
) -> int:
    """Bytes that one server holds for `sequences` sequences of `tokens` tokens, whole tokens, one copy over all devices.

    After one forward pass of all tokens: sliding layers let go of what left their window only later.  One state a sequence.
    `version` None: the newest release known.  UnknownArchitecture where no layout is known for the release.
    """
    if tokens < 0 or sequences < 0:
        raise ValueError("tokens and sequences are not negative")
    settings = settings_of(version or known_releases()[-1], kv_dtype or "auto")
    held = agreed(settings, lambda each: _held(arch, settings, each, tokens))
    if not isinstance(held, int):
        raise UnknownArchitecture(held.missing if isinstance(held, Unknown) else "kv_dtype", held.reason)
    return sequences * held


def settings_of(release: str, kv_dtype: str) -> Settings:
    """The settings for a cache of a type by any of its names."""
    name = kv_dtype.removeprefix("torch.").lower()
    return Settings(
        release=release,
        kv_cache_dtype="auto" if name in TYPE_BYTES else CACHE_NAMES.get(name, name),
        model_dtype=name if name in TYPE_BYTES else None,
    )


def _held(arch: Architecture, settings: Settings, each: Rules, tokens: int) -> Result[int]:
    """Bytes of one sequence on one device that holds the whole model."""
    if settings.kv_cache_dtype not in each.cache_types:
        return Refusal(f"this release knows no cache type {settings.kv_cache_dtype}")
    model = read_model(arch, settings, each)
    if not isinstance(model, Model):
        return model
    alone = standing_alone(model, settings, each)
    if not isinstance(alone, Arguments):
        return alone
    # releases that budget a sparse row without its scales store it with them
    stored = replace(each, sparse_budget="stored") if each.sparse_raw_default else each
    price = sglang_cells.cells(alone, settings, stored)
    if not isinstance(price, Cells):
        return price
    state = sglang_cells.state_bytes(alone, settings, each)
    return price.whole * tokens + (state if tokens else 0) if isinstance(state, int) else state


def _then(
    arch: Architecture,
    settings: Settings,
    device: Device,
    each: Rules,
    function: Callable[[Arguments, Settings, Rules], Result[T]],
) -> Result[T]:
    arguments = resolve_one(arch, settings, device, each)
    return function(arguments, settings, each) if isinstance(arguments, Arguments) else arguments


def agreed(settings: Settings, function: Callable[[Rules], Result[T]]) -> Result[T]:
    """The outcome on which all sets of rules that the release may follow agree."""
    outcomes = [function(each) for each in rules(settings.release)]
    first = outcomes[0]
    if all(outcome == first for outcome in outcomes) or all(isinstance(outcome, Refusal) for outcome in outcomes):
        return first
    for outcome in outcomes:
        if isinstance(outcome, Unknown):
            return outcome
    return Unknown(
        "engine.version", f"the releases on either side of SGLang {settings.release} differ", "an exact engine version"
    )
