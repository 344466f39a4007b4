"""What stands in a command line whatever the engine: variables that stay text, flags given twice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from kvlint.engines.problems import of_fork
from kvlint.patterns import regex
from kvlint.subjects import Problem

if TYPE_CHECKING:
    from kvlint.engines.argparse import Given
    from kvlint.engines.base import World

_VARIABLE = regex(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::?[-+?=][^{}]*)?\}|\$[A-Z_][A-Z0-9_]*\b")
EXPAND_NOTHING = ("llama-swap", "compose", "dockerfile", "supervisor")
NO_SHELL = (*EXPAND_NOTHING, "systemd", "launchd", "nix", "kubernetes")
PATHS = frozenset(
    {"-m", "--model", "--model-path", "--mmproj", "--draft-model", "--adapter-path", "--models-preset", "serve"}
)
PLAIN = ("store", "store_true", "BooleanOptionalAction")
_MACRO = regex(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


def problems(world: World) -> Iterator[Problem]:
    """Of one world's line; the engine's name is that of the world."""
    yield from _unexpanded(world)
    yield from _home(world)
    yield from _repeated(world)


def _unexpanded(world: World) -> Iterator[Problem]:
    """`$X` and `${X}` that nobody replaces: no shell reads the line, and the carrier expands nothing of the kind.

    systemd's and launchd's readers look at their own files, llama-swap's at `${name}`.  In Kubernetes envsubst, a controller or a
    webhook may do it before.
    """
    line, site = world.process.line, world.process.site
    if line.shell or site.carrier not in EXPAND_NOTHING:
        return
    for word in line.args:
        for match in _VARIABLE.finditer(word.value):
            place = word.slice(*match.span())
            named = site.carrier == "llama-swap" and _MACRO.fullmatch(match[0])
            if not named and place.known and place.span.text.endswith(match[0][-1]):
                data = {"engine": world.engine, "value": match[0], "carrier": site.carrier}
                yield Problem("unexpanded-variable", place.span, data)


def _home(world: World) -> Iterator[Problem]:
    """`~/models/a.gguf` where no shell reads the line: every engine here opens a model by the name it is given."""
    line, site = world.process.line, world.process.site
    if line.shell or site.carrier not in NO_SHELL:
        return
    for before, word in pairwise(line.words):
        if word.value.startswith("~/") and (before.value in PATHS or word.value.endswith(".gguf")):
            place = word.slice(0, 1)
            if place.known and place.span.text == "~":
                data = {"engine": world.engine, "value": "~", "carrier": site.carrier}
                yield Problem("unexpanded-variable", place.span, data)


def _repeated(world: World) -> Iterator[Problem]:
    """A plain option that is given twice with two values: the last one wins in every engine here."""
    last: dict[str, Given] = {}
    for given in world.reading.options:
        if given.index is None or given.option.nargs not in (None, 0) or given.option.action not in PLAIN:
            continue
        if given.option.type.startswith("json"):
            continue
        dest = given.option.dest
        before = last.get(dest)
        last[dest] = given
        if before is None or _same(before, given) or _refused_twice(world, given):
            continue
        place = before.value if before.value is not None else before.name
        winner = given.value if given.value is not None else given.name
        if place.via and place.via != winner.via:
            continue  # a macro's or a variable's words, changed on purpose where they are used
        if not winner.value.isdigit() and of_fork(world.process.line):
            continue  # what is no plain number may have another meaning in a fork, and be taken several times
        data = {"engine": world.engine, "flag": before.spelling, "value": place.value, "winner": winner.value}
        yield Problem("overridden-flag", place.span, data, (("counterpart", winner.span, "this is used"),))


def _refused_twice(world: World, given: Given) -> bool:
    return any(each.data.get("twice") and each.place == given.name for each in world.reading.problems)


def _same(one: Given, other: Given) -> bool:
    if one.value is None or other.value is None:
        return one.off == other.off
    known = one.value.known and other.value.known
    return not known or one.value.value == other.value.value or one.typed == other.typed
