"""Which outputs a run was asked for, and writing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from kvlint.config import ConfigError
from kvlint.diagnostics import Report

FORMATS = {"full": True, "concise": True, "json": False}  # name: does it take style and verbosity


@dataclass(frozen=True, slots=True)
class Output:
    format: str
    file: str | None


def outputs(given: tuple[str, ...]) -> list[Output]:
    """`--format NAME[=FILE]`, repeated or comma-free; raises `ConfigError` for a name that is none."""
    found = []
    for each in given or ("full",):
        name, _, file = each.partition("=")
        if name not in FORMATS:
            raise ConfigError(f"unknown format {name!r}; one of {', '.join(FORMATS)}")
        found.append(Output(name, file or None))
    return found


def write(
    output: Output,
    report: Report,
    style: Callable[[str, str], str],
    *,
    quiet: bool,
    verbose: bool,
    echo: Callable[[str], None],
) -> None:
    module = import_module(f"kvlint.reports.{output.format}")
    if FORMATS[output.format]:
        if quiet and not report.findings and output.file is None:
            return
        plain = (lambda text, role: text) if output.file else style
        text = module.render(report, plain, verbose)
    else:
        text = module.render(report)
    if output.file is None:
        echo(text)
    else:
        Path(output.file).write_text(text, encoding="utf-8")
