"""`VLLM_*` variables that a release does not read: misspelt, not there yet, or gone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kvlint import engines
from kvlint.engines.base import World
from kvlint.engines.nearness import distance
from kvlint.engines.options import options
from kvlint.source import Span, Text
from kvlint.subjects import Problem

NEAR = 300
LONG = 16


def unread(world: World) -> Iterator[Problem]:
    """On the engine's own image only: forks, accelerator builds and wrappers have names of their own."""
    image = world.process.line.image
    if image is None or engines.repository(image.value) != "vllm/vllm-openai":
        return
    if not any(name.startswith("VLLM_") for name in world.env):
        return
    read = _read(world.releases)
    for name, text in world.env.items():
        if not name.startswith("VLLM_") or name in read:
            continue
        elsewhere = _releases(name)
        near = None if elsewhere else _nearest(name, read)
        if (not elsewhere and near is None) or world.process.line.names(name):
            continue
        data = {"engine": "vllm", "variable": name, "release": world.releases[-1]}
        if near is not None:
            data["suggestion"] = near
        elif options("vllm").index[elsewhere[0]] > options("vllm").index[world.releases[-1]]:
            data["first"] = elsewhere[0]
        else:
            data["gone"] = options("vllm").releases[options("vllm").index[elsewhere[-1]] + 1]
        yield Problem("unknown-environment", _place(name, text), data)


@lru_cache(maxsize=64)
def _read(releases: tuple[str, ...]) -> frozenset[str]:
    """The names that any of these releases reads."""
    known = options("vllm")
    wanted = sum(1 << known.index[release] for release in releases)
    return frozenset(name for name, mask in known.environment.items() if mask & wanted)


def _releases(name: str) -> list[str]:
    known = options("vllm")
    mask = known.environment.get(name, 0)
    return [release for at, release in enumerate(known.releases) if mask >> at & 1]


def _nearest(name: str, names: frozenset[str]) -> str | None:
    """The name that differs in a letter, or in two where it is long."""
    limit = 1 if len(name) < LONG else 2
    scored = [(distance(name, each, limit), each) for each in sorted(names) if abs(len(each) - len(name)) <= limit]
    best = min(scored, default=(limit + 1, ""))
    return best[1] if best[0] <= limit else None


def _place(name: str, value: Text) -> Span:
    """The name where it stands before its value; the value's own place where it does not."""
    source = value.span.source
    at = source.text.rfind(name, max(0, value.span.start - NEAR), value.span.start)
    return source.span(at, at + len(name)) if at >= 0 else value.span
