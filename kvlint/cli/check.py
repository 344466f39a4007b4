"""`kvlint check`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvlint.cli import _common
from kvlint.records import dataclass, replace

if TYPE_CHECKING:
    from kvlint.diagnostics import Report
    from kvlint.pipeline import Options
    from kvlint.project import Project

FORMATS = "full, concise, json, github, sarif, gitlab, junit, markdown"


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for beside PATHs and rules."""

    formats: tuple[str, ...]
    fail_on: str | None
    since: str | None
    focus_only: bool
    baseline: str | None
    write_baseline: bool
    fix: bool
    diff: bool
    require_input: bool
    statistics: bool
    color: str
    quiet: bool
    verbose: bool


@click.command(short_help="Lint the serving configuration in PATHs.")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="NAME[=FILE]",
    help=f"{FORMATS}; repeatable  [default: full]",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note", "never"]),
    help="lowest severity that fails the run, itself included  [default: error]",
)
@click.option(
    "--select", multiple=True, metavar="RULE", help="only these rules or themes (comma-separated or repeated)"
)
@click.option("--ignore", multiple=True, metavar="RULE", help="not these rules or themes")
@click.option("--config", metavar="FILE", help="use this kvlint.toml")
@click.option("--isolated", is_flag=True, help="use no configuration file")
@click.option("--stdin-filename", metavar="NAME", help="the name of what `-` reads from standard input")
@click.option("--since", metavar="REV", help="only what is new since a git revision, or touched by a change since")
@click.option(
    "--focus-only", is_flag=True, help="PATHs, and names deleted in git's index, are the focus and nothing else"
)
@click.option("--baseline", metavar="FILE", help="accept the findings that FILE holds")
@click.option("--write-baseline", is_flag=True, help="create FILE, or take out of it what is no longer found")
@click.option("--fix", is_flag=True, help="apply the fixes that are safe")
@click.option("--diff", is_flag=True, help="print what --fix would change; status 1 where that is anything")
@click.option("--strict-facts", is_flag=True, help="count what could not be checked as findings")
@click.option("--require-input", is_flag=True, help="end with status 4 when there was nothing to check")
@click.option("--statistics", is_flag=True, help="count the findings of each rule")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True)
@click.option("-q", "--quiet", is_flag=True, help="print findings only where there are any")
@click.option("-v", "--verbose", is_flag=True, help="list everything that could not be checked")
def command(
    paths: tuple[str, ...],
    config: str | None,
    isolated: bool,
    stdin_filename: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict_facts: bool,
    **asked: Any,
) -> None:
    """Lint the serving configuration in PATHs (default: the current directory).

    Status 0: nothing at or above --fail-on; 1: findings; 2: usage or configuration error; 3: internal error; 4: nothing to check,
    with --require-input.
    """
    from kvlint.config import ConfigError
    from kvlint.pipeline import Options

    request = Request(**asked)
    if "-" in paths and (request.fix or request.focus_only):
        raise click.UsageError("standard input can be neither fixed nor focused on")
    if request.write_baseline and request.baseline is None:
        raise click.UsageError("--write-baseline needs --baseline FILE")
    options = Options(_names(select), _names(ignore), strict_facts, request.focus_only)
    try:
        project = _project(paths, config, isolated, stdin_filename, request)
        options = _look_back(project, options, request, keep_config=isolated or config is not None)
        _run(project, _with_baseline(options, request), request)
    except ConfigError as error:
        _common.fail(str(error))


def _project(
    paths: tuple[str, ...], config: str | None, isolated: bool, stdin_filename: str | None, request: Request
) -> Project:
    if not request.focus_only:
        return _common.project(paths, config, isolated, stdin_filename)
    from kvlint.since import focused

    return focused(paths, config=config, isolated=isolated)


def _look_back(project: Project, options: Options, request: Request, *, keep_config: bool) -> Options:
    """With the revisions that findings are compared with; where one cannot be judged, everything shows, and it is said why."""
    if request.since is None and not request.focus_only:
        return options
    from kvlint.since import deletions, look_back

    if request.since is not None:
        since = request.since
        past = _try(f"--since {since}", lambda: look_back(project, since, options, keep_config=keep_config))
        options = replace(options, since=past)
    if request.focus_only:
        gone = _try("names deleted in the index", lambda: deletions(project, options, keep_config=keep_config))
        options = replace(options, deletions=gone)
    return options


def _try(what: str, judge: Callable[[], Any]) -> Any:
    from kvlint.config import ConfigError
    from kvlint.git import GitError

    try:
        return judge()
    except (GitError, ConfigError) as error:
        click.echo(f"kvlint: warning: {what}: {error}; showing everything", err=True)
        return None


def _with_baseline(options: Options, request: Request) -> Options:
    if request.baseline is None:
        return options
    from kvlint import baseline

    path = Path(request.baseline)
    if request.write_baseline and not path.exists():
        return options
    return replace(options, baseline=baseline.read(path))


def _run(project: Project, options: Options, request: Request) -> None:
    from kvlint.pipeline import check, exceeds
    from kvlint.reports.write import outputs, write

    wanted = outputs(request.formats)
    if request.diff:
        _diff(project, options)
    report = _fixed(project, options) if request.fix else check(project, options)
    _settle_baseline(report, options, request)
    for output in wanted:
        write(
            output,
            report,
            _common.styled(request.color),
            quiet=request.quiet,
            verbose=request.verbose,
            echo=_common.echo,
        )
    if request.statistics:
        _statistics(
            report, to_stderr=any(each.file is None and each.format not in ("full", "concise") for each in wanted)
        )
    for line in report.internal:
        click.echo(f"kvlint: internal error: {line}; please report it", err=True)
    if report.internal:
        raise click.exceptions.Exit(3)
    if request.require_input and not report.files_recognized:
        raise click.exceptions.Exit(4)
    if exceeds(report, request.fail_on or project.config.fail_on or "error"):
        raise click.exceptions.Exit(1)


def _diff(project: Project, options: Options) -> None:
    from kvlint.fixes import diff, fix

    fixed = fix(project, options)
    for each in fixed.skipped:
        click.echo(f"kvlint: {each}", err=True)
    _common.echo(diff(fixed))
    raise click.exceptions.Exit(1 if fixed.after else 0)


def _fixed(project: Project, options: Options) -> Report:
    from kvlint.fixes import fix, save
    from kvlint.pipeline import check
    from kvlint.since import root_of, unread

    fixed = fix(project, options)
    failures = save(fixed, root_of(project))
    for each in (*fixed.skipped, *failures):
        click.echo(f"kvlint: {each}", err=True)
    if fixed.applied and not failures:
        click.echo(f"kvlint: {fixed.applied} fixed", err=True)
    return check(unread(project), options) if failures else fixed.report


def _settle_baseline(report: Report, options: Options, request: Request) -> None:
    if options.baseline is None:
        if request.baseline is not None:
            from kvlint import baseline

            count = baseline.adopt(Path(request.baseline), report)
            click.echo(f"kvlint: {request.baseline}: {count} findings accepted", err=True)
        return
    stale = len(options.baseline.stale)
    if request.write_baseline:
        options.baseline.shrink()
    if stale:
        told = "taken out" if request.write_baseline else "stale; --write-baseline takes them out"
        click.echo(f"kvlint: {request.baseline}: {stale} of {len(options.baseline.entries)} entries {told}", err=True)


def _statistics(report: Report, *, to_stderr: bool) -> None:
    from kvlint.reports.statistics import render

    if to_stderr:
        click.echo(render(report), err=True, nl=False)
    else:
        _common.echo(render(report))


def _names(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for each in given for name in each.split(",") if name.strip())
