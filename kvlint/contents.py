"""The bytes of many files, in long runs that are searched as one: a search then costs its characters and not its files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from kvlint.records import dataclass, field

RUN_BYTES = 2**20
_APART = b"\0"  # stands between files, in no word that is searched for


@dataclass(slots=True)
class Contents:
    """Files by path, in the order in which they were added."""

    _runs: list[bytes] = field(default_factory=list)
    _starts: list[list[int]] = field(default_factory=list)  # of each run: where its files begin
    _paths: list[list[str]] = field(default_factory=list)
    _places: dict[str, tuple[int, int, int]] = field(default_factory=dict)
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
        self._close()
        place = self._places.get(path)
        return self._runs[place[0]][place[1] : place[2]] if place is not None else b""

    def holding(self, word: bytes) -> list[str]:
        """The files that hold `word`, in their order."""
        self._close()
        return [path for number, run in enumerate(self._runs) for path in self._in_run(number, run, word)]

    def holding_any(self, words: Iterable[bytes]) -> set[str]:
        """The files that hold one of `words`, which are in lower case, in whatever case."""
        self._close()
        found: set[str] = set()
        for number, run in enumerate(self._runs):
            folded = run.lower()
            for word in words:
                found.update(self._in_run(number, folded, word))
        return found

    def _in_run(self, number: int, run: bytes, word: bytes) -> Iterator[str]:
        starts, paths = self._starts[number], self._paths[number]
        at = run.find(word)
        while at >= 0:
            file = bisect_right(starts, at) - 1
            yield paths[file]
            at = run.find(word, starts[file + 1]) if file + 1 < len(starts) else -1

    def _close(self) -> None:
        """Join what waits to one run."""
        if not self._waiting:
            return
        starts, at = [], 0
        for path, data in self._waiting:
            starts.append(at)
            self._places[path] = (len(self._runs), at, at + len(data))
            at += len(data) + len(_APART)
        self._runs.append(_APART.join([data for _, data in self._waiting]))
        self._starts.append(starts)
        self._paths.append([path for path, _ in self._waiting])
        self._waiting, self._length = [], 0
