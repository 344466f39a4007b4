"""`kvlint rules`."""

from __future__ import annotations

import click

from kvlint.cli import _common


@click.command(short_help="List the rules, or print one rule's page.")
@click.argument("name", required=False)
@click.option("--format", "format_", type=click.Choice(["full", "json"]), default="full", show_default=True)
def command(name: str | None, format_: str) -> None:
    """List the rules by theme with their severity and what they say, or print the page of the rule NAME."""
    from kvlint.reports import rules as reports
    from kvlint.ruleset.load import rules
    from kvlint.suppress import nearest_rule

    if name is None:
        _common.echo(reports.listing(format_))
        return
    if name not in rules():
        near = nearest_rule(name, rules())
        _common.fail(f"unknown rule {name!r}" + (f"; did you mean {near!r}?" if near else ""))
    _common.echo(reports.page(name, format_))
