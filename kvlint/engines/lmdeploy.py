"""LMDeploy: `lmdeploy serve api_server MODEL`, and the images in which it is run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

from kvlint.command import CommandLine
from kvlint.engines import basename
from kvlint.engines.base import Program, Settings, World
from kvlint.engines.fields import Fields, exact
from kvlint.engines.inside import inside, offset
from kvlint.facts import Assumed, Default, Fact, Unknown, Value, Written, quantity
from kvlint.models.lookup import Model, written_id
from kvlint.sizing.server import Sizing
from kvlint.source import Text
from kvlint.subjects import Problem

NAME = "lmdeploy"
SERVE = "lmdeploy serve api_server"
COMMAND = ("serve", "api_server")
PORT = 23333  # lmdeploy/cli/serve.py, where the flag has no default of its own
POLICIES = {"none": 0, "int4": 4, "int8": 8, "fp8": 16, "fp8_e4m3": 16, "fp8_e5m2": 17, "turbo_quant": 42}
KV_DTYPES = {4: "int4", 8: "int8", 16: "fp8_e4m3", 17: "fp8_e5m2", 42: "turbo_quant"}
LOAD_TIME = ("bitsandbytes",)


class Lmdeploy:
    name = NAME
    distribution = "lmdeploy"
    images = ("openmmlab/lmdeploy",)

    def recognise(self, line: CommandLine) -> Program | None:
        line = inside(outer := line, NAME)
        if line.program is None or basename(line.program.value) != "lmdeploy":
            return None
        words = tuple(word.value for word in line.args[:2])
        if words == COMMAND:
            return Program(SERVE, line.args[2:], line.program.span, offset(outer, line.args[2:]))
        if words[:1] == ("serve",) and len(words) == 2 and words[1].startswith("-"):
            data = {"engine": NAME, "expected": "api_server", "refuses": True}
            problem = Problem("missing-subcommand", line.args[0].span, data)
            return Program(SERVE, line.args[1:], line.program.span, offset(outer, line.args[1:]), (problem,))
        return None

    def semantics(self, release: str) -> Hashable:
        from kvlint.sizing.lmdeploy.sizes import semantic_class

        return semantic_class(release)

    def settled(self, release: str) -> bool:
        return True

    def sizing(self) -> type[Sizing]:
        from kvlint.sizing.lmdeploy.server import LmdeploySizing

        return LmdeploySizing

    def settings(self, world: World) -> Settings:
        fields = Fields(world)
        model, text = _model(fields)
        release: Fact[str] = Fact(world.release, Default(NAME, world.releases, ""))
        found: dict[str, Value[Any] | None] = {"release": release, "model_window": _positions(fields, model)}
        if model is not None and text is not None:
            found["model"] = written_id(model, text)
        found |= _plain(fields)
        stated = _stated(fields, model, release)
        found |= _cache(fields, model, stated)
        found["stated"] = Fact(stated, Assumed("what is written"))
        found["window"] = _window(fields, found["model_window"])
        found["batch_width"] = _width(fields, found)
        kept = {name: value for name, value in found.items() if value is not None}
        named = fields.given("model_name")
        name = named.value.value if named is not None and named.value is not None and named.value.known else None
        return Settings(kept, (name,) if name else (model.id,) if model is not None else (), model=model)


ENGINE = Lmdeploy()


def _model(fields: Fields) -> tuple[Model | None, Text | None]:
    positionals = fields.world.reading.positionals
    text = positionals[0] if positionals else None
    return (fields.world.model(text), text) if text is not None else (None, None)


def _positions(fields: Fields, model: Model | None) -> Value[int] | None:
    arch = model.architecture if model is not None else None
    if not isinstance(arch, Fact):
        return arch
    if fields.given("hf_overrides") is not None or fields.given("rope_scaling_factor") is not None:
        return Unknown("model.positions", "positions are scaled on the command line", "--session-len")
    if arch.value.positions is None:
        return Unknown("model.positions", "the configuration states no positions", "--session-len")
    return Fact(arch.value.positions, arch.origin)


def _or(value: Value[Any] | None, otherwise: Value[Any]) -> Value[Any]:
    """The value, known or not; `otherwise` where there is none."""
    return otherwise if value is None else value


def _plain(fields: Fields) -> dict[str, Value[Any] | None]:
    one = fields.default("--dp", 1)
    data, tensor = _or(fields.value("dp"), one), _or(fields.value("tp"), fields.default("--tp", 1))
    role = fields.value("role", str.lower)
    return {
        "window_kind": Fact("refuse", Default(NAME, fields.world.releases, "--session-len")),
        "tensor_parallel": tensor,
        "data_parallel": data,
        "expert_parallel": fields.value("ep"),
        "context_parallel": fields.written("cp"),
        "nodes": fields.value("nnodes"),
        "devices": fields.world.hardware.get("devices"),
        "role": Fact("both", role.origin) if isinstance(role, Fact) and role.value == "hybrid" else role,
        "prefix_caching": fields.value("enable_prefix_caching", default=False),
        "batched_tokens": fields.value("max_prefill_token_num"),
        "enforce_eager": fields.value("eager_mode", default=False),
        "weights_dtype": fields.value("dtype"),
        "quantization": fields.written("model_format"),
        "revision": fields.written("revision"),
        "chat_template": fields.written("chat_template"),
        "adapters": fields.written("adapters", tuple),
        "served_names": fields.written("model_name", lambda name: (name,)),
        "draft_model": fields.written("speculative_draft_model"),
        "draft_tokens": fields.written("speculative_num_draft_tokens"),
        "port": _or(fields.value("server_port"), fields.default("--server-port", PORT)),
    }


def _policy(value: Any) -> Any:
    """A number, or from 0.14 a name."""
    if isinstance(value, int):
        return value
    text = str(value).lower()
    if text.isdigit():
        return int(text)
    return POLICIES.get(text, Unknown("quant_policy", f"{value!r} is no policy", "a policy of --quant-policy"))


def _backend(fields: Fields, model: Model | None) -> Value[str]:
    """`--backend pytorch`, else TurboMind where it serves the model's class."""
    from kvlint.sizing.lmdeploy.sizes import rules, turbomind_serves

    backend = _or(fields.value("backend"), fields.default("--backend", "turbomind"))
    arch = model.architecture if model is not None else None
    if not isinstance(backend, Fact) or backend.value == "pytorch":
        return backend
    if not isinstance(arch, Fact) or not arch.value.classes:
        return arch if isinstance(arch, Unknown) else Unknown("model", "no model is named", "name a model")
    served = {turbomind_serves(arch.value, each) for each in rules(fields.world.release)}
    if served == {True}:
        return backend
    return Unknown(
        "backend", f"whether TurboMind serves {arch.value.classes[0]} here is not known", "--backend pytorch"
    )


def _stated(fields: Fields, model: Model | None, release: Fact[str]) -> dict[str, Value[Any]]:
    """Fields of the memory model's settings; what nobody states is left to it."""
    tensor = _or(fields.value("tp"), fields.default("--tp", 1))
    found: dict[str, Value[Any] | None] = {
        "release": release,
        "tp": tensor,
        "quant_policy": fields.value("quant_policy", _policy),
        "cache_max_entry_count": _unless_open(fields, "cache_max_entry_count", exact),
        "cache_block_seq_len": _unless_open(fields, "cache_block_seq_len"),
        "max_batch_size": _unless_open(fields, "max_batch_size"),
        "max_prefill_token_num": _unless_open(fields, "max_prefill_token_num"),
        "num_gpu_blocks": fields.written("num_gpu_blocks"),
        "model_dtype": _dtype(fields, model),
        "device_name": fields.world.hardware.get("device_name"),
        "backend": _backend(fields, model),
        "device": fields.written("device"),
    }
    data = fields.value("dp")
    if isinstance(data, Unknown) or (isinstance(data, Fact) and data.value > 1):
        found["tp"] = Unknown("settings.data_parallel", "heads over data-parallel ranks were not worked out", "--dp 1")
    return {name: value for name, value in found.items() if value is not None}


def _unless_open(fields: Fields, dest: str, convert: Any = None) -> Value[Any] | None:
    """What is written; the doubt where it may be written unseen."""
    found = fields.written(dest, convert)
    return fields.unseen(dest) if found is None and fields.open else found


def _dtype(fields: Fields, model: Model | None) -> Value[str] | None:
    """`--dtype`; `auto` is 16 bits for every checkpoint."""
    written = fields.written("dtype")
    if written is not None and not (isinstance(written, Fact) and written.value == "auto"):
        return written
    arch = model.architecture if model is not None else None
    if isinstance(arch, Fact) and arch.value.dtype in ("float16", "bfloat16"):
        return None
    return Fact("float16", Assumed("`--dtype auto` is 16 bit for every checkpoint"))


@quantity(
    "memory_fraction",
    unit="fraction",
    formula="cache_max_entry_count, where it is a share",
    source="lmdeploy/messages.py: cache_max_entry_count",
)
def share(release: str, **given: Any) -> Fraction | Unknown:
    from kvlint.sizing.lmdeploy import sizes as lmdeploy
    from kvlint.sizing.lmdeploy.server import settings

    stated = settings({"release": release, **given})
    meaning = lmdeploy.entry_count_meaning(stated)
    counts = {lmdeploy.entry_count(each, stated) for each in lmdeploy.rules(release)}
    if isinstance(meaning, Unknown) or len(counts) > 1:
        return meaning if isinstance(meaning, Unknown) else Unknown("engine.version", "the share differs", "a release")
    if meaning in ("free", "total"):
        return counts.pop()
    return Unknown("cache_max_entry_count", f"it counts {meaning} here", "a share below 1")


def _cache(fields: Fields, model: Model | None, stated: Mapping[str, Value[Any]]) -> dict[str, Value[Any] | None]:
    from kvlint.sizing.lmdeploy.sizes import constant

    policy = stated.get("quant_policy")
    own = stated.get("model_dtype")
    if own is None and model is not None and isinstance(model.architecture, Fact):
        own = Fact(model.architecture.value.dtype, model.architecture.origin)
    kind: Value[Any] | None = own
    if isinstance(policy, Fact) and policy.value in KV_DTYPES:
        kind = Fact(KV_DTYPES[policy.value], policy.origin)
    elif isinstance(policy, Unknown):
        kind = policy
    written = stated.get("cache_max_entry_count")
    usual = {name: each for name, each in stated.items() if name in ("release", "backend", "cache_max_entry_count")}
    fraction = share(**usual)
    counts = isinstance(written, Fact) and written.value >= 1
    decides = isinstance(written, Fact) and isinstance(fraction, Fact) and isinstance(written.origin, Written)
    return {
        "kv_dtype": kind,
        "memory_fraction": None if counts else written if decides else fraction,
        "block_size": _or(
            fields.value("cache_block_seq_len"), fields.default("--cache-block-seq-len", constant("block_tokens"))
        ),
    }


def _window(fields: Fields, positions: Value[int] | None) -> Value[int] | None:
    written = fields.written("session_len")
    if written is not None:
        return written
    return fields.unseen("session_len") if fields.open else positions


def _width(fields: Fields, found: Mapping[str, Value[Any] | None]) -> Value[int] | None:
    """`--max-batch-size`, by the device where it is not given."""
    from kvlint.sizing.lmdeploy.server import default_width

    written = _unless_open(fields, "max_batch_size")
    if written is not None:
        return written
    device = fields.world.hardware.get("device_name")
    nobody = Unknown("hardware.device", "the default batch follows the device", "the GPU product, or --max-batch-size")
    release = found["release"]
    assert release is not None
    return default_width(release, nobody if device is None else device)
