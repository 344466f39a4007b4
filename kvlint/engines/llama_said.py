"""What a llama-server is told: its flags, else the LLAMA_ARG_ variables that stand for them; a flag beats its variable.

llama.cpp common/arg.cpp, `common_params_parse_ex` and `common_arg::get_value_from_env`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kvlint import engines
from kvlint.engines import values
from kvlint.engines.argparse import Given
from kvlint.engines.base import World
from kvlint.engines.fields import Convert, Fields
from kvlint.engines.options import Option, options
from kvlint.facts import Default, Fact, Unknown, Value, Written
from kvlint.patterns import regex
from kvlint.source import Text
from kvlint.subjects import Problem

NAME = "llama-server"
PREFIX, NEGATIVE = "LLAMA_ARG_", "LLAMA_ARG_NO_"
ON, OFF = ("on", "enabled", "true", "1"), ("off", "disabled", "false", "0")
NUMBERS = ("leading_int", "leading_unsigned")
SUFFIXES = {"k": 1024, "m": 1024**2}  # what is meant by `32k` of tokens
_UNIT = regex(r"\s*[+-]?\d+(?P<rest>\D.*)", re.DOTALL)
_ZEROS = regex(r"\.0*")  # `0.0` is the 0 that was meant


class Said:
    """Settings of one world by the parser's destination names; several names are spellings of one over the builds."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.fields = Fields(world)
        self.problems: list[Problem] = []
        heard = options(NAME).environment
        variables = any(name in heard or name.replace(NEGATIVE, PREFIX, 1) in heard for name in world.env)
        self._flags_only = not (self.fields.open or world.process.line.env_open or variables)
        self._table = options(NAME).at(world.releases[-1])

    def value(self, *dests: str, convert: Convert | None = None) -> Value[Any] | None:
        """The value as written; None where nobody says it, `Unknown` where that cannot be seen."""
        for dest in dests:
            found = self.fields.written(dest, convert)
            if found is not None:
                return found
        if self._flags_only:
            return None
        for dest in dests:
            found = self._variable(dest, convert)
            if found is not None:
                return found
        return self.unseen(dests[0])

    def text(self, *dests: str) -> Text | None:
        """The words themselves."""
        for dest in dests:
            given = self.fields.given(dest)
            if given is not None and given.value is not None:
                return given.value
        if self._flags_only:
            return None
        found = (self._environment(option) for dest in dests if (option := self._option(dest)))
        return next((text for _, text in filter(None, found)), None)

    def default(self, flag: str, value: Any) -> Fact[Any]:
        return Fact(value, Default(NAME, self.world.releases, flag))

    def unseen(self, dest: str) -> Unknown | None:
        """The doubt where flags or variables may be set in places that are not seen."""
        if self.fields.open:
            return self.fields.unseen(dest)
        option = self._option(dest)
        if self.world.process.line.env_open and option is not None and option.env:
            reason = f"{option.env} may be among variables that are set elsewhere"
            return Unknown("environment", reason, f"write {option.name}")
        return None

    def check(self) -> Iterator[Problem]:
        """What was met on the way, numbers with units, flags and variables that disagree, variables that nothing reads."""
        yield from self.problems
        for given in self.world.reading.options:
            yield from _unit(given)
        for given in self.world.reading.settings.values():
            yield from self._overridden(given)
        yield from self._unread()

    def _option(self, dest: str) -> Option | None:
        return self._table.storing(dest)

    def _environment(self, option: Option) -> tuple[str, Text] | None:
        """The variable that is heard for an option; the negative one is heard first, whatever it says."""
        if option.env is None:
            return None
        names = [option.env.replace(PREFIX, NEGATIVE, 1)] if option.off else []
        return next(((name, self.world.env[name]) for name in (*names, option.env) if name in self.world.env), None)

    def _variable(self, dest: str, convert: Convert | None) -> Value[Any] | None:
        option = self._option(dest)
        found = self._environment(option) if option is not None else None
        if option is None or found is None:
            return None
        name, text = found
        if not text.known:
            hole = text.holes[0]
            return Unknown(f"environment.{name}", hole.reason, hole.supply or f"the value of {name}")
        value = False if name.startswith(NEGATIVE) and name != option.env else self._typed(option, name, text)
        if value is None or isinstance(value, Unknown):
            return value
        value = convert(value) if convert else value
        return value if isinstance(value, Unknown) else Fact(value, Written(text.span, text.via))

    def _typed(self, option: Option, name: str, text: Text) -> Any:
        if option.nargs == 0:
            if text.value in ON:
                return True
            if not option.off:
                return None
            return False if text.value in OFF else self._refuse(name, text, "on or off")
        try:
            value = values.convert(option.type, text.value)
        except values.Malformed as refused:
            return self._refuse(name, text, refused.expects)
        if option.choices is not None and value not in option.choices:
            return self._refuse(name, text, " or ".join(map(str, option.choices)))
        return value

    def _refuse(self, name: str, text: Text, expects: str) -> Unknown:
        data = {"engine": NAME, "flag": name, "value": text.value, "expects": expects, "refuses": True}
        self.problems.append(Problem("malformed-value", text.span, data))
        return Unknown(f"environment.{name}", f"{NAME} refuses {text.value!r}", f"a value that {name} takes")

    def _overridden(self, given: Given) -> Iterator[Problem]:
        found = self._environment(given.option)
        if found is None or given.value is None or not (given.value.known and found[1].known):
            return
        name, text = found
        if text.value != given.value.value:
            data = {
                "engine": NAME,
                "flag": given.spelling,
                "value": text.value,
                "variable": name,
                "winner": given.spelling,
            }
            yield Problem("overridden-flag", text.span, data, (("counterpart", given.value.span, "this is used"),))

    def _unread(self) -> Iterator[Problem]:
        image = self.world.process.line.image
        if image is not None and engines.of_image(image.value) is None:
            return
        for name, text in self.world.env.items():
            near = misnamed(name)
            if near is not None and not self.world.process.line.names(name):
                data = {"engine": NAME, "variable": name, "suggestion": near}
                yield Problem("unknown-environment", text.span, data)


def misnamed(name: str) -> str | None:
    """The variable that a name was probably meant to be; None for one that llama-server reads, or that is none of its."""
    known = options(NAME).environment
    if not name.startswith("LLAMA_") or name in known or name.replace(NEGATIVE, PREFIX, 1) in known:
        return None
    if not name.startswith(PREFIX):
        meant = PREFIX + name.removeprefix("LLAMA_")
        return meant if meant in known else None
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.75)), None)


def _unit(given: Given) -> Iterator[Problem]:
    """A number of which only the digits in front are read: `32k` is 32."""
    text = given.value
    if given.option.type not in NUMBERS or text is None or not text.known or not isinstance(given.typed, int):
        return
    found = _UNIT.fullmatch(text.value)
    rest = found["rest"].strip() if found else ""
    if not rest or _ZEROS.fullmatch(rest):
        return
    data: dict[str, Any] = {"engine": NAME, "flag": given.spelling, "value": text.value, "effective": str(given.typed)}
    if rest.lower() in SUFFIXES:
        data["suggestion"] = str(given.typed * SUFFIXES[rest.lower()])
    yield Problem("suffix-not-understood", text.span, data)
