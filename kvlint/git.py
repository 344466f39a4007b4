"""A revision of a git repository as a tree of files, and what differs between it and the work tree.

Objects are read as they are stored: nothing is checked out, no filter, diff driver or hook of the repository runs, and nothing is
fetched.  Paths are relative to the directory that a `Repository` was opened for, with `/`; what lies outside it is not seen.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, cast

from kvlint.changes import Changes, parse
from kvlint.files import MAX_BYTES, SKIPPED_DIRECTORIES, Files, Unreadable
from kvlint.records import dataclass, field

TIMEOUT = 120  # seconds for one command
MAX_LINKS = 16  # symbolic links followed for one name
REGULAR, LINK = ("100644", "100755", "100664"), "120000"

# What a hook's own git leaves in the environment would send these commands to another repository.
_FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_NAMESPACE", "GIT_LITERAL_PATHSPECS", "GIT_EXTERNAL_DIFF")


class GitError(Exception):
    """git is missing, the directory is in no repository, or an object cannot be had."""


class UnknownRevision(GitError):
    """A name that is no revision here."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository around the directory `root`; `prefix` leads from its top to `root` (empty, or ends with `/`)."""

    root: Path
    prefix: str

    @classmethod
    def around(cls, root: Path) -> Repository:
        """Raises `GitError` where there is no git or no repository."""
        return cls(root, os.fsdecode(_run(root, "rev-parse", "--show-prefix").removesuffix(b"\n")))

    def tree(self, revision: str) -> Tree:
        """The files of a revision.  Raises `UnknownRevision`."""
        return Tree(self.root, self._entries(self._resolve(revision)))

    def _resolve(self, revision: str) -> str:
        if not revision or revision.startswith("-") or not revision.isprintable():
            raise UnknownRevision(f"{revision!r} is no revision")
        try:
            found = _run(self.root, "rev-parse", "--verify", "--quiet", revision + "^{tree}")
        except GitError:
            raise UnknownRevision(f"unknown revision {revision!r}{self._hint()}") from None
        return found.decode("ascii").strip()

    def _hint(self) -> str:
        shallow = _run(self.root, "rev-parse", "--is-shallow-repository").strip() == b"true"
        return "; this clone is shallow: fetch the revision first (git fetch --depth=1 origin …)" if shallow else ""

    def _entries(self, tree: str) -> dict[str, Entry]:
        """Every file below the prefix, with directories left out that no run enters."""
        found: dict[str, Entry] = {}
        for row in _run(self.root, "ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0"):
            head, _, name = row.partition(b"\t")
            path = os.fsdecode(name)
            if not head or not path.startswith(self.prefix):
                continue
            mode, _, name_of_object = head.decode("ascii").split(" ")
            path = path[len(self.prefix) :]
            if mode in (*REGULAR, LINK) and not SKIPPED_DIRECTORIES.intersection(path.split("/")[:-1]):
                found[path] = Entry(mode == LINK, name_of_object)
        return found

    def changes(self, revision: str, before: Iterable[str]) -> Changes:
        """What differs between a revision and the work tree; a path that is not in `before` is new."""
        options = (
            "--unified=0",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            "--ignore-submodules=all",
        )
        prefixes = ("--src-prefix=a/", "--dst-prefix=b/", "--inter-hunk-context=0", "--relative")
        patch = _run(self.root, "diff", *options, *prefixes, self._resolve(revision), "--", ".")
        return Changes(dict(parse(patch)), frozenset(before))

    def deleted(self) -> tuple[str, ...]:
        """Names that the index no longer has and the last commit had; none before the first commit."""
        try:
            self._resolve("HEAD")
        except UnknownRevision:
            return ()
        names = _run(
            self.root,
            "diff",
            "--cached",
            "--name-only",
            "-z",
            "--no-renames",
            "--diff-filter=D",
            "--relative",
            "HEAD",
            "--",
            ".",
        )
        return tuple(os.fsdecode(name) for name in names.split(b"\0") if name)

    def ignored(self) -> tuple[str, ...]:
        """Files of the work tree that no revision holds because git is told to ignore them; whole directories end with `/`."""
        names = _run(
            self.root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--", "."
        )
        return tuple(os.fsdecode(name) for name in names.split(b"\0") if name)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a tree: the name of its object, and whether the object holds the target of a symbolic link."""

    link: bool
    object: str


@dataclass(slots=True)
class Tree:
    """A revision's files, read when they are asked for.  Close it when done: a process of git's serves it.

    Symbolic links to files are followed inside the tree.  Raises `GitError` for an object that the repository lacks (a partial
    clone), because a file that seems empty would change what is found.
    """

    root: Path
    entries: Mapping[str, Entry]
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def paths(self) -> Iterator[str]:
        return (path for path in sorted(self.entries) if self._target(path) is not None)

    def exists(self, path: str) -> bool:
        return self._target(path) is not None

    def read(self, path: str) -> bytes:
        entry = self._target(path)
        if entry is None:
            raise Unreadable("no such file")
        return self._object(entry.object)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
            process.wait(TIMEOUT)

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _target(self, path: str) -> Entry | None:
        """The regular file behind a name; None where a link leads out of the tree, to a directory, or in a circle."""
        for _ in range(MAX_LINKS):
            entry = self.entries.get(path)
            if entry is None or not entry.link:
                return entry
            path = _joined(path, os.fsdecode(self._object(entry.object)))
        return None

    def _object(self, name: str) -> bytes:
        """One blob.  An answer is `<object> blob <size>`, a line break, the bytes, a line break."""
        writer, reader = self._pipes()
        try:
            writer.write(name.encode("ascii") + b"\n")
            writer.flush()
            head = reader.readline().split()
            if len(head) != 3 or head[1] != b"blob":
                raise GitError(f"object {name} is not in this repository")
            return _blob(reader, int(head[2]))
        except OSError as error:
            raise GitError(f"git cat-file ended: {error.strerror or error}") from error

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            self._process = _start(self.root, "cat-file", "--batch")
        return cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)


def _blob(reader: IO[bytes], size: int) -> bytes:
    """Its bytes; what is too large to be read is skipped, so that the next answer stands at its place."""
    if size <= MAX_BYTES:
        data = reader.read(size)
        reader.read(1)
        if len(data) != size:
            raise GitError("git cat-file ended early")
        return data
    left = size + 1
    while left > 0 and (skipped := len(reader.read(min(left, 1 << 20)))):
        left -= skipped
    raise Unreadable(f"larger than {MAX_BYTES // 2**20} MiB")


def _joined(path: str, target: str) -> str:
    """Where a link at `path` leads; an empty name where it leaves the tree."""
    if target.startswith("/"):
        return ""
    parts: list[str] = list(PurePosixPath(path).parent.parts)
    for part in target.split("/"):
        if part == "..":
            if not parts:
                return ""
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


@dataclass(frozen=True, slots=True)
class Kept:
    """A revision's tree, and the files of the work tree that git ignores: no revision holds them, so they have not changed."""

    tree: Tree
    work: Files
    ignored: frozenset[str]

    @classmethod
    def of(cls, repository: Repository, tree: Tree, work: Files) -> Kept:
        names = repository.ignored()
        directories = tuple(name for name in names if name.endswith("/"))
        found = {
            path
            for path in (work.paths() if names else ())
            if path not in tree.entries and (path in names or path.startswith(directories))
        }
        return cls(tree, work, frozenset(found))

    def paths(self) -> Iterator[str]:
        yield from sorted({*self.tree.paths(), *self.ignored})

    def exists(self, path: str) -> bool:
        return path in self.ignored or self.tree.exists(path)

    def read(self, path: str) -> bytes:
        return self.work.read(path) if path in self.ignored else self.tree.read(path)


def _environment() -> dict[str, str]:
    """No prompt, no lock, no network, English; an index that a hook names by a relative path stays the one it means."""
    environment = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
    if environment.get("GIT_INDEX_FILE"):
        environment["GIT_INDEX_FILE"] = os.path.abspath(environment["GIT_INDEX_FILE"])
    settled = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    return {**environment, **settled, "GIT_ALLOW_PROTOCOL": "none"}


_SETTINGS = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false")


def _run(root: Path, *arguments: str) -> bytes:
    command = ("git", *_SETTINGS, *arguments)
    try:
        done = subprocess.run(command, cwd=root, env=_environment(), capture_output=True, timeout=TIMEOUT, check=False)
    except FileNotFoundError:
        raise GitError("git is not installed") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git {arguments[0]}: {error}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise GitError(said.removeprefix("fatal: ") or f"git {arguments[0]} failed")
    return done.stdout


def _start(root: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = ("git", *_SETTINGS, *arguments)
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(
            command, cwd=root, env=_environment(), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise GitError(f"git {arguments[0]}: {error}") from error
