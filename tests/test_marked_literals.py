"""Marked literals in five formats: one input moves, and exactly the values that moved are named, old and new, in place.

Qwen3-8B: 36 layers × 8 KV heads × 2 × 128 × 2 B = 147,456 B a token.  A window of 8,192: a slot of 1,207,959,552 B; two streams:
2,415,919,104 B live.  Budget 40 GiB at 10 % held back: ⌊38,654,705,664⌋ usable.  Qwen3-0.6B: 28 layers, the same heads: 114,688.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kvlint.diagnostics import Diagnostic
from kvlint.pipeline import check_files

SERVER = (
    "#!/bin/sh\n# kvlint: window={window} streams={streams}\n"
    "exec uvx --from mlx-lm==0.32.2 mlx_lm.server --model {model}{flags}\n"
)
CONFIG = '[[hardware]]\nmatch = "**"\nbudget = "40GiB"\n{more}'
NAMES = {
    "kv_bytes_per_token": "147456",
    "slot_bytes": "1207959552",
    "live_kv_bytes": "2415919104",
    "usable_bytes": "38654705664",
}
BASE = {"window": "8192", "streams": "2", "model": "Qwen/Qwen3-8B", "flags": "", "more": ""}

FORMATS = {
    "notes.nix": ("{{\n{lines}\n}}\n", "  {name} = {value}; # kvlint: derived {name} of chat"),
    "notes.yaml": ("{lines}\n", "{name}: {value} # kvlint: derived {name} of chat"),
    "notes.sh": ("#!/bin/sh\n{lines}\n", "{name}={value} # kvlint: derived {name} of chat"),
    "notes.toml": ("{lines}\n", "{name} = {value} # kvlint: derived {name} of chat"),
    "notes.plist": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"><dict>\n{lines}\n</dict></plist>\n',
        "<key>{name}</key>\n<!-- kvlint: derived {name} of chat -->\n<integer>{value}</integer>",
    ),
}
MOVES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "nothing": ({}, {}),
    "window": ({"window": "16384"}, {"slot_bytes": "2415919104", "live_kv_bytes": "4831838208"}),
    "streams": ({"streams": "3"}, {"live_kv_bytes": "3623878656"}),
    # 8 bits and two 16-bit numbers for each group of 64: 147,456 × (8/8 + 2 × 2/64) / 2 = 78,336 B a token
    "KV type": (
        {"flags": " --kv-bits 8 --quantized-kv-start 0"},
        {"kv_bytes_per_token": "78336", "slot_bytes": "641728512", "live_kv_bytes": "1283457024"},
    ),
    "model": (
        {"model": "Qwen/Qwen3-0.6B"},
        {"kv_bytes_per_token": "114688", "slot_bytes": "939524096", "live_kv_bytes": "1879048192"},
    ),
    "coefficient": (
        {"more": '[coefficients]\nholdback = {value = 0.20, reason = "measured"}\n'},
        {"usable_bytes": "34359738368"},
    ),
}


def drifts(path: str, change: Mapping[str, str]) -> list[Diagnostic]:
    given = {**BASE, **change}
    frame, line = FORMATS[path]
    lines = "\n".join(line.format(name=name, value=value) for name, value in NAMES.items())
    files = {path: frame.format(lines=lines), "chat.sh": SERVER.format(**given)}
    report = check_files(files, CONFIG.format(**given))
    assert report.internal == []
    return [finding for finding in report.findings if finding.rule == "derived-drift"]


@pytest.mark.parametrize("path", FORMATS)
@pytest.mark.parametrize("move", MOVES)
def test_exactly_what_moved_is_named(path: str, move: str) -> None:
    change, moved = MOVES[move]
    found = drifts(path, change)
    assert {finding.text for finding in found} == {NAMES[name] for name in moved}
    for finding in found:
        assert finding.path == path
        name = next(name for name in moved if NAMES[name] == finding.text)
        assert f"`{NAMES[name]}`" in finding.message
        assert moved[name] in finding.message
        assert finding.fix is not None
        assert [edit.text for edit in finding.fix.edits] == [moved[name]]


@pytest.mark.parametrize(
    ("literal", "agrees"),
    [
        ("1.125GiB", True),  # 1,207,959,552 ÷ 2^30 exactly
        ("1.1GiB", True),  # as printed
        ("1.2GiB", False),
        ("1.208GB", True),
        ("1207959552", True),
        ("1_207_959_552", True),
        ("1152MiB", True),
        ("1151MiB", False),
    ],
)
def test_a_literal_is_compared_in_its_own_unit_and_precision(literal: str, agrees: bool) -> None:
    files = {
        "notes.yaml": f"slot: {literal} # kvlint: derived slot_bytes of chat\n",
        "chat.sh": SERVER.format(**BASE),
    }
    found = [each for each in check_files(files, CONFIG.format(**BASE)).findings if each.rule == "derived-drift"]
    assert (not found) == agrees


def test_headroom_is_bounded_and_not_equalled() -> None:
    text = "reserve: {} # kvlint: derived <= slot_bytes of chat\n"
    for literal, agrees in (("1GiB", True), ("1.125GiB", True), ("1.25GiB", False)):
        files = {"notes.yaml": text.format(literal), "chat.sh": SERVER.format(**BASE)}
        found = [each for each in check_files(files, CONFIG.format(**BASE)).findings if each.rule == "derived-drift"]
        assert (not found) == agrees, literal


def test_a_literal_in_a_format_without_comments() -> None:
    files = {"app.json": '{"cache": {"KV_BYTES": 131072}}\n', "chat.sh": SERVER.format(**BASE)}
    config = CONFIG.format(**BASE) + '[[derived]]\nat = "app.json#cache.KV_BYTES"\nis = "kv_bytes_per_token of chat"\n'
    found = [each for each in check_files(files, config).findings if each.rule == "derived-drift"]
    assert [(each.path, each.text) for each in found] == [("app.json", "131072")]
    assert "147456" in found[0].message
