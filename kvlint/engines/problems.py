"""Objections of an engine's parser as problems, with what a person needs: what was meant, since when, who knows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvlint.engines.argparse import Objection
from kvlint.engines.base import World
from kvlint.engines.options import Options, options
from kvlint.records import replace
from kvlint.source import Span
from kvlint.subjects import Problem, VersionClaim

# The readers' finer kinds, by the rule that has words for them.
KINDS = {
    "missing-value": "malformed-value",
    "out-of-range": "malformed-value",
    "conflict": "malformed-value",
    "config-file": "malformed-value",
    "missing-model": "missing-argument",
}


def of_reading(
    engine: str, world: World, program: Span, version: VersionClaim | None, doubt: str | None
) -> Iterator[Problem]:
    """The reading's objections.  `doubt` caps those about flags, whose data may not reach the version."""
    known = options(engine)
    splices = world.process.line.open
    for objection in world.reading.problems:
        problem = objection.problem(program, **_details(known, objection, world, version))
        if problem.kind in ("missing-model", "missing-argument", "missing-value") and (splices or world.reading.open):
            continue
        kind = KINDS.get(problem.kind, problem.kind)
        if kind == "unknown-flag" and "gone" in problem.data:
            kind = "removed-flag"
        problem = replace(problem, kind=kind)
        yield replace(problem, doubt=doubt) if doubt else problem


def _details(known: Options, objection: Objection, world: World, version: VersionClaim | None) -> dict[str, Any]:
    release = world.releases[-1]
    details: dict[str, Any] = {"engine": known.engine, "release": release, "releases": world.releases}
    if version is not None and version.beyond is None:
        details["pinned"] = True
    if objection.kind not in ("unknown-flag", "removed-flag"):
        return details
    typed = objection.data.get("flag") or (objection.place.value if objection.place else "")
    flag = str(typed).split("=", 1)[0]
    details["flag"] = flag
    past = known.history(flag if known.known(flag) else _dashed(flag), release)
    if past.gone is not None:
        details |= {"gone": past.gone, "since": past.gone, "instead": past.instead}
        if past.instead:
            details["suggestion"] = past.instead
    elif past.since is not None:
        details["first"] = past.since
    else:
        near = known.nearest(flag, release, 2)
        owners = known.owners(_dashed(flag))
        if near:
            details["suggestion"] = near[0]
            if len(near) == 1 and not owners and _stands(known, near[0], world, "pinned" in details):
                details["correction"] = near[0]
        if owners:
            details["owners"] = owners
    return details


def _stands(known: Options, spelling: str, world: World, pinned: bool) -> bool:
    """Whether every release that the line may run on has the flag."""
    releases = set(known.history(spelling).releases)
    return releases.issuperset(world.releases if pinned else known.releases)


def _dashed(flag: str) -> str:
    head, dot, tail = flag.partition(".")
    return ("--" + head[2:].replace("_", "-") if head.startswith("--") else head) + dot + tail
