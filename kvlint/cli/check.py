"""`kvlint check`."""

from __future__ import annotations

import click

from kvlint.cli import _common


@click.command(short_help="Lint the serving configuration in PATHs.")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--format", "formats", multiple=True, metavar="NAME[=FILE]", help="full, concise or json; repeatable [default: full]"
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note", "never"]),
    help="lowest severity that fails the run  [default: error]",
)
@click.option("--select", multiple=True, metavar="RULE", help="only these rules or themes (comma-separated or repeated)")
@click.option("--ignore", multiple=True, metavar="RULE", help="not these rules or themes")
@click.option("--config", metavar="FILE", help="use this kvlint.toml")
@click.option("--isolated", is_flag=True, help="use no configuration file")
@click.option("--stdin-filename", metavar="NAME", help="the name of what `-` reads from standard input")
@click.option("--strict-facts", is_flag=True, help="count what could not be checked as findings")
@click.option("--require-input", is_flag=True, help="end with status 4 when there was nothing to check")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@click.option("-q", "--quiet", is_flag=True, help="print findings only where there are any")
@click.option("-v", "--verbose", is_flag=True, help="list everything that could not be checked")
def command(
    paths: tuple[str, ...],
    formats: tuple[str, ...],
    fail_on: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    config: str | None,
    isolated: bool,
    stdin_filename: str | None,
    strict_facts: bool,
    require_input: bool,
    color: str,
    quiet: bool,
    verbose: bool,
) -> None:
    """Lint the serving configuration in PATHs (default: the current directory)."""
    from kvlint.check import Options, check, exceeds
    from kvlint.config import ConfigError
    from kvlint.reports.write import outputs, write

    project = _common.project(paths, config, isolated, stdin_filename)
    options = Options(_names(select), _names(ignore), strict_facts)
    try:
        wanted = outputs(formats)
        report = check(project, options)
    except ConfigError as error:
        _common.fail(str(error))
    for output in wanted:
        write(output, report, _common.styled(color), quiet=quiet, verbose=verbose, echo=_common.echo)
    for line in report.internal:
        click.echo(f"kvlint: internal error: {line}; please report it", err=True)
    if report.internal:
        raise click.exceptions.Exit(3)
    if require_input and not report.files_recognized:
        raise click.exceptions.Exit(4)
    if exceeds(report, fail_on or project.config.fail_on or "error"):
        raise click.exceptions.Exit(1)


def _names(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for each in given for name in each.split(",") if name.strip())
