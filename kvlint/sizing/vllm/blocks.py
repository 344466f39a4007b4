"""Blocks, tokens and lengths of a vLLM layout.

`available` is bytes for the cache on one device: one number for all stages, or one a stage.  `length` is tokens of one request;
None is the layout's own window.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Union

from kvlint.sizing.vllm.groups import Group
from kvlint.sizing.vllm.layout import Layout, Stage
from kvlint.sizing.vllm.settings import batches_in_flight
from kvlint.sizing.vllm.specs import Spec

Available = Union[int, Sequence[int]]


def spec_blocks(layout: Layout, spec: Spec, length: int) -> int:
    """Blocks that one request of `length` tokens may hold in one layer."""
    settings = layout.settings
    if spec.kind == "state":
        return state_pages(layout, spec, length)
    batch = settings.max_num_batched_tokens * batches_in_flight(settings, layout.rules)
    if spec.span is None or layout.rules.window_layers == "full":
        return _ceil(_ceil(length, settings.decode_context_parallel), spec.block_size)
    if spec.kind == "sliding":
        return _ceil(min(spec.span - 1 + batch, length), spec.block_size) + 1
    return _ceil(min(spec.span + batch, length), spec.block_size)


def state_pages(layout: Layout, spec: Spec, length: int) -> int:
    """Pages of recurrent state of one request in one layer."""
    counted, drafts = layout.rules.state_count, layout.settings.speculative_tokens
    if counted == "one":
        return 1
    if counted == "length":
        return _ceil(length, spec.block_size)
    if layout.mode == "none":
        return 1 + drafts
    if layout.mode == "align":
        return 2 + drafts + spec.checkpoint
    return _ceil(length, spec.block_size) + (drafts if layout.rules.all_mode_drafts else 0)


def group_blocks(layout: Layout, group: Group, length: int) -> int:
    return spec_blocks(layout, group.specs[0], length)


def request_blocks(layout: Layout, length: int | None = None) -> int:
    """Blocks of the pool that one request may hold, over all groups of the fullest stage."""
    tokens = _length(layout, length)
    return max(_stage_blocks(layout, stage, tokens) for stage in layout.stages)


def request_bytes(layout: Layout, length: int | None = None) -> int:
    """What the engine's own length check adds up for one request on the fullest device.

    Not everything that the request will hold in 0.14.0-0.18.1, where the check forgets all groups but the first.
    """
    stages = (layout.whole,) if layout.rules.whole_model_check else layout.stages
    tokens = _length(layout, length)
    return max(_checked_bytes(layout, stage, tokens) for stage in stages)


def held_bytes(layout: Layout, length: int | None = None) -> int:
    """Bytes that one request holds over all stages, as the release counts blocks, but with no group forgotten."""
    tokens = _length(layout, length)
    if layout.rules.request_count == "layers":
        return _layer_bytes(layout, layout.whole, tokens)
    return layout.whole.bytes_per_block * _stage_blocks(layout, layout.whole, tokens)


def blocks(layout: Layout, available: Available) -> int:
    """Blocks of the pool: the fewest that any stage has room for."""
    return max(0, min(blocks_by_stage(layout, available)))


def blocks_by_stage(layout: Layout, available: Available) -> tuple[int, ...]:
    stages = ((stage, size) for stage, size in zip(layout.stages, _sizes(layout, available), strict=True))
    return tuple(size // stage.bytes_per_block for stage, size in stages if stage.bytes_per_block)


def state_blocks(layout: Layout, available: Available) -> int | None:
    """Blocks that bound the batch width of a model with recurrent layers; None without such layers."""
    return blocks(layout, available) if layout.recurrent else None


def max_concurrency(layout: Layout, available: Available, length: int | None = None) -> Fraction:
    """Requests of `length` tokens that the pool holds at once."""
    return Fraction(blocks(layout, available), request_blocks(layout, length))


def pool_tokens(layout: Layout, available: Available, length: int | None = None) -> int:
    """Tokens that the pool holds in requests of `length` tokens each."""
    return int(max_concurrency(layout, available, length) * _length(layout, length))


def logged_tokens(layout: Layout, available: Available) -> tuple[int, ...]:
    """`GPU KV cache size: N tokens`, one number a log line; what it counts changed in 0.11.0 and in 0.20.1."""
    said = layout.rules.tokens_logged
    if said == "concurrency":
        return (pool_tokens(layout, available),)
    pools = blocks_by_stage(layout, available)
    if said == "groups":
        pools = (min(pools),) * len(pools)
    held = [stage for stage in layout.stages if stage.groups]
    context = layout.settings.decode_context_parallel
    lines = (_tokens_of(stage, pool) * context for stage, pool in zip(held, pools, strict=True))
    return tuple(lines) if said == "worker" else tuple(lines)[:1]


def fits(layout: Layout, available: Available, length: int | None = None) -> bool:
    """Whether the engine's length check lets a server with this pool start."""
    tokens = _length(layout, length)
    sizes = _sizes(layout, available)
    if layout.rules.whole_model_check:
        return _passes(layout, layout.whole, min(sizes), tokens)
    return all(_passes(layout, stage, size, tokens) for stage, size in zip(layout.stages, sizes, strict=True))


def largest_window(layout: Layout, available: Available, upper: int | None = None) -> int:
    """The largest length up to `upper` that passes the length check; 0 where none does."""
    low, high = 0, _length(layout, upper)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(layout, available, middle) else (low, middle - 1)
    return low


def least_available(layout: Layout, length: int | None = None) -> int:
    """The smallest pool of one device with which the length check passes on every stage."""
    tokens = _length(layout, length)
    stages = (layout.whole,) if layout.rules.whole_model_check else layout.stages
    spare = layout.rules.spare_blocks
    return max(1, max(_checked_bytes(layout, s, tokens) + spare * s.bytes_per_block for s in stages))


def _passes(layout: Layout, stage: Stage, size: int, tokens: int) -> bool:
    left = size - layout.rules.spare_blocks * stage.bytes_per_block
    return left > 0 and _checked_bytes(layout, stage, tokens) <= left


def _checked_bytes(layout: Layout, stage: Stage, tokens: int) -> int:
    counted = layout.rules.request_count
    if counted == "layers":
        return _layer_bytes(layout, stage, tokens)
    if counted == "first-group":
        return stage.bytes_per_block * group_blocks(layout, stage.groups[0], tokens) if stage.groups else 0
    return stage.bytes_per_block * _stage_blocks(layout, stage, tokens)


def _layer_bytes(layout: Layout, stage: Stage, tokens: int) -> int:
    return sum(count * spec.page_bytes * spec_blocks(layout, spec, tokens) for count, spec in stage.alike)


def _stage_blocks(layout: Layout, stage: Stage, tokens: int) -> int:
    return sum(group_blocks(layout, group, tokens) for group in stage.groups)


def _tokens_of(stage: Stage, pool: int) -> int:
    """0 where the stage has fewer blocks than groups."""
    return pool // len(stage.groups) * min(group.block_size for group in stage.groups)


def _sizes(layout: Layout, available: Available) -> tuple[int, ...]:
    """Bytes of every stage; ValueError where another number of stages is given."""
    if isinstance(available, int):
        return (available,) * len(layout.stages)
    if len(available) != len(layout.stages):
        raise ValueError(f"{len(layout.stages)} stages, but {len(available)} sizes")
    return tuple(available)


def _length(layout: Layout, length: int | None) -> int:
    return layout.settings.max_model_len if length is None else length


def _ceil(value: int, by: int) -> int:
    return -(-value // by)
