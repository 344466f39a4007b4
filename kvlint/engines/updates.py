"""A line that older releases take and the newest one refuses, where nothing holds the release in place."""

from __future__ import annotations

from collections.abc import Sequence

from kvlint import engines
from kvlint.engines.options import options
from kvlint.facts import Fact
from kvlint.subjects import Problem, Server

# Where a line without an image runs what is installed on the machine; operators and charts choose an image of their own.
INSTALLED = ("shell", "systemd", "supervisor", "launchd", "llama-swap", "procfile", "ansible", "presets")


def breaking(worlds: Sequence[Server]) -> Problem | None:
    """What the newest release objects to, if every release from some point on refuses the line and those before it do not."""
    if not worlds or not open_to_updates(worlds[0]):
        return None
    known = options(worlds[0].engine).releases
    refused = {release for world in worlds if world.refused for release in world.releases}
    accepted = [release for world in worlds if not world.refused for release in world.releases]
    if not accepted or known[-1] not in refused:
        return None
    last = max(accepted, key=known.index)
    since = known[known.index(last) + 1]
    first = next(world for world in worlds if since in world.releases)
    objection = next(problem for problem in first.problems if problem.data.get("refuses"))
    data = {
        "engine": first.engine,
        "flag": objection.data.get("flag"),
        "release": last,
        "since": objection.data.get("since") or since,
        "instead": objection.data.get("instead") or objection.data.get("suggestion"),
        "refused": _refused(objection),
        "why": _why(objection),
    }
    return Problem("breaks-when-updated", objection.span, data, doubt=objection.doubt)


def _refused(objection: Problem) -> str:
    """The flag, with the value where it is that which is refused."""
    flag, text = objection.data.get("flag"), objection.span.text
    if flag is None or objection.kind in ("removed-flag", "unknown-flag"):
        return flag or text
    return f"{flag} {text}" if objection.data.get("value") == text else text


def _why(objection: Problem) -> str | None:
    data = objection.data
    if data.get("why") or data.get("expects") is None:
        return data.get("why") or None
    return f"it takes {data['expects']}"


def open_to_updates(server: Server) -> bool:
    """Whether the next start may bring the engine's newest release: what is installed, or a tag of its own that moves.

    Another build's newest release may take what the engine's own refuses.
    """
    image = server.process.line.image
    if image is None:
        return server.version is None and server.site.carrier in INSTALLED
    own = image.known and engines.of_image(image.value) == server.engine
    return own and isinstance(server.sizing.get("floating"), Fact)
