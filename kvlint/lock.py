"""`kvlint.lock`: facts of the models in use, each at one revision, and figures that running engines printed.

The file is JSON with one fact a line, so that a change is a small diff.  `kvlint lock` writes it, everything else only reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Union

from kvlint.facts import Fact, Range, Receipt
from kvlint.files import Files, Unreadable, decode
from kvlint.records import dataclass
from kvlint.source import Source

if TYPE_CHECKING:
    from kvlint.subjects import ServerGroup

NAME = "kvlint.lock"
VERSION = 1
HEADER = "written by kvlint lock; run it again rather than edit this file"
MODEL_LEVELS, RECEIPT_LEVELS = 4, 3  # tables within tables that are written one entry a line

# What decides how much memory an engine leaves for its pool; a measured pool holds while these stay.
DECISIVE = (
    *("model", "draft_model", "quantization", "memory_fraction", "batched_tokens", "tensor_parallel"),
    *("pipeline_parallel", "enforce_eager", "cpu_offload_bytes"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One model.

    From the hub: `asked` is the revision that the command line names (None: the default branch), `revision` its commit.
    From a file: its `path` and the `sha256` of its text; relative to the project, or absolute where it lies outside.
    `config`: the fields of its configuration that matter; None for a file of the project, which is read itself.
    """

    id: str
    asked: str | None = None
    revision: str | None = None
    path: str | None = None
    sha256: str | None = None
    config: Mapping[str, Any] | None = None
    parameters: int | None = None
    weights_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as an engine printed it, a range where it was rounded, and the line of the log."""

    value: Union[int, Range]
    line: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """What the log of one start says of a server, and the settings that it was started with."""

    server: str
    log: str
    figures: Mapping[str, Figure]
    settings: Mapping[str, Any]

    def facts(self) -> dict[str, Fact[Any]]:
        return {name: Fact(each.value, Receipt(self.log, each.line)) for name, each in self.figures.items()}

    def changed(self, group: ServerGroup) -> list[str]:
        """Settings that are no longer what they were when the log was written."""
        now = decisive(group)
        return [name for name, value in self.settings.items() if name in now and now[name] != value]


@dataclass(frozen=True, slots=True)
class Lockfile:
    """The file as read; `broken` says why it cannot be used.

    `locks_models`: it has a list of models, and is not only the receipts of a project that does not lock them.
    """

    source: Source
    rows: tuple[Row, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    broken: str | None = None
    locks_models: bool = True

    def named(self, name: str) -> list[Row]:
        wanted = name.strip().strip("/").lower()
        return [row for row in self.rows if row.id.strip("/").lower() == wanted]

    def measured(self, server: str) -> Measurement | None:
        return next((each for each in self.measurements if each.server == server), None)


def decisive(group: ServerGroup) -> dict[str, Any]:
    """The decisive settings that are known and the same in all worlds, as the file has them."""
    found: dict[str, Any] = {}
    for name in DECISIVE:
        values = {_plain(world.settings.get(name)) for world in group.live}
        if len(values) == 1 and (value := values.pop()) is not None:
            found[name] = value
    return found


def _plain(fact: Any) -> Any:
    value = fact.value if isinstance(fact, Fact) else None
    if isinstance(value, Fraction):
        return float(value)
    return value if isinstance(value, (bool, int, str)) else None


def digest(data: bytes) -> str:
    """Of a text file's content, whatever its line ends: a checkout on Windows is no change."""
    from hashlib import sha256

    return sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def read(files: Files) -> Lockfile | None:
    """The lock at the root of a project; None where it has none."""
    if not files.exists(NAME):
        return None
    try:
        source = Source(NAME, decode(files.read(NAME)))
    except Unreadable as error:
        return Lockfile(Source(NAME, ""), broken=str(error))
    try:
        raw = json.loads(source.text)
        if not isinstance(raw, dict) or raw.get("version") != VERSION:
            raise ValueError(f"it is not version {VERSION} of this file")
        rows = tuple(_row(each) for each in _typed(raw, "models", list) or ())
        measurements = tuple(_measurement(each) for each in _typed(raw, "receipts", list) or ())
        return Lockfile(source, rows, measurements, locks_models="models" in raw)
    except (ValueError, RecursionError) as error:
        return Lockfile(source, broken=str(error))


def _row(raw: Any) -> Row:
    texts = {key: _typed(raw, key, str) for key in ("asked", "revision", "path", "sha256")}
    numbers = {key: _typed(raw, key, int) for key in ("parameters", "weights_bytes")}
    return Row(id=_required(raw, "id", str), config=_typed(raw, "config", dict), **texts, **numbers)


def _measurement(raw: Any) -> Measurement:
    figures = {name: _figure(each) for name, each in _required(raw, "figures", dict).items()}
    settings = _typed(raw, "settings", dict) or {}
    return Measurement(_required(raw, "server", str), _required(raw, "log", str), figures, settings)


def _figure(raw: Any) -> Figure:
    if isinstance(raw, dict) and "low" in raw:
        ends = [_required(raw, end, int) for end in ("low", "nominal", "high")]
        return Figure(Range(*ends), _required(raw, "line", int))
    return Figure(_required(raw, "value", int), _required(raw, "line", int))


def _typed(raw: Any, key: str, kind: type) -> Any:
    if not isinstance(raw, dict):
        raise ValueError(f"an object with {key} is expected")
    value = raw.get(key)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise ValueError(f"{key} is no {kind.__name__}")
    return value


def _required(raw: Any, key: str, kind: type) -> Any:
    value = _typed(raw, key, kind)
    if value is None:
        raise ValueError(f"{key} is missing")
    return value


def render(rows: Iterable[Row] | None, measurements: Iterable[Measurement]) -> str:
    """The file's text: sorted, so that the same facts give the same bytes.  Without rows it has no list of models."""
    parts = [f'"//": {json.dumps(HEADER)}', f'"version": {VERSION}']
    if rows is not None:
        models = sorted(rows, key=lambda row: (row.id.lower(), row.id, row.asked or "", row.path or ""))
        parts.append('"models": ' + _text([dict(_of_row(row)) for row in models], MODEL_LEVELS, "  "))
    receipts = sorted(measurements, key=lambda each: each.server)
    parts.append('"receipts": ' + _text([_of_measurement(each) for each in receipts], RECEIPT_LEVELS, "  "))
    return "{\n  " + ",\n  ".join(parts) + "\n}\n"


def _of_row(row: Row) -> Iterator[tuple[str, Any]]:
    """A row's facts that are known; dtype and layout follow from the configuration and stand there to be read by people."""
    for key in ("id", "asked", "revision", "path", "sha256", "parameters", "weights_bytes"):
        if (value := getattr(row, key)) is not None:
            yield key, value
    if row.config is not None:
        from kvlint.models.catalogue import lookup_config

        entry = lookup_config(row.config)
        if entry.dtype is not None:
            yield "dtype", entry.dtype
        if entry.quantization is not None:
            yield "quantization", entry.quantization.method
        if entry.kv_cache_dtype is not None:
            yield "kv_cache", entry.kv_cache_dtype
        yield "config", dict(sorted(row.config.items()))


def _of_measurement(each: Measurement) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, figure in sorted(each.figures.items()):
        value = figure.value
        ends = {"low": value.low, "nominal": value.nominal, "high": value.high} if isinstance(value, Range) else {}
        figures[name] = {**(ends or {"value": value}), "line": figure.line}
    return {
        "server": each.server,
        "log": each.log,
        "figures": figures,
        "settings": dict(sorted(each.settings.items())),
    }


def _text(value: Any, levels: int, indent: str) -> str:
    rows = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    if not levels or not (rows or (value and isinstance(value, dict))):
        return json.dumps(value, sort_keys=True)
    deeper = indent + "  "
    if isinstance(value, dict):
        entries = [f"{json.dumps(key)}: {_text(each, levels - 1, deeper)}" for key, each in value.items()]
    else:
        entries = [_text(each, levels - 1, deeper) for each in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return begin + "\n" + ",\n".join(deeper + each for each in entries) + "\n" + indent + end
