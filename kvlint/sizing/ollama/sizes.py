"""Ollama's slots, context and cache types by release, and the bytes that follow.

Ollama gives every slot its whole context: it starts `llama-server -c (num_ctx x slots) -np slots` (its own runner before v0.30.0
allocated the same product).  The rules are data (data/engines/ollama.memory.toml).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from kvlint.compiled import load
from kvlint.facts import Range, Unknown
from kvlint.models.architecture import Architecture
from kvlint.patterns import regex
from kvlint.records import dataclass, replace
from kvlint.sizing.llama import sizes as llama
from kvlint.sizing.llama.refusals import quantized
from kvlint.sizing.llama.settings import Model, Outcome, Plan, Refusal
from kvlint.sizing.llama.shape import shape

_RELEASE = regex(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:-rc\d+)?")
_WRAP = 1 << 64  # the sum of device memory is unsigned 64-bit arithmetic

Release = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Settings:
    """One service and one model; None where nothing is said.

    `request_context`, `model_context` and `environment_context`: num_ctx of a request, of the Modelfile, OLLAMA_CONTEXT_LENGTH.
    `parallel` OLLAMA_NUM_PARALLEL, `kv_cache_type` OLLAMA_KV_CACHE_TYPE, `flash_attention` OLLAMA_FLASH_ATTENTION as text,
    `batch` num_batch.  `devices`: bytes of each GPU (empty: CPU alone), `overhead` OLLAMA_GPU_OVERHEAD in bytes.
    """

    request_context: int | None = None
    model_context: int | None = None
    environment_context: int | None = None
    parallel: int | None = None
    kv_cache_type: str | None = None
    flash_attention: str | None = None
    batch: int | None = None
    devices: tuple[int, ...] | None = None
    overhead: int = 0
    embedding: bool = False


@cache
def data() -> Mapping[str, Any]:
    loaded: dict[str, Any] = load("ollama_memory.json")
    return loaded


def release(text: str) -> Release | None:
    """The release of `v0.33.0-rc2` or `0.33`; None for everything else."""
    found = _RELEASE.fullmatch(text.strip())
    return None if found is None else (int(found[1]), int(found[2]), int(found[3] or 0))


def rule(name: str, version: Release | None) -> Any:
    """The value of one rule in a release; `Unknown` where it may have several."""
    spans = data()["rules"][name]
    values = [value for _, _, value in spans] if version is None else _values(spans, version)
    if len(set(values)) == 1:
        return values[0]
    return Unknown("engine.version", f"releases of Ollama differ in {name}", "name the release of Ollama")


def _values(spans: list[list[Any]], version: Release) -> list[Any]:
    before: list[Any] = []
    after: list[Any] = []
    for begin, end, value in spans:
        first, last = begin and release(begin), end and release(end)
        # the last release of a minor line is written without its patch
        if last and end.count(".") == 1:
            last = (last[0], last[1], 1 << 30)
        if (not first or first <= version) and (not last or version <= last):
            return [value]
        if last and last < version:
            before = [value]
        elif not after:
            after = [value]
    return before + after


def variable(text: str | None) -> str:
    """A variable's text as Ollama reads it: blanks, then quotes, are trimmed; unset is empty."""
    return (text or "").strip().strip("\"'")


def boolean(text: str | None) -> bool | None:
    """A switch: unset is None; what does not parse counts as on, `off` and `no` among it."""
    value = variable(text)
    if not value:
        return None
    return value not in ("0", "f", "F", "false", "False", "FALSE")


def flash_attention(text: str | None, version: Release | None) -> str | Unknown:
    """on, off or auto."""
    switch = boolean(text)
    if switch is not None:
        return "on" if switch else "off"
    default: str | Unknown = rule("flash_attention", version)
    if default == "unknown":
        return Unknown("flash_attention", "this release of Ollama decides by model", "set OLLAMA_FLASH_ATTENTION")
    return default


def tier(devices: Sequence[int], overhead: int = 0) -> int:
    """The default context by the memory of all GPUs less the overhead of each; the sum wraps around below zero."""
    total = sum(device - overhead for device in devices) % _WRAP
    return int(next(context for least, context in data()["constants"]["tiers"] if total >= least))


def context(settings: Settings, trained: int | None, version: Release | None) -> int | Unknown:
    """num_ctx of one slot: the request's, the Modelfile's, the variable's, else the default; never above the trained context."""
    stated = (settings.request_context, settings.model_context, settings.environment_context)
    chosen = next((value for value in stated if value), None)
    if chosen is None:
        default = rule("context", version)
        if isinstance(default, Unknown):
            return default
        if not default and settings.devices is None:
            return Unknown("hardware.memory", "the default context follows from the memory of the GPUs", "set num_ctx")
        chosen = int(default) or tier(settings.devices or (), settings.overhead)
    return min(chosen, trained) if trained else chosen


def slots(settings: Settings, family: str, version: Release | None) -> int | Unknown:
    """Requests decoded together; some families and embedding models get one whatever is asked for."""
    asked = settings.parallel or rule("parallel", version)
    if isinstance(asked, Unknown):
        return asked
    if not asked:
        return Unknown("parallel", "four slots are made if they fit, else one", "set OLLAMA_NUM_PARALLEL")
    single = settings.embedding or family in data()["constants"]["families"]
    if asked == 1 or not single:
        return int(asked)
    known = rule("forced", version)
    if known is True:
        return 1
    return known or Unknown(
        "parallel", f"whether this release gives {family} one slot is not known", "name a newer release"
    )


def kv_type(settings: Settings, flash: str | Unknown, version: Release | None) -> str | Unknown | None:
    """The type of both caches, None for the default.  Without flash attention Ollama's own runner drops a quantized type."""
    named = variable(settings.kv_cache_type).lower() or None
    runner = rule("runner", version)
    if named is None or isinstance(runner, Unknown):
        return named if named is None else runner
    if runner == "llama-server" or not _quantized(named):
        return named
    if isinstance(flash, Unknown):
        return flash
    return named if flash == "on" else str(data()["constants"]["dropped_type"])


def max_loaded_models(limit: int | None, devices: int) -> int:
    """Models loaded together: OLLAMA_MAX_LOADED_MODELS, or three for each GPU, three without one."""
    return limit or int(data()["constants"]["loaded_per_device"]) * max(devices, 1)


def max_queue(limit: int | None) -> int:
    """Requests that may wait before the next is answered with 503."""
    return int(data()["constants"]["queue"]) if limit is None else limit


def plan(model: Model, settings: Settings, version: Release | None) -> Outcome:
    """What one loaded model allocates; an unset num_batch is taken as 512 (see `pool_bytes` for the range)."""
    found = shape(model)
    count = slots(settings, _family(model, found.name), version)
    length = context(settings, found.trained, version)
    flash = flash_attention(settings.flash_attention, version)
    cache_type = kv_type(settings, flash, version)
    runner = rule("runner", version)
    if isinstance(count, Unknown):
        return count
    if isinstance(length, Unknown):
        return length
    if isinstance(cache_type, Unknown):
        return cache_type
    if isinstance(runner, Unknown):
        return runner
    if runner == "own":
        if found.sliding or found.state_elements:
            return Unknown(
                "engine.version", "how Ollama's own runner keeps this model is not known", "use v0.30.0 or newer"
            )
        flash = "on" if isinstance(flash, Unknown) else flash
    elif isinstance(flash, Unknown):
        return flash
    batch = settings.batch or int(data()["constants"]["batches"][1])
    wanted = llama.Settings(
        context=length * count,
        parallel=count,
        batch=batch,
        ubatch=batch,
        cache_type_k=cache_type,
        cache_type_v=cache_type,
        flash_attention=flash,
    )
    outcomes = [llama.plan(model, wanted, build) for build in _builds(runner, version)]
    agreed = all(outcome == outcomes[0] for outcome in outcomes)
    return outcomes[0] if agreed else Unknown("engine.version", "the llama.cpp of this release is not known", "name it")


def pool_bytes(model: Model, settings: Settings, version: Release | None) -> int | Range | Refusal | Unknown:
    """All caches of one loaded model, in bytes; a range where num_batch is not set and sliding layers depend on it."""
    batches = [settings.batch] if settings.batch else data()["constants"]["batches"]
    sizes = []
    for batch in batches:
        found = plan(model, replace(settings, batch=batch), version)
        if not isinstance(found, Plan):
            return found
        sizes.append(found.pool_bytes)
    return sizes[0] if min(sizes) == max(sizes) else Range(min(sizes), sizes[1], max(sizes))


def _family(model: Model, name: str) -> str:
    return model.model_type if isinstance(model, Architecture) else name


def _quantized(cache_type: str) -> bool:
    try:
        return quantized(cache_type)
    except KeyError:
        return True


def _builds(runner: str, version: Release | None) -> tuple[int, ...]:
    """The builds of llama.cpp that a release may bring."""
    between = data()["between"]
    if runner == "own":
        return (int(between["own"]),)
    exact = {release(name): build for name, build in data()["bundled"].items()}.get(version)
    return (int(exact),) if exact else (int(between["from"]), int(between["to"]))
