"""`kvlint diff`."""

from __future__ import annotations

import click

from kvlint.cli import _common


@click.command(short_help="Compare capacity between two git revisions, server by server.")
@click.argument("base")
@click.argument("head", required=False)
@click.option("--format", "format_", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option("--config", metavar="FILE", help="use this kvlint.toml for both sides")
@click.option("--isolated", is_flag=True, help="use no configuration file")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
def command(base: str, head: str | None, format_: str, config: str | None, isolated: bool, color: str) -> None:
    """Compare what each server can hold at BASE with what it can hold at HEAD (default: the work tree).

    Servers are matched by name, then place, then model.  Status 0: every floor is kept; 1: a [[floor]] of kvlint.toml is broken;
    2: unknown revision.
    """
    from kvlint.config import ConfigError
    from kvlint.git import GitError
    from kvlint.reports.diff import render
    from kvlint.since import compare

    project = _common.project((), config, isolated)
    try:
        found, internal = compare(project, base, head, keep_config=isolated or config is not None)
    except (GitError, ConfigError) as error:
        _common.fail(str(error))
    _common.echo(render(found, format_, _common.styled(color)))
    for line in internal:
        click.echo(f"kvlint: internal error: {line}; please report it", err=True)
    if internal:
        raise click.exceptions.Exit(3)
    if found.broken:
        raise click.exceptions.Exit(1)
