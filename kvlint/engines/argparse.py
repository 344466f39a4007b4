"""What an engine's own parser makes of an argument list: `read` for one release, `classes` for many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kvlint.engines import dialects
from kvlint.engines.options import Option, Options, options
from kvlint.records import dataclass, field, replace
from kvlint.source import Span, Text
from kvlint.subjects import Problem

Load = Callable[[Text], "Text | None"]
"""Text of a configuration file named on the command line; None if it is not to be seen, FileNotFoundError if there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """One option or positional as given.

    `spelling`: the full spelling that a prefix was resolved to.  `typed`: the converted value, a list for several;
    `facts.Unknown` where a part is not known or was refused.  `index`: of the word in the argument list, None from a file.
    """

    option: Option
    name: Text
    spelling: str
    values: tuple[Text, ...]
    typed: Any
    index: int | None
    source: str = "argument"

    @property
    def value(self) -> Text | None:
        return self.values[0] if self.values else None

    @property
    def dest(self) -> str:
        return self.option.dest

    @property
    def off(self) -> bool:
        return self.option.turns_off(self.spelling)


@dataclass(frozen=True, slots=True, eq=False)
class Objection:
    """Something the engine refuses, or the reader cannot follow (`stage` is `note`: the engine goes on).

    Kinds: unknown-flag, removed-flag, ambiguous-flag, malformed-value, missing-value, stray-argument, joined-argument,
    missing-model, missing-argument, out-of-range, conflict, config-file, help, ineffective-flag.
    `stage`: parser, or post for what is checked after parsing.
    """

    kind: str
    place: Text | None
    stage: str = "parser"
    option: Option | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def problem(self, program: Span, **data: Any) -> Problem:
        """The same as a `Problem`, at `program` where it has no place; `refuses`: the engine would not start."""
        span = program if self.place is None else self.place.span
        return Problem(self.kind, span, {**self.data, "refuses": self.stage != "note", **data})


@dataclass(frozen=True, slots=True)
class Reading:
    """`problems` in the order the engine would meet them: the first is what it prints.  `settings`: dest to the last given.

    `open`: places where words are not known, so that an absent option or positional may stand there unseen.
    """

    release: str
    options: tuple[Given, ...] = ()
    positionals: tuple[Text, ...] = ()
    problems: tuple[Objection, ...] = ()
    settings: Mapping[str, Given] = field(default_factory=dict)
    open: tuple[Text, ...] = ()

    @property
    def refused(self) -> bool:
        return any(problem.stage != "note" for problem in self.problems)

    def typed(self, dest: str, default: Any = None) -> Any:
        given = self.settings.get(dest)
        return default if given is None else given.typed


def read(
    engine: str, release: str, args: Sequence[Text], *, entry: str | None = None, load: Load | None = None
) -> Reading:
    """The argument list as `release` of `engine` reads it; `args` follow the program of `entry` (None: the usual one).

    Raises KeyError for an engine or a release that the data does not hold.
    """
    data = options(engine)
    if release not in data.index:
        raise KeyError(release)
    return dialects.of(engine)(data, release, tuple(args), entry, _once(load))


def classes(
    engine: str,
    args: Sequence[Text],
    releases: Iterable[str],
    *,
    entry: str | Callable[[str], str | None] | None = None,
    load: Load | None = None,
) -> list[tuple[tuple[str, ...], Reading]]:
    """Releases that read the list alike, each group with its reading, in the order of the releases.

    Alike: every word is resolved to records that parse alike, under the same habits of the parser, so problems and values agree.
    """
    data = options(engine)
    words = tuple(args)
    loader = _once(load)
    entries = [(release, entry(release) if callable(entry) else entry) for release in releases]
    if len(entries) == 1:
        signatures: list[tuple[str, Any]] = [(release, (at,)) for release, at in entries]
    else:
        plain = (*(word.value for word in words), *_file_flags(words, loader))
        signatures = dialects.signatures(data, plain, entries)
    groups: dict[Any, list[str]] = {}
    for release, signature in signatures:
        groups.setdefault(signature, []).append(release)
    read_one = dialects.of(engine)
    found = []
    for (at, *_), members in groups.items():
        reading = read_one(data, members[-1], words, at, loader)
        found.append((tuple(members), replace(reading, release=members[-1])))
    return found


def _file_flags(words: Sequence[Text], load: Load) -> list[str]:
    """Names that a configuration file may bring in, so that releases which know them differently are kept apart."""
    for at, word in enumerate(words[:-1]):
        if word.value == "--config":
            try:
                text = load(words[at + 1])
            except FileNotFoundError:
                return []
            return dialects.file_flags(text.value) if text is not None else []
    return []


def _once(load: Load | None) -> Load:
    seen: dict[str, Text | None] = {}

    def cached(name: Text) -> Text | None:
        if load is None:
            return None
        if name.value not in seen:
            seen[name.value] = load(name)
        return seen[name.value]

    return cached


def suggestions(data: Options, problem: Objection, release: str) -> tuple[str, ...]:
    """Spellings that an unknown one may have meant, in `release`."""
    return data.nearest(problem.data["flag"], release) if "flag" in problem.data else ()
