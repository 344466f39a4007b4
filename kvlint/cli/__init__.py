"""The command line.  One module a command, imported when it is called; nothing here decides anything."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

import click

from kvlint import __version__

# Each command with the line that `kvlint --help` shows, so that help and version import no command.
COMMANDS = {
    "check": "Lint the serving configuration in PATHs (default: here).",
    "show": "Show what was found: servers, limits, values and where they come from.",
    "explain": "Explain a rule, or prove the numbers of the server at PATH[:LINE].",
    "size": "Print the sizing table of a model and a budget, without any file.",
    "diff": "Compare capacity between two git revisions, server by server.",
    "derive": "Print the derived values for other programs to read.",
    "lock": "Write kvlint.lock: the architecture facts of the models in use.",
    "rules": "List the rules, or print one rule's page.",
    "init": "Write a commented kvlint.toml from what is found.",
}


class Lazy(click.Group):
    """A group that knows its commands' names and first lines, and imports a command when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"kvlint.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1) if args else []
            if near:
                raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx) from error
            raise


@click.command(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", message="kvlint %(version)s")
def group() -> None:
    """Lint the serving configuration of large language models.

    kvlint reads the files in which people set model, window, streams, KV type and memory, recomputes what follows from them,
    and reports what does not fit or no longer agrees.
    """


def console() -> None:
    """The console script: `main`, which leaves what it holds to the operating system.

    Looking for garbage in cycles would take a sixth of a run and find next to none; freeing everything one by one at the end
    would take as long as checking two servers.
    """
    gc.disable()
    try:
        main()
    except SystemExit as stop:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            pass  # nobody reads on
        os._exit(stop.code if isinstance(stop.code, int) else 0)


def main() -> None:
    """A closed pipe ends quietly; an interrupt is 130; an error of ours is 3, in one line."""
    try:
        status = group.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        status = stop.exit_code
    except click.ClickException as error:
        error.show()
        status = 2
    except (click.Abort, KeyboardInterrupt):
        status = 130
    except SystemExit as stop:
        closed = type(sys.stdout).__name__.endswith("PacifyFlushWrapper")  # of click, which ends a closed pipe with 1
        status = 0 if closed else stop.code
    except Exception as error:
        from kvlint.config import ConfigError

        if isinstance(error, ConfigError):
            click.echo(f"kvlint: {error}", err=True)
            sys.exit(2)
        if os.environ.get("KVLINT_TRACEBACK"):
            raise
        click.echo(f"kvlint: internal error: {type(error).__name__}: {error}; please report it", err=True)
        status = 3
    sys.exit(status if isinstance(status, int) else 0)
