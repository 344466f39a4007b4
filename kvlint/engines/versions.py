"""Versions as people write them: `0.11.0`, `v0.6.3.post1`, `b11434`, `>=0.31,<0.33`, an image's tag."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from kvlint.patterns import regex
from kvlint.records import dataclass

Key = tuple[tuple[int, ...], int, int]  # release numbers, stage (-1 before, 0 release, 1 after), number of the stage

_VERSION = regex(r"v?(\d+(?:\.\d+)*)(?:[.\-_]?(a|b|rc|dev|post)[.\-]?(\d*))?", re.IGNORECASE)
_BUILD = regex(r"(?:^|[-_/])b(\d{3,6})(?:$|[-_.])")
_CLAUSE = regex(r"(~=|==|!=|<=|>=|<|>|===)\s*([^\s,]+)")
_ANY = {"", "latest", "nightly", "main", "master", "stable", "edge", "dev", "*"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a version stands among the releases of the data.

    `kind`: exact, between, above (the newest is the neighbour), below, range (several releases satisfy it), any (nothing is
    fixed).
    `version`: the order key of a single version, None for ranges and for no version.
    """

    releases: tuple[str, ...]
    kind: str
    version: Key | None = None

    @property
    def beyond(self) -> str | None:
        """`newer` or `older` where the data does not reach."""
        return {"above": "newer", "below": "older"}.get(self.kind)


@lru_cache(maxsize=4096)
def parse(text: str) -> Key | None:
    """The order key of one version; trailing words of an image's tag (`-cu128`, `+cpu`) are dropped.  None for anything else."""
    build = _BUILD.search(text.strip())
    if build:
        return ((int(build[1]),), 0, 0)
    match = _VERSION.match(text.strip())
    if not match or len(match[1]) > 60:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    stage = (match[2] or "").lower()
    return tuple(numbers), {"": 0, "post": 1}.get(stage, -1), int((match[3] or "0")[:9])


def place(text: str, releases: Sequence[str], builds: Mapping[str, Any]) -> Place:
    """See `Options.neighbours`.  `builds`: build numbers, or bounds of them, of releases that are named otherwise."""
    text = text.strip()
    if text.lower() in _ANY:
        return Place(tuple(releases), "any")
    clauses = _CLAUSE.findall(text) if text[:1] in "~=!<>" else []
    if clauses and not (len(clauses) == 1 and clauses[0][0] in ("==", "===") and "*" not in text):
        return _range(clauses, releases, builds)
    version = parse(clauses[0][1] if clauses else text)
    if version is None:
        return Place(tuple(releases), "any")
    return _single(version, releases, builds)


def _bounds(release: str, builds: Mapping[str, Any]) -> tuple[Key, Key] | None:
    known = builds.get(release)
    if known is None:
        key = parse(release)
        return (key, key) if key else None
    low, high = (known, known) if isinstance(known, int) else known
    return ((low,), 0, 0), ((high,), 0, 0)


def _single(version: Key, releases: Sequence[str], builds: Mapping[str, Any]) -> Place:
    bounds = [(release, _bounds(release, builds)) for release in releases]
    placed = [(release, low, high) for release, b in bounds if b for low, high in [b]]
    if not placed:
        return Place(tuple(releases), "any", version)
    for release, low, high in placed:
        if low == high == version:
            return Place((release,), "exact", version)
    below = [release for release, _, high in placed if high <= version]
    above = [release for release, low, _ in placed if low >= version]
    if not above and len(below) == len(placed):
        return Place((below[-1],), "above", version)
    if not below and len(above) == len(placed):
        return Place((above[0],), "below", version)
    unsure = [release for release, low, high in placed if low < version < high]
    around = {*below[-1:], *unsure, *above[:1]}
    return Place(tuple(release for release in releases if release in around), "between", version)


def _range(clauses: list[tuple[str, str]], releases: Sequence[str], builds: Mapping[str, Any]) -> Place:
    inside = [
        r for r in releases if (b := _bounds(r, builds)) and all(_satisfies(b[0], op, text) for op, text in clauses)
    ]
    if inside:
        return Place(tuple(inside), "range")
    around: set[str] = set()
    for _, text in clauses:
        version = parse(text)
        if version is not None:
            around.update(_single(version, releases, builds).releases)
    return Place(tuple(release for release in releases if release in around) or tuple(releases), "between")


def _satisfies(version: Key, operator: str, text: str) -> bool:
    bound = parse(text)
    if bound is None:
        return True
    same_line = _prefix(version, text.rstrip("*").rstrip("."))
    if operator in ("==", "==="):
        return same_line if "*" in text else version == bound
    if operator == "!=":
        return not same_line if "*" in text else version != bound
    if operator == "~=":
        return version >= bound and _prefix(version, text.rpartition(".")[0] or text)
    return {"<": version < bound, "<=": version <= bound, ">": version > bound, ">=": version >= bound}[operator]


def contradiction(text: str) -> str | None:
    """Why no release can be meant by a version or bounds; None for everything else, free text included."""
    text = text.strip()
    if not text or text[0] not in "<>=!~":
        return None
    if _CLAUSE.sub("", text).strip(" ,"):
        return f"{text!r} is no list of bounds, as >=0.31,<0.33 is"
    known = [(operator, bound) for operator, word in _CLAUSE.findall(text) if (bound := parse(word)) is not None]
    lows = [(bound, operator == ">") for operator, bound in known if operator in (">", ">=", "~=")]
    highs = [(bound, operator == "<") for operator, bound in known if operator in ("<", "<=")]
    for low, after in lows:
        for high, before in highs:
            if low > high or (low == high and (after or before)):
                return f"no version satisfies {text!r}"
    return None


def _prefix(version: Key, text: str) -> bool:
    numbers = [int(part) for part in re.findall(r"\d+", text)]
    padded = [*version[0], *[0] * max(0, len(numbers) - len(version[0]))]
    return padded[: len(numbers)] == numbers
