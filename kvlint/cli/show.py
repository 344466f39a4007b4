"""`kvlint show`."""

from __future__ import annotations

import click

from kvlint.cli import _common


@click.command(short_help="Show what was found, and where every value comes from.")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--format", "format_", type=click.Choice(["full", "json"]), default="full", show_default=True)
@click.option("--config", metavar="FILE", help="use this kvlint.toml")
@click.option("--isolated", is_flag=True, help="use no configuration file")
@click.option("--stdin-filename", metavar="NAME", help="the name of what `-` reads from standard input")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
def command(
    paths: tuple[str, ...],
    format_: str,
    config: str | None,
    isolated: bool,
    stdin_filename: str | None,
    color: str,
) -> None:
    """Show the servers and admission limits in PATHs: every setting with its origin, every derived value with its terms."""
    from kvlint.pipeline import evaluate
    from kvlint.reports import show

    evaluation = evaluate(_common.project(paths, config, isolated, stdin_filename))
    if format_ == "json":
        _common.echo(show.render_json(evaluation))
    else:
        _common.echo(show.render(evaluation, _common.styled(color)))
    for line in evaluation.findings.internal:
        click.echo(f"kvlint: internal error: {line}; please report it", err=True)
    if evaluation.findings.internal:
        raise click.exceptions.Exit(3)
