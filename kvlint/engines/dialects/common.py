"""What every dialect needs: words with their places, values by type, and the checks made after parsing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kvlint.engines import values
from kvlint.engines.argparse import Given, Objection, Reading
from kvlint.engines.options import Option, Options
from kvlint.facts import Unknown
from kvlint.records import dataclass, field
from kvlint.source import HOLE, Text

UNSEEN = Unknown("argument", "the value is not known from the files", "write the value out")
REFUSED = Unknown("argument", "the engine refuses the value", "give a value that it takes")

# Phases of a parser, in the order in which a refusal would be seen.
BEFORE, CLASSIFY, CONSUME, REQUIRED, EXTRA, AFTER = range(6)


class Word(NamedTuple):
    """One word: `value` as the parser sees it (names normalised, same length as the text's), `text` its place."""

    value: str
    text: Text
    at: int | None  # index in the argument list, None from a file
    source: str = "argument"

    @property
    def splice(self) -> bool:
        """Stands for words that are not known: how many, and whether any is an option.

        A hole with text beside it is a part of one word: `$HOME/models/x` is a path, whatever stands for `$HOME`.
        """
        return HOLE in self.value and not self.value.strip(HOLE) and any(hole.splice for hole in self.text.holes)


def words_of(args: Iterable[Text]) -> list[Word]:
    return [Word(text.value, text, index) for index, text in enumerate(args)]


@dataclass(slots=True)
class Sheet:
    """A reading under way."""

    options: Options
    release: str
    given: list[Given] = field(default_factory=list)
    positionals: list[Text] = field(default_factory=list)
    found: list[tuple[int, int, Objection]] = field(default_factory=list)
    open: list[Text] = field(default_factory=list)
    settings: dict[str, Given] = field(default_factory=dict)

    def object(
        self,
        phase: int,
        kind: str,
        place: Text | None,
        *,
        option: Option | None = None,
        stage: str = "parser",
        **data: Any,
    ) -> None:
        self.found.append((phase, len(self.found), Objection(kind, place, stage, option, data)))

    def give(
        self, option: Option, name: Word, spelling: str, texts: Sequence[Text], raw: Sequence[str] | None = None
    ) -> Given:
        """Record an option with its values, converted."""
        typed = self._typed(option, name.text, spelling, texts, [t.value for t in texts] if raw is None else raw)
        given = Given(option, name.text, spelling, tuple(texts), typed, name.at, name.source)
        self.given.append(given)
        self.settings[option.dest] = given
        return given

    def _typed(self, option: Option, name: Text, spelling: str, texts: Sequence[Text], raw: Sequence[str]) -> Any:
        if option.nargs == 0:
            return not option.turns_off(spelling)
        if not texts:
            return [] if option.nargs == "*" else option.const
        typed = [self.convert(option, text, value, spelling) for text, value in zip(texts, raw, strict=True)]
        if option.action == "append":
            before = self.settings.get(option.dest)
            return [*(before.typed if before else []), *typed]
        if option.type == "key_values":
            return dict(pair for pair in typed if isinstance(pair, tuple))
        return typed if option.nargs in ("+", "*", 2) else typed[0]

    def convert(self, option: Option, text: Text, raw: str, spelling: str) -> Any:
        """The value of one word, or what stands for one that is unknown or refused (an objection is made)."""
        if HOLE in raw:
            return UNSEEN
        try:
            value = value_of(self.options, self.release, option, raw)
        except values.Malformed as refused:
            self._refuse(option, text, raw, spelling, expects=refused.expects, why=refused.reason)
            return REFUSED
        if option.choices is not None and value not in option.choices and not (value is None and option.optional):
            self.object(
                CONSUME, "malformed-value", text, option=option, value=raw, choices=option.choices, flag=spelling
            )
            return REFUSED
        if option.limits and not within(option.limits, value):
            self.object(
                CONSUME, "malformed-value", text, option=option, value=raw, range=dict(option.limits), flag=spelling
            )
            return REFUSED
        return value

    def _refuse(self, option: Option, text: Text, raw: str, spelling: str, **data: Any) -> None:
        self.object(CONSUME, "malformed-value", text, option=option, value=raw, flag=spelling, **data)

    def reading(self) -> Reading:
        check_ranges(self)
        check_guards(self)
        problems = tuple(objection for _, _, objection in sorted(self.found, key=lambda item: item[:2]))
        return Reading(
            self.release, tuple(self.given), tuple(self.positionals), problems, self.settings, tuple(self.open)
        )


def effect(options: Options, release: str, option: Option, spelling: str, words: Sequence[str]) -> Any:
    """What decides the outcome of `option` followed by `words`; equal for records that differ in nothing that shows."""
    if option.nargs == 0 and option.action in ("store_true", "BooleanOptionalAction"):
        return option.dest, option.turns_off(spelling)
    whole = tuple([repr(getattr(option, name)) for name in _DECISIVE])
    if option.type.startswith("json:"):
        return whole, options.shape(option.type[len("json:") :], release)
    if option.nargs is not None or option.action != "store" or len(words) != 1 or HOLE in words[0] or "." in spelling:
        return whole
    try:
        value = value_of(options, release, option, words[0])
    except values.Malformed:
        return whole
    allowed = option.choices is None or value in option.choices or (value is None and option.optional)
    kept = not option.limits or within(option.limits, value)
    late = (not option.range or within(option.range, value)) and (option.later is None or value in option.later)
    # A choice that no release of a class has is refused by all of them; the newest says what it would take.
    return (option.dest, repr(value), allowed) if kept and late else whole


_DECISIVE = (
    "dest", "type", "nargs", "action", "choices", "const", "optional", "limits", "range", "later",
)  # fmt: skip


def value_of(options: Options, release: str, option: Option, raw: str) -> Any:
    """The value of `raw` for an option.  Raises `values.Malformed`."""
    if option.optional and raw in ("", "None"):
        return None
    if option.type.startswith("json:"):
        return _shaped(options, release, option.type[len("json:") :], raw)
    return values.convert(option.type, raw)


def _shaped(options: Options, release: str, name: str, raw: str) -> Any:
    """A JSON object read into a config class: unknown keys are refused or dropped, as that release does."""
    if name == "CompilationConfig" and options.feature("compilation_number", release) and raw in ("0", "1", "2", "3"):
        return {"level": int(raw)}
    value = values.load_json(values.expand_numbers(raw) if options.feature("json_human", release) else raw)
    if not isinstance(value, dict):
        raise values.Malformed("a JSON object")
    shape = options.shape(name, release)
    if shape is None:
        return value
    unknown = [key for key in value if key not in shape.keys]
    if unknown and shape.strict:
        raise values.Malformed("known keys only", f"{name} has no key {unknown[0]}")
    for key, limits in shape.ranges:
        if isinstance(value.get(key), (int, float)) and not within(dict(limits), value[key]):
            raise values.Malformed(f"{key} in its range")
    return {key: item for key, item in value.items() if key not in unknown}


def within(limits: Mapping[str, float], value: Any) -> bool:
    """Whether a number keeps its limits; what is no number is not judged, nan keeps none."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            return False
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return True
    tests = {
        "ge": lambda limit: value >= limit,
        "gt": lambda limit: value > limit,
        "le": lambda limit: value <= limit,
        "lt": lambda limit: value < limit,
        "ne": lambda limit: value != limit,
    }
    return all(tests[name](limit) for name, limit in limits.items())


def check_ranges(sheet: Sheet) -> None:
    """What config classes and start functions check in the values that won."""
    for given in sheet.settings.values():
        option, typed = given.option, given.typed
        if isinstance(typed, Unknown) or typed is None or not given.values:
            continue
        if option.range and not within(option.range, typed):
            _later(sheet, "out-of-range", given, range=dict(option.range))
        elif option.later is not None and typed not in option.later:
            _later(sheet, "malformed-value", given, choices=option.later)


def _later(sheet: Sheet, kind: str, given: Given, **data: Any) -> None:
    place = given.values[0]
    sheet.object(AFTER, kind, place, option=given.option, stage="post", value=place.value, flag=given.spelling, **data)


def check_guards(sheet: Sheet) -> None:
    """Conditions on several options, from the engine's data."""
    for guard in sheet.options.guards_at(sheet.release):
        if not _applies(sheet, guard):
            continue
        if "given" in guard:
            _guard_pair(sheet, guard)
        elif "at_most" in guard:
            _guard_order(sheet, guard["at_most"][0], guard["at_most"][1], bool(guard.get("both")))
        elif "divides" in guard:
            _guard_whole(sheet, *guard["divides"])
        elif "one_of" in guard and not sheet.open and not any(_set(sheet, dest) for dest in guard["one_of"]):
            _missing(sheet, guard["one_of"])


def _applies(sheet: Sheet, guard: Mapping[str, Any]) -> bool:
    """Whether the engine asks at all: `beside` is set, the number of `above_one` or `not_above_one` is so."""
    if "beside" in guard and not _set(sheet, guard["beside"]):
        return False
    for key, wanted in (("above_one", True), ("not_above_one", False)):
        given = sheet.settings.get(guard[key]) if key in guard else None
        if key in guard and given is None and (wanted or sheet.open):
            return False
        typed = given.typed if given else 1
        if key in guard and (not isinstance(typed, int) or (typed > 1) != wanted):
            return False
    return True


def _set(sheet: Sheet, dest: str) -> Given | None:
    given = sheet.settings.get(dest)
    return given if given is not None and given.typed not in (None, False, "", 0) else None


def _guard_pair(sheet: Sheet, guard: Mapping[str, Any]) -> None:
    given = _set(sheet, guard["given"])
    if given is None or isinstance(given.typed, Unknown):
        return
    needs, forbids = guard.get("needs"), guard.get("forbids")
    if needs and not _set(sheet, needs) and not sheet.open:
        why = f"it needs {_spelled(needs)}"
        sheet.object(
            AFTER, "conflict", given.name, option=given.option, stage="post", needs=needs, flag=given.spelling, why=why
        )
    if forbids and _set(sheet, forbids):
        why = f"it does not go with {_spelled(forbids)}"
        sheet.object(
            AFTER,
            "conflict",
            given.name,
            option=given.option,
            stage="post",
            forbids=forbids,
            flag=given.spelling,
            why=why,
        )


def _guard_whole(sheet: Sheet, part: str, whole: str) -> None:
    """The number of `whole` must be a multiple of that of `part`."""
    given, other = sheet.settings.get(part), sheet.settings.get(whole)
    if given is None or not given.values or (other is None and sheet.open):
        return
    end = other.typed if other else sheet.options.default(whole, sheet.release)
    if isinstance(given.typed, int) and isinstance(end, int) and given.typed > 0 and end % given.typed:
        unset = "" if other else ", its default"
        why = f"it does not divide {_spelled(whole)}, {end:,}{unset}"
        _later(sheet, "out-of-range", given, divides=whole, why=why)


def _guard_order(sheet: Sheet, lower: str, upper: str, both: bool) -> None:
    """`both`: judged only where both are given, since a default is worked out later."""
    ends = []
    for dest in (lower, upper):
        given = sheet.settings.get(dest)
        if given is None and (both or sheet.open):
            return
        ends.append(given.typed if given else sheet.options.default(dest, sheet.release))
    if all(isinstance(end, (int, float)) for end in ends) and ends[0] > ends[1]:
        given = sheet.settings.get(lower) or sheet.settings.get(upper)
        if given and given.values:
            which = "above" if given.dest == lower else "below"
            other, end = (upper, ends[1]) if which == "above" else (lower, ends[0])
            unset = "" if sheet.settings.get(other) else ", its default"
            why = f"it is {which} {_spelled(other)}, {end:,}{unset}"
            _later(sheet, "out-of-range", given, above=upper, limit=ends[1], why=why)


def _spelled(dest: str) -> str:
    return "the model" if dest == "model" else "--" + dest.replace("_", "-")


def _missing(sheet: Sheet, dests: Sequence[str]) -> None:
    sheet.object(
        AFTER, "missing-model" if "model" in dests else "missing-argument", None, stage="post", needs=tuple(dests)
    )
