"""What other programs call."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath
from typing import Union

from kvlint.diagnostics import Report

Path = Union[str, "PathLike[str]"]


def check(paths: Iterable[Path] | Path = (".",), config: Path | None = None) -> Report:
    """Lint files and directories; `config` is the path of a `kvlint.toml`, else the nearest is used.

    Raises `kvlint.config.ConfigError` for a path that does not exist or a configuration that cannot be used.
    """
    from kvlint.discovery import open_project
    from kvlint.pipeline import check as run

    given = (paths,) if isinstance(paths, (str, PathLike)) else tuple(paths)
    project = open_project([fspath(path) for path in given], config_path=None if config is None else fspath(config))
    return run(project)
