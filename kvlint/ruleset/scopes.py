"""Engines and the releases of them that a rule speaks of."""

from __future__ import annotations

from collections.abc import Iterable

from kvlint.engines.versions import parse
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.ruleset.truth import ORDER

_SCOPE = regex(r"([a-z][a-z-]*?)((?:[ ,]*(?:>=|<=|==|<|>)[ ]*[0-9A-Za-z.]+)*)")
_BOUND = regex(r"(>=|<=|==|<|>) *([0-9A-Za-z.]+)")


@dataclass(frozen=True, slots=True)
class Scope:
    """An engine, and the releases of it that a rule or a part of one speaks of."""

    engine: str
    bounds: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Scope:
        """`mlx-lm`, `mlx-lm>=0.32.0`, `mlx-lm >=0.32.0 <=0.32.2`; raises ValueError for anything else."""
        text = text.strip()
        if text.replace("-", "").isalpha() and text.islower() and text[0] != "-":
            return cls(text)
        match = _SCOPE.fullmatch(text)
        if not match:
            raise ValueError(f"`{text}` is not an engine with version bounds")
        bounds = tuple((bound[1], bound[2]) for bound in _BOUND.finditer(match[2]))
        if any(parse(version) is None for _, version in bounds):
            raise ValueError(f"`{text}` has a bound that is not a version")
        return cls(match[1], bounds)

    def covers(self, release: str) -> bool:
        """Whether a release lies within the bounds; one that is no version lies in none."""
        key = parse(release)
        return not self.bounds or (
            key is not None and all(ORDER[sign](key, parse(bound)) for sign, bound in self.bounds)
        )

    def __str__(self) -> str:
        return " ".join((self.engine, *(sign + bound for sign, bound in self.bounds)))


def speaks_to(scopes: tuple[Scope, ...], engine: str | None, releases: Iterable[str]) -> bool | None:
    """Whether one of the scopes holds for an engine's releases; None where it holds for some of them only, or none is known.

    No scopes at all speak to everything.
    """
    if not scopes:
        return True
    named = []
    for scope in scopes:
        if scope.engine == engine:
            if not scope.bounds:
                return True
            named.append(scope)
    if not named:
        return False
    answers = {any(scope.covers(release) for scope in named) for release in releases}
    return answers.pop() if len(answers) == 1 else None
