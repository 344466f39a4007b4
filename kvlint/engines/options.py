"""The engines' options by release, as data: which stand in which release, what they take, what became of them.

Releases are the ones whose parsers were read, oldest first.  A set of releases is an integer with bit `i` for `releases[i]`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from kvlint.compiled import DIRECTORY, load
from kvlint.engines.versions import Place, parse, place
from kvlint.records import dataclass

DATA = DIRECTORY / "engines"
ENGINES = ("vllm", "mlx-lm", "vllm-mlx", "sglang", "llama-server", "tgi", "lmdeploy", "trtllm", "ollama")


@dataclass(frozen=True, slots=True)
class Option:
    """One option as it stands in `releases` (a mask).

    `spellings` and `off` (the ones that switch off) are as the parser knows them; a positional has a bare name.
    `nargs`: None one value, 0 none, 2 two, `?`, `*`, `+` as argparse has them.  `limits` are checked by the parser, `range`
    and `later` (choices) by what reads the parsed values.  `syntax` is equal for records that parse alike.
    """

    spellings: tuple[str, ...]
    dest: str
    type: str
    releases: int
    syntax: int
    off: tuple[str, ...] = ()
    nargs: int | str | None = None
    action: str = "store"
    choices: tuple[Any, ...] | None = None
    default: Any = None
    computed: bool = False
    const: Any = None
    required: bool = False
    optional: bool = False
    limits: Mapping[str, float] | None = None
    range: Mapping[str, float] | None = None
    later: tuple[Any, ...] | None = None
    hint: tuple[Any, ...] = ()
    env: str | None = None
    entry: str | None = None
    deprecated: bool = False
    note: str | None = None

    @property
    def name(self) -> str:
        """The spelling that documentation uses: the first long one."""
        return next(
            (s for s in self.spellings if s.startswith("--")), self.spellings[0] if self.spellings else self.dest
        )

    @property
    def positional(self) -> bool:
        return bool(self.spellings) and not self.spellings[0].startswith("-")

    @property
    def switch(self) -> bool:
        return self.nargs == 0

    @property
    def metavar(self) -> str:
        """What the option takes, for people."""
        return _METAVAR.get(self.type.partition(":")[0], "a value")

    def turns_off(self, spelling: str) -> bool:
        return spelling in self.off


_METAVAR = {
    "int": "an integer", "float": "a number", "json": "a JSON object", "human_int": "an integer", "size": "a size in bytes",
    "str": "a text", "leading_int": "an integer", "leading_float": "a number",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class History:
    """Where a spelling stands.

    `gone`: the first release known without it after it stood; `exact` if that release is the very one that dropped it and
    not only the next one read.  `instead`: what to write now.
    """

    spelling: str
    releases: tuple[str, ...]
    since: str | None
    gone: str | None = None
    exact: bool = False
    instead: str | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """The keys of a config class that a JSON option is read into.  `strict`: other keys are refused."""

    keys: frozenset[str]
    strict: bool
    ranges: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]


class OptionSet:
    """The options of one release under one entry point: a view of all options, worked out as it is asked."""

    def __init__(self, known: Options, release: str, entry: str | None) -> None:
        self.release = release
        self.matches: dict[str, Any] = {}  # what a word is, kept by the dialects
        self._known, self._entry = known, entry
        self._bit = 1 << known.index[release]
        self._prefixes: dict[str, tuple[str, ...]] = {}

    def _standing(self, options: Iterable[Option]) -> list[Option]:
        bit, entry = self._bit, self._entry
        return [
            option
            for option in options
            if option.releases & bit and (not option.entry or not entry or option.entry == entry)
        ]

    @cached_property
    def options(self) -> tuple[Option, ...]:
        return tuple(self._standing(self._known.options))

    def storing(self, dest: str) -> Option | None:
        """The first option that stores under a name."""
        return next(iter(self._standing(self._known.stored(dest))), None)

    @cached_property
    def by_spelling(self) -> Mapping[str, Option]:
        return {s: option for option in self.options if not option.positional for s in (*option.spellings, *option.off)}

    @cached_property
    def positionals(self) -> tuple[Option, ...]:
        return tuple(self._standing(self._known.positionals))

    @cached_property
    def required(self) -> tuple[Option, ...]:
        return tuple(self._standing(self._known.required))

    def find(self, spelling: str) -> Option | None:
        """The option of exactly that spelling."""
        for option in self._standing(self._known.known(spelling)):
            if not option.positional:
                return option
        return None

    def starting(self, prefix: str) -> tuple[str, ...]:
        """The spellings that begin with `prefix`, sorted."""
        found = self._prefixes.get(prefix)
        if found is None:
            if len(self._prefixes) > 4096:
                self._prefixes.clear()
            names = self._known.starting(prefix)
            found = self._prefixes[prefix] = tuple(name for name in names if self.find(name) is not None)
        return found


class Options:
    """All that is known of one engine's command line and environment."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.engine: str = data["engine"]
        self.releases: tuple[str, ...] = tuple(data["releases"])
        self.index = {release: at for at, release in enumerate(self.releases)}
        self.all_releases = (1 << len(self.releases)) - 1
        self._rows: list[Mapping[str, Any]] = data["options"]
        self._made: dict[int, Option] = {}
        self._known: dict[str, tuple[Option, ...]] = {}
        self._stored: dict[str, tuple[Option, ...]] = {}
        self.dialect: Mapping[str, list[str | None]] = data.get("dialect", {})
        self.guards: tuple[Mapping[str, Any], ...] = tuple(data.get("guards", ()))
        self.shapes: Mapping[str, Any] = data.get("shapes", {})
        self.builds: Mapping[str, Any] = data.get("builds", {})
        self._shape_ranges: tuple[Mapping[str, Any], ...] = tuple(data.get("shape_ranges", ()))
        self._removed: Mapping[str, Mapping[str, str]] = data.get("removed", {})
        self._environment: dict[str, int] = dict(data.get("environment", {}))
        self._spellings: dict[str, list[int]] = {}
        self._dests: dict[str, list[int]] = {}
        positionals, required = [], []
        for number, row in enumerate(self._rows):
            spellings = row.get("flags", ())
            for spelling in (*spellings, *row["off"]) if "off" in row else spellings:
                self._spellings.setdefault(spelling, []).append(number)
            self._dests.setdefault(row.get("dest", ""), []).append(number)
            if "env" in row:
                self._environment[row["env"]] = self._environment.get(row["env"], 0) | row["mask"]
            bare = bool(spellings) and not spellings[0].startswith("-")
            if bare:
                positionals.append(number)
            if "required" in row or (bare and row.get("nargs") in (None, "+")):
                required.append(number)
        self.positionals = self._all(positionals)
        self.required = self._all(required)
        self._sorted = sorted(self._spellings)
        self._sets: dict[tuple[str, str | None], OptionSet] = {}
        self._places: dict[str, Place] = {}
        self._nearest: dict[tuple[str, str, int], tuple[str, ...]] = {}
        self._shapes: dict[tuple[str, str], Shape | None] = {}
        self._guards: dict[str, tuple[Mapping[str, Any], ...]] = {}
        self.outcomes: dict[tuple[Any, ...], Any] = {}  # what a word resolves to, by release: kept by the dialects

    @property
    def options(self) -> tuple[Option, ...]:
        """Every record, over all releases."""
        return self._all(range(len(self._rows)))

    def _all(self, numbers: Iterable[int]) -> tuple[Option, ...]:
        return tuple([self._option(number) for number in numbers])

    def _option(self, number: int) -> Option:
        """A record, made when it is first asked for: a run asks for few."""
        found = self._made.get(number)
        if found is None:
            found = self._made[number] = _option(self._rows[number])
        return found

    def at(self, release: str, entry: str | None = None) -> OptionSet:
        """The options that stand at `release`.  `entry`: those that only another entry point has are left out."""
        found = self._sets.get((release, entry))
        if found is None:
            found = self._sets[(release, entry)] = OptionSet(self, release, entry)
        return found

    def starting(self, prefix: str) -> list[str]:
        """The spellings of any release that begin with `prefix`, sorted."""
        at = end = bisect_left(self._sorted, prefix)
        while end < len(self._sorted) and self._sorted[end].startswith(prefix):
            end += 1
        return self._sorted[at:end]

    def abbreviated(self, prefix: str, release: str) -> str | None:
        """What `prefix` was short for before `release`, in the last one that had a flag beginning so; None if in doubt."""
        for earlier in reversed(self.releases[: self.index[release]]):
            found = {
                id(record): name for name in self.at(earlier).starting(prefix) if (record := self.lookup(name, earlier))
            }
            if found:
                return next(iter(found.values())) if len(found) == 1 and len(prefix) > 3 else None
        return None

    def lookup(self, spelling: str, release: str) -> Option | None:
        """The option of exactly that spelling."""
        return self.at(release).find(spelling)

    def history(self, spelling: str, release: str | None = None) -> History:
        """In which releases the spelling stands, and what became of it by `release` (by the newest, if none is said)."""
        mask = self.standing(spelling)
        facts = self._removed.get(spelling, {})
        releases = self._names(mask)
        since = releases[0] if releases else None
        at = len(self.releases) - 1 if release is None else self.index[release]
        last = (mask & ((2 << at) - 1)).bit_length()
        gone = self.releases[last] if last and last <= at else None
        exact = gone is not None and "gone" in facts
        return History(spelling, releases, since, facts["gone"] if exact else gone, exact, facts.get("instead"))

    def standing(self, spelling: str) -> int:
        mask = 0
        for option in self.known(spelling):
            if option.action != "removed":
                mask |= option.releases
        return mask

    def _names(self, mask: int) -> tuple[str, ...]:
        return tuple(release for at, release in enumerate(self.releases) if mask >> at & 1)

    def known(self, spelling: str) -> Sequence[Option]:
        """Every record of that spelling, over all releases."""
        found = self._known.get(spelling, ())
        if not found and spelling in self._spellings:
            found = self._known[spelling] = self._all(self._spellings[spelling])
        return found

    def stored(self, dest: str) -> Sequence[Option]:
        """Every record that stores under that name, over all releases."""
        found = self._stored.get(dest, ())
        if not found and dest in self._dests:
            found = self._stored[dest] = self._all(self._dests[dest])
        return found

    def nearest(self, spelling: str, release: str, count: int = 3) -> tuple[str, ...]:
        """Spellings of `release` that a typo may have meant, likeliest first."""
        found = self._nearest.get((spelling, release, count))
        if found is None:
            from kvlint.engines.nearness import closest

            known = self.at(release).by_spelling.items()
            names = {name.replace("_", "-"): name for name, option in known if option.action != "removed"}
            found = tuple(names[each] for each in closest(spelling.replace("_", "-"), names, count))
            if len(self._nearest) > 50_000:
                self._nearest.clear()
            self._nearest[spelling, release, count] = found
        return found

    def owners(self, spelling: str) -> tuple[str, ...]:
        """The other engines that know this spelling in some release."""
        return tuple(name for name in ENGINES if name != self.engine and spelling in options(name)._spellings)

    @property
    def environment(self) -> Mapping[str, int]:
        """Names of the variables the engine reads, with the releases (a mask) that know each."""
        return self._environment

    def neighbours(self, text: str) -> Place:
        """The releases between which a version as written falls.  Latest, nightly, nothing: all of them."""
        found = self._places.get(text)
        if found is None:
            known = text in self.index and text not in self.builds
            found = Place((text,), "exact", parse(text)) if known else place(text, self.releases, self.builds)
            self._places[text] = found
        return found

    def feature(self, name: str, release: str) -> bool:
        """Whether a habit of the engine's parser, named in its data, holds at `release`."""
        span = self.dialect.get(name)
        return span is not None and self._within(span[0], span[1], release)

    def features(self, release: str) -> frozenset[str]:
        """The habits of the parser at `release`, by name."""
        return frozenset(name for name in self.dialect if self.feature(name, release))

    def guards_at(self, release: str) -> tuple[Mapping[str, Any], ...]:
        """The conditions on several options that hold at `release`: those whose options all stand."""
        found = self._guards.get(release)
        if found is None:
            found = self._guards[release] = self._guards_of(release)
        return found

    def _guards_of(self, release: str) -> tuple[Mapping[str, Any], ...]:
        if not self.guards:
            return ()
        named = ("given", "needs", "forbids", "above_one", "beside")
        return tuple(
            guard
            for guard in self.guards
            if self._within(guard.get("from"), guard.get("to"), release)
            and all(self._storing(guard[key], release) for key in named if key in guard)
            and all(
                self._storing(dest, release) for key in ("at_most", "one_of", "divides") for dest in guard.get(key, ())
            )
        )

    def default(self, dest: str, release: str) -> Any:
        """The default that the parser itself puts in for `dest`."""
        option = self._storing(dest, release)
        return option.default if option else None

    def spellings(self, dest: str) -> tuple[str, ...]:
        """Everything that sets `dest` in some release."""
        found = [spelling for option in self.stored(dest) for spelling in (*option.spellings, *option.off)]
        return tuple(dict.fromkeys(found))

    def _storing(self, dest: str, release: str) -> Option | None:
        """The option of `release` that stores under `dest`."""
        bit = 1 << self.index[release]
        return next((option for option in self.stored(dest) if option.releases & bit), None)

    def shape(self, name: str, release: str) -> Shape | None:
        """The keys of a JSON option's config class at `release`; None where the class was not read."""
        key = (name, release)
        if key not in self._shapes:
            self._shapes[key] = self._shape(name, release)
        return self._shapes[key]

    def _shape(self, name: str, release: str) -> Shape | None:
        facts = self.shapes.get(name)
        bit = 1 << self.index[release]
        keys = frozenset(key for key, mask in facts["keys"].items() if mask & bit) if facts else frozenset()
        if facts is None or not keys:
            return None
        ranges = tuple(
            (key, tuple(row["range"].items()))
            for row in self._shape_ranges
            if row["class"] == name and self._within(row.get("from"), row.get("to"), release)
            for key in row["keys"]
        )
        return Shape(keys, bool(facts["strict"] & bit), ranges)

    def _within(self, first: str | None, last: str | None, release: str) -> bool:
        at = self.index[release]
        return (first is None or at >= self.index[first]) and (last is None or at <= self.index[last])


def _option(row: Mapping[str, Any]) -> Option:
    get = row.get
    choices, later = get("choices"), get("later")
    return Option(
        tuple(get("flags", ())), get("dest", ""), get("type", "str"), row["mask"], row["syntax"], tuple(get("off", ())),
        get("nargs"), get("action", "store"), None if choices is None else tuple(choices), get("default"), get("computed", False),
        get("const"), get("required", False), get("optional", False), get("bounds"), get("range"),
        None if later is None else tuple(later), tuple(get("hint", ())), get("env"), get("entry"), get("deprecated", False),
        get("note"),
    )  # fmt: skip


@cache
def options(engine: str) -> Options:
    """The options of an engine by its name in the contract.  Raises KeyError for a name that is none."""
    if engine not in ENGINES:
        raise KeyError(engine)
    return Options(load(f"engines/{engine}.json"))
