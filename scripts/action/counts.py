"""Print the counts of a `check --format json` report as the outputs of the GitHub Action."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(report: str) -> None:
    summary = json.loads(Path(report).read_text(encoding="utf-8"))["summary"]
    counts = {name: int(summary[name]) for name in ("errors", "warnings", "notes")}
    print(f"findings={sum(counts.values())}")
    for name, count in {**counts, "unchecked": int(summary["unchecked"])}.items():
        print(f"{name}={count}")


if __name__ == "__main__":
    main(sys.argv[1])
