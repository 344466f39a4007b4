"""llama-server's memory: slots, windows, and the bytes of every cache, by build.

The formulas are those of llama.cpp (data/engines/llama-server.memory.toml names the lines), checked against its start logs.
Sizes are of one copy of the whole model over all devices, in bytes; tokens are whole cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture
from kvlint.sizing.llama.refusals import block, flash_attention, refused
from kvlint.sizing.llama.releases import build_number, data, semantic_classes, unknown_build
from kvlint.sizing.llama.settings import Cache, Model, Outcome, Plan, Refusal, Settings, Start
from kvlint.sizing.llama.shape import OVERLAPPING, Row, Shape, shape
from kvlint.sizing.llama.slots import Cells, Slots, cells, micro_batch, request, sliding_cells, slots

__all__ = ["Cache", "Plan", "Refusal", "Settings", "cache_bytes", "plan", "shape", "token_bytes"]


def plan(model: Model, settings: Settings, build: int | None = None) -> Outcome:
    """What a start of llama-server allocates, why it refuses, or what must be known to tell.

    `build`: the number of `b11434`; None or one between two known builds gives a plan only where all the possible ways agree.
    Raises UnknownArchitecture where the model's caches are not known.
    """
    target = shape(model)
    draft = None if settings.draft is None else shape(settings.draft)
    memo = model.memo if isinstance(model, Architecture) and draft is None else None
    outcomes: list[Outcome] = []
    for rules in semantic_classes(build):
        outcome = _known_plan(Start(target, settings, rules, draft), build, memo)
        if outcome not in outcomes:
            outcomes.append(outcome)
        if len(outcomes) > 1:
            return unknown_build("what these settings mean")
    return outcomes[0]


def _known_plan(start: Start, build: int | None, memo: dict[Any, Any] | None) -> Outcome:
    """A plan, made once for all builds with these rules; the build itself may matter to some shapes and drafts."""
    if memo is None:
        return _plan(start, build)
    dated = start.shape.indexer or start.shape.compressed or start.settings.spec_types
    key = (start.settings, start.rules, build if dated else None)
    found: Outcome | None = memo.get(key)
    if found is None:
        found = memo[key] = _plan(start, build)
    return found


def token_bytes(rows: Iterable[Row], type_k: str, type_v: str) -> tuple[int, int]:
    """Bytes of keys and of values that one token takes in `rows`."""
    every = tuple(rows)
    return sum([_row_bytes(row.keys, type_k) for row in every]), sum([_row_bytes(row.values, type_v) for row in every])


def cache_bytes(
    metadata: Model,
    tokens: int,
    *,
    sequences: int = 1,
    slots: int | None = None,
    version: str | None = None,
    kv_dtype: str | None = None,
    batched_tokens: int | None = None,
    **_: Any,
) -> int:
    """Bytes that llama-server holds for `sequences` sequences of `tokens` tokens: whole cells for `slots` slots, state included.

    One buffer for each slot, keys and values of one type; `batched_tokens` is the micro-batch.  Raises UnknownArchitecture
    where the shape is not known, ValueError for a type that is refused or a build of which it cannot be told.
    """
    count = max(slots or 0, sequences, 1)
    cache_type = _cache_type(kv_dtype)
    settings = Settings(
        context=tokens * count,
        parallel=count,
        cache_type_k=cache_type,
        cache_type_v=cache_type,
        ubatch=batched_tokens,
        batch=batched_tokens,
    )
    build = data()["newest"] if version is None else build_number(version)
    outcome = plan(metadata, settings, build)
    if isinstance(outcome, Plan):
        return outcome.pool_bytes
    raise ValueError(outcome.message if isinstance(outcome, Refusal) else outcome.reason)


def _cache_type(kv_dtype: str | None) -> str | None:
    names = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}
    return None if kv_dtype is None else names.get(kv_dtype, kv_dtype)


def _plan(start: Start, build: int | None) -> Outcome:
    found = slots(start)
    if not isinstance(found, Slots):
        return found
    asked = request(start, found)
    if isinstance(asked, (Refusal, Unknown)):
        return asked
    reason = refused(start.settings, start.rules, start.shape, start.draft)
    if reason is not None:
        return reason
    unread = _unread(start, build)
    if unread is not None:
        return unread
    copies = _state_copies(start, build)
    if isinstance(copies, Unknown):
        return copies
    least = _allocated(start, found, asked.least, copies, None) if asked.shrinks else None
    if isinstance(least, Refusal):
        return least
    return _allocated(start, found, asked.tokens, copies, least)


def _allocated(start: Start, found: Slots, tokens: int, copies: int, least: Plan | None) -> Plan | Refusal:
    flash = flash_attention(start.settings, start.rules, start.shape) != "off"
    pad = start.rules.pad[0 if flash else 1]
    sized = cells(start, found, tokens, pad)
    if isinstance(sized, Refusal):
        return sized
    ubatch = micro_batch(start, tokens)
    draft = _drafting(start)
    return Plan(
        slots=found.count,
        unified=found.unified,
        context=sized.context,
        sequence=sized.sequence,
        window=sized.window,
        ubatch=ubatch,
        trained=start.shape.trained,
        flash_attention=flash,
        capped=start.shape.trained is not None and sized.sequence - start.shape.trained >= pad,
        caches=(*_caches(start, start.shape, found, sized, ubatch), *_draft_caches(start, found, sized, ubatch)),
        state_bytes=start.shape.state_elements * int(data()["constants"]["state_bytes"]),
        state_copies=copies,
        draft_state_bytes=0 if draft is None else draft.state_elements * int(data()["constants"]["state_bytes"]),
        floor=least,
    )


def _drafting(start: Start) -> Shape | None:
    """The model whose own layers draft; None where there is none, or where only multi-token prediction layers do."""
    return None if data()["constants"]["nextn_type"] in start.settings.spec_types else start.draft


def _draft_caches(start: Start, found: Slots, sized: Cells, ubatch: int) -> list[Cache]:
    """The draft's caches: as many cells and buffers as the target's, its own types."""
    types = start.settings.draft_types()
    if data()["constants"]["nextn_type"] in start.settings.spec_types:
        rows = (start.draft or start.shape).drafting
        return [_cache("draft-full", rows, sized.sequence, sized.buffers, types, None)]
    if start.draft is None:
        return []
    draft = Start(start.draft, start.settings, start.rules, None)
    return _caches(draft, start.draft, found, sized, ubatch, types, "draft-")


def _caches(
    start: Start,
    model: Shape,
    found: Slots,
    sized: Cells,
    ubatch: int,
    types: tuple[str, str] | None = None,
    prefix: str = "",
) -> list[Cache]:
    types = types or (start.settings.key_type(), start.settings.value_type())
    flash = flash_attention(start.settings, start.rules, model) != "off"
    # without flash attention values are stored transposed, each row as wide as the widest of the model
    widest = None if flash or model.latent else model.widest_values
    whole = model.hybrid and not start.rules.hybrid_share and sized.buffers > 1
    size = sized.context if whole else sized.sequence
    window = sliding_cells(start, found, size, ubatch, start.rules.pad[0 if flash else 1])
    if model.compressed:
        return _compressed(start, model, found, sized, ubatch, types, prefix)
    made = [
        _cache(f"{prefix}full", model.full, size, sized.buffers, types, widest),
        _cache(f"{prefix}sliding", model.sliding, window, sized.buffers, types, widest, model.window),
        _cache(f"{prefix}indexer", model.indexer, size, sized.buffers, types, None),
    ]
    return [cache for cache in made if cache.layers]


def _compressed(
    start: Start, model: Shape, found: Slots, sized: Cells, ubatch: int, types: tuple[str, str], prefix: str
) -> list[Cache]:
    """DeepSeek V4's caches: buffers for every slot even where the context is shared (B:src/llama-kv-cache-dsv4.cpp:1246)."""
    window = sliding_cells(start, Slots(found.count, False, found.whole), sized.sequence, ubatch, start.rules.pad[0])
    made = [_cache(f"{prefix}sliding", model.sliding, window, found.count, types, None, model.window)]
    for ratio in sorted({part.ratio for part in model.compressed if part.ratio}):
        layers = [part for part in model.compressed if part.ratio == ratio]
        rows = tuple(Row(part.head_dim, 0, part.head_dim, 0) for part in layers)
        count = _ceil(_ceil(sized.sequence, ratio) // ratio, int(data()["constants"]["sliding_pad"]))
        made.append(_cache(f"{prefix}compressed-{ratio}", rows, count, found.count, types, None, 0, ratio))
        if ratio == OVERLAPPING:
            keys = tuple(Row(part.index_dim, 0, part.index_dim, 0) for part in layers)
            made.append(_cache(f"{prefix}indexer", keys, count, found.count, types, None, 0, ratio))
    return made


def _ceil(value: int, step: int) -> int:
    return -(-value // step) * step


def _cache(
    role: str,
    rows: tuple[Row, ...],
    count: int,
    buffers: int,
    types: tuple[str, str],
    widest: int | None,
    window: int = 0,
    ratio: int = 1,
) -> Cache:
    if widest is not None:
        rows = tuple(Row(row.keys, widest, row.key_head, row.value_head) for row in rows)
    keys, values = token_bytes(rows, *types)
    total = count * buffers
    return Cache(role, len(rows), count, buffers, types[0], types[1], keys * total, values * total, window, ratio)


@lru_cache(maxsize=4096)
def _row_bytes(elements: int, cache_type: str) -> int:
    """Bytes of one row; a row is whole blocks (`ggml_row_size`)."""
    per, size = block(cache_type)
    return -(-elements // per) * size


def _unread(start: Start, build: int | None) -> Unknown | None:
    """Shapes whose allocation was read from some build on only."""
    for name in ("indexer", "compressed"):
        if getattr(start.shape, name) and (build is None or build < data()["since"][name]):
            return unknown_build(f"the {name} rows of {start.shape.name}")
    if start.shape.compressed and data()["constants"]["nextn_type"] in start.settings.spec_types:
        return Unknown(
            "spec_types", "what multi-token prediction keeps for this model is not known", "draft without it"
        )
    return None


def _state_copies(start: Start, build: int | None) -> int | Unknown:
    """1, and one copy for each token drafted, on the models that roll their state back (B:src/llama-context.cpp:112)."""
    constants: Mapping[str, Any] = data()["constants"]
    rolls = any(kind in constants["rollback_types"] for kind in start.settings.spec_types)
    if not rolls or not start.shape.state_elements:
        return 1
    drafted = start.settings.drafted if start.settings.drafted is not None else start.rules.drafted
    first = data()["rollback"].get(start.shape.name)
    newest = int(data()["newest"])
    if build is None or build < (first or newest):
        return unknown_build(f"the copies of its state that {start.shape.name} keeps while drafting")
    return 1 + max(drafted, 0) if first is not None else 1
