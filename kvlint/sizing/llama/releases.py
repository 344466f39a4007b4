"""Which builds of llama-server mean the same by the same settings.

The rules are data (data/engines/llama-server.memory.toml): each has a value over the spans of builds in which it was read, run or
dated.  A build between two spans could have either value, so a build stands for one or several sets of rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any

from kvlint.compiled import load
from kvlint.facts import Unknown
from kvlint.patterns import regex
from kvlint.records import dataclass, fields

_BUILD = regex(r"(?:version:\s*|~?b)?(\d{3,6})(?:\b.*)?", re.DOTALL)
_DATE = regex(r"20[23]\d(?:$|[-./]\d\d)")
_MOST = 256


@dataclass(frozen=True, slots=True, eq=False)
class Semantics:
    """One way of reading the settings; what each field means is said in data/engines/llama-server.memory.toml.

    Builds that read them alike have one object.
    """

    slots: int
    streams: bool
    context: int
    pad: tuple[int, int]
    sliding: str
    hybrid_share: bool
    flash_attention: str
    fit: bool
    zero_forbids_fit: bool
    fit_counts_streams: bool
    per_slot: bool
    equal_latent_types: bool
    divides_head: bool
    max_sequences: int
    drafted: int

    @property
    def automatic(self) -> bool:
        """Without --parallel: several slots over one pool, each of which may use all of it."""
        return self.slots > 1


@cache
def data() -> Mapping[str, Any]:
    """The compiled data; read when first asked for."""
    loaded: dict[str, Any] = load("llama_memory.json")
    return loaded


def build_number(text: str) -> int | None:
    """The build of `b11434`, `11434` or `version: 8185 (2afcdb977)`; None for everything else (a date, a commit, `latest`)."""
    found = _BUILD.fullmatch(text.strip())
    if found is None or _DATE.match(text.strip()):
        return None
    return int(found.group(1))


@cache
def semantic_classes(build: int | None = None) -> tuple[Semantics, ...]:
    """Every set of rules that `build` may have, at most 256; None: of any build.

    A build outside the data has the rules of the nearest end.
    """
    if build is None:
        return tuple(dict.fromkeys(semantics for span in boundaries() for semantics in semantic_classes(span)))
    rules: Mapping[str, Any] = data()["rules"]
    values = [_values(rules[field.name], build) for field in fields(Semantics)]
    return tuple(_of_values(choice) for choice, _ in zip(product(*values), range(_MOST), strict=False))


@cache
def _of_values(values: tuple[Any, ...]) -> Semantics:
    return Semantics(*values)


@cache
def semantic_class(build: int) -> str:
    """A name that two builds share exactly when they mean the same: the first build at or before it at which a rule changed."""
    return f"b{max(start for start in boundaries() if start <= max(build, boundaries()[0]))}"


@cache
def boundaries() -> tuple[int, ...]:
    """The builds at which a rule takes a new value or becomes uncertain, the oldest build first."""
    starts = {data()["oldest"]}
    for spans in data()["rules"].values():
        for begin, end, _ in spans:
            starts.update([] if begin is None else [begin])
            starts.update([] if end is None else [end + 1])
    return tuple(sorted(start for start in starts if start <= data()["newest"]))


def rule(name: str, build: int | None) -> Any:
    """The value of one rule at a build, `Unknown` where it may have several (for what the sizing of caches does not need)."""
    spans = data()["rules"][name]
    builds = boundaries() if build is None else (build,)
    values = list(dict.fromkeys(value for each in builds for value in _values(spans, each)))
    if len(values) == 1:
        return values[0]
    return unknown_build(name)


def unknown_build(what: str) -> Unknown:
    """The doubt that only the build of llama-server resolves."""
    return Unknown("engine.version", f"builds of llama-server differ in {what}", "name the build of llama-server")


def _values(spans: list[list[Any]], build: int) -> list[Any]:
    """The values of one rule at a build: one inside a span, those of both neighbours between two."""
    before = after = None
    for begin, end, value in spans:
        if (begin is None or begin <= build) and (end is None or build <= end):
            return [_frozen(value)]
        if end is not None and end < build:
            before = [_frozen(value)]
        elif after is None:
            after = [_frozen(value)]
    return list(dict.fromkeys((before or []) + (after or [])))


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
