"""`kvlint derive`."""

from __future__ import annotations

import click

from kvlint.cli import _common


@click.command(short_help="Print the derived values for other programs to read.")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--format", "format_", type=click.Choice(["json", "toml", "nix", "env"]), default="json", show_default=True
)
@click.option("--config", metavar="FILE", help="use this kvlint.toml")
@click.option("--isolated", is_flag=True, help="use no configuration file")
@click.option("--stdin-filename", metavar="NAME", help="the name of what `-` reads from standard input")
def command(
    paths: tuple[str, ...], format_: str, config: str | None, isolated: bool, stdin_filename: str | None
) -> None:
    """Print the derived values of every server in PATHs.  What is unknown stands as a comment, or under `unknown` in JSON."""
    from kvlint.derive import derivations, render
    from kvlint.pipeline import evaluate

    evaluation = evaluate(_common.project(paths, config, isolated, stdin_filename))
    _common.echo(render(derivations(evaluation), format_))
    for line in evaluation.findings.internal:
        click.echo(f"kvlint: internal error: {line}; please report it", err=True)
    if evaluation.findings.internal:
        raise click.exceptions.Exit(3)
