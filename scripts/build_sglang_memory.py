"""Compile data/engines/*.memory.toml of SGLang, TGI, TensorRT-LLM and LMDeploy to kvlint/_data/*_memory.json.

Run after every change of a source; `--check` only compares, for the test that they agree.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent))

from build_vllm_memory import ROOT, compiled

ENGINES = ("sglang", "tgi", "trtllm", "lmdeploy")


def paths(engine: str) -> tuple[Path, Path]:
    """The source of an engine and its compiled file."""
    return ROOT / f"data/engines/{engine}.memory.toml", ROOT / f"kvlint/_data/{engine}_memory.json"


def current(engine: str) -> bool:
    source, target = paths(engine)
    return target.is_file() and target.read_text(encoding="utf-8") == compiled(source)


def main() -> int:
    if "--check" in sys.argv[1:]:
        return 0 if all(current(engine) for engine in ENGINES) else 1
    for engine in ENGINES:
        source, target = paths(engine)
        target.write_text(compiled(source), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
