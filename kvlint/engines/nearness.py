"""Which known names a misspelt one may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache


def closest(word: str, names: Iterable[str], count: int = 3, farthest: int = 3) -> Iterator[str]:
    """Names within a few edits of `word`, or of an abbreviation of it, that share its parts in another order, or shorten
    them; nearest first."""
    if len(word) < 3:
        return iter(())  # any letter is near to any other
    limit = min(farthest, max(1, len(word) // 4))
    scored = [(score, len(name), name) for name in names if (score := _score(word, name, limit)) is not None]
    scored.sort()
    return iter([name for _, _, name in scored[:count]])


@lru_cache(maxsize=1 << 15)  # the releases that a line is read by have nearly all of their names in common
def _score(word: str, name: str, limit: int) -> int | None:
    mine, theirs = _parts(word), _parts(name)
    if len(set(mine)) > 1 and set(mine) <= set(theirs):
        return 1
    if _shortens(mine, theirs):
        return 2
    if abs(len(name) - len(word)) <= limit and is_slip(word, name, limit):
        return distance(word, name, limit)
    if 2 <= len(mine) < len(theirs) and len(word) > 11 and distance(word, _cut(name, len(mine)), 1) <= 1:
        return 2
    return None


def is_slip(word: str, name: str, limit: int = 3) -> bool:
    """Whether one is the other written wrongly: a few edits, and no part another word (`--max-seq-len`, `--max-log-len`)."""
    mine, theirs = _parts(word), _parts(name)
    if _shortens(mine, theirs):
        return True
    if distance(word, name, limit) > limit:
        return False
    return len(mine) != len(theirs) or all(_alike(a, b) for a, b in zip(mine, theirs, strict=True))


def _alike(a: str, b: str) -> bool:
    stem = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    longer = max(len(a), len(b))
    return 2 * stem >= longer or distance(a, b, longer) <= max(1, longer // 3)


def _cut(name: str, parts: int) -> str:
    return "--" + "-".join(_parts(name)[:parts])


def _parts(name: str) -> list[str]:
    return name.strip("-").split("-")


def _shortens(mine: list[str], theirs: list[str]) -> bool:
    """Whether each part of one name is a part of the other, in full or cut short: `--max-num-seqs`, `--max-num-sequences`."""
    if len(mine) != len(theirs) or len(mine) < 2 or mine[0] != theirs[0]:
        return False
    pairs = ((a.removesuffix("s"), b.removesuffix("s")) for a, b in zip(mine, theirs, strict=True))
    return all(a == b or (min(len(a), len(b)) > 2 and (a.startswith(b) or b.startswith(a))) for a, b in pairs)


def distance(a: str, b: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap neighbours) between two words; `limit + 1` once they are more."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
