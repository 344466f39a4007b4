"""Path patterns of the configuration: `*` within a segment, `**` across segments, `?`, relative to the configuration file."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    position = 0
    while position < len(pattern):
        if pattern.startswith("**/", position):
            parts.append("(?:[^/]+/)*")
            position += 3
        elif pattern.startswith("**", position):
            parts.append(".*")
            position += 2
        elif pattern[position] == "*":
            parts.append("[^/]*")
            position += 1
        elif pattern[position] == "?":
            parts.append("[^/]")
            position += 1
        else:
            parts.append(re.escape(pattern[position]))
            position += 1
    return re.compile("".join(parts))


def matches_path(pattern: str, path: str) -> bool:
    """`pattern` names the file itself, or a directory above it."""
    pattern = pattern.removeprefix("./").rstrip("/")
    return bool(_compiled(pattern).fullmatch(path) or _compiled(pattern + "/**").fullmatch(path))


def matches_server(pattern: str, server_id: str) -> bool:
    """A `match` of the configuration: a path pattern, `#` and a name pattern may follow."""
    path_pattern, hash_, name_pattern = pattern.partition("#")
    path, _, name = server_id.partition("#")
    if path_pattern and not any(matches_path(path_pattern, each) for each in _places(path)):
        return False
    return not hash_ or names_server(name_pattern, name) or names_workload(name_pattern, name)


def _places(path: str) -> tuple[str, ...]:
    """A server's file; of an overlay's render, `base/d.yaml@overlays/prod`, both the base's file and one in the overlay."""
    base, at, overlay = path.rpartition("@")
    return (path, base, f"{overlay}/kustomization.yaml") if at else (path,)


def names_server(pattern: str, name: str) -> bool:
    """A server's name, or a trailing part of it that starts at a `/` or `.`; with wildcards."""
    expression = _compiled(pattern)
    if expression.fullmatch(name):
        return True
    cuts = (index for index, character in enumerate(name) if character in "/.")
    return any(expression.fullmatch(name[index + 1 :]) for index in cuts)


def names_workload(pattern: str, name: str) -> bool:
    """What stands before a `/` of a server's name: the workload of a container."""
    expression = _compiled(pattern)
    return any(expression.fullmatch(name[:index]) for index, character in enumerate(name) if character == "/")
