"""`kvlint lock`."""

from __future__ import annotations

from pathlib import Path

import click

from kvlint.cli import _common


@click.command(short_help="Write kvlint.lock: the architecture facts of the models in use.")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--check", is_flag=True, help="write nothing; status 1 where the lock and its sources disagree")
@click.option("--refresh", is_flag=True, help="ask the hub again for models that are locked already")
@click.option(
    "--from-log", metavar="FILE", help="record what an engine printed at its start (vllm, sglang, llama-server)"
)
@click.option("--server", metavar="NAME", help="whose log it is: a server's name, or an unambiguous end of it")
@click.option("--config", metavar="FILE", help="use this kvlint.toml")
@click.option("--isolated", is_flag=True, help="use no configuration file")
def command(
    paths: tuple[str, ...],
    check: bool,
    refresh: bool,
    from_log: str | None,
    server: str | None,
    config: str | None,
    isolated: bool,
) -> None:
    """Write kvlint.lock at the project's root: what is known of every model that a server in PATHs uses, at one revision.

    Models of the Hugging Face hub are asked for once and kept until --refresh; files and directories are locked by their
    content.  With --from-log, the memory that an engine really had for its cache replaces the estimate.  Other commands read
    the lock and never use the network; this one asks the hub through huggingface_hub, with HF_TOKEN, HF_ENDPOINT and
    HF_HUB_OFFLINE.

    Status 0: done, or all agrees; 1: --check found a disagreement; 2: usage; 5: a source cannot be reached, nothing is written.
    """
    from kvlint import lock_write
    from kvlint.config import ConfigError
    from kvlint.models.hub import Hub, Unreachable
    from kvlint.pipeline import evaluate
    from kvlint.reports.escape import line

    if sum((check, refresh, from_log is not None)) > 1:
        raise click.UsageError("--check, --refresh and --from-log exclude each other")
    if server is not None and from_log is None:
        raise click.UsageError("--server goes with --from-log")
    evaluation = evaluate(_common.project(paths, config, isolated))
    try:
        if from_log is not None:
            outcome = lock_write.record(evaluation, Path(from_log), server)
        elif check:
            outcome = lock_write.verify(evaluation, Hub())
        else:
            outcome = lock_write.update(evaluation, Hub(), refresh=refresh)
    except ConfigError as error:
        _common.fail(line(str(error)))
    except Unreachable as error:
        _common.fail(line(str(error)), 5)
    _common.echo("".join(f"{line(each)}\n" for each in outcome.lines or ["kvlint.lock is up to date"]))
    for note in outcome.notes:
        click.echo(f"kvlint: {line(note)}", err=True)
    for each in evaluation.findings.internal:
        click.echo(f"kvlint: internal error: {each}; please report it", err=True)
    if evaluation.findings.internal:
        raise click.exceptions.Exit(3)
    if outcome.differs:
        raise click.exceptions.Exit(1)
