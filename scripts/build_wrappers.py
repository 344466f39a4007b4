"""Compile data/wrappers.toml into kvlint/_data/wrappers.json: `python scripts/build_wrappers.py [--check]`.

Each program or subcommand with its options resolved: `like` followed, aliases spelled out, lists sorted.  `--check` writes
nothing and fails where the compiled file is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "data/wrappers.toml"
COMPILED = ROOT / "kvlint/_data/wrappers.json"

LISTS = ("flags", "values", "optional", "pairs", "sets", "unsets", "env_files", "keeps", "splits", "strings", "modules")
LISTS += ("begins", "begins_string", "pins", "clears", "stops", "tightens", "images")
PLAIN = {"kind", "operands", "assigns", "numeric", "env_open", "loose", "entrypoint", "like", "aliases", "source"}
KINDS = {"command", "group", "container", "service", "python", "tool", "installable", "terminal", "keys", "environment"}
# Lists that say more about options which stand in the list of the second name.
WITHIN = {
    "sets": "values",
    "unsets": "values",
    "env_files": "values",
    "splits": "values",
    "strings": "values",
    "pins": "values",
    "images": "values",
}


def compiled() -> dict[str, Any]:
    tables: dict[str, dict[str, Any]] = tomllib.loads(SOURCE.read_text(encoding="utf-8"))
    found: dict[str, Any] = {}
    for name in tables:
        entry = resolved(name, tables)
        complain(name, entry)
        for alias in (name, *tables[name].get("aliases", ())):
            found[alias] = {"name": name, **entry}
    return dict(sorted(found.items()))


def resolved(name: str, tables: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A table with what it takes from another: lists joined, plain keys its own where it has them; the kind as well."""
    table = tables[name]
    base = resolved(table["like"], tables) if "like" in table else {}
    if base.get("kind") == "group" and table.get("kind") != "group":
        base = {key: value for key, value in base.items() if key != "kind"}
    entry = dict(base)
    for key, value in table.items():
        if key in LISTS and isinstance(value, list):
            entry[key] = sorted({*entry.get(key, ()), *value})
        elif key not in ("like", "aliases", "source"):
            entry[key] = value
    return entry


def complain(name: str, entry: dict[str, Any]) -> None:
    for key, value in entry.items():
        if key not in LISTS and key not in PLAIN:
            raise SystemExit(f"{name}: unknown key {key}")
        if key in LISTS and isinstance(value, list):
            missing = set(value) - set(entry.get(WITHIN.get(key, key), ()))
            if missing:
                raise SystemExit(f"{name}: {sorted(missing)} of {key} are not among {WITHIN[key]}")
    if entry.get("kind", "command") not in KINDS:
        raise SystemExit(f"{name}: unknown kind {entry['kind']}")
    both = set(entry.get("flags", ())) & {*entry.get("values", ()), *entry.get("pairs", ())}
    if both:
        raise SystemExit(f"{name}: {sorted(both)} cannot be both with and without a value")


def main(arguments: list[str]) -> int:
    text = json.dumps(compiled(), separators=(",", ":"), sort_keys=True) + "\n"
    if "--check" in arguments:
        return 0 if COMPILED.read_text(encoding="utf-8") == text else 1
    COMPILED.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
