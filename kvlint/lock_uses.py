"""The models that a project's servers use, and where its lock no longer agrees with them.  Files only, never the network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvlint.facts import Fact, Written
from kvlint.files import Files, Unreadable
from kvlint.lock import NAME, Lockfile, Row, digest
from kvlint.models.lookup import Models
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import Span
from kvlint.subjects import Problem, Server, ServerGroup

REPOSITORY = regex(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
HOSTS = ("https://huggingface.co/", "huggingface.co/", "https://hf.co/", "hf.co/")


@dataclass(frozen=True, slots=True)
class Use:
    """A model where a server names it.  `path`: its configuration, relative to the project, or absolute outside of it.

    Without a path it is a repository of the hub, at the revision `asked` (None: the default branch).
    """

    id: str
    span: Span
    asked: str | None = None
    path: str | None = None

    @property
    def outside(self) -> bool:
        return self.path is not None and self.path.startswith("/")


def uses(groups: Iterable[ServerGroup], models: Models) -> list[Use]:
    """Every model and draft model that can be locked, at each place once, in the order of the servers."""
    found: dict[tuple[str, int, str], Use] = {}
    for group in groups:
        for world in group.live:
            for setting in ("model", "draft_model"):
                use = _use(world, setting, models)
                if use is not None:
                    found.setdefault((use.span.path, use.span.start, use.id), use)
    return list(found.values())


def _use(world: Server, setting: str, models: Models) -> Use | None:
    fact = world.settings.get(setting)
    if not isinstance(fact, Fact) or not isinstance(fact.value, str):
        return None
    name, span = fact.value, fact.origin.span if isinstance(fact.origin, Written) else world.program
    known = models.named(name, world.site.place.path)
    if known.config is not None:
        return Use(name, span, path=known.source)
    if name.startswith(("/", "~/")):
        return Use(name, span, path=_outside(name))
    repository = repository_of(name, world.engine)
    if repository is None:
        return None
    revision = world.settings.get("revision") if setting == "model" else None
    asked = revision.value if isinstance(revision, Fact) and isinstance(revision.value, str) else None
    return Use(repository, span, asked)


def _outside(name: str) -> str:
    """Where the configuration of a directory outside the project stands, on the machine that has it."""
    import os

    return os.path.expanduser(name.rstrip("/")) + "/config.json"


def repository_of(name: str, engine: str) -> str | None:
    """The hub's repository that a name means; Ollama's own library and files have none."""
    host = next((each for each in HOSTS if name.startswith(each)), "")
    if engine == "ollama" and not host:
        return None
    bare = name.removeprefix(host).partition(":")[0].strip("/")
    if host:
        bare = "/".join(bare.split("/")[:2])
    if bare.lower().endswith((".gguf", ".safetensors", ".bin")):
        return None
    return bare if REPOSITORY.fullmatch(bare) else None


def row_of(lock: Lockfile, use: Use) -> Row | None:
    if use.path is not None:
        return next((row for row in lock.rows if row.path == use.path), None)
    return next((row for row in lock.named(use.id) if row.path is not None or row.asked == use.asked), None)


def disagreement(lock: Lockfile, use: Use, files: Files) -> str | None:
    """What is wrong between a use and the lock, as far as the project's own files say."""
    if use.outside:
        return None
    row = row_of(lock, use)
    if row is None:
        at = f" at revision {use.asked}" if use.asked and lock.named(use.id) else ""
        return f"is not in {NAME}{at}"
    if use.path is None or row.sha256 is None:
        return None
    try:
        same = digest(files.read(use.path)) == row.sha256
    except Unreadable as error:
        return f"was locked from {use.path}, which cannot be read now: {error}"
    return None if same else f"was locked from {use.path}, which has changed since"


def drift(lock: Lockfile, groups: list[ServerGroup], models: Models, files: Files) -> Iterator[Problem]:
    """Everything that the rule `lock-drift` reports."""
    if lock.broken is not None:
        yield Problem("lock-drift", lock.source.span(0, 0), {"value": NAME, "why": f"cannot be read: {lock.broken}"})
        return
    for use in uses(groups, models) if lock.locks_models else ():
        why = disagreement(lock, use, files)
        if why is not None:
            yield Problem("lock-drift", use.span, {"value": use.id, "why": why})
    for group in groups:
        measured = lock.measured(group.id)
        changed = measured.changed(group) if measured is not None else []
        if measured is not None and changed:
            why = f"was measured ({measured.log}) with another {' and '.join(changed)}, so the figures are not used"
            data = {"value": group.id, "why": why, "measured": True}
            yield Problem("lock-drift", group.first.program, data)
