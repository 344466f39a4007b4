"""Ollama: a server that takes no flags.  Its environment says all, and a Modelfile what belongs to one model."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from kvlint import engines
from kvlint.command import CommandLine
from kvlint.engines import basename
from kvlint.engines.base import Program, Settings, World, repeated_command
from kvlint.engines.llama_server import NO_MODEL, find_model, positions, refusals
from kvlint.engines.options import options
from kvlint.facts import Assumed, Default, Fact, Range, Unknown, Value, Written
from kvlint.models.architecture import Architecture
from kvlint.models.lookup import Model, written_id
from kvlint.patterns import regex
from kvlint.sizing.llama.settings import Refusal
from kvlint.sizing.ollama import sizes as memory
from kvlint.sizing.server import Sizing
from kvlint.source import Text
from kvlint.subjects import Problem
from kvlint.units import MIB

NAME = "ollama"
SERVE = "ollama serve"
NUMBERS = {
    "environment_context": "OLLAMA_CONTEXT_LENGTH",
    "parallel": "OLLAMA_NUM_PARALLEL",
    "overhead": "OLLAMA_GPU_OVERHEAD",
    "loaded_models": "OLLAMA_MAX_LOADED_MODELS",
    "queue": "OLLAMA_MAX_QUEUE",
    "cache_ram": "LLAMA_ARG_CACHE_RAM",
    "checkpoints": "LLAMA_ARG_CTX_CHECKPOINTS",
}
TEXTS = {"kv_cache_type": "OLLAMA_KV_CACHE_TYPE", "flash_attention": "OLLAMA_FLASH_ATTENTION"}
WANTED = (
    "model_context",
    "environment_context",
    "parallel",
    "overhead",
    "kv_cache_type",
    "flash_attention",
    "batch",
    "devices",
)
CONTEXTS = ("model_context", "environment_context", "devices", "overhead")
# Variables that Ollama's child inherits and that change what it allocates in ways that are not followed.
INHERITED = ("LLAMA_ARG_KV_UNIFIED", "LLAMA_ARG_SWA_FULL", "LLAMA_ARG_NO_KV_UNIFIED", "LLAMA_ARG_SPEC_TYPE")
# Names that other programs read: clients, and the scripts that people start Ollama with.
OTHERS = frozenset({
    *("OLLAMA_MODEL", "OLLAMA_BASE_URL", "OLLAMA_URL", "OLLAMA_API_BASE", "OLLAMA_API_URL", "OLLAMA_API_KEY"),
    *("OLLAMA_BASE_URLS", "OLLAMA_PORT", "OLLAMA_VERSION", "OLLAMA_IMAGE", "OLLAMA_TAG", "OLLAMA_PROXY_URL"),
    *("OLLAMA_TMPDIR", "OLLAMA_RUNNERS_DIR", "OLLAMA_MAX_VRAM", "OLLAMA_INTEL_GPU", "OLLAMA_NEW_ENGINE"),
    *("OLLAMA_MULTIUSER_CACHE", "OLLAMA_NEW_ESTIMATES", "OLLAMA_LIBRARY_PATH", "OLLAMA_SKIP_CPU_GENERATE"),
})  # fmt: skip
_PORT = regex(r"(?:[a-z]+://)?(?:\[[^\]]*\]|[^:/]*)(?::(?P<port>\d+))?/?.*")
_WHOLE = regex(r"[+-]?[0-9]{1,18}")
_FILLED_IN = regex(r"[${}%<>#@]")
_DIGITS = regex(r"(\d+)\s*[A-Za-z].*")


class Ollama:
    name = NAME
    distribution = "ollama serve"  # no distribution has it: the package `ollama` is a client
    images = ("ollama/ollama",)

    def recognise(self, line: CommandLine) -> Program | None:
        if line.program is None:
            return _of_image(line)
        if basename(line.program.value).removesuffix(".exe") == NAME and line.args and line.args[0].value == "serve":
            return Program(SERVE, line.args[1:], line.program.span, args_at=1)
        return None

    def semantics(self, release: str) -> Hashable:
        names = memory.data()["rules"]
        return tuple(str(memory.rule(name, each)) for each in ends(release) for name in names)

    def settled(self, release: str) -> bool:
        return True

    def sizing(self) -> type[Sizing]:
        from kvlint.sizing.ollama.server import OllamaSizing

        return OllamaSizing

    def settings(self, world: World) -> Settings:
        environment = Environment(world)
        given = environment.given()
        model, text = _model(world)
        releases = Fact(_releases(world), Default(NAME, world.releases, "release"))
        given |= _devices(world)
        values: dict[str, Value[Any] | None] = {**given, "releases": releases}
        if model is not None and text is not None:
            values |= {"model": written_id(model, text)}
            values["model_window"] = positions(model)
        wanted = {name: given[name] for name in WANTED if given.get(name) is not None}
        if "model_context" in wanted:  # beats the service's own
            wanted = {
                name: found
                for name, found in wanted.items()
                if name not in ("environment_context", "devices", "overhead")
            }
        values |= _sized(world, model, releases, wanted, values.get("model_window"))
        values |= _reported(world, given, releases.value)
        values["wanted"] = Fact(wanted, Assumed("the settings of a load"))
        problems = (*environment.problems, *environment.unread(), *_refusals(world, values, given))
        kept = {name: value for name, value in values.items() if value is not None}
        names = (model.id,) if model is not None else ()
        return Settings(kept, names, problems, model)


ENGINE = Ollama()


def _of_image(line: CommandLine) -> Program | None:
    """The image's entrypoint is `ollama` itself, and `serve` what it is given by default."""
    if line.image is None:
        return None
    again = line.args[:1] if line.args and basename(line.args[0].value) == NAME and line.args[1:] else ()
    args = line.args[len(again) :]
    if args and args[0].value != "serve":
        return None
    problems = tuple(repeated_command(NAME, word) for word in again)
    return Program(SERVE, args[1:], line.image.span, len(line.args) - len(args[1:]), problems)


def ends(release: str) -> tuple[memory.Release, ...]:
    """A release of the data stands for all up to the next one: the first and the last of them."""
    known = options(NAME).releases
    first = memory.release(release.rstrip("."))
    if first is None or release not in known:
        return ()
    after = known[known.index(release) + 1 :]
    following = memory.release(after[0].rstrip(".")) if after else None
    if following is None:
        return (first,)
    return first, (following[0], following[1] - 1, 1 << 20)


def _releases(world: World) -> tuple[memory.Release, ...]:
    exact = memory.release(world.exact) if world.exact is not None else None
    return (exact,) if exact is not None else ends(world.releases[-1])


class Environment:
    """The service's variables as Ollama reads them: blanks and quotes are trimmed, what does not parse is passed over."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.problems: list[Problem] = []

    def given(self) -> dict[str, Value[Any] | None]:
        found: dict[str, Value[Any] | None] = {name: self._number(variable) for name, variable in NUMBERS.items()}
        found |= {name: self._text(variable) for name, variable in TEXTS.items()}
        found |= self._modelfile()
        self._switch(found["flash_attention"])
        return found

    def unread(self) -> Iterator[Problem]:
        """Names that nothing reads and that resemble one that is read."""
        image = self.world.process.line.image
        if image is not None and engines.of_image(image.value) != NAME:
            return
        for name, text in self.world.env.items():
            near = misnamed(name)
            if near is not None:
                yield Problem("unknown-environment", text.span, {"engine": NAME, "variable": name, "suggestion": near})

    def _text(self, name: str) -> Value[str] | None:
        text = self.world.env.get(name)
        if text is None:
            if not self.world.process.line.env_open:
                return None
            reason = f"{name} may be among variables that are set elsewhere"
            return Unknown("environment", reason, f"write {name}")
        if not text.known:
            hole = text.holes[0]
            return Unknown(f"environment.{name}", hole.reason, hole.supply or f"the value of {name}")
        value = memory.variable(text.value)
        return Fact(value, Written(text.span, text.via)) if value else None

    def _number(self, name: str) -> Value[int] | None:
        found = self._text(name)
        if not isinstance(found, Fact):
            return found
        sign = found.value[1:] if name.startswith("LLAMA_ARG_") and found.value.startswith("-") else found.value
        if sign.isdigit():
            return Fact(int(found.value), found.origin)
        self._passed_over(name, found)
        return None

    def _passed_over(self, name: str, found: Fact[str]) -> None:
        digits = _DIGITS.fullmatch(found.value)
        kind = "suffix-not-understood" if digits else "ineffective-flag"
        data = {"engine": NAME, "flag": name, "value": found.value, "effective": "the default"}
        if isinstance(found.origin, Written):
            self.problems.append(Problem(kind, found.origin.span, data))

    def _switch(self, found: Value[str] | None) -> None:
        """A switch that does not parse is on, whatever it says."""
        if not isinstance(found, Fact) or not isinstance(found.origin, Written):
            return
        if found.value.lower() in ("off", "no", "n", "disable", "disabled", "none"):
            name = TEXTS["flash_attention"]
            data = {"engine": NAME, "flag": name, "value": found.value, "effective": "on", "suggestion": "0"}
            self.problems.append(Problem("ineffective-flag", found.origin.span, data))

    def _modelfile(self) -> dict[str, Value[Any] | None]:
        parameters: Mapping[str, Text] = self.world.process.site.data.get("modelfile", {})
        found: dict[str, Value[Any] | None] = {}
        for name, parameter in (("model_context", "num_ctx"), ("batch", "num_batch")):
            text = parameters.get(parameter)
            if text is None:
                continue
            value = text.value.strip('"')
            if _WHOLE.fullmatch(value):
                if int(value) >= 0:
                    found[name] = Fact(int(value), Written(text.span, text.via))
                continue
            if not text.known or _FILLED_IN.search(value):
                continue
            # ollama/ollama api/types.go, FormatParams: `ollama create` reads whole numbers only, and ends
            data = {"engine": NAME, "flag": parameter, "value": text.value, "expects": "an integer", "refuses": True}
            self.problems.append(Problem("malformed-value", text.span, data))
        return found


def misnamed(name: str) -> str | None:
    """The variable that a name was probably meant to be; None for one that Ollama reads, or that is none of its."""
    known = options(NAME).environment
    if not name.startswith("OLLAMA_") or name in known or name in OTHERS:
        return None
    tails = {each.removeprefix("OLLAMA_"): each for each in known if each.startswith("OLLAMA_")}
    from difflib import get_close_matches

    near = get_close_matches(name.removeprefix("OLLAMA_"), list(tails), n=1, cutoff=0.6)
    return tails[near[0]] if near else None


def _model(world: World) -> tuple[Model | None, Text | None]:
    """The model of a Modelfile; a service alone has none until a request names one."""
    parameters: Mapping[str, Text] = world.process.site.data.get("modelfile", {})
    text = parameters.get("from")
    return (find_model(world, text), text) if text is not None else (None, None)


def _devices(world: World) -> dict[str, Value[Any] | None]:
    """The memory of each GPU, which the default context depends on."""
    size = world.hardware.get("device_memory")
    if not isinstance(size, Fact):
        return {}
    count = world.hardware.get("devices")
    times = count.value if isinstance(count, Fact) else 1
    memory_of = size.value if isinstance(size.value, Range) else Range(size.value, size.value, size.value)
    tiers = {memory.tier((int(each),) * times) for each in (memory_of.low, memory_of.high)}
    if len(tiers) > 1:
        return {
            "devices": Unknown("hardware.memory", "the device lies at the edge of two default contexts", "set num_ctx")
        }
    return {"devices": Fact((int(memory_of.nominal),) * times, size.origin)}


def _sized(
    world: World, model: Model | None, releases: Fact[Any], wanted: dict[str, Any], trained: Value[int] | None
) -> dict[str, Value[Any] | None]:
    """The plan of a load, the slots and the window; the last two need no model."""
    from kvlint.sizing.llama import server as shapes
    from kvlint.sizing.ollama import server as sizing

    contexts: dict[str, Value[Any]] = {name: wanted[name] for name in CONTEXTS if name in wanted}
    if isinstance(trained, Fact):
        contexts["model_window"] = trained
    window = _stated(contexts) or sizing.window(releases=releases, **contexts)
    arch = model.architecture if model is not None else Unknown("model", "no model is named", "a Modelfile")
    family = Fact(arch.value.model_type, arch.origin) if isinstance(arch, Fact) else Fact("", Assumed("a plain model"))
    asked = {"parallel": wanted["parallel"]} if "parallel" in wanted else {}
    plan = _inherited(world) if any(name in world.env for name in INHERITED) else _plan(arch, releases, wanted)
    refused = isinstance(plan, Fact) and isinstance(plan.value, Refusal)
    width = sizing.width(releases=releases, family=family, **asked)
    parallel = wanted.get("parallel")
    same = isinstance(width, Fact) and isinstance(parallel, Fact) and width.value == parallel.value
    why = Unknown("engine.start", "the model does not load", "settings with which it loads")
    return {
        "start": plan,
        "plan": why if refused else plan,
        "window": window,
        "batch_width": parallel if same else width,
        "unified_kv": Fact(False, Default(NAME, world.releases, "-np")),
        "slot_cells": why if refused else shapes.slot_cells(plan),
    }


def _stated(contexts: dict[str, Value[Any]]) -> Value[int] | None:
    """A length that is written and that the model can do is the window itself."""
    trained = contexts.get("model_window")
    for name in ("model_context", "environment_context"):
        found = contexts.get(name)
        if isinstance(found, Fact) and found.value:
            longer = isinstance(trained, Fact) and found.value > trained.value
            return None if longer else found
        if isinstance(found, Unknown):
            return found
    return None


def _plan(arch: Value[Architecture], releases: Fact[Any], wanted: dict[str, Any]) -> Value[Any]:
    """The plan of a load; of a model that is not known only what no model of any shape escapes."""
    from kvlint.sizing.ollama import server as sizing

    found = sizing.start(architecture=arch, releases=releases, **wanted)
    if isinstance(found, Fact):
        return found
    types = {name: wanted[name] for name in TEXTS if name in wanted}
    length = Fact(4096, Assumed("any context"))
    plain = Fact(NO_MODEL, Assumed("a model of plain attention"))
    alone = sizing.start(architecture=plain, releases=releases, model_context=length, **types)
    return alone if isinstance(alone, Fact) and isinstance(alone.value, Refusal) else found


def _inherited(world: World) -> Unknown:
    name = next(name for name in INHERITED if name in world.env)
    return Unknown(f"environment.{name}", f"what {name} does under Ollama is not followed", f"take {name} out")


def _reported(
    world: World, given: dict[str, Value[Any] | None], releases: tuple[memory.Release, ...]
) -> dict[str, Any]:
    loaded = given["loaded_models"]
    nothing = loaded is None or (isinstance(loaded, Fact) and loaded.value == 0)
    return {
        "window_kind": Fact("truncate", Default(NAME, world.releases, "what is beyond num_ctx")),
        "context": _first(given.get("model_context"), given["environment_context"], _default_context(world, releases)),
        "kv_dtype": _kv_dtype(world, given, releases),
        "host_cache_bytes": _host_cache(world, given["cache_ram"], releases),
        "loaded_models": Fact(1, Assumed("one model is loaded")) if nothing else loaded,
        "port": _port(world),
    }


def _first(*values: Value[Any] | None) -> Value[Any] | None:
    return next((value for value in values if value is not None), None)


def _default_context(world: World, releases: tuple[memory.Release, ...]) -> Value[int]:
    found = {memory.rule("context", release) for release in releases}
    default = (
        found.pop()
        if len(found) == 1
        else Unknown("engine.version", "releases differ in it", "name the release of Ollama")
    )
    return (
        default
        if isinstance(default, Unknown)
        else Fact(default, Default(NAME, world.releases, "OLLAMA_CONTEXT_LENGTH"))
    )


def _kv_dtype(world: World, given: Mapping[str, Any], releases: tuple[memory.Release, ...]) -> Value[str] | None:
    named, flash = given["kv_cache_type"], given["flash_attention"]
    if isinstance(named, Unknown) or isinstance(flash, Unknown):
        return named if isinstance(named, Unknown) else flash
    default = Default(NAME, world.releases, "OLLAMA_KV_CACHE_TYPE")
    if named is None:
        return Fact("f16", default)
    settings = memory.Settings(kv_cache_type=named.value)
    found = set()
    for release in releases:
        switch = memory.flash_attention(flash.value if flash else None, release)
        found.add(memory.kv_type(settings, switch, release))
    value = (
        found.pop()
        if len(found) == 1
        else Unknown("engine.version", "releases differ in it", "name the release of Ollama")
    )
    if value is None or isinstance(value, Unknown):
        return value
    return Fact(value, named.origin if value == memory.variable(named.value).lower() else default)


def _host_cache(world: World, limit: Value[int] | None, releases: tuple[memory.Release, ...]) -> Value[int] | None:
    """Bytes of the prompt cache that each child llama-server keeps in ordinary memory; Ollama's own runner has none."""
    runners = {memory.rule("runner", release) for release in releases}
    runner = (
        runners.pop()
        if len(runners) == 1
        else Unknown("engine.version", "releases differ", "name the release of Ollama")
    )
    if isinstance(runner, Unknown):
        return runner
    if runner == "own":
        return None
    if limit is None:
        from kvlint.sizing.llama.releases import rule

        found = rule("cache_ram", int(memory.data()["between"]["to"]))
        return Fact(found * MIB, Default(NAME, world.releases, "LLAMA_ARG_CACHE_RAM"))
    if isinstance(limit, Unknown):
        return limit
    return Fact(limit.value * MIB, limit.origin) if limit.value >= 0 else None


def _port(world: World) -> Value[int]:
    text = world.env.get("OLLAMA_HOST")
    if text is not None and not text.known:
        return Unknown("environment.OLLAMA_HOST", text.holes[0].reason, "the value of OLLAMA_HOST")
    match = _PORT.fullmatch(memory.variable(text.value)) if text is not None else None
    if text is not None and match and match["port"]:
        return Fact(int(match["port"]), Written(text.span, text.via))
    return Fact(11434, Default(NAME, world.releases, "OLLAMA_HOST"))


def _refusals(world: World, values: dict[str, Value[Any] | None], given: Mapping[str, Any]) -> Iterator[Problem]:
    kinds = dict.fromkeys(("cache_type_k", "cache_type_v"), given["kv_cache_type"])
    found = values.get("start")
    if found is not None:
        yield from refusals(world, found, {**kinds, "flash_attention": given["flash_attention"]})
