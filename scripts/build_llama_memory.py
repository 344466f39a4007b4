"""Compile the memory rules of llama-server, Ollama and vllm-mlx from data/engines to kvlint/_data.

Run after every change of a source; `--check` only compares, for the test that they agree.
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
FILES = {
    ROOT / "data/engines/llama-server.memory.toml": ROOT / "kvlint/_data/llama_memory.json",
    ROOT / "data/engines/ollama.memory.toml": ROOT / "kvlint/_data/ollama_memory.json",
    ROOT / "data/engines/vllm-mlx.memory.toml": ROOT / "kvlint/_data/vllm-mlx_memory.json",
}


def compiled(source: Path) -> str:
    """The JSON text: rules as lists of [from, to, value], without their prose."""
    data: dict[str, Any] = tomllib.loads(source.read_text(encoding="utf-8"))
    rules = {
        name: [[span.get("from"), span.get("to"), span["value"]] for span in rule["spans"]]
        for name, rule in data.pop("rules").items()
    }
    return json.dumps({"rules": rules, **data}, separators=(",", ":"), sort_keys=True) + "\n"


def main() -> int:
    texts = {target: compiled(source) for source, target in FILES.items()}
    if "--check" in sys.argv[1:]:
        return int(
            any(not target.is_file() or target.read_text(encoding="utf-8") != text for target, text in texts.items())
        )
    for target, text in texts.items():
        target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
