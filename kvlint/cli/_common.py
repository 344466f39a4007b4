"""What several commands share: opening a project, colour, closing with a status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from kvlint.config import ConfigError
from kvlint.project import Project

Style = Callable[[str, str], str]
COLOURS: dict[str, dict[str, Any]] = {
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow", "bold": True},
    "note": {"fg": "cyan", "bold": True},
    "strong": {"bold": True},
    "frame": {"fg": "blue"},
    "related": {"fg": "blue"},
    "help": {"fg": "green"},
    "dim": {"dim": True},
}


def styled(colour: str) -> Style:
    """`auto` follows `NO_COLOR`, then `FORCE_COLOR` and `CLICOLOR_FORCE`, then the terminal."""
    if colour == "auto":
        forced = any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
        terminal = sys.stdout is not None and sys.stdout.isatty()
        on = (forced or terminal) and not os.environ.get("NO_COLOR")
    else:
        on = colour == "always"
    if not on:
        return lambda text, role: text
    return lambda text, role: click.style(text, **COLOURS.get(role, {}))


def project(paths: tuple[str, ...], config: str | None, isolated: bool, stdin_name: str | None = None) -> Project:
    """The project for PATHs; a usage or configuration error ends with status 2."""
    from kvlint.discovery import open_project

    if isolated and config is not None:
        raise click.UsageError("--isolated uses no configuration file, --config names one")
    if "-" in paths and len(paths) > 1:
        raise click.UsageError("- is checked alone")
    try:
        if "-" in paths:
            return _standard_input(config, isolated, stdin_name)
        return open_project(paths or (".",), config_path=config, isolated=isolated)
    except ConfigError as error:
        fail(str(error))


def _standard_input(config: str | None, isolated: bool, name: str | None) -> Project:
    from pathlib import Path

    from kvlint.discovery import open_project
    from kvlint.files import Overlay

    if not name:
        raise click.UsageError("- needs --stdin-filename")
    target = Path(name)
    base = target.parent if target.parent.is_dir() else Path()
    opened = open_project((str(base),), config_path=config, isolated=isolated)
    root = Path(opened.files.root)  # type: ignore[attr-defined]
    path = (Path.cwd() / target).resolve()
    relative = path.relative_to(root).as_posix() if root in path.parents else target.name
    opened.files = Overlay(opened.files, {relative: sys.stdin.buffer.read()})
    opened.focus, opened.given = (relative,), frozenset({relative})
    return opened


def fail(message: str, status: int = 2) -> NoReturn:
    click.echo(f"kvlint: {message}", err=True)
    raise click.exceptions.Exit(status)


def echo(text: str) -> None:
    """Print without letting an odd terminal encoding, or a reader that has seen enough, end the run otherwise than quietly."""
    stream = sys.stdout
    if stream is None:  # closed by whoever started us
        return
    try:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = stream.encoding or "ascii"
            stream.write(text.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except BrokenPipeError:  # here, since click would make it a 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise click.exceptions.Exit(0) from None
