"""Which lines differ between a revision and the work tree, as `git diff --unified=0` tells."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from kvlint.records import dataclass, field

Lines = tuple[int, int]  # first and last, 1-based


@dataclass(frozen=True, slots=True)
class Change:
    """What differs in one file: lines of the new text that were added, lines of the old text that were taken out or replaced, and
    the lines of the new text after which some were taken out without others in their place.  `whole`: the file as such differs.
    """

    added: tuple[Lines, ...] = ()
    removed: tuple[Lines, ...] = ()
    gaps: tuple[int, ...] = ()
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between a revision and the work tree, by path.  `before`: the paths that the revision has."""

    files: Mapping[str, Change]
    before: frozenset[str]

    def touch_new(self, path: str, first: int, last: int) -> bool:
        """Whether lines of the work tree were added, or enclose a place where lines were taken out."""
        change = self.files.get(path)
        if change is None:
            return path not in self.before
        within = any(first <= gap < last for gap in change.gaps)
        return change.whole or within or _overlap(change.added, first, last)

    def touch_old(self, path: str, first: int, last: int) -> bool:
        """Whether lines of the revision are gone."""
        change = self.files.get(path)
        return change is not None and (change.whole or _overlap(change.removed, first, last))


def _overlap(ranges: tuple[Lines, ...], first: int, last: int) -> bool:
    return any(a <= last and first <= b for a, b in ranges)


def parse(patch: bytes) -> Iterator[tuple[str, Change]]:
    """The changes of `git diff --unified=0`.  Lines of content are counted off, so none is taken for a header."""
    lines = patch.split(b"\n")
    at, names, hunks = 0, ("", ""), _Hunks()
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith(b"diff --git "):
            yield from hunks.of(names)
            names, hunks = ("", ""), _Hunks()
        elif line.startswith(b"--- "):
            names = (_name(line[4:]), names[1])
        elif line.startswith(b"+++ "):
            names = (names[0], _name(line[4:]))
        elif line.startswith(b"@@ "):
            at = _past(lines, at, hunks.take(line))
        elif line.startswith(b"* Unmerged path "):
            yield _name(b"b/" + line[16:]), Change(whole=True)
        elif line.startswith(b"Binary files "):
            yield from ((name, Change(whole=True)) for name in _names_of_binary(line))
    yield from hunks.of(names)


def _past(lines: list[bytes], at: int, count: int) -> int:
    """Where a hunk of `count` lines ends; the remark that a file ends without a line break is none of them."""
    while at < len(lines) and (count or lines[at].startswith(b"\\")):
        count -= not lines[at].startswith(b"\\")
        at += 1
    return at


@dataclass(slots=True)
class _Hunks:
    added: list[Lines] = field(default_factory=list)
    removed: list[Lines] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)

    def take(self, header: bytes) -> int:
        """Note `@@ -a,b +c,d @@`; the number of lines that belong to it."""
        old, new = (_range(part[1:]) for part in header.split(b" ")[1:3])
        if old[1]:
            self.removed.append((old[0], old[0] + old[1] - 1))
        if new[1]:
            self.added.append((new[0], new[0] + new[1] - 1))
        else:
            self.gaps.append(new[0])
        return old[1] + new[1]

    def of(self, names: tuple[str, str]) -> Iterator[tuple[str, Change]]:
        for name in dict.fromkeys(name for name in names if name):
            yield name, Change(tuple(self.added), tuple(self.removed), tuple(self.gaps))


def _range(text: bytes) -> tuple[int, int]:
    first, comma, count = text.partition(b",")
    return int(first), int(count) if comma else 1


def _name(field_: bytes) -> str:
    """A path of a header without its `a/` or `b/`; empty for `/dev/null`.  git ends a name that holds a space with a tab."""
    name = _unquoted(field_.removesuffix(b"\t"))
    return "" if name == b"/dev/null" else os.fsdecode(name[2:])


_ESCAPES = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}


def _unquoted(name: bytes) -> bytes:
    """A path as git quotes it: in double quotes with C escapes where it holds anything unusual."""
    if not name.startswith(b'"'):
        return name
    out, at, end = bytearray(), 1, len(name.rstrip()) - 1
    while at < end:
        if name[at : at + 1] != b"\\":
            out += name[at : at + 1]
            at += 1
        elif name[at + 1 : at + 4].isdigit():
            out.append(int(name[at + 1 : at + 4], 8) & 255)
            at += 4
        else:
            out += _ESCAPES.get(name[at + 1 : at + 2], name[at + 1 : at + 2])
            at += 2
    return bytes(out)


def _names_of_binary(line: bytes) -> Iterator[str]:
    """`Binary files a/x and b/x differ`: the halves are of equal length, or one is `/dev/null`."""
    body = line.removeprefix(b"Binary files ").removesuffix(b" differ")
    for middle in _places(body, b" and "):
        left, right = body[:middle], body[middle + 5 :]
        names = {_name(each) for each in (left, right)} - {""}
        if len(names) == 1:
            yield from names
            return


def _places(text: bytes, word: bytes) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)
