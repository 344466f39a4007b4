"""Engines and the releases of them that a rule speaks of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kvlint.ruleset.truth import ORDER

_SCOPE = re.compile(r"([a-z][a-z-]*?)((?:[ ,]*(?:>=|<=|==|<|>)[ ]*[0-9A-Za-z.]+)*)")
_BOUND = re.compile(r"(>=|<=|==|<|>) *([0-9A-Za-z.]+)")
_RELEASE = re.compile(r"[vb]?(\d+(?:\.\d+)*)(.*)", re.DOTALL)
_BEFORE = re.compile(r"[-._]?(?:a|b|c|rc|alpha|beta|pre|preview|dev|nightly)", re.IGNORECASE)


def version_key(text: str) -> tuple[tuple[int, ...], int]:
    """Orders releases as their engines number them: `0.9.1 < 0.10.0rc1 < 0.10 = 0.10.0 < 0.10.0.post1`, `b6000 < b11434`."""
    match = _RELEASE.match(text)
    if not match:
        return (), 0
    numbers = [int(number) for number in match[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), -1 if _BEFORE.match(match[2]) else 1 if match[2] else 0


@dataclass(frozen=True, slots=True)
class Scope:
    """An engine, and the releases of it that a rule or a part of one speaks of."""

    engine: str
    bounds: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Scope:
        """`mlx-lm`, `mlx-lm>=0.32.0`, `mlx-lm >=0.32.0 <=0.32.2`; raises ValueError for anything else."""
        match = _SCOPE.fullmatch(text.strip())
        if not match:
            raise ValueError(f"`{text}` is not an engine with version bounds")
        return cls(match[1], tuple((bound[1], bound[2]) for bound in _BOUND.finditer(match[2])))

    def covers(self, release: str) -> bool:
        key = version_key(release)
        return all(ORDER[sign](key, version_key(bound)) for sign, bound in self.bounds)

    def __str__(self) -> str:
        return " ".join((self.engine, *(sign + bound for sign, bound in self.bounds)))


def speaks_to(scopes: tuple[Scope, ...], engine: str | None, releases: Iterable[str]) -> bool | None:
    """Whether one of the scopes holds for an engine's releases; None where it holds for some of them only, or none is known.

    No scopes at all speak to everything.
    """
    if not scopes:
        return True
    named = [scope for scope in scopes if scope.engine == engine]
    if not named or not all(scope.bounds for scope in named):
        return bool(named)
    answers = {any(scope.covers(release) for scope in named) for release in releases}
    return answers.pop() if len(answers) == 1 else None
