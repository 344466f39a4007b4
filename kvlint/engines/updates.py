"""A line that older releases take and the newest one refuses, where nothing holds the release in place."""

from __future__ import annotations

from collections.abc import Sequence

from kvlint.engines.options import options
from kvlint.subjects import Problem, Server


def breaking(worlds: Sequence[Server]) -> Problem | None:
    """What the newest release objects to, if every release from some point on refuses the line and those before it do not."""
    if not worlds or worlds[0].version is not None:
        return None
    known = options(worlds[0].engine).releases
    refused = {release for world in worlds if world.refused for release in world.releases}
    accepted = [release for world in worlds if not world.refused for release in world.releases]
    if not accepted or known[-1] not in refused:
        return None
    last = max(accepted, key=known.index)
    newest = next(world for world in worlds if known[-1] in world.releases)
    objection = next(problem for problem in newest.problems if problem.data.get("refuses"))
    data = {
        "engine": newest.engine,
        "flag": objection.data.get("flag"),
        "release": last,
        "since": objection.data.get("since") or known[known.index(last) + 1],
        "instead": objection.data.get("instead") or objection.data.get("suggestion"),
    }
    return Problem("breaks-when-updated", objection.span, data, doubt=objection.doubt)
