"""SGLang: `python -m sglang.launch_server`, `sglang serve`, and the images in which one of them is run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import Any

from kvlint.command import CommandLine
from kvlint.engines import basename
from kvlint.engines.base import Program, Settings, World, grouped, read_once
from kvlint.engines.fields import Fields, environment
from kvlint.engines.inside import inside, offset
from kvlint.engines.sglang_given import given, place, share
from kvlint.facts import Assumed, Default, Fact, Unknown, Value, quantity
from kvlint.models.lookup import Model, written_id
from kvlint.sizing.server import Sizing
from kvlint.sizing.sglang.settings import Settings as Start
from kvlint.source import Text
from kvlint.subjects import Problem
from kvlint.units import GIB

NAME = "sglang"
LAUNCH, SERVE = "python -m sglang.launch_server", "sglang serve"
LOAD_TIME = ("fp8", "w8a8_fp8", "w8a8_int8", "bitsandbytes", "mxfp4", "petit_nvfp4", "moe_wna16", "qoq", "torchao")
# Options of the generator of images and videos, which `sglang serve` starts too and which has no KV cache of conversations
# (sgl-project/sglang:python/sglang/multimodal_gen/docs/cli.md).
DIFFUSION = frozenset(("--num-gpus", "--sp-size", "--ulysses-degree", "--ring-degree", "--vae-path"))
SLIDING_RATIO = Start(release="").swa_full_tokens_ratio


class Sglang:
    name = NAME
    distribution = "sglang"
    images = ("lmsysorg/sglang",)

    def recognise(self, line: CommandLine) -> Program | None:
        line = inside(outer := line, NAME)
        if line.program is None:
            return None
        word = basename(line.program.value)
        if word in ("sglang.launch_server", "dynamo.sglang"):
            return Program(LAUNCH, line.args, line.program.span, offset(outer, line.args))
        if word != "sglang" or not line.args:
            return None
        if line.args[0].value == "serve":
            if _draws([word.value for word in line.args]):
                return None
            return Program(SERVE, line.args[1:], line.program.span, offset(outer, line.args[1:]))
        if line.args[0].value.startswith("--"):
            data = {"engine": NAME, "expected": "serve", "refuses": True}
            problem = Problem("missing-subcommand", line.program.span, data)
            return Program(SERVE, line.args, line.program.span, offset(outer, line.args), (problem,))
        return None

    def semantics(self, release: str) -> Hashable:
        from kvlint.sizing.sglang.sizes import semantic_class

        return semantic_class(release)

    def settled(self, release: str) -> bool:
        return True

    def sizing(self) -> type[Sizing]:
        from kvlint.sizing.sglang.server import SglangSizing

        return SglangSizing

    def settings(self, world: World) -> Settings:
        fields = Fields(world)
        model, text = _model(fields)
        values: dict[str, Value[Any] | None] = {"release": Fact(world.release, Default(NAME, world.releases, ""))}
        if model is not None and text is not None:
            values["model"] = written_id(model, text)
        values |= _plain(fields)
        values |= _parallelism(fields)
        values |= _window(fields, model)
        values |= _memory(fields, model, values)
        values |= _started(fields, model, values)
        values["reuse"] = read_once(world, {"is_embedding": (True,)})
        kept = {name: value for name, value in values.items() if value is not None}
        served = fields.given("served_model_name")
        named = tuple(each.value for each in served.values if each.known) if served else ()
        return Settings(kept, named or ((model.id,) if model else ()), model=model)


ENGINE = Sglang()


def _draws(words: list[str]) -> bool:
    """Whether `sglang serve` starts the generator of images: by an option that only that has, or by its name."""
    if any(word.partition("=")[0] in DIFFUSION for word in words):
        return True
    return "--model-type=diffusion" in words or ("--model-type", "diffusion") in pairwise(words)


def _model(fields: Fields) -> tuple[Model | None, Text | None]:
    given = fields.given("model_path")
    text = given.value if given is not None else None
    return (fields.world.model(text), text) if text is not None else (None, None)


def _or(value: Value[Any] | None, otherwise: Value[Any]) -> Value[Any]:
    """The value, known or not; `otherwise` where there is none."""
    return otherwise if value is None else value


def _plain(fields: Fields) -> dict[str, Value[Any] | None]:
    """Settings that nothing else decides."""
    offload = fields.value("cpu_offload_gb", lambda size: int(size * GIB))
    return {
        "revision": fields.written("revision"),
        "quantization": fields.written("quantization"),
        "load_time_quantization": _load_time(fields),
        "weights_dtype": fields.value("dtype"),
        "tokenizer": fields.written("tokenizer_path"),
        "chat_template": fields.written("chat_template"),
        "adapters": fields.written("lora_paths", tuple),
        "served_names": fields.written("served_model_name", lambda name: (name,)),
        "port": fields.value("port"),
        "enforce_eager": fields.value("disable_cuda_graph", default=False),
        "cpu_offload_bytes": offload,
        "host_cache_bytes": _host_cache(fields),
        "draft_model": fields.written("speculative_draft_model_path"),
        "draft_tokens": fields.written("speculative_num_draft_tokens"),
        "attention_backend": fields.written("attention_backend"),
        "role": _role(fields),
    }


def _load_time(fields: Fields) -> Value[Any] | None:
    found = fields.written("quantization")
    return found if isinstance(found, Fact) and found.value in LOAD_TIME else fields.written("torchao_config")


def _host_cache(fields: Fields) -> Value[Any] | None:
    """`--hicache-size` is in gigabytes for every rank; without it a ratio of the device's pool."""
    if fields.given("enable_hierarchical_cache") is None:
        return None
    found = fields.written("hicache_size", lambda size: size * 10**9)
    return found if not isinstance(found, Fact) or found.value else None


def _role(fields: Fields) -> Value[str] | None:
    found = fields.value("disaggregation_mode")
    return Fact("both", found.origin) if isinstance(found, Fact) and found.value == "null" else found


@quantity(
    "devices_needed",
    unit="devices",
    formula="TP × PP, × DP where attention does not split it",
    source="rules: devices-unlike-parallelism",
)
def devices_needed(tensor_parallel: int, pipeline_parallel: int, data_parallel: int, dp_attention: bool) -> int:
    return tensor_parallel * pipeline_parallel * (1 if dp_attention else data_parallel)


@quantity(
    "attention_ranks",
    unit="ranks",
    formula="DP under DP attention, else 1",
    source="sglang/srt/layers/dp_attention.py: attention TP is TP ÷ DP",
)
def attention_ranks(data_parallel: int, dp_attention: bool) -> int:
    return data_parallel if dp_attention else 1


def _parallelism(fields: Fields) -> dict[str, Value[Any] | None]:
    tensor = _or(fields.value("tp_size"), fields.default("--tp-size", 1))
    data = _or(fields.value("dp_size"), fields.default("--dp-size", 1))
    pipeline = _or(fields.value("pp_size"), fields.default("--pp-size", 1))
    split = _or(fields.value("enable_dp_attention", default=False), fields.default("--enable-dp-attention", False))
    expert = fields.value("ep_size")
    return {
        "tensor_parallel": tensor,
        "pipeline_parallel": pipeline,
        "data_parallel": data,
        "dp_attention": split,
        "attention_ranks": attention_ranks(data, split),
        "expert_parallel": expert,
        "context_parallel": fields.written("attn_cp_size"),
        "nodes": fields.value("nnodes"),
        "devices": fields.world.hardware.get("devices"),
        "devices_needed": devices_needed(tensor, pipeline, data, split),
        "multi_node": _multi_node(fields),
    }


def _multi_node(fields: Fields) -> Value[str] | None:
    nodes = fields.value("nnodes")
    if isinstance(nodes, Unknown) or (isinstance(nodes, Fact) and nodes.value > 1):
        return nodes if isinstance(nodes, Unknown) else Fact("--nnodes", nodes.origin)
    for dest in ("dist_init_addr", "use_ray"):
        found = fields.written(dest)
        if found is not None:
            return found if isinstance(found, Unknown) else Fact(dest, found.origin)
    return grouped(fields.world)


def _overridden(fields: Fields) -> bool:
    """The model's own configuration is changed on the command line."""
    found = fields.given("json_model_override_args")
    return found is not None and (found.value is None or found.value.value.strip() not in ("{}", ""))


def _window(fields: Fields, model: Model | None) -> dict[str, Value[Any] | None]:
    from kvlint.sizing.sglang.server import model_window, window_checked

    release: Fact[str] = Fact(fields.world.release, Default(NAME, fields.world.releases, ""))
    arch: Value[Any] = model.architecture if model else Unknown("model", "no model is named", "name the model")
    own: Value[Any] | None = model_window(arch, release)
    if _overridden(fields):
        own = Unknown("model.positions", "positions are overridden on the command line", "the resulting length")
    written = fields.written("context_length")
    window = written
    if window is None:
        window = fields.unseen("context_length") if fields.open else own
    checked = window_checked(fields.world.release)
    longer = environment(fields.world, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN")
    if isinstance(longer, Unknown):
        own = longer
    elif checked is None and written is not None:
        own = Unknown(
            "engine.version", "some releases refuse a longer window and some do not", "an exact engine version"
        )
    elif checked is False or (longer is not None and longer.value.lower() in ("1", "true", "yes", "y")):
        own = None
    cuts = _or(fields.value("allow_auto_truncate"), fields.default("--allow-auto-truncate", False))
    kind = Fact("truncate" if cuts.value else "refuse", cuts.origin) if isinstance(cuts, Fact) else cuts
    return {
        "window": window,
        "model_window": own,
        "window_kind": kind,
        "pool_limit_tokens": fields.written("max_total_tokens"),
    }


def _memory(
    fields: Fields, model: Model | None, values: Mapping[str, Value[Any] | None]
) -> dict[str, Value[Any] | None]:
    """Bytes free on a device before the weights are loaded and after."""
    from kvlint.sizing.sglang import server as sizing

    hardware = fields.world.hardware
    before = hardware.get("free")
    if before is None:
        before = sizing.free_before(hardware["device_memory"], fields.world.coefficient("non_torch_bytes"))
    after = hardware.get("loaded_free")
    if after is None:
        weights: Value[Any] = (
            model.weights_bytes if model is not None else Unknown("model", "no model is named", "name a model")
        )
        if values.get("load_time_quantization") is not None:
            weights = Unknown("weights", "weights are quantized while they load", "[[hardware]] loaded_free")
        parts = [values[name] for name in ("tensor_parallel", "pipeline_parallel", "cpu_offload_bytes")]
        nothing = Fact(0, Assumed("no offload"))
        after = sizing.free_after(
            before, sizing.weights_per_device(weights, *(nothing if part is None else part for part in parts))
        )
    return {"free_before": before, "free_after": after}


def _started(
    fields: Fields, model: Model | None, values: Mapping[str, Value[Any] | None]
) -> dict[str, Value[Any] | None]:
    """The start of one rank, and the settings that follow from it."""
    from kvlint.sizing.sglang import server as sizing

    stated = given(fields, model)
    arch: Value[Any] = (
        model.architecture if model is not None else Unknown("model", "no model is named", "name a model")
    )
    release = values["release"]
    assert release is not None
    before, after = values["free_before"], values["free_after"]
    assert before is not None
    assert after is not None
    known = place(fields, before, after)
    started: Value[Any] = sizing.start(architecture=arch, release=release, **stated, **known)
    if fields.open:
        started = Unknown("arguments", "flags may be among arguments that are filled in elsewhere", "write them")
    ranks = values["data_parallel"]
    assert ranks is not None
    return {
        "start": started,
        "kv_dtype": _or_written(fields, "kv_cache_dtype", sizing.kv_dtype(started), unless="auto"),
        "memory_fraction": _or(share(fields, "mem_fraction_static"), sizing.memory_fraction(started)),
        "batched_tokens": _chunk(fields, sizing.chunk(started)),
        "chunked_prefill": _chunked(sizing.chunk(started)),
        "block_size": _or_written(fields, "page_size", sizing.page(started)),
        "prefix_caching": _prefixes(fields, sizing.caches_prefixes(started)),
        "scales_stated": fields.written("quantization_param_path", bool),
        "state_dtype": fields.written("mamba_ssm_dtype"),
        "sliding_ratio": _or(
            share(fields, "swa_full_tokens_ratio"), fields.default("--swa-full-tokens-ratio", SLIDING_RATIO)
        ),
        "width_per_rank": _asked(fields, values["attention_ranks"]),
        "batch_width": _width(fields, sizing.width(started, ranks)),
        "refused_beyond": _refused_beyond(fields, _width(fields, sizing.width(started, ranks)), ranks),
    }


@quantity(
    "refused_beyond",
    unit="requests",
    formula="batch_width + queued requests of every rank",
    source="arithmetic: what no queue of a rank takes any more is answered at once",
)
def refused_beyond(batch_width: int, queued: int, data_parallel: int) -> int:
    return batch_width + queued * data_parallel


def _refused_beyond(fields: Fields, width: Value[Any], ranks: Value[int]) -> Value[Any] | None:
    queued = fields.written("max_queued_requests")
    return refused_beyond(width, queued, ranks) if queued is not None else None


def _or_written(fields: Fields, dest: str, settled: Value[Any], unless: Any = None) -> Value[Any]:
    """The value as written where the engine keeps it; what it settles on otherwise."""
    written = fields.written(dest)
    if written is None or (isinstance(written, Fact) and written.value == unless):
        return settled
    if isinstance(settled, Fact) and isinstance(written, Fact) and settled.value != written.value:
        return settled
    return written


def _chunk(fields: Fields, settled: Value[Any]) -> Value[Any] | None:
    found = _or_written(fields, "chunked_prefill_size", settled)
    return None if isinstance(found, Fact) and found.value <= 0 else found


def _chunked(settled: Value[Any]) -> Value[Any]:
    return Fact(settled.value > 0, settled.origin) if isinstance(settled, Fact) else settled


def _prefixes(fields: Fields, settled: Value[Any]) -> Value[Any]:
    off = fields.written("disable_radix_cache")
    return Fact(not off.value, off.origin) if isinstance(off, Fact) else settled


@quantity(
    "width_per_rank",
    unit="sequences",
    formula="max_running_requests ÷ attention ranks",
    source="sglang: max_running_requests // dp_size",
)
def per_rank(requests: int, attention_ranks: int) -> int:
    return requests // attention_ranks


def _asked(fields: Fields, ranks: Value[int] | None) -> Value[Any] | None:
    """Requests that somebody asks for, of one rank; the engine lowers them to what fits."""
    asked = fields.written("max_running_requests")
    single = isinstance(ranks, Fact) and ranks.value == 1
    return asked if asked is None or ranks is None or single else per_rank(asked, ranks)


def _width(fields: Fields, settled: Value[Any]) -> Value[Any]:
    """The request limit; where the pool is not known, what is written stands."""
    asked = fields.written("max_running_requests")
    if isinstance(settled, Unknown):
        return asked if asked is not None else settled
    kept = isinstance(asked, Fact) and asked.value == settled.value
    return asked if kept and asked is not None else settled
