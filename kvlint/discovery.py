"""Where the project of a run is: its root, its configuration and its focus, by the PATHs that are given."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kvlint.config import Config, ConfigError, holds_table, load
from kvlint.files import Disk, Unreadable, decode
from kvlint.project import Project
from kvlint.source import Source

CONFIG_NAMES = ("kvlint.toml", "pyproject.toml")


def open_project(
    paths: Iterable[str], *, config_path: str | None = None, isolated: bool = False, cwd: Path | None = None
) -> Project:
    """Find the root and configuration for PATHs.  Raises `ConfigError` where they cannot be used."""
    base, paths = (cwd or Path.cwd()).resolve(), tuple(paths)
    targets = [(base / path).resolve() if not Path(path).is_absolute() else Path(path).resolve() for path in paths]
    for target, path in zip(targets, paths, strict=True):
        if not target.exists():
            raise ConfigError(f"{path}: no such file or directory")
    first = targets[0] if targets else base
    start = first if first.is_dir() else first.parent
    root, found, repository = _root(start, isolated or config_path is not None)
    if config_path is not None:
        found = (base / config_path).resolve()
        if not found.is_file():
            raise ConfigError(f"{config_path}: no such file")
        root = found.parent if _above(found.parent, targets) else root
    elif found is None and not _above(root, targets):
        root = Path(*_common(targets or [base]))
    config = Config()
    if found is not None and not isolated:
        relative = found.relative_to(root).as_posix() if _above(root, [found]) else found.name
        try:
            text = decode(found.read_bytes())
        except (OSError, Unreadable) as error:
            raise ConfigError(f"{relative}: {error}") from error
        config = load(Source(relative, text), table=found.name == "pyproject.toml")
        for table in config.all("model"):
            if "config" in table and not (found.parent / table.get("config")).is_file():
                place = next(table.values["config"].spans(), None)
                raise ConfigError(f"there is no file {table.get('config')}", place)
    for target, path in zip(targets, paths, strict=True):
        if not _above(root, [target]):
            raise ConfigError(f"{path}: outside {root}, the project of the first path; check it in a run of its own")
    focus = tuple(target.relative_to(root).as_posix() for target in targets)
    given = frozenset(path for path, target in zip(focus, targets, strict=True) if target.is_file())
    alone = found is None and not repository
    files = Disk(root, within=focus if alone else ())
    looked_at = tuple(path for path in focus if path != ".")
    return Project(files, config, looked_at, given, name=root.name, prefix=_prefix(root))


def _prefix(root: Path) -> str:
    top = next((each for each in (root, *root.parents) if (each / ".git").exists()), root)
    return "" if top == root else root.relative_to(top).as_posix() + "/"


def _root(start: Path, skip_config: bool) -> tuple[Path, Path | None, bool]:
    """The directory of the nearest configuration upward, not past the repository root; else that root; else `start`.

    Also the configuration's file, and whether a repository was found.
    """
    repository = None
    for directory in (start, *start.parents):
        if not skip_config:
            for name in CONFIG_NAMES:
                candidate = directory / name
                if candidate.is_file() and (name == "kvlint.toml" or holds_table(_bytes(candidate))):
                    return directory, candidate, True
        if (directory / ".git").exists():
            repository = directory
            break
    return repository or start, None, repository is not None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _above(root: Path, targets: Iterable[Path]) -> bool:
    return all(target == root or root in target.parents for target in targets)


def _common(targets: list[Path]) -> tuple[str, ...]:
    parts = [(target if target.is_dir() else target.parent).parts for target in targets]
    shared: list[str] = []
    for column in zip(*parts, strict=False):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    return tuple(shared)
