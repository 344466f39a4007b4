"""What llama-server keeps in ordinary memory: states of prompts that left their slot, and context checkpoints.

A stored state is what llama_state_seq_get_data writes: the cells that the sequence still needs, one copy of its recurrent state,
and the same of the draft.  The few bytes that describe each cell are not counted.
"""

from __future__ import annotations

from kvlint.facts import Range, Unknown
from kvlint.sizing.llama.releases import rule
from kvlint.sizing.llama.settings import Plan, Settings

MIB = 1 << 20


def slot_state_bytes(plan: Plan, tokens: int | None = None) -> int:
    """Bytes of one slot's stored state at `tokens` tokens, its window unless said: an entry of the host prompt cache without its
    checkpoints (B:tools/server/server-task.cpp:1722)."""
    count = plan.window if tokens is None else tokens
    return sum(cache.held(count) for cache in plan.caches) + plan.state_bytes + plan.draft_state_bytes


def host_cache_bytes(settings: Settings, build: int | None) -> int | Unknown | None:
    """The limit of the host prompt cache of one server: --cache-ram in MiB; None is unlimited, 0 is none."""
    limit = settings.cache_ram if settings.cache_ram is not None else rule("cache_ram", build)
    if isinstance(limit, Unknown):
        return limit
    return None if limit < 0 else limit * MIB


def storable(state: int, limit: int | None, build: int | None) -> bool | Unknown:
    """Whether a state can be kept in the host prompt cache: one above the limit is skipped, which older builds kept."""
    if limit is None or (limit and state <= limit):
        return True
    if not limit:
        return False
    kept: bool | Unknown = rule("cache_ram_keeps_one", build)
    return kept


def checkpoint_bytes(plan: Plan, settings: Settings) -> int | Range:
    """Bytes of one context checkpoint: the windows of sliding layers, the recurrent state, and the draft's whole cache so far.

    0 for models that can roll back by themselves.  A range with a draft, whose part grows with the prompt.
    """
    sliding = [] if settings.swa_full else [cache for cache in plan.caches if cache.window]
    if not sliding and not plan.state_bytes:
        return 0
    least = sum(cache.held(plan.window) for cache in sliding) + plan.state_bytes + plan.draft_state_bytes
    growing = [cache for cache in plan.caches if cache.role.startswith("draft-") and not cache.window]
    most = least + sum(cache.held(plan.window) for cache in growing)
    return least if most == least else Range(least, (least + most) // 2, most)


def checkpoints(settings: Settings, build: int | None) -> int | Unknown:
    """Checkpoints that a slot keeps at most."""
    return settings.checkpoints if settings.checkpoints is not None else rule("checkpoints", build)


def checkpoints_bytes(plan: Plan, settings: Settings, build: int | None) -> int | Range | Unknown:
    """Bytes of the checkpoints of all slots, all there; neither limited nor switched off by --cache-ram."""
    count = checkpoints(settings, build)
    if isinstance(count, Unknown):
        return count
    times = max(count, 0) * plan.slots
    each = checkpoint_bytes(plan, settings)
    if isinstance(each, Range):
        return Range(each.low * times, each.nominal * times, each.high * times)
    return each * times
