"""`kvlint init`."""

from __future__ import annotations

import click

from kvlint.cli import _common


@click.command(short_help="Write a commented kvlint.toml from what is found.")
@click.argument("path", required=False)
def command(path: str | None) -> None:
    """Write a commented kvlint.toml into the directory PATH (default: the project's root).

    For every server whose hardware, budget, window or version its files leave open, it has a table to fill in.  An existing
    configuration is never overwritten.
    """
    from kvlint.config import ConfigError
    from kvlint.init import create, destination
    from kvlint.reports.summary import plural

    try:
        target, asking, found = create(destination(path))
    except ConfigError as error:
        _common.fail(str(error))
    _common.echo(f"wrote {target}: {plural(found, 'server')}, {asking} with something left open\n")
