"""vLLM's memory model against its own planner, run release by release, and against logs of real servers.

`-s` prints both tables: row, predicted, printed, ratio.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kvlint.models.architecture import Architecture, Attention, Layer
from kvlint.models.config import architecture
from kvlint.sizing.vllm import sizes as vllm

SHARED = Path(__file__).resolve().parents[2] / "../shared"
ROWS = SHARED / "observed/vllm-allocator.jsonl"
LOGS = SHARED / "observed/vllm.jsonl"
GIB = 1 << 30

pytestmark = pytest.mark.skipif(not ROWS.is_file(), reason="the observations are not beside the repository")


@cache
def model(name: str) -> Architecture:
    path = SHARED / "facts/models" / f"{name.replace('/', '__')}.json"
    return architecture(json.loads(path.read_text(encoding="utf-8")))


def rows(path: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def draft(arch: Architecture) -> tuple[Layer, ...]:
    """One full-attention layer of the target's own size."""
    part = next(part for part in arch.parts(Attention) if part.window is None and part.chunk is None)
    return ((part,),)


def settings(row: dict[str, Any]) -> vllm.Settings:
    given = row["inputs"]
    return vllm.Settings(
        release=row["vllm"],
        max_model_len=given["max_model_len"],
        max_num_batched_tokens=given["max_num_batched_tokens"],
        tensor_parallel=given["tp"],
        pipeline_parallel=given["pp"],
        decode_context_parallel=given["dcp"],
        kv_cache_dtype=given["kv_cache_dtype"],
        model_dtype=given["model_dtype"],
        block_size=given["block_size_flag"],
        hybrid_manager=given["hybrid_manager"],
        prefix_caching=given["prefix_caching"],
        speculative_tokens=given.get("num_speculative_tokens", 0),
        draft=draft(model(row["model"])) if given.get("draft") else (),
        async_scheduling=given["async_scheduling"],
        gdn_prefill="flashinfer" if given.get("prefill_checkpoint") else "triton",
    )


def pool(row: dict[str, Any]) -> Any:
    return row["inputs"].get("available_bytes_per_rank") or row["inputs"]["available_bytes"]


def predictions(row: dict[str, Any], layout: vllm.Layout) -> Iterator[tuple[str, Any, Any]]:
    """(field, predicted, executed) of everything that the row says."""
    out, available = row["out"], pool(row)
    yield "fits", vllm.fits(layout, available), out["fits"]
    yield "block_size", layout.block_size, out["block_size"]
    for field, predicted in (
        ("bytes_per_block", layout.bytes_per_block),
        ("request_bytes", vllm.request_bytes(layout)),
        ("num_blocks", vllm.blocks(layout, available)),
        ("blocks_per_request", vllm.request_blocks(layout)),
        ("max_concurrency_exact", round(float(vllm.max_concurrency(layout, available)), 6)),
    ):
        if out.get(field) is not None:
            yield field, predicted, out[field]
    if out["fits"]:
        logged = out["tokens_logged"]
        yield (
            "tokens_logged",
            set(vllm.logged_tokens(layout, available)),
            set(logged if isinstance(logged, list) else [logged]),
        )
    else:
        yield "estimated_max_len", vllm.largest_window(layout, available) or None, out["estimated_max_len"]
    positions = model(row["model"]).positions
    if out.get("largest_len_up_to_model_max") is not None and positions is not None:
        found = vllm.largest_window(layout, available, positions)
        yield "largest_len_up_to_model_max", found, out["largest_len_up_to_model_max"]


def groups(layout: vllm.Layout) -> list[tuple[Any, ...]]:
    kinds = {"latent": "mla"}
    return sorted(
        (kinds.get(group.kind, group.kind), group.layers, group.block_size, group.specs[0].page_bytes)
        for group in layout.whole.groups
    )


def test_every_executed_row() -> None:
    """Exact in every field; a row without specs is a start that the release refuses."""
    wrong: list[str] = []
    total = 0
    for row in rows(ROWS):
        total += 1
        layout = vllm.layout(model(row["model"]), settings(row))
        if row["inputs"]["specs"] is None:
            assert isinstance(layout, vllm.Refusal)
            assert layout.smallest_block_size == row["out"]["suggested_block_size"]
            continue
        assert isinstance(layout, vllm.Layout), (row["id"], layout)
        for field, predicted, executed in predictions(row, layout):
            if field == "request_bytes":
                print(f"{row['id']} {row['vllm']} {row['model']}: {predicted} {executed} {predicted / executed:.4f}")
            if predicted != executed:
                wrong.append(f"{row['id']} {row['vllm']} {row['model']} {field}: {predicted} for {executed}")
        listed = row["out"].get("groups", [])
        if listed and not listed[0]["kind"].startswith("mixed"):
            each = [(g["kind"], g["layers"], g["block_size"], g["page_bytes"]) for g in listed for _ in range(g["n"])]
            if groups(layout) != sorted(each):
                wrong.append(f"{row['id']} groups: {groups(layout)}")
    print(f"{total - len({line.split()[0] for line in wrong})} of {total} rows")
    assert not wrong, "\n".join(wrong[:20])


# What the logs' own notes say and their flags do not: an MTP or EAGLE head, prefix caching on.
NOTED: dict[str, dict[str, Any]] = {
    "vllm-0019": {"speculative_tokens": 3, "draft": True, "prefix_caching": True},
    "vllm-0023": {"prefix_caching": True},
    "vllm-0084": {"draft": True},
}
NAMES = {"Qwen/Qwen3.8-27B": "Qwen/Qwen3.5-27B", "Qwen/Qwen3.6-27B": "Qwen/Qwen3.5-27B"}


def catalogued(row: dict[str, Any]) -> str | None:
    """The model whose configuration is at hand: the row's own, or one of its shape."""
    name = row.get("catalog_model") or row["model"]
    for candidate in (name, NAMES.get(name, ""), name.removesuffix("-FP8"), name.removesuffix("-AWQ")):
        if candidate and (SHARED / "facts/models" / f"{candidate.replace('/', '__')}.json").is_file():
            return candidate
    return None


def flag(row: dict[str, Any], name: str) -> int | None:
    """The value of a flag in either spelling."""
    for word, value in zip(row["args"], row["args"][1:], strict=False):
        if word.replace("_", "-") == name:
            return int(value)
    return None


def logged(row: dict[str, Any], name: str) -> Iterator[vllm.Layout]:
    """The layouts that the log may come from: of its release, or of every release where it names none."""
    arch = model(name)
    noted = NOTED.get(row["id"], {})
    for release in [row["version"]] if row["version"] else vllm.known_releases():
        given = vllm.Settings(
            release=release,
            max_model_len=row["max_model_len"],
            max_num_batched_tokens=flag(row, "--max-num-batched-tokens") or 8192,
            tensor_parallel=row["tp"] or 1,
            pipeline_parallel=row["pp"] or 1,
            kv_cache_dtype=row["kv_cache_dtype"] or "auto",
            model_dtype="bfloat16",
            block_size=flag(row, "--block-size"),
            prefix_caching=noted.get("prefix_caching"),
            speculative_tokens=noted.get("speculative_tokens", 0),
            draft=draft(arch) if noted.get("draft") else (),
            gdn_prefill="triton",
        )
        yield from (each for each in vllm.layouts(arch, given) if isinstance(each, vllm.Layout))


def derivable(what: str) -> list[Any]:
    if not LOGS.is_file():
        return []
    return [pytest.param(row, id=row["id"]) for row in rows(LOGS) if what in row["derivable"]]


@pytest.mark.parametrize("row", derivable("needed"))
def test_needed_of_logs(row: dict[str, Any]) -> None:
    """The figure in `X GiB KV cache is needed`, to its printed decimals."""
    name = catalogued(row)
    if name is None:
        pytest.skip("no configuration of this model is at hand")
    printed = row["reported"]["needed_kv_gib"]
    needed = {round(vllm.request_bytes(layout) / GIB, 2) for layout in logged(row, name)}
    print(f"{row['id']} {row['model']} needed {sorted(needed)} {printed}")
    assert printed in needed
    if row["version"]:
        assert needed == {printed}


@pytest.mark.parametrize("row", derivable("concurrency"))
def test_concurrency_of_logs(row: dict[str, Any]) -> None:
    """`Maximum concurrency`, within the printed precision of the memory."""
    name = catalogued(row)
    if name is None:
        pytest.skip("no configuration of this model is at hand")
    printed = row["reported"]["max_concurrency"]
    available = int(row["reported"]["available_kv_gib"] * GIB)
    found = [float(vllm.max_concurrency(layout, available)) for layout in logged(row, name)]
    best = min(found, key=lambda each: abs(each - printed))
    print(f"{row['id']} {row['model']} concurrency {best:.3f} {printed} {best / printed:.4f}")
    assert best == pytest.approx(printed, rel=0.015)
    if row["version"]:
        assert found == pytest.approx([printed] * len(found), rel=0.015)
