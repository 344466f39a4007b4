"""vllm-mlx: `vllm-mlx serve`.  Nearly all of its settings are heard only behind `--continuous-batching`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from fractions import Fraction
from typing import Any

from kvlint.command import CommandLine
from kvlint.engines import basename
from kvlint.engines.argparse import Given
from kvlint.engines.base import Program, Settings, World
from kvlint.engines.fields import Fields, exact
from kvlint.facts import Default, Fact, Unknown, Value, quantity
from kvlint.models.lookup import written_id
from kvlint.sizing.server import Sizing
from kvlint.sizing.vllm_mlx import sizes as memory
from kvlint.subjects import Problem

NAME = "vllm-mlx"
SERVE = "vllm-mlx serve"
WORDS = ("vllm-mlx", "vllm_mlx.cli")
# Flags whose loss is the loss of a window, a width or a limit.
BOUNDS = (
    *("--max-kv-size", "--max-num-seqs", "--prefill-batch-size", "--completion-batch-size", "--prefix-cache-size"),
    *("--cache-memory-mb", "--cache-memory-percent", "--max-cache-blocks", "--gpu-memory-utilization"),
)


@quantity(
    "batch_width",
    unit="sequences",
    formula="min(max_num_seqs, max(completion, prefill))",
    source="vllm-mlx==0.6.0:vllm_mlx/scheduler.py and mlx-lm's batch generator",
)
def effective_width(max_num_seqs: int, completion_batch_size: int, prefill_batch_size: int) -> int:
    return min(max_num_seqs, max(completion_batch_size, prefill_batch_size))


class VllmMlx:
    name = NAME
    distribution = NAME
    images: tuple[str, ...] = ()

    def recognise(self, line: CommandLine) -> Program | None:
        if line.program is None or basename(line.program.value) not in WORDS:
            return None
        if line.args and line.args[0].value == "serve":
            return Program(SERVE, line.args[1:], line.program.span, args_at=1)
        if line.args and line.args[0].value.startswith("--"):
            data = {"engine": NAME, "expected": "serve", "refuses": True}
            problem = Problem("missing-subcommand", line.program.span, data)
            return Program(SERVE, line.args, line.program.span, problems=(problem,))
        return None

    def semantics(self, release: str) -> Hashable:
        version = memory.release(release)
        return tuple(str(memory.rule(name, version)) for name in memory.data()["rules"])

    def settled(self, release: str) -> bool:
        return True

    def sizing(self) -> type[Sizing]:
        from kvlint.sizing.vllm_mlx.server import VllmMlxSizing

        return VllmMlxSizing

    def settings(self, world: World) -> Settings:
        fields = Fields(world)
        values: dict[str, Value[Any] | None] = {
            "release": Fact(world.release, Default(NAME, world.releases, "release"))
        }
        given = fields.given("model")
        text = given.value if given is not None else None
        if text is None and world.reading.positionals:
            text = world.reading.positionals[0]
        model = world.model(text) if text is not None else None
        if model is not None and text is not None:
            values["model"] = written_id(model, text)
            values |= {"model_window": model.positions, "kv_dtype": model.dtype}
        batching = fields.value("continuous_batching", default=False)
        values |= {"continuous_batching": batching, **_width(fields, batching), **_cache(fields, batching)}
        values |= {
            "max_output": fields.value("max_tokens"),
            "prefill_step": fields.value("prefill_step_size"),
            "draft_model": fields.value("mllm_draft_model"),
            "memory_fraction": fields.value("gpu_memory_utilization", exact),
            "served_names": fields.written("served_model_name", lambda name: (name,)),
            "port": fields.value("port"),
            "tensor_parallel": Fact(1, Default(NAME, world.releases, "one process")),
        }
        kept = {name: value for name, value in values.items() if value is not None}
        served = fields.given("served_model_name")
        named = served.value.value if served is not None and served.value is not None and served.value.known else None
        names = (named,) if named else (model.id,) if model is not None else ()
        return Settings(kept, names, tuple(_unheard(world, batching)), model)


ENGINE = VllmMlx()


def _width(fields: Fields, batching: Value[bool] | None) -> dict[str, Value[Any] | None]:
    """One request at a time without continuous batching; with it, the narrowest of the running set and the generator."""
    if isinstance(batching, Unknown):
        return {"batch_width": batching}
    if batching is None or not batching.value:
        return {"batch_width": Fact(1, Default(NAME, fields.world.releases, "--continuous-batching"))}
    running, prefill = fields.value("max_num_seqs"), fields.value("prefill_batch_size")
    completion = fields.value("completion_batch_size")
    bound = isinstance(running, Fact) and isinstance(completion, Fact) and isinstance(prefill, Fact)
    narrow = bound and running.value <= max(completion.value, prefill.value)  # type: ignore[union-attr]
    return {
        "batch_width": running if narrow else effective_width(_known(running), _known(completion), _known(prefill)),
        "prefill_width": prefill,
    }


def _known(value: Value[Any] | None) -> Value[Any]:
    return (
        value if value is not None else Unknown("batch_width", "this release has no such setting", "name the release")
    )


def _cache(fields: Fields, batching: Value[bool] | None) -> dict[str, Value[Any] | None]:
    """The one prefix cache that the flags choose, and its limit."""
    if not isinstance(batching, Fact):
        return {}
    if fields.open:
        return {"prefix_caching": fields.unseen("enable_prefix_cache")}
    settings = _settings(fields, batching.value)
    version = memory.release(fields.world.release)
    free = fields.world.hardware.get("free")
    found = memory.prefix_cache(settings, version, int(free.value) if isinstance(free, Fact) else None)
    bound = _rotating(fields) if batching.value else {}
    if isinstance(found, Unknown):
        return {"cache_limit": found, "prefix_caching": Fact(True, batching.origin), **bound}
    values: dict[str, Value[Any] | None] = {"cache_mode": Fact(found.mode, batching.origin), **bound}
    values["prefix_caching"] = Fact(found.mode != "none", batching.origin)
    megabytes = fields.written("cache_memory_mb", lambda count: count * memory.MIB)
    if found.mode == "memory-aware":
        values["prompt_cache_bytes"] = megabytes
        values["cache_limit"] = megabytes if megabytes is not None else _of_free(fields, found.bytes, free)
    elif found.mode == "paged":
        values["block_size"] = fields.value("paged_cache_block_size")
        values["max_cache_blocks"] = fields.value("max_cache_blocks")
    elif found.mode == "entries":
        values["prompt_cache_entries"] = fields.value("prefix_cache_size")
    return values


def _rotating(fields: Fields) -> dict[str, Value[Any] | None]:
    """The bound of the rotating caches; 0 and less are none."""
    limit = fields.value("max_kv_size")
    if not isinstance(limit, Fact) or limit.value <= 0:
        return {}
    return {"max_kv_size": limit, "window_kind": Fact("rotate", limit.origin)}


def _of_free(fields: Fields, limit: int | None, free: Value[Any] | None) -> Value[int] | None:
    return Fact(limit, free.origin) if limit is not None and isinstance(free, Fact) else None


def _settings(fields: Fields, batching: bool) -> memory.Settings:
    """The settings of the memory model; what the parser refuses counts as not said."""

    def said(dest: str) -> Any:
        found = fields.written(dest)
        return found.value if isinstance(found, Fact) else None

    share = said("cache_memory_percent")
    return memory.Settings(
        continuous_batching=batching,
        max_num_seqs=said("max_num_seqs"),
        prefill_batch_size=said("prefill_batch_size"),
        completion_batch_size=said("completion_batch_size"),
        max_tokens=said("max_tokens"),
        max_request_tokens=said("max_request_tokens"),
        disable_prefix_cache=bool(said("disable_prefix_cache")),
        memory_aware=not said("no_memory_aware_cache"),
        paged=bool(said("use_paged_cache")),
        cache_memory_mb=said("cache_memory_mb"),
        cache_memory_percent=None if share is None else Fraction(str(share)),
        prefix_cache_size=said("prefix_cache_size"),
        paged_cache_block_size=said("paged_cache_block_size"),
        max_cache_blocks=said("max_cache_blocks"),
    )


def _unheard(world: World, batching: Value[bool] | None) -> Iterator[Problem]:
    """Written flags that do nothing, and the share of memory that the scheduler refuses."""
    if not isinstance(batching, Fact):
        return
    settings = _settings(Fields(world), batching.value)
    by_flag = {given.option.name: given for given in world.reading.settings.values() if given.index is not None}
    for dropped in memory.dropped(by_flag, settings):
        yield _dropped(world, by_flag[dropped.flag], dropped)
    refusal = memory.refused(settings)
    share = by_flag.get("--cache-memory-percent")
    if refusal is not None and refusal.kind == "cache-memory-percent" and share is not None and share.value is not None:
        data = {"engine": NAME, "why": refusal.message, "refuses": True}
        yield Problem("malformed-value", share.value.span, data)


def _dropped(world: World, given: Given, dropped: memory.Dropped) -> Problem:
    data = {"engine": NAME, "flag": dropped.flag, "needed": dropped.needs, "bounds": dropped.flag in BOUNDS}
    off = dropped.needs == "--continuous-batching"
    doubt = None if dropped.certain else "only a part of the code that reads this flag is known"
    kind = "continuous-batching-off" if off else "prompt-cache-limit-ignored"
    return Problem(kind, given.name.span, data, doubt=doubt)
