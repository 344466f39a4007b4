"""vllm-mlx: how many sequences it decodes together, what its prefix cache may hold, and which settings it does not hear.

Live keys and values grow with mlx-lm's own caches and are bounded by nothing here; only stored prefixes have a limit.  What
depends on the release is data (data/engines/vllm-mlx.memory.toml).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from kvlint.compiled import load
from kvlint.facts import Unknown
from kvlint.patterns import regex
from kvlint.records import dataclass

_RELEASE = regex(r"v?(\d+)\.(\d+)\.(\d+)(?:\.?(?:rc|dev|post|a|b)\d+)?")
MIB = 1 << 20

Release = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Settings:
    """One command line; None where it says nothing.  Fractions are exact; `cache_memory_mb` counts MiB."""

    continuous_batching: bool = False
    max_num_seqs: int | None = None
    prefill_batch_size: int | None = None
    completion_batch_size: int | None = None
    max_tokens: int | None = None
    max_request_tokens: int | None = None
    disable_prefix_cache: bool = False
    memory_aware: bool = True
    paged: bool = False
    cache_memory_mb: int | None = None
    cache_memory_percent: Fraction | None = None
    prefix_cache_size: int | None = None
    paged_cache_block_size: int | None = None
    max_cache_blocks: int | None = None
    gpu_memory_utilization: Fraction | None = None


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """`mode`: memory-aware (limited in `bytes`), paged (in `tokens`, all sequences together), entries, or none."""

    mode: str
    bytes: int | None = None
    tokens: int | None = None
    entries: int | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A flag that is parsed and does nothing; `needs` is what would make it heard, `certain` whether all the code was read."""

    flag: str
    needs: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Refusal:
    """vllm-mlx does not start.  `settings`: the fields of `Settings` that make it so."""

    kind: str
    message: str
    settings: tuple[str, ...]


@cache
def data() -> Mapping[str, Any]:
    loaded: dict[str, Any] = load("vllm-mlx_memory.json")
    return loaded


def release(text: str) -> Release | None:
    """The release of `0.6.0`; None for everything else."""
    found = _RELEASE.fullmatch(text.strip())
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


def rule(name: str, version: Release | None) -> Any:
    """The value of one rule in a release; `Unknown` where it may have several or was not read."""
    spans = data()["rules"][name]
    values = {value for _, _, value in spans} if version is None else _values(spans, version)
    if len(values) == 1 and "unknown" not in values:
        return next(iter(values))
    return Unknown("engine.version", f"releases of vllm-mlx differ in {name}", "name the release of vllm-mlx")


def _values(spans: list[list[Any]], version: Release) -> set[Any]:
    before: set[Any] = set()
    after: set[Any] = set()
    for begin, end, value in spans:
        first, last = begin and release(begin), end and release(end)
        if (not first or first <= version) and (not last or version <= last):
            return {value}
        if last and last < version:
            before = {value}
        elif not after:
            after = {value}
    return before | after


def batch_width(settings: Settings) -> int:
    """Sequences decoded together: one without continuous batching, else the narrowest of the running set and the generator."""
    if not settings.continuous_batching:
        return 1
    running = _given(settings.max_num_seqs, "max_num_seqs")
    prefill = _given(settings.prefill_batch_size, "prefill_batch_size")
    completion = _given(settings.completion_batch_size, "completion_batch_size")
    return min(running, max(completion, prefill))


def simple_admission(version: Release | None, variable: str | None = None) -> str | Unknown:
    """What happens to a second request without continuous batching: wait or refuse (HTTP 503).

    `variable`: the text of the environment variable that chooses, where it exists.
    """
    found = rule("simple", version)
    if found == "refuse" and (variable or "").strip().lower() == "wait":
        return "wait"
    return str(found) if isinstance(found, str) else Unknown(found.missing, found.reason, found.supply)


def prefix_cache(settings: Settings, version: Release | None, available: int | None = None) -> PrefixCache | Unknown:
    """What stored prefixes may take.  `available`: bytes of memory free when the server starts, which a share is taken of."""
    if not settings.continuous_batching or settings.disable_prefix_cache:
        return PrefixCache("none")
    if settings.paged:
        size = _given(settings.paged_cache_block_size, "paged_cache_block_size")
        return PrefixCache("paged", tokens=size * _given(settings.max_cache_blocks, "max_cache_blocks"))
    aware = rule("memory_aware", version) if settings.memory_aware else False
    if isinstance(aware, Unknown):
        return aware
    if not aware:
        return PrefixCache("entries", entries=_given(settings.prefix_cache_size, "prefix_cache_size"))
    limit = _memory_limit(settings, available)
    return (
        limit if isinstance(limit, Unknown) else PrefixCache("memory-aware", limit, entries=_constant("cache_entries"))
    )


def _memory_limit(settings: Settings, available: int | None) -> int | Unknown:
    if settings.cache_memory_mb is not None:
        return settings.cache_memory_mb * MIB
    if available is None:
        reason = "the prefix cache takes a share of the memory that is free when the server starts"
        return Unknown("hardware.available", reason, "set --cache-memory-mb")
    return max(int(available * _share(settings.cache_memory_percent, "cache_memory_percent")), _constant("cache_floor"))


def dropped(flags: Iterable[str], settings: Settings) -> tuple[Dropped, ...]:
    """Those of the written flags that do nothing in this combination."""
    tables = data()["flags"]
    mode = _mode(settings)
    found = []
    for flag in flags:
        if flag in tables["simple"] and settings.continuous_batching:
            found.append(Dropped(flag, "no --continuous-batching"))
        elif not settings.continuous_batching and flag in tables["batching"]:
            found.append(Dropped(flag, "--continuous-batching"))
        elif not settings.continuous_batching and flag in tables["batching_read_in_part"]:
            found.append(Dropped(flag, "--continuous-batching", certain=False))
        elif settings.continuous_batching:
            needs = next((name for name in ("memory-aware", "entries", "paged") if flag in tables[name]), mode)
            found += [Dropped(flag, f"the {needs} prefix cache")] if needs != mode else []
    return tuple(found)


def _mode(settings: Settings) -> str:
    if settings.disable_prefix_cache:
        return "none"
    return "paged" if settings.paged else "memory-aware" if settings.memory_aware else "entries"


def refused(settings: Settings) -> Refusal | None:
    """Why the server does not start: limits of tokens and shares, in the order of its checks."""
    share = _share(settings.gpu_memory_utilization, "gpu_memory_utilization")
    if not 0 < share <= 1:
        return Refusal("gpu-memory-utilization", f"{float(share)} is not in (0, 1]", ("gpu_memory_utilization",))
    default = _given(settings.max_tokens, "max_tokens")
    most = _given(settings.max_request_tokens, "max_request_tokens")
    for name, value in (("max_tokens", default), ("max_request_tokens", most)):
        if value < 1:
            return Refusal("token-limit", f"{name} is {value}", (name,))
    if default > most:
        message = f"the default of {default} tokens is above the limit of a request, {most}"
        return Refusal("max-tokens-above-request-limit", message, ("max_tokens", "max_request_tokens"))
    percent = _share(settings.cache_memory_percent, "cache_memory_percent")
    if settings.continuous_batching and _mode(settings) == "memory-aware" and not 0 < percent <= 1:
        message = f"--cache-memory-percent is a fraction in (0, 1], not {float(percent)}"
        return Refusal("cache-memory-percent", message, ("cache_memory_percent",))
    return None


def memory_limit_bytes(settings: Settings, recommended: int) -> int | None:
    """MLX's soft allocation limit: a share of the device's recommended working set; None without continuous batching."""
    if not settings.continuous_batching:
        return None
    return int(recommended * _share(settings.gpu_memory_utilization, "gpu_memory_utilization"))


def buffer_pool_bytes(settings: Settings, recommended: int, version: Release | None) -> int | Unknown | None:
    """What MLX keeps of freed buffers at most; None where nothing caps it."""
    fixed = rule("buffer_pool", version)
    if isinstance(fixed, Unknown):
        return fixed
    if fixed < 0:
        return None
    return int(fixed) or memory_limit_bytes(settings, recommended)


def pressure_bytes(settings: Settings, total: int) -> int:
    """Above this much of all memory the pool is cleared."""
    share = _share(settings.gpu_memory_utilization, "gpu_memory_utilization") + Fraction(
        data()["constants"]["pressure_margin"]
    )
    return int(total * min(share, Fraction(data()["constants"]["pressure_most"])))


def buffers() -> Unknown:
    """Live Metal buffers, of which a process may have 499,000: they follow from no setting."""
    return Unknown(
        "buffers", "the number of live Metal buffers follows from no setting", "count them while the server runs"
    )


def _given(value: int | None, name: str) -> int:
    return _constant(name) if value is None else value


def _constant(name: str) -> int:
    return int(data()["constants"][name])


def _share(value: Fraction | None, name: str) -> Fraction:
    return Fraction(data()["constants"][name]) if value is None else value
