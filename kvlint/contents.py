"""The bytes of many files, in long runs that are searched as one: a search then costs its characters and not its files."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate

from kvlint.patterns import regex
from kvlint.records import dataclass, field

RUN_BYTES = 2**18
_APART = b"\xff"  # stands between files, in no word that is searched for and in no text that is UTF-8
_LOWER = bytes(range(256)).lower()
_COMMONEST = b"ae:.-"  # of configuration files
_KIND = regex(rb"[\"']?[ \t]*:[ \t]*[\"']?([A-Za-z]+)")


@dataclass(slots=True)
class _Run:
    """Files end to end, in `data`."""

    paths: Sequence[str]
    data: bytes
    starts: Sequence[int]

    @classmethod
    def joined(cls, paths: Sequence[str], parts: Sequence[bytes]) -> _Run:
        return cls(paths, _APART.join(parts), _starts(parts))

    def without(self, idle: bytes) -> _Run:
        """The same files in lower case, without the bytes `idle`, of which `_APART` is none."""
        data = self.data.translate(_LOWER, idle)
        parts = data.split(_APART)
        if len(parts) != len(self.starts):  # some file holds it too
            ends = [*(start - len(_APART) for start in self.starts[1:]), len(self.data)]
            whole = [self.data[start:end] for start, end in zip(self.starts, ends, strict=True)]
            return _Run.joined(self.paths, [part.translate(_LOWER, idle + _APART) for part in whole])
        return _Run(self.paths, data, _starts(parts))

    def after(self, word: bytes, pattern: re.Pattern[bytes]) -> list[tuple[bytes, str]]:
        """What `pattern` takes behind each `word`, and the file where it stands."""
        data, paths, starts, match, found = self.data, self.paths, self.starts, pattern.match, []
        at = data.find(word)
        while at >= 0:
            at += len(word)
            taken = match(data, at)
            if taken is not None:
                found.append((taken[1], paths[bisect_right(starts, at) - 1]))
            at = data.find(word, at)
        return found

    def holding(self, word: bytes) -> Iterator[str]:
        """The files that hold `word`, each once."""
        at = self.data.find(word)
        while at >= 0:
            file = bisect_right(self.starts, at) - 1
            yield self.paths[file]
            at = self.data.find(word, self.starts[file + 1]) if file + 1 < len(self.starts) else -1


def _starts(parts: Iterable[bytes]) -> list[int]:
    ends = accumulate(map(len, parts), initial=0)
    return [end + number * len(_APART) for number, end in enumerate(ends)][:-1]


@dataclass(slots=True)
class Contents:
    """Files by path, in the order in which they were added."""

    _runs: list[_Run] = field(default_factory=list)
    _places: dict[str, tuple[_Run, int, int]] = field(default_factory=dict)
    _waiting: list[tuple[str, bytes]] = field(default_factory=list)
    _length: int = 0

    def add(self, path: str, data: bytes) -> None:
        self._waiting.append((path, data))
        self._length += len(data)
        if self._length >= RUN_BYTES:
            self._close()

    def __contains__(self, path: str) -> bool:
        self._close()
        return path in self._places

    def __iter__(self) -> Iterator[str]:
        self._close()
        return iter(self._places)

    def __len__(self) -> int:
        self._close()
        return len(self._places)

    def get(self, path: str) -> bytes:
        """A file's bytes; none for a file that was not added."""
        if self._waiting:
            self._close()
        if path not in self._places:
            return b""
        run, start, end = self._places[path]
        return run.data[start:end]

    def holding(self, word: bytes) -> list[str]:
        """The files that hold `word`, in their order."""
        self._close()
        return [path for run in self._runs for path in run.holding(word)]

    def kinds(self) -> dict[bytes, list[str]]:
        """The files by the kinds of objects that they seem to hold or name."""
        self._close()
        found: dict[bytes, dict[str, None]] = {}
        for run in self._runs:
            for kind, path in run.after(b"kind", _KIND):
                found.setdefault(kind, {})[path] = None
        return {kind: list(paths) for kind, paths in found.items()}

    def hinted(self, words: Collection[bytes]) -> Iterator[tuple[bytes, str]]:
        """Each of `words`, which are in lower case, with the files that hold it in whatever case, and with a few more.

        Bytes that stand in no word are left out first, and the commonest that do, there as in the words.  What is left to search
        is a third, in which some words are made of what stood apart.
        """
        self._close()
        letters = {*b"".join(words), *_APART} - {*_COMMONEST}
        idle = bytes([byte for byte, lower in enumerate(_LOWER) if lower not in letters])
        short = {word: word.translate(None, idle) for word in words}
        for run in self._runs:
            bare = run.without(idle)
            for word, rest in short.items():
                for path in bare.holding(rest):
                    yield word, path

    def _close(self) -> None:
        """Join what waits to one run."""
        if not self._waiting:
            return
        run = _Run.joined([path for path, _ in self._waiting], [data for _, data in self._waiting])
        self._runs.append(run)
        for (path, data), start in zip(self._waiting, run.starts, strict=True):
            self._places[path] = (run, start, start + len(data))
        self._waiting, self._length = [], 0
