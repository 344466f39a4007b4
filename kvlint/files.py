"""Where files come from: a disk, a git revision, or memory.  Paths are relative to the project's root, with `/`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Protocol

from kvlint.records import dataclass, field

MAX_BYTES = 8 * 2**20
SKIPPED_DIRECTORIES = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "venv",
        "node_modules",
        "__pycache__",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
    }
    | {".pytest_cache", ".direnv", ".terraform", "site-packages", ".eggs", "vendor"}
)


_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe is never waited for
_SMALL = 2**13


class Unreadable(Exception):
    """A file that cannot be read as text: too large, binary, not permitted, not a file."""


class Files(Protocol):
    """A tree of files.  `paths` yields every file's path in sorted order; `read` gives its bytes or raises `Unreadable`."""

    def paths(self) -> Iterator[str]: ...

    def read(self, path: str) -> bytes: ...

    def exists(self, path: str) -> bool: ...


@dataclass(slots=True)
class Disk:
    """A directory.  Symbolic links to files are followed, links to directories are not (no loops); devices are skipped.

    `within`: only these files and directories are walked; others may still be read by name.
    """

    root: Path
    within: tuple[str, ...] = ()
    skipped: list[str] = field(default_factory=list)
    _top: str = field(default="", repr=False)  # the root as text

    def paths(self) -> Iterator[str]:
        for start in sorted(self.within) if self.within else [""]:
            if start and self.exists(start):
                yield start
            else:
                yield from self._below(start if start != "." else "", [])

    def _below(self, prefix: str, paths: list[str]) -> list[str]:
        """`paths`, with those of the files in a directory and below behind them."""
        try:
            with os.scandir(self.root / prefix if prefix else self.root) as found:
                entries = sorted(found, key=attrgetter("name"))
        except OSError:
            self.skipped.append(prefix)
            return paths
        for entry in entries:
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in SKIPPED_DIRECTORIES:
                        self._below(path, paths)
                elif entry.is_file():
                    paths.append(path)
            except OSError:
                self.skipped.append(path)
        return paths

    def read(self, path: str) -> bytes:
        try:
            file = os.open(self._at(path), _READ)
        except OSError as error:
            raise Unreadable(error.strerror or "cannot be read") from error
        try:
            return _contents(file)
        except IsADirectoryError as error:
            raise Unreadable("not a regular file") from error
        except OSError as error:
            raise Unreadable(error.strerror or "cannot be read") from error
        finally:
            os.close(file)

    def exists(self, path: str) -> bool:
        return os.path.isfile(self._at(path))

    def _at(self, path: str) -> str:
        """A path below the root, even one that begins with a slash."""
        if not self._top:
            self._top = f"{self.root}/"
        return self._top + path


def _contents(file: int) -> bytes:
    """All bytes of an open file; most are small, and read without a look at what they are."""
    data = os.read(file, _SMALL)
    if 0 < len(data) < _SMALL:
        return data
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("not a regular file")
    if status.st_size > MAX_BYTES:
        raise Unreadable(f"larger than {MAX_BYTES // 2**20} MiB")
    step = max(status.st_size, _SMALL)
    while len(data) <= MAX_BYTES and (more := os.read(file, step)):
        data += more
    return data


@dataclass(slots=True)
class Memory:
    """Files held in a dictionary: standard input, tests, a git revision already read."""

    contents: Mapping[str, bytes]

    def paths(self) -> Iterator[str]:
        yield from sorted(self.contents)

    def read(self, path: str) -> bytes:
        if path not in self.contents:
            raise Unreadable("no such file")
        data = self.contents[path]
        if len(data) > MAX_BYTES:
            raise Unreadable(f"larger than {MAX_BYTES // 2**20} MiB")
        return data

    def exists(self, path: str) -> bool:
        return path in self.contents


def decode(data: bytes) -> str:
    """UTF-8 without a byte-order mark (UTF-16 with one is read too); raises `Unreadable` for anything else."""
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8 text (byte {error.start})") from error


@dataclass(slots=True)
class Overlay:
    """A tree with some files replaced or added: what an editor hands in on standard input."""

    below: Files
    contents: Mapping[str, bytes]

    def paths(self) -> Iterator[str]:
        yield from sorted({*self.below.paths(), *self.contents})

    def read(self, path: str) -> bytes:
        return self.contents[path] if path in self.contents else self.below.read(path)

    def exists(self, path: str) -> bool:
        return path in self.contents or self.below.exists(path)


def encode_like(data: bytes, text: str) -> bytes:
    """`text` in the encoding of `data`, with its byte-order mark."""
    if data.startswith(b"\xff\xfe"):
        return data[:2] + text.encode("utf-16-le")
    if data.startswith(b"\xfe\xff"):
        return data[:2] + text.encode("utf-16-be")
    mark = b"\xef\xbb\xbf"
    return (mark if data.startswith(mark) else b"") + text.encode("utf-8")


def replace_file(path: Path, data: bytes) -> None:
    """Write all of a file or nothing: a new one takes the old one's place, behind a symbolic link too, with its mode."""
    target = Path(os.path.realpath(path))
    fresh = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        fresh.write_bytes(data)
        if target.exists():
            fresh.chmod(stat.S_IMODE(target.stat().st_mode))
        os.replace(fresh, target)
    finally:
        fresh.unlink(missing_ok=True)
