"""TensorRT-LLM: `trtllm-serve MODEL`, with a YAML file of the engine's own arguments, and the images in which it is run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

from kvlint.command import CommandLine
from kvlint.engines import basename
from kvlint.engines.base import Program, Settings, World
from kvlint.engines.dialects.trtllm import YAML
from kvlint.engines.fields import Convert, Fields
from kvlint.engines.inside import inside, offset
from kvlint.engines.options import options
from kvlint.facts import Assumed, Default, Fact, Unknown, Value, Written, quantity
from kvlint.models.lookup import Model, written_id
from kvlint.sizing.server import Sizing
from kvlint.source import Text

NAME = "trtllm"
SERVE = "trtllm-serve"
# Subcommands that start no server of a model on this machine's devices.
OTHERS = ("disaggregated", "disaggregated_mpi_worker", "mm_embedding_serve", "grpc", "configure")
CACHE = f"{YAML}.kv_cache_config"


class Trtllm:
    name = NAME
    distribution = "tensorrt-llm"
    images = ("nvcr.io/nvidia/tensorrt-llm/release",)

    def recognise(self, line: CommandLine) -> Program | None:
        line = inside(outer := line, NAME)
        if line.program is None:
            return None
        args = line.args[1:] if line.args and line.args[0].value == "serve" else line.args
        if not args or args[0].value in OTHERS:
            return None
        word = basename(line.program.value)
        if word not in (SERVE, "tensorrt_llm.commands.serve"):
            return None
        return Program(SERVE, args, line.program.span, offset(outer, args))

    def semantics(self, release: str) -> Hashable:
        return options(NAME).feature("yaml_replaces", release), _pytorch_by_default(release)

    def settled(self, release: str) -> bool:
        return False

    def sizing(self) -> type[Sizing]:
        from kvlint.sizing.trtllm.server import TrtllmSizing

        return TrtllmSizing

    def settings(self, world: World) -> Settings:
        told = Told(world)
        model, text = _model(told.fields)
        found: dict[str, Value[Any] | None] = {
            "release": Fact(world.release, Default(NAME, world.releases, "")),
            "model_window": model.positions if model is not None else None,
        }
        if model is not None and text is not None:
            found["model"] = written_id(model, text)
        found |= _plain(told)
        found |= _parallelism(told)
        found |= _limits(told, found)
        found |= _cache(told, model, found)
        kept = {name: value for name, value in found.items() if value is not None}
        served = told.value("served_model_name")
        names = (served.value,) if isinstance(served, Fact) else (model.id,) if model is not None else ()
        return Settings(kept, names, model=model)


ENGINE = Trtllm()


def _pytorch_by_default(release: str) -> bool:
    """Before 1.0 the engine's own C++ runtime is the default, which is sized when an engine is built."""
    return bool(options(NAME).default("backend", release) == "pytorch")


class Told:
    """What the command line and the YAML file say; where both speak, the file, in the releases that are known to do so."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.fields = Fields(world)
        self._replaces = options(NAME).feature("yaml_replaces", world.releases[-1])

    def value(self, dest: str, convert: Convert | None = None, key: str | None = None) -> Value[Any] | None:
        """The value as written; None where nobody says it, `Unknown` where it may be said unseen."""
        line, file = self.fields.written(dest, convert), self.file(key or dest, convert)
        if line is not None and file is not None and not self._replaces:
            return self.either(dest)
        found = file if file is not None else line
        return self.fields.unseen(dest) if found is None and self.fields.open else found

    def file(self, key: str, convert: Convert | None = None) -> Value[Any] | None:
        """The value of a key of the file; a null there is no value."""
        given = self.fields.given(f"{YAML}.{key}")
        if given is None or given.typed is None:
            return None
        place = given.value if given.value is not None else given.name
        try:
            value = convert(given.typed) if convert else given.typed
        except (TypeError, ValueError):
            return Unknown(f"file.{key}", f"{key} is {given.typed!r}", f"a value that {key} takes")
        return value if isinstance(value, Unknown) else Fact(value, Written(place.span, place.via))

    def default(self, flag: str, value: Any) -> Value[Any]:
        return self.fields.default(flag, value)

    def either(self, dest: str) -> Unknown:
        flag = "--" + dest
        return Unknown(
            f"arguments.{dest}", f"{flag} and the file differ, and which of them wins is not known", "one of them"
        )


def _or(value: Value[Any] | None, otherwise: Value[Any]) -> Value[Any]:
    """The value, known or not; `otherwise` where there is none."""
    return otherwise if value is None else value


def _model(fields: Fields) -> tuple[Model | None, Text | None]:
    positionals = fields.world.reading.positionals
    text = positionals[0] if positionals else None
    return (fields.world.model(text), text) if text is not None else (None, None)


def _plain(told: Told) -> dict[str, Value[Any] | None]:
    reuse = told.file("kv_cache_config.enable_block_reuse")
    host = told.file("kv_cache_config.host_cache_size", int)
    return {
        "window_kind": Fact("refuse", Default(NAME, told.world.releases, "--max_seq_len")),
        "prefix_caching": _or(reuse, told.default("kv_cache_config.enable_block_reuse", True)),
        "chunked_prefill": _or(told.value("enable_chunked_prefill"), told.default("--enable_chunked_prefill", False)),
        "host_cache_bytes": host if not isinstance(host, Fact) or host.value else None,
        "kv_connector": told.file("kv_connector_config.connector_module"),
        "role": told.value("server_role", lambda role: str(role).lower()),
        "tokenizer": told.value("tokenizer"),
        "chat_template": told.value("chat_template"),
        "revision": told.value("revision"),
        "served_names": told.value("served_model_name", lambda name: (name,)),
        "port": _or(told.value("port"), told.default("--port", 8000)),
    }


@quantity("devices_needed", unit="devices", formula="TP × PP × CP", source="rules: devices-unlike-parallelism")
def devices_needed(tensor_parallel: int, pipeline_parallel: int, context_parallel: int) -> int:
    return tensor_parallel * pipeline_parallel * context_parallel


def _parallelism(told: Told) -> dict[str, Value[Any] | None]:
    tensor, pipeline, context = (
        _or(told.value(dest, int), told.default(f"--{dest}", 1))
        for dest in ("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size")
    )
    split = _or(told.value("enable_attention_dp", bool), told.default("enable_attention_dp", False))
    one = told.default("enable_attention_dp", 1)
    ranks = tensor if isinstance(split, Fact) and split.value else one if isinstance(split, Fact) else split
    per_node = told.value("gpus_per_node", int)
    return {
        "tensor_parallel": tensor,
        "pipeline_parallel": pipeline,
        "context_parallel": context,
        "expert_parallel": told.value("moe_expert_parallel_size", int),
        "dp_attention": split,
        "data_parallel": ranks,
        "devices": told.world.hardware.get("devices"),
        "devices_needed": devices_needed(tensor, pipeline, context),
        "multi_node": Fact("--gpus_per_node", per_node.origin) if isinstance(per_node, Fact) else None,
    }


@quantity("batch_width", unit="sequences", formula="max_batch_size × attention data-parallel ranks", source="contract")
def width(max_batch_size: int, data_parallel: int) -> int:
    return max_batch_size * data_parallel


def _limits(told: Told, found: Mapping[str, Value[Any] | None]) -> dict[str, Value[Any] | None]:
    from kvlint.sizing.trtllm.sizes import constant

    batch = _or(told.value("max_batch_size", int), told.default("--max_batch_size", constant("max_batch_size")))
    ranks = found["data_parallel"]
    single = isinstance(ranks, Fact) and ranks.value == 1
    window = told.value("max_seq_len", int)
    return {
        "window": window if window is not None else found["model_window"],
        "batched_tokens": _or(
            told.value("max_num_tokens", int), told.default("--max_num_tokens", constant("max_num_tokens"))
        ),
        "batch_width": batch if single or ranks is None else width(batch, ranks),
    }


def _share(value: Any) -> Fraction:
    return Fraction(str(value))


def _cache(told: Told, model: Model | None, found: Mapping[str, Value[Any] | None]) -> dict[str, Value[Any] | None]:
    """Type, share and bounds of the cache, and the fields of the memory model's settings."""
    from kvlint.sizing.trtllm.sizes import constant

    share = _fraction(told)
    block = told.file("kv_cache_config.tokens_per_block", int)
    bound, limit = told.file("kv_cache_config.max_gpu_total_bytes", int), told.file("kv_cache_config.max_tokens", int)
    kind = _or(told.value("kv_cache_dtype", key="kv_cache_config.dtype"), told.default("--kv_cache_dtype", "auto"))
    kind = _of_checkpoint(model, kind)
    bound = bound if not isinstance(bound, Fact) or bound.value else None
    own = _dtype(model)
    stated = {
        "tp_size": found["tensor_parallel"],
        "pp_size": found["pipeline_parallel"],
        "attention_dp": found["dp_attention"],
        "kv_cache_dtype": kind,
        "model_dtype": own,
        "yaml_fraction": share,
        "yaml_cache": Fact(True, Assumed("the share in force stands in one place")),
        "max_tokens": limit,
        "max_gpu_total_bytes": bound,
        "tokens_per_block": block,
        "backend": _backend(told),
    }
    auto = isinstance(kind, Fact) and kind.value == "auto"
    return {
        "stated": Fact(
            {name: value for name, value in stated.items() if value is not None}, Assumed("what is written")
        ),
        "kv_dtype": own if auto and own is not None else kind,
        "memory_fraction": share,
        "block_size": _or(block, told.default("kv_cache_config.tokens_per_block", constant("tokens_per_block"))),
        "kv_pool_bytes": bound,
        "pool_limit_tokens": limit,
        "weights_dtype": told.file("dtype"),
    }


def _fraction(told: Told) -> Value[Fraction]:
    """The share of free memory: a `kv_cache_config` in the file replaces the command line's, unset keys and all."""
    from kvlint.sizing.trtllm.sizes import constant

    default = told.default("--free_gpu_memory_fraction", Fraction(constant("fraction_percent"), 100))
    line = told.fields.written("free_gpu_memory_fraction", _share)
    if told.fields.given(CACHE) is None:
        return _or(line, default)
    file = told.file("kv_cache_config.free_gpu_memory_fraction", _share)
    if line is not None and not options(NAME).feature("yaml_replaces", told.world.releases[-1]):
        return told.either("free_gpu_memory_fraction")
    return _or(file, default)


def _backend(told: Told) -> Value[str] | None:
    """Sizes are known of the PyTorch backend only."""
    backend = told.value("backend")
    default = _pytorch_by_default(told.world.releases[-1])
    if (backend is None and default) or (isinstance(backend, Fact) and backend.value == "pytorch"):
        return None
    if isinstance(backend, Unknown):
        return backend
    return Unknown(
        "backend", "only the PyTorch backend's cache was worked out", "--backend pytorch, or a measured pool"
    )


def _of_checkpoint(model: Model | None, kind: Value[Any]) -> Value[Any]:
    """`auto` is what a quantized checkpoint says of its cache, else the model's own type."""
    if not isinstance(kind, Fact) or kind.value != "auto" or model is None or model.entry is None:
        return kind
    if not model.entry.own:
        return Unknown(
            "model.kv_scheme", f"whether {model.id} asks for an fp8 cache is not known", "kv_cache_config.dtype"
        )
    said = model.entry.kv_cache_dtype
    return Fact("fp8", model.architecture.origin) if said and isinstance(model.architecture, Fact) else kind


def _dtype(model: Model | None) -> Value[str] | None:
    """The type of the cache under `auto`; checkpoints of 32 bits are loaded in 16."""
    arch = model.architecture if model is not None else None
    if not isinstance(arch, Fact) or arch.value.dtype is None:
        return None
    return Fact("bfloat16" if arch.value.dtype == "float32" else arch.value.dtype, arch.origin)
