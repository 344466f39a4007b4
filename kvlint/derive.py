"""The derived values for other programs to read: JSON, TOML, a Nix attribute set, or lines for an environment.

Only what is known stands as a value.  A range has its two ends and the likeliest number; what is unknown, or differs between the
releases that a line may run on, is a comment that says why (in JSON: `unknown`, `worlds`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from kvlint.capacity import Measure, across
from kvlint.evaluation import Evaluation
from kvlint.facts import Fact, Range, Unknown, Value
from kvlint.records import dataclass
from kvlint.reports.escape import line, to_json, well_formed
from kvlint.reports.json import plain
from kvlint.reports.origin import span_of
from kvlint.sizing.server import DERIVED
from kvlint.subjects import Server, ServerGroup

PREFIX = "KVLINT"


@dataclass(frozen=True, slots=True)
class Derivation:
    """The derived values of one server, by name in the contract's order."""

    id: str
    engine: str
    model: str | None
    values: Mapping[str, Measure]


def derivations(evaluation: Evaluation) -> list[Derivation]:
    """Every server in focus."""
    project = evaluation.project
    return [_derivation(group) for group in evaluation.groups if project.in_focus(group.first.program.path)]


def _derivation(group: ServerGroup) -> Derivation:
    model = group.live[0].settings.get("model")
    found = {name: across(group, partial(_sized, name)) for name in DERIVED}
    return Derivation(
        group.id,
        group.first.engine,
        str(model.value) if isinstance(model, Fact) else None,
        {name: measure for name, measure in found.items() if measure is not None and not _nothing(measure)},
    )


def _sized(name: str, world: Server) -> Value[Any] | None:
    return world.sizing.get(name)


def _nothing(measure: Measure) -> bool:
    return isinstance(measure.only, Fact) and measure.only.value is None


def render(found: list[Derivation], format_: str) -> str:
    return FORMATS[format_](found)


def _json(found: list[Derivation]) -> str:
    servers = [
        {
            "id": each.id,
            "engine": each.engine,
            "model": each.model,
            "values": {name: _value(measure) for name, measure in each.values.items() if not _why(measure)},
            "unknown": {name: why for name, measure in each.values.items() if (why := _why(measure))},
        }
        for each in found
    ]
    return to_json(plain({"version": 1, "servers": servers}))


def _value(measure: Measure) -> Any:
    if isinstance(measure.only, Fact):
        return measure.only.value
    rows = measure.readings
    return {"worlds": [{"versions": list(versions), **_reading(value)} for versions, value in rows]}


def _reading(value: Any) -> dict[str, Any]:
    return {"unknown": _reason(value)} if isinstance(value, Unknown) else {"value": value.value}


def _why(measure: Measure) -> str:
    """Why a number is unknown whatever the release; empty where some release knows it."""
    value = measure.only
    return _reason(value) if isinstance(value, Unknown) else ""


def _reason(value: Unknown) -> str:
    return f"{value.reason}; {value.supply}"


def _known(each: Derivation) -> Iterator[tuple[str, Any]]:
    for name, measure in each.values.items():
        if isinstance(measure.only, Fact):
            yield name, measure.only.value


def _comments(each: Derivation) -> Iterator[str]:
    """Why the other numbers do not stand there, those of one reason together."""
    reasons: dict[str, list[str]] = {}
    for name, measure in each.values.items():
        if isinstance(measure.only, Unknown):
            reasons.setdefault(_why(measure), []).append(name)
        elif measure.only is None:
            texts = (f"{_words(value)} ({span_of(versions)})" for versions, value in measure.readings)
            yield f"# {name} differs between releases: {line(', '.join(texts))}"
    yield from (f"# unknown: {', '.join(names)}: {line(reason)}" for reason, names in reasons.items())


def _words(value: Any) -> str:
    if isinstance(value, Unknown):
        return "unknown"
    return " to ".join(number(end) for end in _ends(value.value).values())


def _ends(value: Any) -> dict[str, Any]:
    return {"low": value.low, "nominal": value.nominal, "high": value.high} if isinstance(value, Range) else {"": value}


def number(value: Any) -> str:
    """A number without an exponent, which neither Nix nor a shell reads."""
    if isinstance(value, int):
        return str(value)
    exact = Fraction(value)
    if exact.denominator == 1:
        return str(exact.numerator)
    text = format(Decimal(repr(float(exact))), "f")
    return text if "." in text else f"{text}.0"


def _toml(found: list[Derivation]) -> str:
    lines = ["# written by `kvlint derive`"]
    for each in found:
        lines += ["", f"[{_toml_text(each.id)}]"]
        lines += (f"{name} = {_toml_value(value)}" for name, value in _known(each))
        lines += _comments(each)
    return "\n".join(lines) + "\n"


def _toml_text(text: str) -> str:
    return json.dumps(well_formed(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_value(value: Any) -> str:
    if not isinstance(value, Range):
        return number(value)
    return "{" + ", ".join(f"{name} = {number(end)}" for name, end in _ends(value).items()) + "}"


def _nix(found: list[Derivation]) -> str:
    lines = ["# written by `kvlint derive`", "{"]
    for each in found:
        lines.append(f"  {_nix_text(each.id)} = {{")
        lines += (f"    {name} = {_nix_value(value)};" for name, value in _known(each))
        lines += (f"    {comment}" for comment in _comments(each))
        lines.append("  };")
    return "\n".join((*lines, "}")) + "\n"


_NIX_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _nix_text(text: str) -> str:
    shown = "".join(_NIX_ESCAPES.get(character, character) for character in well_formed(text).replace("\0", ""))
    return '"' + shown.replace("${", "\\${") + '"'


def _nix_value(value: Any) -> str:
    if not isinstance(value, Range):
        return number(value)
    return "{ " + " ".join(f"{name} = {number(end)};" for name, end in _ends(value).items()) + " }"


def _env(found: list[Derivation]) -> str:
    lines = ["# written by `kvlint derive`"]
    for each, name in zip(found, _variables(found), strict=True):
        lines += ["", f"# {line(each.id)}"]
        for quantity, value in _known(each):
            lines += _assignments(f"{PREFIX}_{name}_{quantity.upper()}", value)
        lines += _comments(each)
    return "\n".join(lines) + "\n"


def _assignments(name: str, value: Any) -> list[str]:
    return [f"{name}{'_' + end.upper() if end else ''}={number(each)}" for end, each in _ends(value).items()]


def _variables(found: list[Derivation]) -> list[str]:
    """What names each server in a variable: its name, or its whole id where names are alike; a number tells the rest apart."""
    names = [_variable(each.id.partition("#")[2]) for each in found]
    chosen = [
        name if name and names.count(name) == 1 else _variable(each.id) for name, each in zip(names, found, strict=True)
    ]
    taken: dict[str, int] = {}
    result = []
    for name in chosen:
        taken[name] = taken.get(name, 0) + 1
        result.append(name if taken[name] == 1 else f"{name}_{taken[name]}")
    return result


def _variable(text: str) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")


FORMATS: Mapping[str, Callable[[list[Derivation]], str]] = {"json": _json, "toml": _toml, "nix": _nix, "env": _env}
