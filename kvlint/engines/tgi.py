"""Text Generation Inference: `text-generation-launcher` and the images that start it, told by flags and by variables alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from fractions import Fraction
from typing import Any

from kvlint.command import CommandLine
from kvlint.engines import basename, of_image, values
from kvlint.engines.argparse import Given
from kvlint.engines.base import Program, Settings, World, repeated_command
from kvlint.engines.fields import Convert, Fields
from kvlint.engines.options import Option, options
from kvlint.facts import Assumed, Default, Fact, Unknown, Value, Written
from kvlint.models.architecture import Attention
from kvlint.models.lookup import Model, written_id
from kvlint.sizing.server import Sizing
from kvlint.source import Text
from kvlint.subjects import Problem

NAME = "tgi"
LAUNCHER = "text-generation-launcher"
LOAD_TIME = ("bitsandbytes", "bitsandbytes-nf4", "bitsandbytes-fp4", "eetq", "fp8")
FALSE = ("0", "f", "false", "n", "no", "off", "")
IMAGE_PORT = 80  # ENV PORT of the image
# What the launcher, its shards and their libraries read beside the flags' own variables.
OTHERS = frozenset({
    *("ATTENTION", "PREFIX_CACHING", "PREFILL_CHUNKING", "TGI_WIGGLE_ROOM", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    *("HF_TOKEN", "HF_HOME", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_ENABLE_HF_TRANSFER", "HF_HUB_OFFLINE", "HF_API_TOKEN"),
    *("LOG_LEVEL", "RUST_LOG", "RUST_BACKTRACE", "MAX_IMAGE_FETCH_SIZE", "ADAPTER_SOURCE", "COMPUTE_TYPE", "USE_PREFIX_CACHING"),
})  # fmt: skip
# The field of the memory model's settings beside the destinations that fill it, by release.
STATED = {
    "num_shard": ("num_shard",),
    "kv_cache_dtype": ("kv_cache_dtype",),
    "max_input_tokens": ("max_input_tokens", "max_input_length"),
    "max_total_tokens": ("max_total_tokens",),
    "max_batch_prefill_tokens": ("max_batch_prefill_tokens",),
    "max_batch_total_tokens": ("max_batch_total_tokens",),
    "max_batch_size": ("max_batch_size",),
    "speculate": ("speculate",),
    "quantize": ("quantize",),
}


class Tgi:
    name = NAME
    distribution = "text-generation-launcher"  # no index has it: it comes as an image
    images = ("ghcr.io/huggingface/text-generation-inference",)

    def recognise(self, line: CommandLine) -> Program | None:
        if line.program is None:
            if line.image is None or of_image(line.image.value) != NAME:
                return None
            again = line.args[:1] if line.args and basename(line.args[0].value) == LAUNCHER else ()
            problems = tuple(repeated_command(NAME, word) for word in again)
            return Program(LAUNCHER, line.args[len(again) :], line.image.span, len(again), problems)
        return Program(LAUNCHER, line.args, line.program.span) if basename(line.program.value) == LAUNCHER else None

    def semantics(self, release: str) -> Hashable:
        from kvlint.sizing.tgi.sizes import semantic_class

        return semantic_class(release)

    def settled(self, release: str) -> bool:
        return True

    def sizing(self) -> type[Sizing]:
        from kvlint.sizing.tgi.server import TgiSizing

        return TgiSizing

    def settings(self, world: World) -> Settings:
        said = Said(world)
        model, text = _model(said)
        release: Fact[str] = Fact(world.release, Default(NAME, world.releases, ""))
        found: dict[str, Value[Any] | None] = {"release": release}
        if model is not None and text is not None:
            found["model"] = written_id(model, text)
        found["model_window"] = model.positions if model is not None else None
        found |= _plain(said, model)
        found |= _limits(said, model, found)
        problems = (*said.check(), *_both_inputs(said))
        kept = {name: value for name, value in found.items() if value is not None}
        return Settings(kept, (model.id,) if model is not None else (), problems, model)


ENGINE = Tgi()


class Said:
    """Settings of one world by the parser's destination names: a flag, else the variable that stands for it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.fields = Fields(world)
        self.problems: list[Problem] = []
        self._options = {option.dest: option for option in options(NAME).at(world.releases[-1]).options}

    def written(self, dest: str, convert: Convert | None = None) -> Value[Any] | None:
        """The value as written; None where nobody says it."""
        found = self.fields.written(dest, convert)
        return found if found is not None else self._variable(dest, convert)

    def value(self, dest: str, convert: Convert | None = None) -> Value[Any] | None:
        """The value as written, else the launcher's default; None where that is worked out later."""
        found = self.written(dest, convert)
        if found is None:
            found = self.unseen(dest)
        return self.fields.value(dest, _typed(self._options.get(dest), convert)) if found is None else found

    def text(self, dest: str) -> Text | None:
        given = self.fields.given(dest)
        if given is not None and given.value is not None:
            return given.value
        option = self._options.get(dest)
        return self.world.env.get(option.env) if option is not None and option.env else None

    def unseen(self, dest: str) -> Unknown | None:
        """The doubt where flags or variables may be set in places that are not seen."""
        option = self._options.get(dest)
        if self.fields.open:
            return self.fields.unseen(dest)
        if self.world.process.line.env_open and option is not None and option.env:
            reason = f"{option.env} may be among variables that are set elsewhere"
            return Unknown(f"environment.{option.env}", reason, f"write {option.env}")
        return None

    def variable(self, name: str) -> Value[str] | None:
        """A variable that is no flag's."""
        text = self.world.env.get(name)
        if text is None:
            return None
        if not text.known:
            return Unknown(f"environment.{name}", text.holes[0].reason, text.holes[0].supply or f"the value of {name}")
        return Fact(text.value, Written(text.span, text.via))

    def check(self) -> Iterator[Problem]:
        """Variables that the launcher refuses, that a flag overrides, or that nothing reads."""
        for option in self._options.values():
            if option.env and option.env in self.world.env:
                self._variable(option.dest, None)
        yield from {(problem.span.start, problem.kind): problem for problem in self.problems}.values()
        for given in self.world.reading.settings.values():
            yield from self._overridden(given)
        yield from self._unread()

    def _variable(self, dest: str, convert: Convert | None) -> Value[Any] | None:
        option = self._options.get(dest)
        if option is None or not option.env:
            return None
        found = self.variable(option.env)
        if not isinstance(found, Fact):
            return found
        value = self._typed(option, found.value, self.world.env[option.env])
        if value is None or isinstance(value, Unknown):
            return value
        value = convert(value) if convert else value
        return value if isinstance(value, Unknown) else Fact(value, found.origin)

    def _typed(self, option: Option, raw: str, place: Text) -> Any:
        """The value of a variable as clap reads it: switches take any word, the rest what the flag takes."""
        if option.nargs == 0:
            return raw.lower() not in FALSE
        try:
            value = values.convert(option.type, raw)
        except values.Malformed as refused:
            return self._refuse(option, raw, place, refused.expects)
        if option.choices is not None and value not in option.choices:
            return self._refuse(option, raw, place, " or ".join(map(str, option.choices)))
        return value

    def _refuse(self, option: Option, raw: str, place: Text, expects: str) -> Unknown:
        if self.fields.given(option.dest) is None:
            data = {"engine": NAME, "flag": option.env, "value": raw, "expects": expects, "refuses": True}
            self.problems.append(Problem("malformed-value", place.span, data))
        return Unknown(f"environment.{option.env}", f"TGI refuses {raw!r}", f"a value that {option.env} takes")

    def _overridden(self, given: Given) -> Iterator[Problem]:
        name = given.option.env
        text = self.world.env.get(name) if name else None
        if (
            text is None
            or given.value is None
            or not (text.known and given.value.known)
            or text.value == given.value.value
        ):
            return
        data = {"engine": NAME, "flag": given.spelling, "value": text.value, "variable": name, "winner": given.spelling}
        yield Problem("overridden-flag", text.span, data, (("counterpart", given.value.span, "this is used"),))

    def _unread(self) -> Iterator[Problem]:
        """Names that nothing reads and that are one letter or two from one that the launcher reads, on its own image."""
        image = self.world.process.line.image
        if image is None or of_image(image.value) != NAME:
            return
        known = options(NAME).environment
        for name, text in self.world.env.items():
            if name in known or name in OTHERS or len(name) < 8 or "_" not in name:
                continue
            from difflib import get_close_matches

            near = get_close_matches(name, list(known), n=1, cutoff=0.9)
            if near and near[0] not in self.world.env and not self.world.process.line.names(name):
                yield Problem(
                    "unknown-environment", text.span, {"engine": NAME, "variable": name, "suggestion": near[0]}
                )


def _typed(option: Option | None, convert: Convert | None) -> Convert:
    """Defaults stand in the data as the launcher's own source writes them."""

    def read(raw: Any) -> Any:
        typed = values.convert(option.type, raw) if option is not None and isinstance(raw, str) else raw
        return convert(typed) if convert else typed

    return read


def _model(said: Said) -> tuple[Model | None, Text | None]:
    text = said.text("model_id")
    return (said.world.model(text), text) if text is not None else (None, None)


def _share(number: float) -> Fraction:
    return Fraction(str(number))


def _plain(said: Said, model: Model | None) -> dict[str, Value[Any] | None]:
    world = said.world
    dtype = said.written("dtype")
    half: Value[str] = Fact("float16", Assumed("16 bits for every model that TGI serves with its own kernels"))
    cache = said.written("kv_cache_dtype")
    quantize = said.written("quantize")
    default_port = said.fields.default("ENV PORT of the image", IMAGE_PORT)
    port = said.written("port")
    image = world.process.line.program is None
    return {
        "window_kind": Fact("refuse", Default(NAME, world.releases, "--max-total-tokens")),
        "tensor_parallel": _shards(said),
        "devices": world.hardware.get("devices"),
        "memory_fraction": said.value("cuda_memory_fraction", lambda number: _share(float(number))),
        "quantization": quantize,
        "load_time_quantization": quantize if isinstance(quantize, Fact) and quantize.value in LOAD_TIME else None,
        "weights_dtype": dtype,
        "kv_dtype": cache if cache is not None else dtype if dtype is not None else half,
        "revision": said.written("revision"),
        "adapters": said.written("lora_adapters", lambda names: tuple(names.split(","))),
        "port": port if port is not None else default_port if image else said.value("port"),
        "draft_tokens": said.written("speculate"),
        "prefix_caching": _prefix_caching(said, model),
        "refused_beyond": said.written("max_concurrent_requests"),
    }


def _shards(said: Said) -> Value[int]:
    """`--num-shard`, else the devices that the launcher sees."""
    written, sharded = said.written("num_shard"), said.written("sharded")
    if written is not None:
        return written
    if isinstance(sharded, Fact) and not sharded.value:
        return Fact(1, sharded.origin)
    visible = said.variable("CUDA_VISIBLE_DEVICES")
    if isinstance(visible, Fact):
        return Fact(len(visible.value.split(",")), visible.origin)
    unseen, devices = said.unseen("num_shard"), said.world.hardware.get("devices")
    if unseen is not None:
        return unseen
    if isinstance(devices, Fact) and devices.value >= 1:
        return devices
    return Unknown("num_shard", "the launcher counts the devices that it sees", "--num-shard or NUM_SHARD")


def _attention(said: Said, model: Model | None) -> Value[str]:
    """ATTENTION, else by the release, the head size and the device (launcher/src/main.rs, resolve_attention)."""
    from kvlint.sizing.tgi.sizes import rules

    written = said.variable("ATTENTION")
    if written is not None:
        return written
    default = Default(NAME, said.world.releases, "ATTENTION")
    if {each.attention for each in rules(said.world.release)} == {"paged"}:
        return Fact("paged", default)
    arch = model.architecture if model is not None else Unknown("model", "no model is named", "name a model")
    if isinstance(arch, Unknown):
        return arch
    sizes = {part.key_dim for part in arch.value.parts(Attention)}
    usual = bool(sizes) and sizes <= {64, 128, 256} and arch.value.model_type not in ("falcon", "deepseek_v2")
    if usual:
        return Fact("flashinfer", default)
    capability = said.world.hardware.get("capability")
    if not isinstance(capability, Fact):
        return Unknown("hardware.capability", "the attention follows the device", "[[hardware]] device or capability")
    return Fact("paged" if capability.value < 8 else "flashdecoding", default)


def _prefix_caching(said: Said, model: Model | None) -> Value[bool] | None:
    from kvlint.sizing.tgi.sizes import rules

    if {each.attention for each in rules(said.world.release)} == {"paged"}:
        return None  # there is none yet
    written = said.variable("PREFIX_CACHING")
    if written is not None:
        return Fact(written.value.lower() in ("1", "true"), written.origin) if isinstance(written, Fact) else written
    attention = _attention(said, model)
    if not isinstance(attention, Fact) or attention.value == "paged":
        return Fact(False, attention.origin) if isinstance(attention, Fact) else attention
    if said.written("lora_adapters") is not None:
        return Fact(False, Assumed("adapters switch it off"))
    if model is not None and isinstance(model.architecture, Fact) and "vision_config" in model.architecture.value.root:
        return Fact(False, model.architecture.origin)
    return Fact(True, Default(NAME, said.world.releases, "PREFIX_CACHING"))


def _limits(said: Said, model: Model | None, found: dict[str, Value[Any] | None]) -> dict[str, Value[Any] | None]:
    """The stated limits, and what the launcher makes of those that are not."""
    from kvlint.sizing.tgi import server as sizing

    release = found["release"]
    assert release is not None
    stated: dict[str, Value[Any]] = {"release": release}
    for name, dests in STATED.items():
        each = next((value for dest in dests if (value := said.written(dest)) is not None), None)
        if each is not None:
            stated[name] = each
    shards, dtype, share = found["tensor_parallel"], found["weights_dtype"], found["memory_fraction"]
    stated |= {"num_shard": shards} if shards is not None else {}
    stated |= {"cuda_memory_fraction": share} if share is not None else {}
    stated["model_dtype"] = dtype if dtype is not None else Fact("float16", Assumed("16 bits"))
    stated["attention"] = _attention(said, model)
    wiggle = said.variable("TGI_WIGGLE_ROOM")
    if wiggle is not None:
        stated["wiggle_room"] = _number(wiggle)
    chunking = said.variable("PREFILL_CHUNKING")
    if isinstance(chunking, Fact):
        stated["chunking"] = Fact(chunking.value.lower() in ("1", "true"), chunking.origin)
    prefixes = said.variable("PREFIX_CACHING")
    if isinstance(prefixes, Fact):
        stated["prefix_caching"] = Fact(prefixes.value.lower() in ("1", "true"), prefixes.origin)
    length = found["model_window"]
    known = {**stated, **({"model_window": length} if isinstance(length, Fact) else {})}
    prefill = stated.get("max_batch_prefill_tokens", said.unseen("max_batch_prefill_tokens"))
    return {
        "stated": Fact(stated, Assumed("what is written")),
        "batched_tokens": sizing.default_prefill(**known) if prefill is None else prefill,
        "batch_width": stated.get("max_batch_size"),
        "block_size": sizing.block_size(release, stated["attention"]),
        "max_input": stated.get("max_input_tokens"),
        "window": _window(said, stated, length),
    }


def _window(said: Said, stated: dict[str, Value[Any]], length: Value[int] | None) -> Value[Any]:
    """Prompt and answer of one request; unset, what the release makes of model and pool."""
    from kvlint.sizing.tgi import server as sizing
    from kvlint.sizing.tgi.sizes import Limits

    written = stated.get("max_total_tokens")
    if written is not None:
        return written
    unseen = said.unseen("max_total_tokens")
    if unseen is not None:
        return unseen
    known = {**stated, **({"model_window": length} if isinstance(length, Fact) else {})}
    found = sizing.limits(**known)
    if isinstance(found, Fact) and isinstance(found.value, Limits):
        window = found.value.window
        return window if isinstance(window, Unknown) else Fact(window, found.origin)
    return Unknown("window", "the launcher works it out from the pool", "--max-total-tokens")


def _number(raw: Value[str]) -> Value[Fraction]:
    if isinstance(raw, Unknown):
        return raw
    try:
        return Fact(Fraction(raw.value), raw.origin)
    except ValueError:
        return Unknown("environment.TGI_WIGGLE_ROOM", f"{raw.value!r} is no number", "a number")


def _both_inputs(said: Said) -> Iterator[Problem]:
    """`max_input_tokens` beside its older name: the launcher takes one of them only."""
    first, second = said.written("max_input_tokens"), said.written("max_input_length")
    if isinstance(first, Fact) and isinstance(second, Fact) and isinstance(second.origin, Written):
        why = "max_input_length is the older name of max_input_tokens, and only one of them may be set"
        data = {"engine": NAME, "flag": "--max-input-length", "value": str(second.value), "why": why, "refuses": True}
        yield Problem("malformed-value", second.origin.span, data)
