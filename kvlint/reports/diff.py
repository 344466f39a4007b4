"""Capacity before and after, server by server: for people, as Markdown for a review, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kvlint.capacity import MEASURES, Capacity, Floor, Measure, Pair, as_json, ends
from kvlint.facts import Fact, Unknown
from kvlint.records import dataclass
from kvlint.reports.escape import line, to_json
from kvlint.reports.json import plain
from kvlint.reports.markdown import code, prose
from kvlint.reports.origin import span_of
from kvlint.ruleset.messages import show

Style = Callable[[str, str], str]

LABELS = {
    "window": "window",
    "request_kv_bytes": "KV of one request",
    "pool_bytes": "KV pool",
    "max_concurrency": "requests that fit",
    "state_blocks": "state blocks",
    "batch_width": "batch width",
    "admitted": "admitted",
    "concurrency": "concurrency",
    "warm_slots": "warm slots",
    "headroom_bytes": "headroom",
    "longest_window": "longest window",
}
FLOOR_LABELS = {"min_warm_slots": "warm slots", "min_concurrency": "concurrency"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`base` and `head` as they were asked for; `head` is None for the work tree."""

    base: str
    head: str | None
    pairs: tuple[Pair, ...]
    floors: tuple[Floor, ...]

    @property
    def broken(self) -> bool:
        return any(floor.state == "broken" for floor in self.floors)

    @property
    def title(self) -> str:
        return f"{line(self.base)} → {line(self.head) if self.head is not None else 'work tree'}"


def render(comparison: Comparison, format_: str, style: Style) -> str:
    if format_ == "json":
        return to_json(plain(document(comparison)))
    return _markdown(comparison) if format_ == "markdown" else _text(comparison, style)


def document(comparison: Comparison) -> dict[str, Any]:
    return {
        "version": 1,
        "base": comparison.base,
        "head": comparison.head,
        "servers": [
            {
                "id": (pair.after or pair.before).id,  # type: ignore[union-attr]
                "status": pair.status,
                "before": _side(pair.before),
                "after": _side(pair.after),
            }
            for pair in comparison.pairs
        ],
        "floors": [
            {
                "server": floor.server,
                "floor": floor.name,
                "least": floor.least,
                "state": floor.state,
                **as_json(floor.measure),
            }
            for floor in comparison.floors
        ],
    }


def _side(side: Capacity | None) -> dict[str, Any] | None:
    if side is None:
        return None
    measures = {name: as_json(measure) for name, measure in side.measures.items()}
    limits = {"concurrency": list(side.binds), "length": list(side.length)}
    return {"id": side.id, "engine": side.engine, "model": side.model, "measures": measures, "limited_by": limits}


def _rows(pair: Pair) -> Iterator[tuple[str, str, str]]:
    """Label, before and after of everything that either side has; equal texts where nothing changed."""
    sides = (pair.before, pair.after)
    for name in MEASURES:
        found = [side.measures.get(name) if side else None for side in sides]
        borders = tuple(end for measure in found if measure for end in _ends(measure))
        if any(found):
            before, after = (words(measure, name, borders) if measure else "–" for measure in found)
            yield LABELS[name], before, after
        if name == "concurrency":
            before, after = (_limited(side) if side else "–" for side in sides)
            yield "limited by", before, after


def _limited(side: Capacity) -> str:
    parts = [" or ".join(side.binds) or "unknown"]
    if side.length not in ((), ("window",)):
        parts.append(f"one request by {' or '.join(side.length)}")
    return "; ".join(parts)


def _ends(measure: Measure) -> Iterator[Any]:
    for _, value in measure.readings:
        if isinstance(value, Fact):
            yield from ends(value.value)


def words(measure: Measure, name: str, borders: tuple[Any, ...] = ()) -> str:
    """A measure in words; readings that differ say for which releases they hold."""
    unit = MEASURES[name]
    if len(measure.readings) == 1:
        return _reading(measure.readings[0][1], unit, borders)
    return ", ".join(f"{_reading(value, unit, borders)} ({span_of(versions)})" for versions, value in measure.readings)


def _reading(value: Any, unit: str, borders: tuple[Any, ...]) -> str:
    if isinstance(value, Unknown):
        return f"unknown: {value.reason}; {value.supply}"
    return show(value.value, unit, borders=borders)


def _heads(pair: Pair) -> tuple[str, str]:
    """The server, and what is to be said of it beside its numbers."""
    side = pair.after or pair.before
    if side is None:
        return "", ""
    about = f"{side.engine}, {side.model}" if side.model else side.engine
    if pair.status in ("added", "removed"):
        return side.id, f"{about}; {pair.status}"
    if pair.before is not None and pair.before.id != side.id:
        return side.id, f"{about}; was {pair.before.id}"
    return side.id, about


def _floor_words(floor: Floor) -> str:
    name, measure = FLOOR_LABELS[floor.name], "warm_slots" if floor.name == "min_warm_slots" else "concurrency"
    least = show(floor.least, "ratio")
    if floor.state == "unknown":
        return f"at least {least} {name} cannot be judged: {floor.why}"
    if floor.why:
        return f"at least {least} {name} promised, but {floor.why}"
    return f"{words(floor.measure, measure, (floor.least,))} {name}, at least {least} promised"


_STATES = {"broken": "error", "doubtful": "warning", "unknown": "note"}


def _text(comparison: Comparison, style: Style) -> str:
    blocks = [comparison.title]
    blocks += ["\n".join(_block(pair, style)) for pair in comparison.pairs if pair.status != "unchanged"]
    told = [
        f"{style('floor ' + floor.state, _STATES[floor.state])}: {line(floor.server)}: {line(_floor_words(floor))}"
        for floor in comparison.floors
        if floor.state != "kept"
    ]
    if told:
        blocks.append("\n".join(told))
    blocks.append(_closing(comparison))
    return "\n\n".join(blocks) + "\n"


def _block(pair: Pair, style: Style) -> Iterator[str]:
    server, about = _heads(pair)
    yield f"{style(line(server), 'strong')}  {line(about)}"
    rows = list(_rows(pair))
    width = max(len(label) for label, _, _ in rows)
    for label, before, after in rows:
        if pair.status in ("added", "removed"):
            text = line(after if pair.after else before)
        else:
            text = line(after) if before == after else f"{line(before)} → {style(line(after), 'strong')}"
        yield f"  {label.ljust(width)}  {text}"


def _closing(comparison: Comparison) -> str:
    statuses = [pair.status for pair in comparison.pairs]
    counts = [
        f"{statuses.count(each)} {each}" for each in ("changed", "added", "removed", "unchanged") if each in statuses
    ]
    kept = sum(floor.state == "kept" for floor in comparison.floors)
    floors = f"; {kept} of {len(comparison.floors)} floors kept" if comparison.floors else ""
    return ("servers: " + ", ".join(counts) if counts else "no servers") + floors


def _markdown(comparison: Comparison) -> str:
    parts = [f"## Capacity: {prose(comparison.base)} → {prose(comparison.head or 'work tree')}", ""]
    for pair in comparison.pairs:
        if pair.status == "unchanged":
            continue
        server, about = _heads(pair)
        parts += [f"### {code(server)}", "", prose(about), "", "| | before | after |", "|---|---|---|"]
        parts += [
            f"| {label} | {_cell(before)} | {_cell(after, bold=before != after)} |"
            for label, before, after in _rows(pair)
        ]
        parts.append("")
    for floor in comparison.floors:
        if floor.state != "kept":
            parts += [f"- **floor {floor.state}**: {code(floor.server)}: {prose(_floor_words(floor))}"]
    if any(floor.state != "kept" for floor in comparison.floors):
        parts.append("")
    return "\n".join((*parts, _closing(comparison))) + "\n"


def _cell(text: str, *, bold: bool = False) -> str:
    shown = prose(text)
    return f"**{shown}**" if bold else shown
