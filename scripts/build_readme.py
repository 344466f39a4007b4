"""Keep what the documents show current: `python scripts/build_readme.py [--check]`.

A fenced block that follows `<!-- output: kvlint ... -->` becomes what that command prints, run in the repository's root;
after `<!-- output: kvlint ... | head N -->` only its first N lines.  What stands between `<!-- releases -->` or
`<!-- coefficients -->` and `<!-- end -->` becomes that table, and after `<!-- quote: FILE -->` a quotation of the file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import build_data

ROOT = build_data.ROOT
OUTPUT = re.compile(
    r"(<!-- output: kvlint (?P<command>[^|\n]*?)(?: \| head (?P<head>\d+))? -->\n```\w*\n).*?^(```)$",
    re.DOTALL | re.MULTILINE,
)
PART = re.compile(r"(<!-- (?P<name>releases|coefficients|quote: (?P<file>\S+)) -->\n).*?(<!-- end -->)", re.DOTALL)


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")), *guides()]


def guides() -> list[Path]:
    return sorted((ROOT / "docs/guides").glob("*.md"))


def current(text: str) -> str:
    """The text with every marked part as it is now."""
    text = OUTPUT.sub(lambda found: found[1] + output(found["command"], found["head"]) + found[4], text)
    return PART.sub(_part, text)


def _part(found: re.Match[str]) -> str:
    rows = quoted(found["file"]) if found["file"] else TABLES[found["name"]]()
    return "".join((found[1], "\n", *(f"{row}\n" for row in rows), "\n", found[4]))


def output(command: str, head: str | None = None) -> str:
    """What a command prints.  Findings are no failure here; every other status than 0 and 1 is."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "FORCE_COLOR"))}
    environment |= {"NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    arguments = [sys.executable, "-m", "kvlint", *shlex.split(command)]
    done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8")
    if done.returncode not in (0, 1):
        raise SystemExit(f"kvlint {command}: status {done.returncode}\n{done.stderr}")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    if head and len(lines) > int(head):
        lines = [*lines[: int(head)], "…"]
    return "".join(f"{line}\n" for line in lines)


def quoted(file: str) -> Iterator[str]:
    for line in (ROOT / file).read_text(encoding="utf-8").rstrip("\n").splitlines():
        yield f"> {line}".rstrip()


def releases() -> Iterator[str]:
    """A row an engine: between which releases its flags and defaults are known."""
    yield from ("| engine | oldest release in the data | newest |", "|---|---|---|")
    for file in sorted((ROOT / "kvlint/_data/engines").glob("*.json")):
        known = json.loads(file.read_text(encoding="utf-8"))["releases"]
        yield f"| {file.stem} | {known[0].rstrip('.')} | {known[-1].rstrip('.')} |"


def coefficients() -> Iterator[str]:
    yield from ("| coefficient | value | unit | what it stands for | measured or chosen |", "|---|---|---|---|---|")
    for name, entry in build_data.read_toml("coefficients.toml").items():
        yield f"| `{name}` | {_value(entry)} | {entry['unit']} | {entry['reason']} | {entry['source']} |"


def _value(entry: dict[str, Any]) -> str:
    return str(entry["value"]) if "value" in entry else f"{entry['low']} … {entry['nominal']} … {entry['high']}"


TABLES = {"releases": releases, "coefficients": coefficients}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a document is stale")
    check = parser.parse_args().check
    stale = []
    for document in documents():
        text = document.read_text(encoding="utf-8")
        fresh = current(text)
        if text != fresh:
            stale.append(document.relative_to(ROOT).as_posix())
            if not check:
                document.write_text(fresh, encoding="utf-8")
    if stale:
        names = ", ".join(stale)
        print(f"stale: {names}; run scripts/build_readme.py" if check else f"written: {names}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
