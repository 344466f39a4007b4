"""What a carrier is given and what it finds.

A carrier knows one place where people write serving configuration.  It is handed parsed documents that it claims, asks the
project by name for what they refer to, and yields processes, admission limits and problems.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from typing import Protocol, Union

from kvlint.diagnostics import Unchecked
from kvlint.facts import Fact, Unknown, Value, Written
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass, field
from kvlint.source import Source, Span
from kvlint.subjects import Admission, Problem, Process
from kvlint.tree import List, Map, Node, Opaque, Scalar

# What is unchecked names what a document points to and no file in view holds.
Finding = Union[Process, Admission, Problem, Unchecked]
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
COMPOSE_FILE = regex(r"(?:docker-)?compose(?:[._-][^/]*)?\.ya?ml|.*\.compose\.ya?ml|stack\.ya?ml", re.IGNORECASE)
# What makes a llama-server a router of the models that a file lists.
PRESETS_FLAG, PRESETS_VARIABLE = "--models-preset", "LLAMA_ARG_MODELS_PRESET"


@dataclass(frozen=True, slots=True)
class Item:
    """One document of a file.  `node` is None for what is no tree; `ordinal`: its place among the file's documents."""

    source: Source
    kind: str
    node: Node | None
    span: Span
    ordinal: int = 0

    @property
    def path(self) -> str:
        return self.source.path


class Carrier(Protocol):
    """One module a carrier: an object of this shape named `CARRIER`."""

    name: str

    def claims(self, item: Item) -> bool:
        """Whether this document is written for this carrier."""

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        """Everything that the claimed documents of the whole project hold."""


@dataclass(slots=True)
class Names:
    """Names already given in a run: a second one of the same path and name gets `~2`, in file order."""

    taken: dict[str, int] = field(default_factory=dict)

    def unique(self, path: str, name: str) -> str:
        identity = f"{path}#{name}"
        count = self.taken.get(identity, 0) + 1
        self.taken[identity] = count
        return identity if count == 1 else f"{identity}~{count}"


def directory(path: str) -> str:
    return path.rpartition("/")[0]


def resolve(at: str, name: str) -> str:
    """A path named in a file of the directory `at`, from the root; what leads out of the tree names nothing."""
    path = posixpath.normpath(posixpath.join(at, name)) if "://" not in name else ""
    return "" if path in (".", "..") or path.startswith(("../", "/")) else path


def is_object(item: Item) -> bool:
    """Whether a document is an object of Kubernetes."""
    return isinstance(item.node, Map) and "kind" in item.node and "apiVersion" in item.node


def is_kustomization(item: Item) -> bool:
    return item.path.rpartition("/")[2] in KUSTOMIZATIONS and isinstance(item.node, Map)


def is_number(node: Node | None) -> bool:
    """Whether a whole number is written: what a key that reads like a limit would have."""
    return isinstance(node, Scalar) and node.value.isdigit()


def count_of(node: Node | None, missing: str, supply: str) -> Value[int] | None:
    """A whole number as written; None where nothing stands there."""
    if node is None or (isinstance(node, Scalar) and node.tag == "null"):
        return None
    if isinstance(node, Scalar) and node.value.isdigit():
        return Fact(int(node.value), Written(node.text.span, node.text.via))
    return Unknown(missing, f"{missing} is filled in elsewhere", supply)


def hidden(node: Map, key: str) -> Opaque | None:
    """What may stand under a key, or among its items, without being seen."""
    found = node.get(key)
    if isinstance(found, Opaque):
        return found
    unseen = node.open if found is None else found.open if isinstance(found, (Map, List)) else ()
    items = found.items if isinstance(found, List) else ()
    return next((each for each in (*unseen, *items) if isinstance(each, Opaque)), None)


def nearest(path: str, candidates: list[Item]) -> list[Item]:
    """Of several objects of one name, those whose file shares the longest run of directories with `path`."""
    best = nearest_paths(path, (item.path for item in candidates))
    return [item for item in candidates if item.path in best]


def nearest_paths(path: str, others: Iterable[str]) -> set[str]:
    """The file itself where it is among the others, else those that share the longest run of directories with it."""
    others = set(others)
    if path in others or not others:
        return others & {path}
    scores = {other: _shared(path, other) for other in others}
    return {other for other, score in scores.items() if score == max(scores.values())}


def _shared(one: str, other: str) -> int:
    count = 0
    for a, b in zip(directory(one).split("/"), directory(other).split("/"), strict=False):
        if a != b:
            break
        count += 1
    return count
