"""Every measured start of b11434: slots, windows, cells and bytes of each cache as its log printed them."""

from __future__ import annotations

from typing import Any

import pytest
from llama_rows import MEASURED, model, rows, settings

from kvlint.sizing.llama.sizes import Plan, Refusal, plan

pytestmark = pytest.mark.skipif(not MEASURED.is_file(), reason="the observed starts are not here")

# how each refusal that is not the parser's begins in the log, and its kind
REFUSALS = {
    "invalid value for n_parallel": "parallel",
    "Unsupported cache type": "cache-type",
    "quantized V cache requires flash_attn": "quantized-v-without-flash-attention",
    "different K": "kv-types-differ",
    "n_ctx_seq == 0": "context-size",
    "does not divide n_embd_head": "head-not-divisible",
    "n_seq_max must be": "too-many-slots",
}
PARSER = ("expected value", "environment variable", "has been removed", "invalid argument", "unknown value")


def mib(size: int) -> float:
    return round(size / 2**20, 2)


def kind(outcome: str) -> str | None:
    return next((kind for text, kind in REFUSALS.items() if text in outcome), None)


def printed(found: Plan) -> dict[str, Any]:
    return {
        "n_slots": found.slots,
        "n_ctx": found.context,
        "n_ctx_per_seq": found.sequence,
        "n_ctx_slot": found.window,
        "kv_unified": str(found.unified).lower(),
        "caches": sorted(
            (mib(c.bytes), c.cells, c.layers, c.streams, mib(c.key_bytes), mib(c.value_bytes)) for c in found.caches
        ),
        "recurrent_mib": mib(found.recurrent_bytes) if found.state_bytes else None,
    }


def expected(reported: dict[str, Any]) -> dict[str, Any]:
    caches = [
        (c["mib"], c["cells"], c["layers"], c["streams"], c["k_mib"], c["v_mib"])
        for c in reported["caches"]
        if c["layers"]
    ]
    return {**{key: reported[key] for key in printed_keys()}, "caches": sorted(caches)}


def printed_keys() -> list[str]:
    return ["n_slots", "n_ctx", "n_ctx_per_seq", "n_ctx_slot", "kv_unified", "recurrent_mib"]


@pytest.mark.parametrize("row", rows(MEASURED) if MEASURED.is_file() else [], ids=lambda row: row["id"])
def test_start(row: dict[str, Any]) -> None:
    outcome = row["reported"]["outcome"]
    if outcome != "starts" and kind(outcome) is None:
        assert any(text in outcome for text in PARSER)
        pytest.skip("refused by the parser")
    found = plan(model(row["model"].split()[0]), settings(row), 11434)
    print(
        f"{row['id']} {row['model']:28} {' '.join(row['args']):52} {printed(found) if isinstance(found, Plan) else found}"
    )
    if outcome == "starts":
        assert isinstance(found, Plan)
        assert printed(found) == expected(row["reported"])
        total = sum(c["mib"] for c in row["reported"]["caches"]) + (row["reported"]["recurrent_mib"] or 0)
        assert found.pool_bytes / 2**20 == pytest.approx(total, abs=0.005 * (1 + len(row["reported"]["caches"])))
    else:
        assert isinstance(found, Refusal)
        assert found.kind == kind(outcome)
