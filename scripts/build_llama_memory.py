"""Compile data/engines/llama-server.memory.toml to kvlint/_data/llama_memory.json.

Run after every change of the source; `--check` only compares, for the test that the two agree.
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
SOURCE = ROOT / "data/engines/llama-server.memory.toml"
TARGET = ROOT / "kvlint/_data/llama_memory.json"


def compiled(source: Path = SOURCE) -> str:
    """The JSON text: rules as lists of [from, to, value], without their prose."""
    data: dict[str, Any] = tomllib.loads(source.read_text(encoding="utf-8"))
    rules = {
        name: [[span.get("from"), span.get("to"), span["value"]] for span in rule["spans"]]
        for name, rule in data.pop("rules").items()
    }
    return json.dumps({"rules": rules, **data}, separators=(",", ":"), sort_keys=True) + "\n"


def main() -> int:
    text = compiled()
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == text else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
