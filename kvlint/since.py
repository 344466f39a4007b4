"""What a change is answerable for: `--since REV` and `--focus-only`.

What a change causes may stand in a file that it does not touch.  So the revision itself is judged, by the same stages over git
objects, and the findings are compared.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvlint.changes import Changes
from kvlint.config import Config, ConfigError, holds_table, load
from kvlint.diagnostics import Diagnostic
from kvlint.discovery import CONFIG_NAMES, open_project
from kvlint.files import Disk, Files, Overlay, Unreadable, decode
from kvlint.git import GitError, Kept, Repository
from kvlint.parsing import kind_of
from kvlint.pipeline import Options, check, evaluate
from kvlint.project import Project
from kvlint.records import dataclass
from kvlint.reports.json import plain
from kvlint.source import Source, Span

if TYPE_CHECKING:
    from kvlint.reports.diff import Comparison


@dataclass(frozen=True, slots=True)
class Past:
    """A revision as it was judged: its findings by fingerprint, and the lines that differ since."""

    findings: Mapping[str, Diagnostic]
    changes: Changes

    def lacks(self, finding: Diagnostic) -> bool:
        """Whether the revision had no such finding, or had it with other values."""
        before = self.findings.get(finding.fingerprint)
        return before is None or said(before) != said(finding)

    def shows(self, finding: Diagnostic) -> bool:
        """Whether a finding is new, or any of its places and inputs stands on a line that was changed or taken out."""
        if self.lacks(finding) or any(_touches(self.changes.touch_new, span) for span in finding.spans()):
            return True
        return any(_touches(self.changes.touch_old, span) for span in self.findings[finding.fingerprint].spans())


def said(finding: Diagnostic) -> str:
    """What a finding says beside where it stands: the same text for the same severity, words and values."""
    return json.dumps([finding.severity, finding.message, plain(finding.values)], sort_keys=True)


def _touches(touch: Any, span: Span) -> bool:
    lines = ((span.source.position(a)[0], span.source.position(max(a, b - 1))[0]) for a, b in span.pieces)
    return any(touch(span.path, first, last) for first, last in lines)


def look_back(project: Project, revision: str, options: Options, *, keep_config: bool = False) -> Past:
    """Judge a revision with the rules of this run.  Raises `GitError` or `ConfigError` where it cannot be judged.

    `keep_config`: the configuration was given by name, and is not the revision's.
    """
    root = root_of(project)
    repository = Repository.around(root)
    with repository.tree(revision) as tree:
        files = Kept.of(repository, tree, project.files)
        changes = repository.changes(revision, (*tree.entries, *files.ignored))
        past = again(project, files, project.config if keep_config else config_in(files))
        found = check(past, Options(options.select, options.ignore, options.strict_facts))
    if found.internal:
        raise GitError(f"it could not be judged: {found.internal[0]}")
    return Past({each.fingerprint: each for each in found.findings}, changes)


def compare(
    project: Project, base: str, head: str | None, *, keep_config: bool = False
) -> tuple[Comparison, tuple[str, ...]]:
    """The capacity of two revisions, or of one and the work tree, each with its own configuration; and what failed by our fault.

    The floors are those of the later side.  Raises `GitError` or `ConfigError`.
    """
    from kvlint.capacity import capacities, floors, paired
    from kvlint.reports.diff import Comparison

    repository = Repository.around(root_of(project))
    with ExitStack() as stack:
        before = evaluate(_at(project, repository, base, keep_config, stack))
        later = project if head is None else _at(project, repository, head, keep_config, stack)
        after = evaluate(later)
        old, new = capacities(before), capacities(after)
    promised = tuple(floors(new, later.config))
    internal = (*before.findings.internal, *after.findings.internal)
    return Comparison(base, head, tuple(paired(old, new)), promised), internal


def _at(project: Project, repository: Repository, revision: str, keep_config: bool, stack: ExitStack) -> Project:
    tree = stack.enter_context(repository.tree(revision))
    files = Kept.of(repository, tree, project.files)
    try:
        return again(project, files, project.config if keep_config else config_in(files))
    except ConfigError as error:
        raise ConfigError(f"at {revision}: {error}") from error


def root_of(project: Project) -> Path:
    """The directory of a project on disk.  Raises `GitError` for one that is held in memory."""
    files = project.files
    while isinstance(files, Overlay):
        files = files.below
    if not isinstance(files, Disk):
        raise GitError("these files are in no directory")
    return files.root


def again(project: Project, files: Files, config: Config) -> Project:
    """A project as it was opened, over other files, all of them in focus."""
    return Project(files, config, given=project.given, name=project.name)


def unread(project: Project) -> Project:
    """A project as it was opened, with nothing read."""
    return Project(project.files, project.config, project.focus, project.given, name=project.name)


def config_in(files: Files) -> Config:
    """The configuration at the root of a tree.  Raises `ConfigError`."""
    for name in CONFIG_NAMES:
        if not files.exists(name):
            continue
        try:
            data = files.read(name)
            if name == "kvlint.toml" or holds_table(data):
                return load(Source(name, decode(data)), table=name != "kvlint.toml")
        except Unreadable as error:
            raise ConfigError(f"{name}: {error}") from error
    return Config()


def focused(names: Iterable[str], *, config: str | None, isolated: bool) -> Project:
    """The project around the working directory, with `names` as its focus.

    The names decide nothing else, neither the root nor what is read: a caller that hands them over in parts gets, part by part,
    the findings of the whole.
    """
    project = open_project((".",), config_path=config, isolated=isolated)
    root = root_of(project)
    project.focus = tuple(path for name in names if (path := _relative(name, root)) is not None)
    project.given = frozenset()
    return project


def _relative(name: str, root: Path) -> str | None:
    """A name as a path below the root; None for what lies outside it."""
    path = Path(os.path.normpath(Path.cwd() / name))
    for candidate in (path, path.parent.resolve() / path.name):
        if candidate == root or root in candidate.parents:
            return candidate.relative_to(root).as_posix()
    return None


def deletions(project: Project, options: Options, *, keep_config: bool = False) -> Past | None:
    """The last commit, judged, where the index lacks a file of it that a run would read: what is found only since is answered for
    by the deletion.  None where nothing was deleted, or nobody can say.
    """
    try:
        repository = Repository.around(root_of(project))
        names = repository.deleted()
    except GitError:
        return None
    if not any(kind_of(name) and not project.config.excluded(name) for name in names):
        return None
    return look_back(project, "HEAD", options, keep_config=keep_config)
