"""Which models of a llama-swap configuration stay loaded beside each other: by its groups, or by its matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kvlint.patterns import regex
from kvlint.residence import Either, Residence, Together
from kvlint.tree import List, Map, Scalar

TOKEN = regex(r"\s*(?:(?P<sign>[&|()])|(?P<reference>\+)?(?P<name>[\w.-]+))")
MAX_DEPTH = 40


def residence(root: Map, models: tuple[str, ...]) -> Residence | None:
    """What may be loaded at once; None where it cannot be read."""
    matrix = root.map("matrix") or root.map("routing", "router", "settings", "matrix")
    return _of_matrix(matrix, models) if matrix is not None else _of_groups(root, models)


def _of_groups(root: Map, models: tuple[str, ...]) -> Residence:
    """A load stops others of its group where that swaps, and other groups where its own is exclusive, but for persistent ones.

    So one of the exclusive groups is loaded beside all groups that are not, and beside the persistent ones
    (llama-swap, internal/router/group.go).
    """
    beside: list[Residence] = []
    alone: list[Residence] = []
    grouped: set[str] = set()
    for entry in root.map("groups") or root.map("routing", "router", "settings", "groups") or ():
        group = entry.value
        if not isinstance(group, Map):
            continue
        members = tuple(
            each.value for each in group.list("members") or List((), group.span) if isinstance(each, Scalar)
        )
        grouped.update(members)
        part = Together(members) if group.string("swap") == "false" else Either(members)
        stays = group.string("exclusive") == "false" or group.string("persistent") == "true"
        (beside if stays else alone).append(part)
    others = tuple(each for each in models if each not in grouped)
    return Together((*beside, Either((*alone, Either(others)))))


def _of_matrix(matrix: Map, models: tuple[str, ...]) -> Residence | None:
    """One of the sets at a time; a model that is in none is loaded alone."""
    variables = {
        each.key.value: each.value.value for each in matrix.map("vars") or () if isinstance(each.value, Scalar)
    }
    texts = {each.key.value: each.value.value for each in matrix.map("sets") or () if isinstance(each.value, Scalar)}
    reader = _Sets(texts, variables)
    found = [reader.set(name, 0) for name in texts]
    if any(each is None for each in found):
        return None
    return Either((*(each for each in found if each is not None), *models))


class _Sets:
    """The sets of a matrix by name, as in `a & (b | +other)`; each is read once."""

    def __init__(self, texts: Mapping[str, str], variables: Mapping[str, str]) -> None:
        self._texts = texts
        self._variables = variables
        self._found: dict[str, Residence | None] = {}

    def set(self, name: str, depth: int) -> Residence | None:
        if name not in self._found:
            self._found[name] = None  # a set that refers to itself has no meaning
            tokens = [*_tokens(self._texts.get(name, ""))][::-1]
            found = self._either(tokens, depth)
            self._found[name] = found if not tokens else None
        return self._found[name]

    def _either(self, tokens: list[str], depth: int) -> Residence | None:
        parts = self._joined(tokens, "|", lambda: self._together(tokens, depth))
        return parts[0] if len(parts) == 1 else Either(parts) if parts else None

    def _together(self, tokens: list[str], depth: int) -> Residence | None:
        parts = self._joined(tokens, "&", lambda: self._atom(tokens, depth))
        return parts[0] if len(parts) == 1 else Together(parts) if parts else None

    @staticmethod
    def _joined(tokens: list[str], sign: str, part: Callable[[], Residence | None]) -> tuple[Residence, ...]:
        """Parts with the sign between them; nothing where one cannot be read.  What is read is taken from the end."""
        parts: list[Residence] = []
        while (found := part()) is not None:
            parts.append(found)
            if tokens[-1:] != [sign]:
                return tuple(parts)
            tokens.pop()
        return ()

    def _atom(self, tokens: list[str], depth: int) -> Residence | None:
        if not tokens or depth > MAX_DEPTH or tokens[-1] in ("&", "|", ")"):
            return None
        first = tokens.pop()
        if first == "(":
            found = self._either(tokens, depth + 1)
            return found if tokens and tokens.pop() == ")" else None
        return self.set(first[1:], depth + 1) if first.startswith("+") else self._variables.get(first, first)


def _tokens(text: str) -> Iterator[str]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = TOKEN.match(text, at, end)
        if match is None:
            yield ")"  # the loader refuses this character: no set is read from here on
            return
        yield match["sign"] or f"{match['reference'] or ''}{match['name']}"
        at = match.end()
