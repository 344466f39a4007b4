"""`kvlint.toml`, or `[tool.kvlint]` in `pyproject.toml`: every key with its place, unknown ones refused with a suggestion."""

from __future__ import annotations

import datetime
import posixpath
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from kvlint.config_limits import BOUNDS, Refused, in_coefficient, in_table
from kvlint.facts import Fact, Written
from kvlint.globs import matches_path, matches_server
from kvlint.records import dataclass, field
from kvlint.source import Source, Span
from kvlint.tree import List, Map, Node, Scalar
from kvlint.units import parse_size

SEVERITIES = ("error", "warning", "note", "off")
REUSE = ("conversation", "none")
FAIL_ON = ("error", "warning", "note", "never")

# What a key holds: read by `_READERS`, and by scripts/build_schema.py for the JSON Schema.
TOP: dict[str, str] = {
    "select": "texts",
    "ignore": "texts",
    "exclude": "texts",
    "fail_on": "fail_on",
}
TABLES: dict[str, dict[str, str]] = {
    "hardware": {
        "match": "text",
        "device": "device",
        "memory": "memory",
        "count": "count",
        "unified": "flag",
        "ceiling": "memory",
        "budget": "memory",
        "available_kv": "remainder",
        "free": "remainder",
        "loaded_free": "remainder",
        "capability": "capability",
    },
    "workload": {
        "match": "text",
        "window": "tokens",
        "streams": "count",
        "tokens": "tokens",
        "max_output": "tokens",
        "reuse": "reuse",
        "shared_prefix": "prefix",
    },
    "engine": {"match": "text", "name": "engine", "version": "text"},
    "model": {"id": "text", "config": "text", "weights": "size"},
    "parity": {"name": "text", "equal": "texts", "at_most": "texts", "severity": "severity"},
    "derived": {"at": "text", "is": "text", "at_most": "text"},
    "ignore": {"rule": "text", "at": "text", "reason": "text", "until": "date"},
    "per_file_ignore": {"match": "text", "rules": "texts"},
    "floor": {"match": "text", "min_warm_slots": "floor", "min_concurrency": "floor"},
}
REQUIRED: dict[str, tuple[str, ...]] = {
    "hardware": ("match",),
    "workload": ("match",),
    "engine": ("match",),
    "model": ("id",),
    "derived": ("at",),
    "ignore": ("at",),
    "per_file_ignore": ("match",),
    "floor": ("match",),
}
COEFFICIENT: dict[str, str] = {
    "value": "number",
    "low": "number",
    "nominal": "number",
    "high": "number",
    "reason": "text",
}
SIZES = ("size", "memory", "remainder")  # kinds of BOUNDS that take a unit
ENGINE_NAMES = ("mlx-lm", "vllm-mlx", "vllm", "sglang", "llama-server", "ollama", "tgi", "trtllm", "lmdeploy")


class ConfigError(Exception):
    """A configuration that cannot be used, with its place; the command ends with status 2."""

    def __init__(self, message: str, span: Span | None = None, path: str = "") -> None:
        place = f"{span.path}:{span.line}:{span.column}: " if span else f"{path}: " if path else ""
        super().__init__(place + message)


@dataclass(frozen=True, slots=True)
class Table:
    """One `[[table]]`: its values as facts, by key."""

    kind: str
    values: dict[str, Fact[Any]]
    span: Span

    def get(self, key: str) -> Any:
        found = self.values.get(key)
        return None if found is None else found.value

    def __contains__(self, key: str) -> bool:
        return key in self.values


@dataclass(frozen=True, slots=True)
class Config:
    """What the project says; `path` is relative to the project's root, patterns are relative to `path`'s directory."""

    path: str | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    fail_on: str | None = None
    severity: dict[str, str] = field(default_factory=dict)
    coefficients: dict[str, dict[str, Fact[Any]]] = field(default_factory=dict)
    tables: dict[str, tuple[Table, ...]] = field(default_factory=dict)
    named: dict[str, Span] = field(default_factory=dict)  # rules and themes that it names, each with a place

    def all(self, kind: str) -> tuple[Table, ...]:
        return self.tables.get(kind, ())

    def matching(self, kind: str, server_id: str, engine: str | None = None) -> dict[str, Fact[Any]]:
        """The merged values of every `[[kind]]` whose `match` covers the server, later tables winning key by key.

        `engine`: what names another one is not meant.
        """
        merged: dict[str, Fact[Any]] = {}
        for table in self.all(kind):
            other = engine is not None and table.get("name") not in (None, engine)
            if not other and matches_server(table.get("match"), server_id):
                merged.update(table.values)
        merged.pop("match", None)
        return merged

    def named_engines(self) -> tuple[str, ...]:
        """Path patterns under which `[[engine]]` names what no file may say; one for every file leads to none."""
        matches = (table.get("match").partition("#")[0] for table in self.all("engine") if "name" in table)
        return tuple(pattern for pattern in matches if pattern.strip("*/."))

    def excluded(self, path: str) -> bool:
        return any(matches_path(pattern, path) for pattern in self.exclude)


def load(source: Source, *, table: bool = False) -> Config:
    """Read a configuration; `table`: it is a `pyproject.toml` and ours is `[tool.kvlint]`.  Raises `ConfigError`."""
    from kvlint.formats import toml

    document = toml.parse(source)
    if document.problem is not None:
        raise ConfigError(document.problem.message, document.problem.span)
    root = document.node
    if table:
        root = root.get("tool", "kvlint") if isinstance(root, Map) else None
    if root is None:
        return Config(path=source.path)
    if not isinstance(root, Map):
        raise ConfigError("[tool.kvlint] must be a table", path=source.path)
    return _config(source.path, root)


def holds_table(data: bytes) -> bool:
    """Whether a `pyproject.toml` has a table of ours, without parsing it."""
    return b"tool.kvlint" in data or (b"kvlint" in data and b"[tool]" in data)


def _config(path: str, root: Map) -> Config:
    values: dict[str, Any] = {}
    tables: dict[str, tuple[Table, ...]] = {}
    severity: dict[str, str] = {}
    coefficients: dict[str, dict[str, Fact[Any]]] = {}
    named: dict[str, Span] = {}
    for entry in root:
        key, node = entry.key.value, entry.value
        if key == "severity":
            severity = {name: fact.value for name, fact in _open_table(node, "severity").items()}
            named |= {rule.key.value: rule.key.span for rule in node} if isinstance(node, Map) else {}
        elif key == "coefficients":
            coefficients = dict(_coefficients(node))
        elif key in TABLES and isinstance(node, List) and (not node.items or isinstance(node.items[0], Map)):
            tables[key] = tuple(_table(key, item, path.rpartition("/")[0]) for item in node)
        elif key in TOP:
            values[key] = _READERS[TOP[key]](node)
            named |= _texts_at(node) if key in ("select", "ignore") else {}
        elif key in TABLES:
            raise ConfigError(f"{key} is a list of tables: write [[{key}]]", entry.key.span)
        else:
            known = (*TOP, *TABLES, "severity", "coefficients")
            raise ConfigError(_unknown(key, known), entry.key.span)
    if "exclude" in values:
        values["exclude"] = tuple(_from(path.rpartition("/")[0], pattern) for pattern in values["exclude"])
    for table in tables.get("per_file_ignore", ()):
        named |= dict.fromkeys(table.get("rules") or (), table.span)
    return Config(path=path, severity=severity, coefficients=coefficients, tables=tables, named=named, **values)


def _from(directory: str, pattern: str) -> str:
    """A path pattern as it is written in a file of `directory`, seen from the root; one for every file stays as it is."""
    path, hash_, server = pattern.partition("#")
    if not directory or not path or path.startswith("**"):
        return pattern
    return posixpath.normpath(f"{directory}/{path}") + hash_ + server


def _table(kind: str, node: Node, directory: str) -> Table:
    if not isinstance(node, Map):
        raise ConfigError(f"[[{kind}]] must be a table", node.span)
    values: dict[str, Fact[Any]] = {}
    for entry in node:
        key = entry.key.value
        if key not in TABLES[kind]:
            raise ConfigError(_unknown(key, tuple(TABLES[kind])) + f" in [[{kind}]]", entry.key.span)
        value = _READERS[TABLES[kind][key]](entry.value)
        if key == "match" or (kind, key) == ("ignore", "at"):
            value = _from(directory, value)
        values[key] = Fact(value, Written(entry.value.span))
    for key in REQUIRED.get(kind, ()):
        if key not in values:
            raise ConfigError(f"[[{kind}]] needs {key}", node.span)
    _refuse(in_table(kind, values), values, node.span)
    return Table(kind, values, node.span)


def _refuse(refused: Refused | None, values: dict[str, Fact[Any]], span: Span) -> None:
    """Raise what is refused, at the value that is meant."""
    if refused is None:
        return
    origin = values[refused.key].origin if refused.key in values else None
    raise ConfigError(refused.message, origin.span if isinstance(origin, Written) else span)


def _open_table(node: Node, kind: str) -> dict[str, Fact[Any]]:
    if not isinstance(node, Map):
        raise ConfigError(f"[{kind}] must be a table", node.span)
    return {entry.key.value: Fact(_READERS[kind](entry.value), Written(entry.value.span)) for entry in node}


def _coefficients(node: Node) -> Iterator[tuple[str, dict[str, Fact[Any]]]]:
    if not isinstance(node, Map):
        raise ConfigError("[coefficients] must be a table", node.span)
    from kvlint.coefficients import bundled

    for entry in node:
        if entry.key.value not in bundled():
            raise ConfigError(_unknown(entry.key.value, tuple(bundled()), "coefficient"), entry.key.span)
        if not isinstance(entry.value, Map):
            raise ConfigError("a coefficient is {value = …, reason = …}", entry.value.span)
        values: dict[str, Fact[Any]] = {}
        for inner in entry.value:
            if inner.key.value not in COEFFICIENT:
                raise ConfigError(_unknown(inner.key.value, tuple(COEFFICIENT)), inner.key.span)
            values[inner.key.value] = Fact(
                _READERS[COEFFICIENT[inner.key.value]](inner.value), Written(inner.value.span)
            )
        if "reason" not in values:
            raise ConfigError(f"coefficient {entry.key.value} needs a reason", entry.key.span)
        _refuse(in_coefficient(bundled()[entry.key.value], values), values, entry.value.span)
        yield entry.key.value, values


def workload_value(key: str, text: str) -> Any:
    """What a comment at a server may say of a key of `[[workload]]`; None for what cannot be."""
    kind = TABLES["workload"].get(key)
    if kind == "reuse":
        return text if text in REUSE else None
    plain = text.replace("_", "")
    if kind not in BOUNDS or not (plain.isascii() and plain.isdigit()) or len(plain) > 40:
        return None
    return int(plain) if BOUNDS[kind].refusal(int(plain)) is None else None


def _unknown(key: str, known: tuple[str, ...], what: str = "key") -> str:
    from difflib import get_close_matches

    near = get_close_matches(key, known, n=1, cutoff=0.6)
    return f"unknown {what} {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _scalar(node: Node, what: str) -> Scalar:
    if not isinstance(node, Scalar):
        raise ConfigError(f"expected {what}", node.span)
    return node


def _text(node: Node) -> str:
    scalar = _scalar(node, "text")
    if not scalar.quoted:
        raise ConfigError("expected text in quotes", node.span)
    if not scalar.value.strip():
        raise ConfigError("expected a text that is not empty", node.span)
    return scalar.value


def _texts(node: Node) -> tuple[str, ...]:
    if not isinstance(node, List):
        raise ConfigError("expected a list of texts", node.span)
    return tuple(_text(item) for item in node)


def _texts_at(node: Node) -> dict[str, Span]:
    return {item.value: item.span for item in node if isinstance(item, Scalar)} if isinstance(node, List) else {}


def _device(node: Node) -> str:
    """A name that means one product of the device data."""
    from kvlint.hardware import devices

    name = _text(node)
    found = devices.named(name)
    if not found:
        raise ConfigError(_unknown(name, devices.names(), "device"), node.span)
    if len(found) > 1:
        raise ConfigError(f"{name!r} may be {' or '.join(each.product for each in found)}", node.span)
    return name


def _number(node: Node) -> Fraction:
    text = _scalar(node, "a number").value.replace("_", "")
    try:
        exponent = int(text.lower().partition("e")[2] or "0") if len(text) < 40 else None
        if exponent is None or abs(exponent) > 30:  # ten to the billionth would never be worked out
            raise ConfigError("expected a number of at most 40 characters, exponents up to 30", node.span)
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ConfigError("expected a number", node.span) from None


def _bounded(kind: str) -> Any:
    """A number within the bounds of its kind; a whole one as an integer."""

    def read(node: Node) -> Fraction | int:
        bounds = BOUNDS[kind]
        number = _size(node) if kind in SIZES else _number(node)
        why = bounds.refusal(number)
        if why:
            raise ConfigError(why, node.span)
        return int(number) if bounds.whole else number

    return read


def _size(node: Node) -> int:
    size = parse_size(_scalar(node, "a size").value.replace("_", ""))
    if size is None:
        raise ConfigError("expected bytes, or a size with KiB, MiB, GiB, kB, MB or GB", node.span)
    return size


def _flag(node: Node) -> bool:
    value = _scalar(node, "true or false").value
    if value not in ("true", "false"):
        raise ConfigError("expected true or false", node.span)
    return value == "true"


def _date(node: Node) -> datetime.date:
    try:
        return datetime.datetime.fromisoformat(_scalar(node, "a date").value.replace("Z", "+00:00")).date()
    except ValueError:
        raise ConfigError("expected a date, 2027-01-31", node.span) from None


def _one_of(*allowed: str) -> Any:
    def read(node: Node) -> str:
        value = _scalar(node, " or ".join(allowed)).value
        if value not in allowed:
            raise ConfigError(f"{value!r} is none of {', '.join(allowed)}", node.span)
        return value

    return read


_READERS: dict[str, Any] = {
    "text": _text,
    "texts": _texts,
    "device": _device,
    "number": _number,
    **{kind: _bounded(kind) for kind in BOUNDS},
    "flag": _flag,
    "date": _date,
    "severity": _one_of(*SEVERITIES),
    "fail_on": _one_of(*FAIL_ON),
    "reuse": _one_of(*REUSE),
    "engine": _one_of(*ENGINE_NAMES),
}
