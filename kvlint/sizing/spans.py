"""What the memory models of several engines share: rules that hold over spans of releases, and what stands for no answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar, Union

from kvlint.facts import Unknown
from kvlint.models.architecture import Attention, Latent
from kvlint.patterns import regex
from kvlint.records import dataclass

TYPE_BYTES = {"bfloat16": 2, "float16": 2, "half": 2, "float32": 4, "float": 4}
_RELEASE = regex(r"v?(\d{1,9}(?:\.\d{1,9}){0,3})(?:[.\-_]?(rc|dev|a|b|alpha|beta|pre|post)\d*)?")
Key = tuple[int, ...]
Rules = TypeVar("Rules")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The engine stops at start.  `stage`: `arguments`, whatever the memory, or `pool`, when the pool is cut."""

    reason: str
    stage: str = "arguments"

    def __bool__(self) -> bool:
        return False


Outcome = Union[Refusal, Unknown]


def unknown(reason: str, missing: str = "engine.layout", supply: str = "a measured pool size") -> Unknown:
    return Unknown(missing, reason, supply)


@lru_cache(maxsize=1024)
def parse(release: str) -> Key:
    """A key that orders releases: candidates before their release, which its post-releases equal.

    ValueError for text that does not begin with a release number.
    """
    match = _RELEASE.match(release.strip())
    if match is None:
        raise ValueError(f"not a release: {release!r}")
    numbers = [int(part) for part in match[1].split(".")]
    return (*numbers, *[0] * (4 - len(numbers)), 0 if match[2] in (None, "post") else -1)


def value_of(spans: list[list[Any]], key: Key, newer: bool) -> Any:
    """The value of one rule at a release; between two spans that of the newer or of the older one.

    Before the first span and after the last one the nearest is taken.
    """
    before = spans[0][2]
    for start, end, value in spans:
        if key < parse(start):
            return value if newer else before
        if end is None or key <= parse(end):
            return value
        before = value
    return before


def alternatives(kind: Callable[..., Rules], spans: Mapping[str, list[list[Any]]], release: str) -> tuple[Rules, ...]:
    """The rules that a release may follow: one set, or those of its two neighbours where they differ."""
    key = parse(release)
    found = (kind(**{name: frozen(value_of(spans[name], key, newer)) for name in spans}) for newer in (False, True))
    return tuple(dict.fromkeys(found))


def frozen(value: Any) -> Any:
    return tuple(frozen(item) for item in value) if isinstance(value, list) else value


def plain(part: Any) -> bool:
    """Keys and values, or a latent, of every token: a layer that any pool of blocks keeps alike."""
    if isinstance(part, Attention):
        return not (part.window or part.chunk or part.shared)
    return isinstance(part, Latent)


def in_blocks(tokens: int, block: int) -> int:
    """Tokens rounded up to whole blocks."""
    if block < 1:
        raise ValueError(f"block_size is {block}, not a number of tokens")
    return -(-tokens // block) * block
