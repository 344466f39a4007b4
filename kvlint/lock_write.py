"""What `kvlint lock` does: make the rows that a project needs, compare them with their sources, record a log."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from kvlint.addresses import server_named
from kvlint.config import ConfigError
from kvlint.evaluation import Evaluation
from kvlint.facts import nominal
from kvlint.files import Disk, replace_file
from kvlint.lock import NAME, Lockfile, Measurement, Row, decisive, digest, read, render
from kvlint.lock_logs import PATTERNS
from kvlint.lock_logs import read as read_log
from kvlint.lock_uses import Use, drift, row_of, uses
from kvlint.models.hub import COMMIT, Hub, Offline
from kvlint.models.lookup import MAX_CONFIG_BYTES, Models
from kvlint.models.selection import selected
from kvlint.records import dataclass, field
from kvlint.source import Source, Span
from kvlint.subjects import ServerGroup

MAX_LOG_BYTES = 256 * 2**20


@dataclass(slots=True)
class Outcome:
    """`lines`: what was done, or what is wrong; `notes`: what was left out.  `differs`: the lock is not what it should be."""

    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    differs: bool = False


def current(evaluation: Evaluation) -> Lockfile:
    """The project's lock, or an empty one.  Raises `ConfigError` for a file that cannot be used."""
    found = read(evaluation.project.files) or Lockfile(Source(NAME, ""), locks_models=False)
    if found.broken is not None:
        raise ConfigError(f"cannot be used: {found.broken}; take it away to have it written anew", path=NAME)
    return found


def update(evaluation: Evaluation, hub: Hub, *, refresh: bool) -> Outcome:
    """Write the rows of all models in use: those in focus are made where they are missing or from files, others are kept.

    Raises `Unreachable`, and writes nothing then.
    """
    lock, outcome = current(evaluation), Outcome()
    rows: dict[tuple[str, str | None, str | None], Row] = {}
    for use in uses(evaluation.groups, Models(evaluation.project)):
        old = row_of(lock, use)
        row = old
        if evaluation.project.in_focus(use.span.path):
            row = _row(use, old, evaluation, hub, outcome, refresh=refresh)
        if row is not None:
            rows[row.id.lower(), row.asked, row.path] = row
            outcome.lines += _told(old, row)
    outcome.lines += [f"removed {row.id}" for row in lock.rows if (row.id.lower(), row.asked, row.path) not in rows]
    _write(evaluation, rows.values(), lock.measurements, outcome)
    return outcome


def _row(use: Use, old: Row | None, evaluation: Evaluation, hub: Hub, outcome: Outcome, *, refresh: bool) -> Row | None:
    if use.path is None:
        return old if old is not None and not refresh else hub.fetch(use.id, use.asked)
    if not use.outside:
        return Row(use.id, path=use.path, sha256=digest(evaluation.project.files.read(use.path)))
    found = _outside(use)
    if found is None:
        outcome.notes.append(f"{use.id} is not on this machine" + ("" if old is not None else ", and is not locked"))
    return found or old


def _outside(use: Use) -> Row | None:
    """A directory that lies outside the project, as this machine has it."""
    assert use.path is not None
    path = Path(use.path)
    try:
        if not path.is_file() or path.stat().st_size > MAX_CONFIG_BYTES:
            return None
        data = path.read_bytes()
        config = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(config, dict):
        return None
    root, nested, text = selected(config)
    return Row(use.id, path=use.path, sha256=digest(data), config={**root, nested: text} if nested else root)


def _told(old: Row | None, row: Row) -> Iterable[str]:
    at = f" at {row.revision}" if row.revision else f" ({row.path})"
    if old is None:
        yield f"added {row.id}{at}"
    elif old != row:
        yield f"changed {row.id}{at}"


def verify(evaluation: Evaluation, hub: Hub) -> Outcome:
    """Compare the lock with the project, with directories of this machine, and with the hub.  Writes nothing."""
    outcome = Outcome()
    if read(evaluation.project.files) is None:
        return Outcome([f"there is no {NAME}; write it with `kvlint lock`"], differs=True)
    lock, project, models = current(evaluation), evaluation.project, Models(evaluation.project)
    for problem in drift(lock, evaluation.groups, models, project.files):
        if project.in_focus(problem.span.path):
            outcome.lines.append(f"{_at(problem.span)}{problem.data['value']} {problem.data['why']}")
    for use in uses(evaluation.groups, models) if lock.locks_models else ():
        why = _moved(lock, use, hub, outcome) if project.in_focus(use.span.path) else None
        if why is not None:
            outcome.lines.append(f"{_at(use.span)}{use.id} {why}")
    ids = {group.id for group in evaluation.groups}
    lost = [each.server for each in lock.measurements if each.server not in ids]
    outcome.lines += [f"{NAME}: no server is called {server} any more" for server in lost]
    outcome.differs = bool(outcome.lines)
    return outcome


def _at(span: Span) -> str:
    return f"{span.path}:{span.line}: "


def _moved(lock: Lockfile, use: Use, hub: Hub, outcome: Outcome) -> str | None:
    """What is wrong by a source outside the project: a directory of this machine, or the hub."""
    row = row_of(lock, use)
    if use.outside:
        found = _outside(use)
        if row is None or found is None:
            return None
        return f"was locked from {use.path}, which has changed since" if found.sha256 != row.sha256 else None
    if row is None or row.path is not None or (use.asked and COMMIT.fullmatch(use.asked)):
        return None
    try:
        newest = hub.newest(use.id, use.asked)
    except Offline as error:
        outcome.notes.append(f"{error}: whether it moved is not known")
        return None
    return None if newest == row.revision else f"is at {newest} now, and is locked at {row.revision}"


def record(evaluation: Evaluation, log: Path, server: str | None) -> Outcome:
    """Take the figures of a log into the lock.  Raises `ConfigError` for a server or a log that gives none."""
    group = _server(evaluation, server)
    if group.first.engine not in PATTERNS:
        raise ConfigError(
            f"{group.id}: no figures are known in logs of {group.first.engine}, only of {', '.join(PATTERNS)}"
        )
    try:
        if log.stat().st_size > MAX_LOG_BYTES:
            raise ConfigError(f"{log}: larger than {MAX_LOG_BYTES // 2**20} MiB")
        with log.open(encoding="utf-8", errors="replace") as lines:
            figures = read_log(group.first.engine, lines)
    except OSError as error:
        raise ConfigError(f"{log}: {error.strerror or error}") from error
    if not figures:
        raise ConfigError(f"{log}: none of the lines that {group.first.engine} prints with its figures was found")
    lock, outcome = current(evaluation), Outcome()
    taken = Measurement(group.id, _named(evaluation, log), figures, decisive(group))
    others = [each for each in lock.measurements if each.server != group.id]
    outcome.lines = [
        f"{group.id}: {name} {nominal(each.value):,} (line {each.line})" for name, each in sorted(figures.items())
    ]
    _write(evaluation, lock.rows if lock.locks_models else None, [*others, taken], outcome)
    return outcome


def _named(evaluation: Evaluation, log: Path) -> str:
    """The log's path in the project, or its name."""
    root = evaluation.project.files.root if isinstance(evaluation.project.files, Disk) else Path()
    path = log.resolve()
    return path.relative_to(root).as_posix() if root in path.parents else path.name


def _server(evaluation: Evaluation, name: str | None) -> ServerGroup:
    ids = [group.id for group in evaluation.groups]
    if name is None:
        if len(ids) == 1:
            return evaluation.groups[0]
        raise ConfigError(f"--from-log needs --server: {', '.join(ids)}" if ids else "no server was found")
    found = server_named(name, evaluation)
    if found is None:
        raise ConfigError(f"no single server is called {name}" + (f"; there are {', '.join(ids)}" if ids else ""))
    return found


def _write(
    evaluation: Evaluation, rows: Collection[Row] | None, measurements: Sequence[Measurement], outcome: Outcome
) -> None:
    files = evaluation.project.files
    if not isinstance(files, Disk):
        raise ConfigError("these files are in no directory")
    target = files.root / NAME
    text = render(rows, measurements)
    if not rows and not measurements and not target.exists():
        outcome.lines.append("no model in use was found that can be locked")
        return
    try:
        if not target.exists() or target.read_bytes() != text.encode():
            replace_file(target, text.encode())
    except OSError as error:
        raise ConfigError(f"{target}: {error.strerror or error}") from error
