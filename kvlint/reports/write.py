"""Which outputs a run was asked for, and writing them."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from kvlint.config import ConfigError
from kvlint.diagnostics import Report
from kvlint.records import dataclass

# Each format, and whether it is for people: takes a style and verbosity, and may stay silent.
FORMATS = {
    "full": True,
    "concise": True,
    "json": False,
    "github": False,
    "sarif": False,
    "gitlab": False,
    "junit": False,
    "markdown": False,
}


@dataclass(frozen=True, slots=True)
class Output:
    """A format and where it goes: None is standard output."""

    format: str
    file: str | None


def outputs(given: tuple[str, ...]) -> list[Output]:
    """`--format NAME[=FILE]`, repeated: checked before any file is read; raises `ConfigError` where a run could not end well.

    Without any, `full`, and inside GitHub Actions its annotations too.
    """
    if not given:
        annotated = os.environ.get("GITHUB_ACTIONS") == "true"
        return [Output("full", None), Output("github", None)] if annotated else [Output("full", None)]
    found = [_output(each) for each in given]
    printed = [each.format for each in found if each.file is None]
    if len(printed) > 1 and not _annotates(printed):
        raise ConfigError(f"only one format can go to standard output, not {' and '.join(printed)}; use NAME=FILE")
    files = [os.path.realpath(each.file) for each in found if each.file is not None]
    twice = next((each for each in files if files.count(each) > 1), None)
    if twice is not None:
        raise ConfigError(f"two formats are to be written to {twice}")
    return found


def _annotates(printed: list[str]) -> bool:
    """Annotations are read by a runner, not by whoever reads the log: they may follow an output for people."""
    return len(printed) == 2 and printed[1] == "github" and FORMATS[printed[0]]


def _output(given: str) -> Output:
    name, separator, file = given.partition("=")
    if name not in FORMATS:
        raise ConfigError(f"unknown format {name!r}; one of {', '.join(FORMATS)}")
    if not separator:
        return Output(name, None)
    if not file or "\0" in file:
        raise ConfigError(f"--format {name}= needs the name of a file")
    target = Path(file)
    if target.is_dir():
        raise ConfigError(f"--format {name}={file}: is a directory")
    if not target.parent.is_dir():
        raise ConfigError(f"--format {name}={file}: there is no directory {target.parent}")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise ConfigError(f"--format {name}={file}: cannot be written")
    return Output(name, file)


def write(
    output: Output,
    report: Report,
    style: Callable[[str, str], str],
    *,
    quiet: bool,
    verbose: bool,
    echo: Callable[[str], None],
) -> None:
    """Render and print or write one output; raises `ConfigError` where a file cannot be written after all."""
    module = import_module(f"kvlint.reports.{output.format}")
    if not FORMATS[output.format]:
        text = module.render(report)
    elif quiet and not report.findings and output.file is None:
        return
    else:
        text = module.render(report, _plain if output.file else style, verbose)
    if output.file is None:
        echo(text)
        return
    try:
        _save(Path(output.file), text)
    except OSError as error:
        raise ConfigError(f"{output.file} could not be written: {error.strerror or error}") from error


def _plain(text: str, role: str) -> str:
    return text


def _save(target: Path, text: str) -> None:
    """All of it or nothing: a new file takes the old one's place, with its mode.

    A job's summary is added to, as other steps of a script may have written there; a pipe or device is written as it is.
    """
    target = Path(os.path.realpath(target))
    data = text.encode("utf-8")
    if str(target) == os.path.realpath(os.environ.get("GITHUB_STEP_SUMMARY") or os.devnull):
        with target.open("ab") as summary:
            summary.write(data)
        return
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    fresh = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        fresh.write_bytes(data)
        if target.exists():
            fresh.chmod(target.stat().st_mode & 0o7777)
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)
