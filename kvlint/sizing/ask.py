"""The question of `kvlint size`: from a model, or bare numbers, to the sizing table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from kvlint.facts import Range, Unknown
from kvlint.models import gguf
from kvlint.models.architecture import Architecture, UnknownArchitecture
from kvlint.records import dataclass
from kvlint.sizing import budget
from kvlint.sizing.search import LIMIT
from kvlint.sizing.table import Table, table


class SizeError(Exception):
    """The question cannot be answered; the message says what would help."""


@dataclass(frozen=True, slots=True)
class Question:
    """Sizes in bytes, windows in tokens."""

    model: str | None
    config: str | None
    kv_bytes_per_token: int | None
    state_bytes: int
    budget_bytes: int | None
    weights_bytes: int | None
    holdback: Fraction
    streams: int
    windows: tuple[int, ...]
    engine: str
    kv_dtype: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    table: Table
    kv_bytes_per_token: int
    model: str | None = None


@dataclass(frozen=True, slots=True)
class _Shape:
    slot: Callable[[int], int]
    kv_bytes_per_token: int
    weights_bytes: int | None = None
    positions: int | None = None
    name: str | None = None


def answer(question: Question) -> Answer:
    """Raises `SizeError` where something needed is neither given nor known."""
    shape = _shape(question)
    weights = question.weights_bytes if question.weights_bytes is not None else shape.weights_bytes
    usable = None
    if question.budget_bytes is not None:
        if weights is None:
            raise SizeError("--weights is needed: the size of the weights is not known exactly")
        usable = budget.usable_of_budget.plain(question.budget_bytes, question.holdback)
    found = table(
        question.windows,
        shape.slot,
        usable_bytes=usable,
        weights_bytes=weights,
        streams=question.streams,
        upper=LIMIT,
    )
    return Answer(found, shape.kv_bytes_per_token, shape.name)


def _shape(question: Question) -> _Shape:
    if question.kv_bytes_per_token is not None:
        rate, state = question.kv_bytes_per_token, question.state_bytes
        return _Shape(lambda window: rate * window + state, rate)
    if question.config is not None:
        return _of_config(question, question.config)
    if question.model is None:
        raise SizeError("give a MODEL, --config FILE, or --kv-bytes-per-token N")
    from kvlint.models.catalogue import find

    entry = find(question.model)
    if entry is None:
        raise SizeError(f"{question.model} is not in the catalogue; give --config with its config.json")
    return _of_entry(question, entry, question.model)


def _of_config(question: Question, path: str) -> _Shape:
    from kvlint.models.catalogue import lookup_config

    try:
        loaded = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SizeError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise SizeError(f"{path}: {error}") from error
    if not isinstance(loaded, Mapping):
        raise SizeError(f"{path}: not a JSON object")
    name = question.model or path
    if gguf.is_gguf(loaded):
        return _of_metadata(question, loaded, name)
    return _of_entry(question, lookup_config(loaded, name=name, source=path), name)


def _of_metadata(question: Question, metadata: Mapping[str, Any], name: str) -> _Shape:
    try:
        found = gguf.architecture(metadata)
    except UnknownArchitecture as error:
        raise SizeError(f"{name}: {error}") from error
    slot, rate = _slot(question, found, question.kv_dtype or "float16", name)  # llama.cpp's own default
    return _Shape(slot, rate, None, found.positions, name)


def _slot(question: Question, architecture: Architecture, dtype: str, name: str) -> tuple[Callable[[int], int], int]:
    from kvlint.sizing.slots import slot_function

    try:
        return slot_function(architecture, question.engine, dtype)
    except (UnknownArchitecture, ValueError) as error:
        raise SizeError(f"{name}: {error}") from error


def _of_entry(question: Question, entry: Any, name: str) -> _Shape:
    if isinstance(entry.architecture, Unknown):
        raise SizeError(f"{name}: {entry.architecture.reason}")
    dtype = question.kv_dtype or entry.dtype or "bfloat16"
    slot, rate = _slot(question, entry.architecture, dtype, name)
    weights = entry.weight_bytes()
    if isinstance(weights, Range):
        weights = int(weights.nominal) if weights.exact else None
    exact = int(weights) if isinstance(weights, int) else None
    return _Shape(slot, rate, exact, entry.architecture.positions, name)
