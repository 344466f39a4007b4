"""vLLM: `vllm serve`, the api_server module, and the images whose entrypoint is one of them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from kvlint.command import CommandLine
from kvlint.engines import basename, vllm_cache
from kvlint.engines.base import Program, Settings, World, grouped, read_once, repeated_command
from kvlint.engines.fields import Fields, environment, exact, gibibytes
from kvlint.engines.versions import parse
from kvlint.engines.vllm_batch import batch_of, chunks_of, thousands, window_of
from kvlint.engines.vllm_environment import unread
from kvlint.facts import Assumed, Default, Fact, Unknown, Value, Written, quantity
from kvlint.models.lookup import Model, written_id
from kvlint.sizing.server import Sizing
from kvlint.source import Text
from kvlint.subjects import Problem

SERVE, API_SERVER = "vllm serve", "python -m vllm.entrypoints.openai.api_server"
# vllm==0.11.0:docker/Dockerfile:542 and vllm==0.11.1:docker/Dockerfile:500
SERVE_ENTRYPOINT_SINCE = "0.11.1"
POOLING = {
    "task": ("embed", "embedding", "classify", "score", "reward"),
    "runner": ("pooling",),
    "convert": ("embed", "classify", "reward"),
}


class Vllm:
    name = "vllm"
    distribution = "vllm"
    images = ("vllm/vllm-openai",)

    def recognise(self, line: CommandLine) -> Program | None:
        if line.program is None:
            return _of_image(line)
        word = basename(line.program.value)
        if word in ("vllm.entrypoints.openai.api_server", "dynamo.vllm"):
            return Program(API_SERVER, line.args, line.program.span)
        if not line.args:
            return None
        first = line.args[0]
        if first.value == "serve":
            return Program(SERVE, line.args[1:], line.program.span, args_at=1)
        if first.value.startswith("--") and word == "vllm":
            problem = Problem(
                "missing-subcommand", line.program.span, {"engine": "vllm", "expected": "serve", "refuses": True}
            )
            return Program(SERVE, line.args, line.program.span, problems=(problem,))
        return None

    def semantics(self, release: str) -> Hashable:
        from kvlint.sizing.vllm.sizes import semantic_class

        return semantic_class(release)

    def settled(self, release: str) -> bool:
        from kvlint.sizing.vllm.sizes import semantic_class

        return len(semantic_class(release)) == 1

    def sizing(self) -> type[Sizing]:
        from kvlint.sizing.vllm.server import VllmSizing

        return VllmSizing

    def settings(self, world: World) -> Settings:
        fields = Fields(world)
        model, text = _model(fields)
        values: dict[str, Value[Any] | None] = {"release": Fact(world.release, Default("vllm", world.releases, ""))}
        if model is not None and text is not None:
            values["model"] = written_id(model, text)
        values |= _parallelism(fields)
        values |= _plain(fields, model)
        values |= window_of(fields, model)
        values["chunked_prefill"] = chunks_of(fields, values)
        values |= batch_of(fields, values)
        values |= vllm_cache.cache_types(fields, model)
        values["overheads"] = _overheads(fields, values)
        values["devices"] = world.hardware.get("devices")
        values["devices_needed"] = _devices_needed(fields, values)
        values["multi_node"] = _multi_node(fields, values)
        values["reuse"] = read_once(world, POOLING)
        kept = {name: value for name, value in values.items() if value is not None}
        served = fields.given("served_model_name")
        names = tuple(each.value for each in served.values if each.known) if served else ()
        problems = (*_partition_problem(world), *thousands(fields), *unread(world))
        return Settings(kept, names or ((model.id,) if model else ()), problems, model)


ENGINE = Vllm()


def _of_image(line: CommandLine) -> Program | None:
    """An image's own entrypoint: the api_server module up to 0.11.0, `vllm serve` from 0.11.1."""
    since = parse(SERVE_ENTRYPOINT_SINCE)

    def entry(release: str) -> str:
        version = parse(release)
        return SERVE if version is not None and since is not None and version >= since else API_SERVER

    assert line.image is not None
    problems: tuple[Problem, ...] = ()
    args = line.args
    if args and args[0].value in ("serve", "vllm"):
        count = 2 if args[0].value == "vllm" and len(args) > 1 and args[1].value == "serve" else 1
        problems = (repeated_command("vllm", args[0]),)
        args = args[count:]
    # what follows a repeated `serve` was written for it: its positional is the model, whatever the entrypoint reads
    meant = SERVE if problems and args and not args[0].value.startswith("-") else entry
    return Program(meant, args, line.image.span, args_at=len(line.args) - len(args), problems=problems)


def _model(fields: Fields) -> tuple[Model | None, Text | None]:
    """The positional, `--model`, or the environment of the image; an absent model is the engine's own default."""
    given = fields.given("model")
    text = given.value if given else None
    if text is None and fields.world.reading.positionals:
        text = fields.world.reading.positionals[0]
    if text is None:
        return None, None
    return fields.world.model(text), text


def _parallelism(fields: Fields) -> dict[str, Value[Any] | None]:
    expert = fields.value("enable_expert_parallel", default=False)
    data = fields.value("data_parallel_size")
    return {
        "tensor_parallel": fields.value("tensor_parallel_size"),
        "pipeline_parallel": fields.value("pipeline_parallel_size"),
        "data_parallel": data or fields.default("--data-parallel-size", 1),
        "dp_local": fields.value("data_parallel_size_local") or data or fields.default("--data-parallel-size-local", 1),
        "expert_parallel": expert,
        "context_parallel": fields.value("decode_context_parallel_size"),
        "nodes": fields.value("nnodes"),
        "layer_partition": _partition(fields),
    }


@quantity(
    "devices_needed", unit="devices", formula="TP × PP × PCP × local DP", source="rules: devices-unlike-parallelism"
)
def devices_needed(tensor_parallel: int, pipeline_parallel: int, prefill_context: int, dp_local: int) -> int:
    return tensor_parallel * pipeline_parallel * prefill_context * dp_local


def _devices_needed(fields: Fields, values: Mapping[str, Value[Any] | None]) -> Value[int] | None:
    prefill = fields.value("prefill_context_parallel_size")
    parts = (values["tensor_parallel"], values["pipeline_parallel"], values["dp_local"])
    if any(part is None for part in parts):
        return None
    tensor, pipeline, local = (part for part in parts if part is not None)
    return devices_needed(tensor, pipeline, prefill if prefill is not None else fields.default("", 1), local)


def _multi_node(fields: Fields, values: Mapping[str, Value[Any] | None]) -> Value[str] | None:
    """Other nodes may hold devices: Ray, `--nnodes`, a headless data-parallel rank, a leader-worker set."""
    nodes, executor = values.get("nodes"), fields.written("distributed_executor_backend")
    if isinstance(nodes, Fact) and isinstance(nodes.value, int) and nodes.value > 1:
        return Fact("--nnodes", nodes.origin)
    if isinstance(executor, Fact) and executor.value in ("ray", "external_launcher"):
        return Fact(str(executor.value), executor.origin)
    for dest in ("headless", "data_parallel_address", "node_rank", "data_parallel_start_rank", "data_parallel_rank"):
        given = fields.written(dest)
        if given is not None:
            return given if isinstance(given, Unknown) else Fact(dest, given.origin)
    return grouped(fields.world)


def _partition(fields: Fields) -> Value[Any] | None:
    found = environment(fields.world, "VLLM_PP_LAYER_PARTITION")
    if not isinstance(found, Fact):
        return found
    parts = found.value.split(",")
    if not all(part.strip().isdigit() for part in parts):
        return None
    return Fact(tuple(int(part) for part in parts), found.origin)


def _adapters(fields: Fields) -> Value[Any] | None:
    """The paths of `--lora-modules name=path`, or of its JSON form."""
    given = fields.given("lora_modules")
    if given is None or not all(text.known for text in given.values):
        return None
    paths = tuple(path for text in given.values if (path := _adapter_path(text.value)))
    return Fact(paths, Written(given.values[0].span, given.values[0].via)) if paths else None


def _adapter_path(text: str) -> str | None:
    if not text.startswith("{"):
        return text.partition("=")[2] or None
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return None
    path = config.get("path") if isinstance(config, dict) else None
    return path if isinstance(path, str) else None


def _partition_problem(world: World) -> Iterator[Problem]:
    found = world.env.get("VLLM_PP_LAYER_PARTITION")
    if found is not None and found.known and not all(part.strip().isdigit() for part in found.value.split(",")):
        data = {"engine": "vllm", "why": "VLLM_PP_LAYER_PARTITION takes numbers, separated by commas", "refuses": True}
        yield Problem("malformed-value", found.span, data)


def _plain(fields: Fields, model: Model | None) -> dict[str, Value[Any] | None]:
    manager = fields.written("disable_hybrid_kv_cache_manager", lambda off: not off)
    return {
        "revision": fields.value("revision"),
        "memory_fraction": fields.value("gpu_memory_utilization", exact),
        "kv_pool_bytes": fields.value("kv_cache_memory_bytes"),
        "gpu_blocks": fields.written("num_gpu_blocks_override"),
        "block_size": fields.written("block_size"),
        "prefix_caching": fields.written("enable_prefix_caching"),
        "chunked_prefill": fields.written("enable_chunked_prefill"),
        "hybrid_manager": vllm_cache.manager(fields, manager, model),
        "draft": vllm_cache.draft(fields, model),
        "gdn_prefill": vllm_cache.gdn_prefill(fields, model),
        "mamba_cache_mode": fields.written("mamba_cache_mode"),
        "mamba_cache_dtype": fields.written("mamba_cache_dtype"),
        "state_dtype": fields.written("mamba_ssm_cache_dtype"),
        "async_scheduling": fields.written("async_scheduling"),
        "enforce_eager": fields.value("enforce_eager", default=False),
        "full_graphs": vllm_cache.full_graphs(fields),
        "cpu_offload_bytes": fields.value("cpu_offload_gb", gibibytes),
        "host_cache_bytes": fields.written("kv_offloading_size", gibibytes),
        "kv_connector": vllm_cache.connector(fields),
        "draft_tokens": vllm_cache.draft_tokens(fields),
        "draft_model": vllm_cache.speculative(fields, "model"),
        "quantization": fields.written("quantization"),
        "load_time_quantization": vllm_cache.load_time(fields),
        "calculated_scales": fields.written("calculate_kv_scales"),
        "weights_dtype": fields.value("dtype"),
        "adapters": _adapters(fields),
        "max_lora_rank": fields.value("max_lora_rank"),
        "tokenizer": fields.written("tokenizer"),
        "chat_template": fields.written("chat_template"),
        "served_names": fields.written("served_model_name", tuple),
        "port": fields.value("port"),
        "sleep_mode": fields.written("enable_sleep_mode"),
        "attention_backend": fields.written("attention_backend") or environment(fields.world, "VLLM_ATTENTION_BACKEND"),
    }


def _overheads(fields: Fields, values: Mapping[str, Value[Any] | None]) -> Value[Any]:
    """What else takes device memory in the profiling run: activations, context, and graphs where they are in the budget."""
    from kvlint.sizing.vllm.sizes import activation_bytes, graphs_in_budget

    eager = values.get("enforce_eager")
    graphs = graphs_in_budget(
        fields.world.release, enforce_eager=bool(eager.value) if isinstance(eager, Fact) else False
    )
    if isinstance(graphs, Unknown):
        return graphs
    coefficient = fields.world.coefficient
    nothing: Value[Any] = Fact(0, Assumed("graphs come on top of the fraction in this release, or are off"))
    tokens = values.get("batched_tokens")
    parts = {
        "activation": activation_bytes(
            tokens,
            coefficient("activation_bytes_per_token"),
            coefficient("activation_measured_tokens"),
            coefficient("activation_bytes_per_further_token"),
        )
        if tokens is not None
        else Unknown("batched_tokens", "the batch is not known", "--max-num-batched-tokens"),
        "non_torch": coefficient("non_torch_bytes"),
        "graphs": coefficient("graph_bytes") if graphs else nothing,
    }
    return Fact(parts, Assumed("parts of one estimate"))
