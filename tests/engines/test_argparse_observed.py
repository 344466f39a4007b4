"""The engines' own parsers, run on 2,097 argument lists: the same verdict, the same kind of refusal, the same values."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kvlint.engines.argparse import Load, Reading, classes, read
from kvlint.engines.options import options
from kvlint.facts import Unknown
from kvlint.source import Source, Text

ROWS = Path(__file__).resolve().parents[2] / "../shared/observed/argparse.jsonl"
KINDS = {
    "unknown": {"unknown-flag", "removed-flag", "stray-argument", "joined-argument"},
    "ambiguous": {"ambiguous-flag"},
    "invalid_value": {"malformed-value"},
    "out_of_range": {"out-of-range"},
    "missing_value": {"missing-value"},
    "missing_argument": {"missing-model", "missing-argument"},
    "other": {"help", "conflict", "config-file"},
}


def texts(words: list[str]) -> list[Text]:
    source = Source("argv", "\0".join(words))
    found, at = [], 0
    for word in words:
        found.append(Text.of(source, at, at + len(word)))
        at += len(word) + 1
    return found


def loader(row: dict[str, Any]) -> Load:
    files = row.get("files") or {}

    def load(name: Text) -> Text:
        if name.value not in files:
            raise FileNotFoundError(name.value)
        source = Source(name.value, files[name.value])
        return Text.of(source, 0, len(source.text))

    return load


def reading(row: dict[str, Any]) -> Reading:
    return read(row["engine"], row["version"], texts(row["argv"]), entry=row["entry"], load=loader(row))


def fault(row: dict[str, Any]) -> str | None:
    """What differs from the engine, None if nothing does."""
    found = reading(row)
    refusals = [problem for problem in found.problems if problem.stage != "note"]
    if row["accepted"]:
        # Where only the parser was run, what is checked after it stays open.
        seen = [p for p in refusals if p.stage == "parser" or row["stage"] == "post"]
        if seen:
            return f"refused: {seen[0].kind} {dict(seen[0].data)}"
        return differing(row, found)
    if not refusals:
        return f"accepted, but {row['error_kind']}"
    first = refusals[0]
    if first.kind not in KINDS[row["error_kind"]]:
        return f"{first.kind}, but {row['error_kind']}"
    if first.stage != row["stage"]:
        return f"stage {first.stage}, but {row['stage']}"
    return differing(row, found) if row["stage"] == "post" else None


def differing(row: dict[str, Any], found: Reading) -> str | None:
    for dest, expected in row["values"].items():
        given = found.settings.get(dest)
        if given is None:
            return f"{dest} is not set"
        if not same(expected, given.typed):
            return f"{dest}: {given.typed!r}, but {expected!r}"
    return None


def same(expected: Any, typed: Any) -> bool:
    if isinstance(typed, Unknown):
        return False
    if isinstance(expected, str) and expected.startswith("<"):
        return True
    if isinstance(expected, list) and any(isinstance(item, str) and item.startswith("<") for item in expected):
        return isinstance(typed, list) and len(typed) == len(expected)
    if isinstance(expected, dict) and isinstance(typed, dict):
        return all(key in expected and same(expected[key], value) for key, value in typed.items())
    if isinstance(typed, float) and math.isnan(typed):
        return expected == "nan"
    return bool(expected == typed) and isinstance(expected, bool) == isinstance(typed, bool)


@pytest.mark.skipif(not ROWS.exists(), reason="the observed rows are not beside the repository")
def test_every_row_is_read_as_the_engine_read_it() -> None:
    total: Counter[str] = Counter()
    good: Counter[str] = Counter()
    faults = []
    for line in ROWS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        wrong = fault(row)
        total[row["engine"]] += 1
        good[row["engine"]] += wrong is None
        if wrong:
            faults.append(f"{row['id']} {row['engine']} {row['version']} {row['entry']} {row['argv']}: {wrong[:200]}")
    print()
    for engine in total:
        print(f"{engine:14} {good[engine]:5} / {total[engine]}")
    print("\n".join(faults))
    assert all(good[engine] >= 0.98 * total[engine] for engine in total), "\n".join(faults)


@pytest.mark.skipif(not ROWS.exists(), reason="the observed rows are not beside the repository")
def test_releases_of_one_class_read_alike() -> None:
    """Each row again, all releases at once: the class that holds the row's release gives the same reading."""
    lines = ROWS.read_text(encoding="utf-8").splitlines()[::5]
    for line in lines:
        row = json.loads(line)
        args = texts(row["argv"])
        for members, one in classes(
            row["engine"], args, options(row["engine"]).releases, entry=row["entry"], load=loader(row)
        ):
            for release in members:
                alone = read(row["engine"], release, args, entry=row["entry"], load=loader(row))
                assert [(p.kind, p.stage) for p in alone.problems] == [(p.kind, p.stage) for p in one.problems], (
                    row,
                    release,
                )
                assert {d: repr(g.typed) for d, g in alone.settings.items()} == {
                    d: repr(g.typed) for d, g in one.settings.items()
                }
