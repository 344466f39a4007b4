"""A pin belongs to a literal that is marked as derived: alone it keeps nothing, and says so."""

from __future__ import annotations

from kvlint.pipeline import check_files

SERVE = "exec uvx --from mlx-lm==0.32.2 mlx_lm.server --model Qwen/Qwen3-8B --port 8080\n"


def found(lines: str) -> list[tuple[str, str]]:
    report = check_files({"chat.sh": f"#!/bin/sh\n{lines}\n{SERVE}"})
    return [
        (each.rule, each.severity) for each in report.findings if each.rule in ("misplaced-directive", "pinned-literal")
    ]


def test_a_pin_alone() -> None:
    assert found("# kvlint: pin measured\nKV_BYTES=131072") == [("misplaced-directive", "warning")]
    assert found("KV_BYTES=131072 # kvlint: pin measured until=2999-01-01") == [("misplaced-directive", "warning")]


def test_a_pin_of_a_derived_literal() -> None:
    mark = "# kvlint: derived kv_bytes_per_token of chat\n"
    assert found(f"{mark}# kvlint: pin measured\nKV_BYTES=131072") == [("pinned-literal", "note")]
