"""A first `kvlint.toml`: for every server that was found, what its files leave open, as tables to fill in.

Sentences begin with `# `; a line to be taken into use begins with `#` alone.  With all of these taken into use the file is valid.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kvlint.config import ConfigError, holds_table
from kvlint.discovery import open_project
from kvlint.engines.options import options
from kvlint.evaluation import Evaluation
from kvlint.facts import Assumed, Fact, Range, Unknown, high
from kvlint.files import Disk
from kvlint.pipeline import evaluate
from kvlint.project import Project
from kvlint.reports.escape import line, well_formed
from kvlint.subjects import Server, ServerGroup

HEAD = """\
# What kvlint cannot read from the files of this project.  `kvlint show` prints what it did read, and from where.
#
# Take the mark away from the lines that apply and write the values in.  Sizes are bytes, or text with KiB, MiB, GiB, kB, MB, GB.
# A pattern is a path from this file, `*` within a directory, `**` across; `#` and a server's name may follow.

# Paths that no run reads, and the lowest severity that fails one.
#exclude = ["examples/**"]
#fail_on = "error"
"""
# Beginnings of the keys for which there is a table: [[hardware]], [[workload]], [[model]].
TABLES = ("hardware.", "window", "model", "weights")


def destination(path: str | None) -> Project:
    """The project that gets the file: the directory PATH, else the root of the project around the working directory.

    Raises `ConfigError` where it has a configuration already.
    """
    if path is None:
        project = open_project((".",), isolated=True)
        root = project.files.root if isinstance(project.files, Disk) else Path.cwd()
    else:
        root = Path(path).resolve()
        if not root.is_dir():
            raise ConfigError(f"{path}: no such directory")
    if (root / "kvlint.toml").exists():
        raise ConfigError(f"{root / 'kvlint.toml'} is there already; it is not overwritten")
    other = root / "pyproject.toml"
    if other.is_file() and holds_table(other.read_bytes()):
        raise ConfigError(f"{other} has a table [tool.kvlint] already")
    return Project(Disk(root), name=root.name)


def create(project: Project) -> tuple[Path, int, int]:
    """Write the file; where, and how many servers it speaks of, and how many were found.  Never overwrites."""
    if not isinstance(project.files, Disk):
        raise ConfigError("these files are in no directory")
    evaluation = evaluate(project)
    target = project.files.root / "kvlint.toml"
    text, count = document(evaluation)
    try:
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"{target}: {error.strerror or error}") from error
    return target, count, len(evaluation.groups)


def document(evaluation: Evaluation) -> tuple[str, int]:
    """The text, and how many servers leave something open."""
    sections = ["\n".join(found) for group in evaluation.groups if (found := list(_server(group)))]
    sections += ["\n".join(_model(*each)) for each in _models(evaluation.groups)]
    if not evaluation.groups:
        sections = ["# No server was found here."]
    asking = sum(1 for group in evaluation.groups if any(_server(group)))
    return "\n\n".join((HEAD.rstrip("\n"), *sections)) + "\n", asking


def _server(group: ServerGroup) -> Iterator[str]:
    """The tables for one server; nothing where its files say it all."""
    world = group.live[0]
    missing = list(_missing(world))
    tables = [
        *_hardware([each for each in missing if each.missing.startswith("hardware.")]),
        *_workload(world),
        *_engine(group),
    ]
    supplied = TABLES if isinstance(world.settings.get("model"), Fact) else TABLES[:2]
    others = [each for each in missing if not each.missing.startswith(supplied)]
    if not tables and not others:
        return
    yield f"# {line(group.id)}: {world.engine}{_about(world)}"
    for each in others:
        yield f"# {line(each.missing)} is unknown: {line(each.reason)}; {line(each.supply)}"
    for name, lines in tables:
        yield f"#[[{name}]]"
        yield f"#match = {text(group.id)}"
        yield from lines


def _about(world: Server) -> str:
    model = world.settings.get("model")
    return f", {line(str(model.value))}" if isinstance(model, Fact) else ""


def _missing(world: Server) -> Iterator[Unknown]:
    """What the settings and derived values of a server lack, each once."""
    seen = set()
    for value in (*world.settings.values(), *world.sizing.derived().values()):
        if isinstance(value, Unknown) and value.missing not in seen:
            seen.add(value.missing)
            yield value


Section = tuple[str, list[str]]


def _hardware(missing: Iterable[Unknown]) -> Iterator[Section]:
    reasons = {each.missing: each.reason for each in missing}
    lines = []
    if "hardware.memory" in reasons:
        lines += [
            f"# {line(reasons['hardware.memory'])}",
            '#memory = "24GiB"  # of one device; or device = "nvidia-l4"',
        ]
    if "hardware.budget" in reasons:
        lines += [f"# {line(reasons['hardware.budget'])}", '#budget = "48GiB"']
    others = [key for key in reasons if key not in ("hardware.memory", "hardware.budget")]
    lines += [f"# {line(key)} is unknown: {line(reasons[key])}" for key in others]
    if any(each.startswith("#") and not each.startswith("# ") for each in lines):
        yield "hardware", lines


def _workload(world: Server) -> Iterator[Section]:
    """A window that nobody stated; the streams stand beside it, as both are the owner's promise."""
    window, streams = world.settings.get("window"), world.settings.get("streams")
    if isinstance(window, Fact) and not isinstance(window.value, Range):
        return
    longest = high(window.value) if isinstance(window, Fact) else 32768
    lines = ["# Nothing states how many tokens a conversation may hold.", f"#window = {int(longest)}"]
    if isinstance(streams, Fact) and isinstance(streams.origin, Assumed):
        lines += ["# Full-window conversations that are to be guaranteed; one is assumed.", "#streams = 1"]
    yield "workload", lines


def _engine(group: ServerGroup) -> Iterator[Section]:
    """A version that nobody stated, where releases read the line differently."""
    if group.first.version is not None or len(group.worlds) == 1:
        return
    newest = options(group.first.engine).releases[-1]
    yield (
        "engine",
        [
            f"# Nothing states a version, and {len(group.worlds)} kinds of releases read this line differently.",
            f"#version = {text(newest)}",
        ],
    )


def _models(groups: Iterable[ServerGroup]) -> Iterator[tuple[str, list[Unknown]]]:
    """Models of which something is not known, each once."""
    found: dict[str, dict[str, Unknown]] = {}
    for group in groups:
        world = group.live[0]
        model = world.settings.get("model")
        if isinstance(model, Fact):
            for each in _missing(world):
                if each.missing.startswith(("model", "weights")):
                    found.setdefault(str(model.value), {})[each.missing] = each
    return ((model, list(each.values())) for model, each in found.items())


def _model(name: str, missing: Iterable[Unknown]) -> Iterator[str]:
    missing = list(missing)
    yield f"# {line(name)}"
    yield from dict.fromkeys(f"# {line(each.reason)}" for each in missing)
    yield "#[[model]]"
    yield f"#id = {text(name)}"
    if any("weights" in each.missing for each in missing):
        yield '#weights = "4.2GiB"'
    if any("weights" not in each.missing for each in missing):
        yield '#config = "models/config.json"  # a config.json, or GGUF metadata as JSON'


def text(value: Any) -> str:
    """A TOML string."""
    return json.dumps(well_formed(str(value)), ensure_ascii=False).replace("\x7f", "\\u007f")
