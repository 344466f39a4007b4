"""Which releases of an engine a server may be: from kvlint.toml, a pin on the command line, an image's tag, requirement files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint import engines
from kvlint.facts import Fact, Written
from kvlint.patterns import regex
from kvlint.source import Source, Text
from kvlint.subjects import Process, VersionClaim

if TYPE_CHECKING:
    from kvlint.project import Project

REQUIREMENT_FILES = (
    "requirements.txt",
    "requirements.lock",
    "constraints.txt",
    "pyproject.toml",
    "uv.lock",
    "poetry.lock",
)
FLOATING_TAGS = ("latest", "nightly", "main", "stable", "edge", "dev", "")
_TAG = regex(
    r"v?(?P<release>[0-9]+(?:\.[0-9]+)*(?:\.?post[0-9]+|rc[0-9]+)?|b[0-9]+)(?:[-_+].*)?"
    r"|[a-z][a-z0-9.]*(?:[-_][a-z0-9.]+)*?[-_](?P<build>b[0-9]{3,6})"
)


def claim(process: Process, engine: str, declared: Fact[str] | None, project: Project) -> VersionClaim | None:
    """What is said of the engine's version, the first that says anything; None where nothing does."""
    if declared is not None:
        return VersionClaim(declared.value, declared.origin)
    for text in (*pins(process, engine), *_image(process, engine)):
        if text.known:
            return VersionClaim(text.value, Written(text.span, text.via))
    return _required(process, engine, project)


def pins(process: Process, engine: str) -> Iterator[Text]:
    distribution = engines.engine(engine).distribution
    for pin in process.line.pins:
        if _normal(pin.distribution) == distribution:
            yield pin.version


def _image(process: Process, engine: str) -> Iterator[Text]:
    """The tag, where the image is the engine's own; any other image's tag says nothing."""
    image = process.line.image
    if image is None or engines.of_image(image.value) != engine:
        return
    tag = engines.tag(image.value)
    if tag is None or tag in FLOATING_TAGS:
        return
    match = _TAG.fullmatch(tag)
    if match:
        start = image.value.index(":" + tag, image.value.rfind("/") + 1) + 1
        named = "release" if match["release"] else "build"
        yield image.slice(start + match.start(named), start + match.end(named))


def _required(process: Process, engine: str, project: Project) -> VersionClaim | None:
    """A requirement or lock file in the process's directory or above it, nearest first.

    None of them says what is in an image that is not built here.
    """
    if process.line.image is not None and process.site.carrier != "dockerfile":
        return None
    distribution = engines.engine(engine).distribution
    directory = process.site.place.path.rpartition("/")[0]
    while True:
        for name in REQUIREMENT_FILES:
            path = f"{directory}/{name}" if directory else name
            if path not in project.all_paths:
                continue
            source = project.text(path)
            found = requirement(source, distribution) if source else None
            if found is not None:
                return VersionClaim(found.value, Written(found.span))
        if not directory:
            return None
        directory = directory.rpartition("/")[0]


def requirement(source: Source, distribution: str) -> Text | None:
    """The version constraint of `distribution` in a requirement file, a lock file or a pyproject.toml, as written."""
    word = distribution.replace("-", "[-_.]")
    locked = re.search(rf'name = "{word}"\s*\nversion = "([^"\n]+)"', source.text, re.IGNORECASE)
    if locked:
        return Text.of(source, *locked.span(1))
    line = re.search(
        rf'(?:^|["\'\s]){word}(?:\[[^\]\n]*\])?\s*((?:[=<>!~]=?=?\s*[0-9][^\s,;"\'#]*)(?:\s*,\s*[=<>!~]=?\s*[0-9][^\s,;"\'#]*)*)',
        source.text,
        re.IGNORECASE | re.MULTILINE,
    )
    return Text.of(source, *line.span(1)) if line else None


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()
