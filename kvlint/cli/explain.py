"""`kvlint explain`."""

from __future__ import annotations

import click

from kvlint.cli import _common
from kvlint.patterns import regex

_PLACE = regex(r"(?P<path>.+?)(?::(?P<line>[0-9]+))?")


@click.command(short_help="Explain a rule, or prove the numbers of the server at PATH[:LINE].")
@click.argument("what", metavar="RULE|PATH[:LINE]")
@click.option("--config", metavar="FILE", help="use this kvlint.toml")
@click.option("--isolated", is_flag=True, help="use no configuration file")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
def command(what: str, config: str | None, isolated: bool, color: str) -> None:
    """Print a rule's page; or, for a place in a file, every number of the server there, down to the characters behind it."""
    from pathlib import Path

    from kvlint.reports import rules as pages
    from kvlint.ruleset.load import rules
    from kvlint.suppress import nearest_rule

    if what in rules():
        _common.echo(pages.page(what, "full"))
        return
    match = _PLACE.fullmatch(what)
    path = what if Path(what).exists() or match is None else match["path"]
    line = int(match["line"]) if match and match["line"] and path != what else None
    if not Path(path).exists():
        near = nearest_rule(what, rules())
        _common.fail(f"{what!r} is no rule and no file" + (f"; did you mean {near!r}?" if near else ""))
    _proof(path, line, config, isolated, color)


def _proof(path: str, line: int | None, config: str | None, isolated: bool, color: str) -> None:
    from kvlint.pipeline import evaluate
    from kvlint.reports import explain

    project = _common.project((path,), config, isolated)
    evaluation = evaluate(project)
    groups = explain.at(evaluation, project.focus[0] if project.focus else "", line)
    if not groups:
        _common.fail(f"no server stands at {path}" + (f":{line}" if line else ""))
    style = _common.styled(color)
    _common.echo("\n".join(explain.render(group, style) for group in groups))
