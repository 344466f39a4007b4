"""Objections of an engine's parser as problems, with what a person needs: what was meant, since when, who knows it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from posixpath import commonprefix
from typing import Any

from kvlint import engines
from kvlint.command import CommandLine
from kvlint.engines.argparse import Objection
from kvlint.engines.base import World
from kvlint.engines.nearness import is_slip
from kvlint.engines.options import Options, options
from kvlint.patterns import regex
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

# Engines by whose program's name other builds go, or of whose releases the data has few.
SPARSE = frozenset({"llama-server", "tgi", "trtllm"})
# Builds that go by an engine's own program name and have options of their own.
FORKS = regex(r"ik[_-]?llama|beellama|buun|turboquant|kobold|llamafile|prima[._-]?cpp|powerinfer|bitnet", re.IGNORECASE)


def of_reading(
    engine: str, world: World, program: Span, version: VersionClaim | None, doubt: str | None
) -> Iterator[Problem]:
    """The reading's objections.  `doubt` caps those about flags, whose data may not reach the version."""
    known = options(engine)
    splices = world.process.line.open
    foreign = version is None and (engine in SPARSE or of_another_build(engine, world.process.line))
    fork = of_fork(world.process.line)
    given = world.process.line.program
    embedded = given is not None and engines.embedded(given.value)
    for objection in world.reading.problems:
        if embedded and objection.kind in ("unknown-flag", "ambiguous-flag", "stray-argument"):
            continue
        problem = objection.problem(program, **_details(known, objection, world, version))
        if problem.kind in ("missing-model", "missing-argument", "missing-value") and (splices or world.reading.open):
            continue
        if foreign and _unheard_of(objection, problem.data, fork=fork):
            continue
        kind = KINDS.get(problem.kind, problem.kind)
        if kind == "unknown-flag" and "gone" in problem.data:
            kind = "removed-flag"
        yield replace(problem, kind=kind, doubt=doubt or _gap(known, objection, problem.data, version))


def of_another_build(engine: str, line: CommandLine) -> bool:
    """Whether the program comes from an image that is not the engine's own, or is a fork's."""
    return of_fork(line) or (
        line.image is not None and line.image.known and engines.of_image(line.image.value) != engine
    )


def of_fork(line: CommandLine) -> bool:
    """Whether a program is by its path, or by its image's name, that of a fork."""
    return any(text is not None and FORKS.search(text.value) for text in (line.program, line.image))


def _unheard_of(objection: Objection, data: Mapping[str, Any], *, fork: bool) -> bool:
    """A flag like none that any release has, or a choice that none offers: another build's, as far as anybody can tell.

    A known fork keeps what the engine dropped, and has options spelled much like the engine's: only one letter is a slip there.
    """
    if objection.kind == "unknown-flag":
        told = {"owners"} if fork else {"gone", "first", "owners"}
        flag, meant = str(data.get("flag")), str(data.get("suggestion"))
        # One letter more of a short flag is no slip.
        if flag.startswith("--") and (not fork or _one_letter(flag, meant)):
            told.add("suggestion")
        return not objection.data.get("joined") and not told & data.keys()
    return _is_choice(objection) and not _near(objection)


def _one_letter(one: str, other: str) -> bool:
    """Whether two words differ by a letter that is left out, put in, or another."""
    before = len(commonprefix((one, other)))
    after = len(commonprefix((one[before:][::-1], other[before:][::-1])))
    return max(len(one), len(other)) - before - after <= 1


def _flag(objection: Objection) -> str:
    typed = objection.data.get("flag") or (objection.place.value if objection.place else "")
    return str(typed).split("=", 1)[0]


def _gap(known: Options, objection: Objection, data: Mapping[str, Any], version: VersionClaim | None) -> str | None:
    """Why an objection may not hold between two releases of the data: what neither has may have stood between them."""
    if version is None or version.beyond is not None:
        return None
    found = known.neighbours(version.text)
    new = objection.kind == "unknown-flag" and not {"gone", "first"} & data.keys()
    if found.kind != "between" or not (new or _is_choice(objection)):
        return None
    return f"kvlint's data has no release between {found.releases[0]} and {found.releases[-1]}"


def _near(objection: Objection) -> bool:
    """Whether the value is a slip of one that is taken: `q8` for `q8_0`."""
    from difflib import get_close_matches

    choices = [str(each) for each in objection.data["choices"]]
    return bool(get_close_matches(str(objection.data.get("value", "")), choices, n=1))


def _is_choice(objection: Objection) -> bool:
    return objection.kind == "malformed-value" and objection.data.get("choices") is not None


def _details(known: Options, objection: Objection, world: World, version: VersionClaim | None) -> dict[str, Any]:
    release = world.releases[-1]
    details: dict[str, Any] = {"engine": known.engine, "release": release, "releases": world.releases}
    if version is not None and version.beyond is None:
        details["pinned"] = True
    if objection.kind not in ("unknown-flag", "removed-flag"):
        return details
    flag = _flag(objection)
    details["flag"] = flag
    if objection.data.get("joined"):
        return details
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
            if (
                len(near) == 1
                and not owners
                and is_slip(_dashed(flag), near[0])
                and _stands(known, near[0], world, "pinned" in details)
            ):
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
