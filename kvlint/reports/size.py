"""The sizing table as text, JSON and Markdown."""

from __future__ import annotations

import json
from typing import Any

from kvlint.ruleset.messages import show
from kvlint.sizing.ask import Answer
from kvlint.sizing.table import Row

HEAD = ("window", "live KV", "remainder", "slot", "warm slots", "fits", "one warm", "per stream")


def render(answer: Answer, format_: str) -> str:
    if format_ == "json":
        return json.dumps(document(answer), indent=2) + "\n"
    return _markdown(answer) if format_ == "markdown" else _text(answer)


def document(answer: Answer) -> dict[str, Any]:
    """The contract's `size --format json`."""
    table = answer.table
    return {
        "version": 1,
        "inputs": {
            "kv_bytes_per_token": answer.kv_bytes_per_token,
            "weights_bytes": table.weights_bytes,
            "usable_bytes": table.usable_bytes,
            "streams": table.streams,
        },
        "rows": [
            {
                "window": row.window,
                "live_kv_bytes": row.live_kv_bytes,
                "prompt_cache_capacity_bytes": row.prompt_cache_capacity_bytes,
                "slot_bytes": row.slot_bytes,
                "warm_slots": None if row.warm_slots is None else float(row.warm_slots),
                "fits": row.fits,
                "one_warm_slot": row.one_warm_slot,
                "slot_per_stream": row.slot_per_stream,
            }
            for row in table.rows
        ],
        "largest": {
            "fits": table.largest.fits,
            "one_warm_slot": table.largest.one_warm_slot,
            "slot_per_stream": table.largest.slot_per_stream,
        },
    }


def _cells(row: Row) -> tuple[str, ...]:
    return (
        f"{row.window:,}",
        show(row.live_kv_bytes, "bytes", "GiB"),
        _known(row.prompt_cache_capacity_bytes, "bytes", "GiB", (0,)),
        show(row.slot_bytes, "bytes", "GiB"),
        _known(row.warm_slots, "ratio"),
        *(_WORDS[each] for each in (row.fits, row.one_warm_slot, row.slot_per_stream)),
    )


_WORDS = {True: "yes", False: "no", None: "-"}


def _known(value: Any, *form: Any) -> str:
    return "-" if value is None else show(value, *form)


def _closing(answer: Answer) -> str:
    best = answer.table.largest
    if best.fits is None:
        return "--budget says what weights, live KV and prompt cache may share, and so which windows fit"
    return (
        f"largest window that fits {best.fits:,}; with one warm slot {best.one_warm_slot:,}; "
        f"with one for each of {answer.table.streams} {best.slot_per_stream:,}"
    )


def _text(answer: Answer) -> str:
    table = answer.table
    rows = [HEAD, *(_cells(row) for row in table.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    weights = "" if table.weights_bytes is None else f" weights {show(table.weights_bytes, 'bytes')}"
    usable = "" if table.usable_bytes is None else f" of {show(table.usable_bytes, 'bytes')} usable"
    given = f"{weights}{usable};" if weights else ""
    head = (
        f"{answer.kv_bytes_per_token:,} B per token;{given} "
        f"{table.streams} {'stream' if table.streams == 1 else 'streams'}"
    )
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join((head, "", *lines, "", _closing(answer))) + "\n"


def _markdown(answer: Answer) -> str:
    rows = ["| " + " | ".join(cells) + " |" for cells in (HEAD, *(_cells(row) for row in answer.table.rows))]
    rows.insert(1, "|" + " ---: |" * len(HEAD))
    return "\n".join((*rows, "", _closing(answer))) + "\n"
