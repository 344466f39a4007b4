"""Packages that do not work beside a release of an engine (data/engines/conflicts.toml)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from kvlint.command import Pin
from kvlint.compiled import load
from kvlint.engines.claims import requirement
from kvlint.engines.versions import parse
from kvlint.facts import Written
from kvlint.source import Text
from kvlint.subjects import Problem, VersionClaim


@cache
def _table() -> tuple[Mapping[str, str], ...]:
    return tuple(load("conflicts.json"))


def conflicts(engine: str, release: str, version: VersionClaim | None, pins: tuple[Pin, ...]) -> Iterator[Problem]:
    """Of the packages that the command line or the file that fixes the engine's version pins beside it."""
    key = parse(release)
    for row in _table():
        if row["engine"] != engine or key is None:
            continue
        first, last, since = (parse(row.get(word, "")) for word in ("first", "last", "from"))
        if (first and key < first) or (last and key > last):
            continue
        text = _beside(row["beside"], version, pins)
        other = parse(text.value.lstrip("=~>< ")) if text is not None and text.known else None
        if text is not None and other is not None and since is not None and other >= since:
            data = {
                "engine": engine,
                "release": release,
                "flag": row["beside"],
                "value": text.value.lstrip("= "),
                "why": row["why"],
            }
            yield Problem("dependency-conflict", text.span, data)


def _beside(distribution: str, version: VersionClaim | None, pins: tuple[Pin, ...]) -> Text | None:
    """An exact version, or a lower bound, of the other package."""
    for pin in pins:
        if pin.distribution.replace("_", "-").lower() == distribution:
            return pin.version
    origin = version.origin if version is not None else None
    if not isinstance(origin, Written) or not origin.span.path.endswith((".txt", ".lock", ".toml")):
        return None
    found = requirement(origin.span.source, distribution)
    return found if found is not None and "<" not in found.value and "!" not in found.value else None
