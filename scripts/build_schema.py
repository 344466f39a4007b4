"""Write data/schema/kvlint.schema.json from the tables of kvlint/config.py: `python scripts/build_schema.py [--check]`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from kvlint import config  # noqa: E402
from kvlint.units import UNITS  # noqa: E402

TARGET = ROOT / "data/schema/kvlint.schema.json"
UNIT = "|".join(unit for unit in UNITS if unit)


def _bounded(kind: str) -> dict[str, Any]:
    """A number with its bounds; a size may be a text with a unit."""
    bounds = config.BOUNDS[kind]
    ends = {"minimum": bounds.least, "exclusiveMinimum": bounds.above}
    ends |= {"maximum": bounds.most, "exclusiveMaximum": bounds.below}
    size = kind in config.SIZES
    number = {"type": "integer" if bounds.whole or size else "number"}
    number |= {name: end for name, end in ends.items() if end is not None}
    text = {"type": "string", "pattern": rf"^\s*[0-9_]+(\.[0-9_]+)?\s*({UNIT})?\s*$"}
    return {"oneOf": [number, text]} if size else number


KINDS: dict[str, dict[str, Any]] = {
    "text": {"type": "string", "pattern": r"\S"},
    "device": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string", "pattern": r"\S"}},
    "number": {"type": "number"},
    **{kind: _bounded(kind) for kind in config.BOUNDS},
    "flag": {"type": "boolean"},
    "date": {"type": "string", "format": "date"},
    "severity": {"enum": list(config.SEVERITIES)},
    "fail_on": {"enum": list(config.FAIL_ON)},
    "reuse": {"enum": ["conversation", "none"]},
    "engine": {"enum": list(config.ENGINE_NAMES)},
}
SAID: Mapping[str, str] = {
    "select": "Only these rules or themes.",
    "ignore": "Not these rules or themes; or, as [[ignore]], a finding that is accepted, with its reason.",
    "exclude": "Paths that no run reads.",
    "fail_on": "The lowest severity that fails a run, itself included.",
    "severity": "Severities of rules or themes; they never lift a cap that doubt has set.",
    "coefficients": "Figures that were measured or chosen, each with its reason.",
    "hardware": "What the files do not say of the devices.",
    "hardware.device": "A name from the device data.",
    "hardware.memory": "Per device, instead of a name.",
    "hardware.count": "Devices of one server.",
    "hardware.unified": "Whether devices and host share one memory.",
    "hardware.ceiling": "What the machine or container lets all servers have together.",
    "hardware.budget": "What one server may use, per device.",
    "hardware.available_kv": "Measured, per device: replaces the estimated pool.",
    "hardware.free": "Free memory of a device when the server starts.",
    "workload": "What the owner promises.",
    "workload.window": "Tokens of one conversation, for engines without a window of their own.",
    "workload.streams": "Full-window conversations that are guaranteed.",
    "workload.tokens": "Tokens of a typical request.",
    "workload.max_output": "Tokens of output that one request may ask for.",
    "workload.reuse": "Whether conversations come back; with none, warm slots do not matter.",
    "workload.shared_prefix": "Tokens that all requests begin with.",
    "engine": "Which engine and version runs.",
    "engine.version": 'As the engine prints it, or bounds: ">=0.31,<0.33".',
    "model": "Architecture by hand, for what no catalogue knows.",
    "model.id": "As the command line names it: repository id, path or file name.",
    "model.config": "A config.json, or GGUF metadata as JSON; relative to this file.",
    "model.weights": "Size of the weights.",
    "parity": "Values that must agree.",
    "parity.equal": "Addresses of values that are to be equal.",
    "parity.at_most": "Addresses of values none of which may exceed the next.",
    "derived": "A literal in a format without comments that claims to be a derived value.",
    "derived.at": "Address of the literal.",
    "derived.is": '"<quantity> of <server>" that it equals.',
    "derived.at_most": '"<quantity> of <server>" that it does not exceed.',
    "ignore.at": "Path, path#server, or the address of a value.",
    "ignore.until": "The last day on which it holds.",
    "per_file_ignore": "Rules that say nothing of some files.",
    "floor": "What `kvlint diff` holds a server to.",
    "floor.min_warm_slots": "Full-window conversations that stay warm.",
    "floor.min_concurrency": "Full-window requests that run together.",
}


def build() -> dict[str, Any]:
    """The schema of `kvlint.toml`, and of `[tool.kvlint]`, as JSON Schema 2020-12."""
    properties: dict[str, Any] = {key: _said(key, KINDS[kind]) for key, kind in config.TOP.items()}
    for name, keys in config.TABLES.items():
        table = _table(name, keys)
        both = {"oneOf": [KINDS[config.TOP[name]], table]} if name in config.TOP else table
        properties[name] = _said(name, both)
    properties["severity"] = _said("severity", {"type": "object", "additionalProperties": KINDS["severity"]})
    coefficient = _object("coefficients", config.COEFFICIENT, ("reason",))
    properties["coefficients"] = _said("coefficients", {"type": "object", "additionalProperties": coefficient})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:kvlint:schema:configuration",
        "title": "Configuration of kvlint",
        "description": "kvlint.toml, or [tool.kvlint] in pyproject.toml.",
        "type": "object",
        "additionalProperties": False,
        "properties": dict(sorted(properties.items())),
    }


def _table(name: str, keys: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "array", "items": _object(name, keys, config.REQUIRED.get(name, ()))}


def _object(name: str, keys: Mapping[str, str], required: tuple[str, ...]) -> dict[str, Any]:
    properties = {key: _said(f"{name}.{key}", KINDS[kind]) for key, kind in keys.items()}
    found: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**found, "required": list(required)} if required else found


def _said(key: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    default = "A path from this file, with * and **; #server may follow." if key.endswith(".match") else ""
    words = SAID.get(key, default)
    return {"description": words, **schema} if words else dict(schema)


def text() -> str:
    return json.dumps(build(), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 where the file is not current")
    check = parser.parse_args().check
    current = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text()
    if check and not current:
        print(f"{TARGET.relative_to(ROOT)} is not current: run python scripts/build_schema.py", file=sys.stderr)
        return 1
    if not check:
        TARGET.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
