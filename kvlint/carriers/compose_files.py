"""Which compose files are one project: an override beside the file that compose finds, and files that another includes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from kvlint.carriers.base import COMPOSE_FILE, Item, directory
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.tree import List, Map, Scalar

# What `docker compose` reads beside the file that it finds: docs.docker.com/reference/cli/docker/compose (options, -f).
FOUND = regex(r"(?:docker-)?compose\.ya?ml", re.IGNORECASE)
OVERRIDES = tuple(f"{name}.override.{end}" for name in ("compose", "docker-compose") for end in ("yml", "yaml"))
MAX_INCLUDES = 8


def name(item: Item) -> str:
    return item.path.rpartition("/")[2]


def _beside(item: Item, project: Project, names: tuple[str, ...]) -> list[Item]:
    """The first file of those names in an item's directory."""
    base = directory(item.path)
    paths = [f"{base}/{name}" if base else name for name in names]
    found = next((path for path in paths if path in project.all_paths), None)
    return [each for each in project.items(found) if isinstance(each.node, Map)] if found is not None else []


def overrides(item: Item, project: Project) -> list[Item]:
    """What is read on top of a file that compose finds by itself."""
    return _beside(item, project, OVERRIDES) if FOUND.fullmatch(name(item)) else []


def overridden(item: Item, project: Project) -> list[Item]:
    """The file that an override is read on top of."""
    if name(item) not in OVERRIDES:
        return []
    return _beside(
        item, project, tuple(f"{name}.{end}" for name in ("compose", "docker-compose") for end in ("yaml", "yml"))
    )


def unit(path: str, project: Project) -> str:
    """The compose project that a file is of: that of its directory, or of the file that includes it."""
    return f"compose {including(path, project)}"


def including(path: str, project: Project) -> str:
    for _ in range(MAX_INCLUDES):
        outer = _includers(project).get(path)
        if outer is None or outer == path:
            break
        path = outer
    return directory(path)


def _includers(project: Project) -> dict[str, str]:
    """Each file that the one compose file which it stands for includes."""
    found: dict[str, set[str]] = {}
    for path in project.search("include:"):
        if not COMPOSE_FILE.fullmatch(path.rpartition("/")[2]):
            continue
        for item in project.items(path):
            listed = item.node.list("include") if isinstance(item.node, Map) else None
            for each in _included(listed) if listed is not None else ():
                inner = posixpath.normpath(posixpath.join(directory(path), each))
                found.setdefault(inner, set()).add(path)
    return {inner: next(iter(outer)) for inner, outer in found.items() if len(outer) == 1}


def _included(listed: List) -> Iterator[str]:
    for each in listed:
        if isinstance(each, Map):
            several = each.list("path")
            yield from (part.value for part in several or () if isinstance(part, Scalar))
            each = each.get("path") or each
        if isinstance(each, Scalar) and each.text.known:
            yield each.value
