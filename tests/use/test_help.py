"""Every command explains itself, and completes in every shell."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kvlint.cli import COMMANDS as NAMED

ROOT = Path(__file__).resolve().parents[2]
# `kvlint --help` may name a command before it is there.
COMMANDS = [name for name in NAMED if find_spec(f"kvlint.cli.{name}")]
AS_SCRIPT = "import sys; sys.argv[0] = 'kvlint'; from kvlint.cli import main; main()"


def kvlint(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", AS_SCRIPT, *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str) -> None:
    done = kvlint(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    usage, *rest = [line for line in done.stdout.splitlines() if line.strip()]
    assert usage.startswith(f"Usage: kvlint {command} ")
    assert rest[0].strip()[0].isupper(), "the first sentence says what the command does"
    assert all(len(line) <= 100 for line in done.stdout.splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_explained(command: str) -> None:
    """An option's text stands on its own line or on the next; only those that speak for themselves have none."""
    lines = kvlint(command, "--help").stdout.split("Options:\n")[-1].splitlines()
    for number, line in enumerate(lines):
        option = line.strip()
        if option.startswith("-") and "  " not in option:
            following = lines[number + 1].strip() if number + 1 < len(lines) else ""
            assert following, option
            assert not following.startswith("-"), option


def test_a_list_of_commands() -> None:
    text = kvlint("--help").stdout
    assert all(f"\n  {name} " in text for name in NAMED)
    assert kvlint("-h").stdout == text


def test_a_misspelt_command() -> None:
    done = kvlint("chekc")
    assert done.returncode == 2
    assert "Did you mean 'check'?" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str) -> None:
    done = kvlint(_KVLINT_COMPLETE=f"{shell}_source")
    if "4.4" in done.stderr:
        pytest.skip("an old bash")
    assert done.returncode == 0, done.stderr
    assert "_KVLINT_COMPLETE" in done.stdout


@pytest.mark.skipif(len(COMMANDS) < len(NAMED), reason="the list of commands is ahead of the commands")
def test_commands_complete() -> None:
    commands = kvlint(_KVLINT_COMPLETE="zsh_complete", COMP_WORDS="kvlint ", COMP_CWORD="1").stdout.split("\n")
    assert set(COMMANDS) <= set(commands)


def test_options_complete() -> None:
    options = kvlint(_KVLINT_COMPLETE="zsh_complete", COMP_WORDS="kvlint check --fail", COMP_CWORD="2").stdout
    assert "--fail-on" in options
