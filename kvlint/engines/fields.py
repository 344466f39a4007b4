"""From what a parser read to facts: written values, defaults, and the unknown where words are not known."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from kvlint.engines.argparse import Given
from kvlint.engines.base import World
from kvlint.engines.dialects.common import REFUSED, within
from kvlint.engines.options import options
from kvlint.facts import Default, Fact, Unknown, Value, Written
from kvlint.source import Text
from kvlint.units import GIB

Convert = Callable[[Any], Any]
# Into how many parts weights and caches are divided.
PARTS = frozenset(
    (
        *("tensor_parallel_size", "pipeline_parallel_size", "decode_context_parallel_size", "data_parallel_size"),
        *("tp_size", "pp_size", "dp_size", "attn_cp_size", "tp", "dp", "cp", "num_shard"),
    )
)
BLOCKS = frozenset(("block_size", "page_size", "cache_block_seq_len"))


class Fields:
    """Settings of one world by the parser's destination names."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._settings = world.reading.settings
        # words are spliced in unseen: an absent flag may be among them
        self.open = bool(world.reading.open or world.process.line.open)

    def given(self, dest: str) -> Given | None:
        return self.world.reading.settings.get(dest)

    def written(self, dest: str, convert: Convert | None = None) -> Value[Any] | None:
        """The value as given; None where the option is not given."""
        given = self._settings.get(dest)
        if given is None:
            return None
        typed = _number(given) if isinstance(given.typed, Unknown) else given.typed
        if isinstance(typed, Unknown):
            return typed
        if _cannot_be(given, typed):
            return REFUSED
        if dest in PARTS and isinstance(typed, int) and typed < 1:
            return Unknown(
                f"arguments.{dest}", f"nothing is divided into {typed} parts", "a number of parts above zero"
            )
        if dest in BLOCKS and isinstance(typed, int) and typed < 1:
            return Unknown(f"arguments.{dest}", f"blocks of {typed} tokens hold nothing", "tokens of a block")
        place = given.value if given.value is not None else given.name
        doubt = "splice" if self._spliced_after(given) else self._default_taken(place)
        origin = Written(place.span, place.via, doubt)
        value = convert(typed) if convert else typed
        return value if isinstance(value, Unknown) else Fact(value, origin)

    def value(self, dest: str, convert: Convert | None = None, default: Any = ...) -> Value[Any] | None:
        """The value as given, else the parser's default (`default` replaces it); None where that is None."""
        found = self.written(dest, convert) if dest in self._settings else None
        if found is not None:
            return found
        if self.open:
            return self.unseen(dest)
        found = _default(self.world.engine, self.world.releases, dest)
        if default is not ...:
            return None if default is None else Fact(default, found.origin)
        if found.value is None:
            return None
        return Fact(convert(found.value), found.origin) if convert else found

    def default(self, flag: str, value: Any) -> Value[Any]:
        """A default that the engine works out itself, absent the flag."""
        if self.open:
            return self.unseen(flag.lstrip("-").replace("-", "_"))
        return Fact(value, Default(self.world.engine, self.world.releases, flag))

    def unseen(self, dest: str) -> Unknown:
        flag = "--" + dest.replace("_", "-")
        return Unknown(
            f"arguments.{dest}", f"{flag} may be among arguments that are filled in elsewhere", f"write {flag}"
        )

    def _spliced_after(self, given: Given) -> bool:
        """Something unseen follows, and of a repeated flag the last wins."""
        if given.index is None:
            return False
        openings = self.world.process.line.open
        return any(opening.index > given.index for opening in openings) or bool(self.world.reading.open)

    def _default_taken(self, place: Text) -> str | None:
        assumed = self.world.process.line.assumed
        if not assumed:
            return None
        from kvlint.formats.shell import assumed_in

        return "default" if assumed_in(place, assumed) else None


@lru_cache(maxsize=4096)
def _default(engine: str, releases: tuple[str, ...], dest: str) -> Fact[Any]:
    """What the parser of the newest of `releases` puts in; of None where it has no such option, or no default for it."""
    option = options(engine).at(releases[-1]).storing(dest)
    name = option.name if option else f"--{dest.replace('_', '-')}"
    return Fact(option.default if option else None, Default(engine, releases, name))


def _number(given: Given) -> Any:
    """A whole number that the engine refuses is still the number that its author meant."""
    text, option = given.value, given.option
    listed = option.choices is not None and option.dest not in BLOCKS
    if listed or text is None or not text.known:
        return (
            given.typed
        )  # of a list of values nothing follows that is not in it, but pages have the size that is meant
    whole = option.type in ("int", "human_int") and text.value.isdigit()
    return int(text.value) if whole else given.typed


def _cannot_be(given: Given, typed: Any) -> bool:
    """A share or an amount outside of the option's own range: what would follow from it is not what anybody meant."""
    bounds = given.option.range
    return isinstance(typed, float) and bounds is not None and not within(bounds, typed)


def exact(number: Any) -> Fraction | Unknown:
    """A decimal as it is written; what is no finite number is a value that the engine refuses or never compares."""
    return _decimal(str(number))


@lru_cache(maxsize=1024)
def _decimal(text: str) -> Fraction | Unknown:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        return Unknown("argument", f"{text} is no number", "a number")


def gibibytes(number: Any) -> int | Unknown:
    found = exact(number)
    return found if isinstance(found, Unknown) else int(found * GIB)


def environment(world: World, name: str) -> Value[str] | None:
    """A variable that the engine reads; None where nobody sets it."""
    text = world.env.get(name)
    if text is None:
        return None
    if not text.known:
        hole = text.holes[0]
        return Unknown(f"environment.{name}", hole.reason, hole.supply or f"the value of {name}")
    return Fact(text.value, Written(text.span, text.via))
