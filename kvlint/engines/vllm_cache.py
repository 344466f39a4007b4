"""What decides on vLLM's cache beside the window: its types, its manager, drafts, connectors and CUDA graphs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kvlint.engines.fields import Fields, environment
from kvlint.engines.versions import parse
from kvlint.facts import Assumed, Fact, Unknown, Value
from kvlint.models.architecture import Architecture, Attention, Latent, Layer, State
from kvlint.models.lookup import Model
from kvlint.patterns import regex

if TYPE_CHECKING:
    from kvlint.models.catalogue import Entry

# Repositories of ModelOpt checkpoints say so in their names; those of other quantizations do not set the cache's type.
MODELOPT = regex(r"^nvidia/|nvfp4|modelopt|fp4", re.IGNORECASE)
LOAD_TIME_QUANTIZATION = ("bitsandbytes", "fp8", "experts_int8", "torchao", "inc", "rtn", "mxfp8", "mxfp4")


def full_graphs(fields: Fields) -> Value[bool]:
    """Whether decode steps are captured whole: the mode as written, else by the optimization level, 2 by default."""
    eager = fields.value("enforce_eager", default=False)
    if not isinstance(eager, Fact):
        return eager if eager is not None else fields.unseen("enforce_eager")
    if eager.value:
        return Fact(False, eager.origin)
    written, level = fields.written("compilation_config"), fields.written("optimization_level")
    config = _json(fields, "compilation_config")
    mode = config[0].get("cudagraph_mode") if config is not None else None
    if isinstance(written, Fact) and mode is not None:
        return Fact("FULL" in str(mode).upper(), written.origin)
    if written is not None and (config is None or {"mode", "level", "use_cudagraph", "backend"} & set(config[0])):
        return Unknown(
            "cudagraph_mode", "what the compilation config makes of CUDA graphs is not known", "cudagraph_mode"
        )
    if isinstance(level, Fact):
        return Fact(str(level.value) in ("2", "3"), level.origin)
    return level if level is not None else fields.default("--compilation-config", True)


def manager(fields: Fields, written: Value[bool] | None, model: Model | None) -> Value[bool] | None:
    """Off by the flag, or by a KV connector in the releases that cannot combine the two."""
    if written is not None:
        return written
    connector = fields.written("kv_transfer_config")
    release, first, last = parse(fields.world.release), parse("0.9.1"), parse("0.22.1")
    if connector is not None and release and first and last and first <= release <= last:
        return Fact(False, connector.origin) if isinstance(connector, Fact) else connector
    allowed = environment(fields.world, "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE")
    if isinstance(allowed, Fact) and _chunked(model):
        return Fact(allowed.value == "1", allowed.origin)
    return None


def _chunked(model: Model | None) -> bool:
    arch = model.architecture if model is not None else None
    return isinstance(arch, Fact) and any(part.chunk for part in arch.value.distinct(Attention))


def draft(fields: Fields, model: Model | None) -> Value[Any] | None:
    """The layers that multi-token prediction adds behind the last one; a draft model's are unknown here."""
    tokens = draft_tokens(fields)
    if tokens is None or model is None or not isinstance(model.architecture, Fact):
        return tokens if isinstance(tokens, Unknown) else None
    method = speculative(fields, "method")
    name = method.value if isinstance(method, Fact) else ""
    if name in ("ngram", "suffix", "ngram_gpu"):
        return None
    layers = model.architecture.value.draft_layers
    if name.endswith("mtp") or "mtp" in name:
        if not layers:
            layers = _last_attention(model.architecture.value)
        return Fact(layers[:1], model.architecture.origin)
    return Unknown("model.draft", "the draft model's layers are not known", "[[hardware]] available_kv, as measured")


def _last_attention(arch: Architecture) -> tuple[Layer, ...]:
    """A prediction head keeps one layer of the model's full attention."""
    for layer in reversed(arch.layers):
        full = tuple(
            p for p in layer if isinstance(p, Latent) or (isinstance(p, Attention) and not (p.window or p.chunk))
        )
        if full:
            return (full,)
    return ()


def gdn_prefill(fields: Fields, model: Model | None) -> Value[Any] | None:
    """Who prefills Gated DeltaNet layers: the flag, else the device decides."""
    from kvlint.sizing.vllm.defaults import gdn_prefill_backend

    written = fields.written("gdn_prefill_backend")
    if written is not None or model is None or not isinstance(model.architecture, Fact):
        return written
    states = [part for part in model.architecture.value.parts(State) if part.kind == "gdn"]
    capability = fields.world.hardware.get("capability")
    if not states or not isinstance(capability, Fact):
        return None
    major, minor = divmod(int(capability.value * 10), 10)
    backend = gdn_prefill_backend((major, minor), states[0].key_dim)
    return backend if isinstance(backend, Unknown) else Fact(backend, capability.origin)


def _json(fields: Fields, dest: str) -> tuple[Mapping[str, Any], Value[Any]] | None:
    found = fields.written(dest)
    if not isinstance(found, Fact):
        return None
    value = found.value
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return (value, found) if isinstance(value, Mapping) else None


def connector(fields: Fields) -> Value[str] | None:
    found = _json(fields, "kv_transfer_config")
    if found is None or not isinstance(found[1], Fact):
        return None
    name = found[0].get("kv_connector")
    return Fact(str(name), found[1].origin) if name else None


def speculative(fields: Fields, key: str) -> Value[Any] | None:
    found = _json(fields, "speculative_config")
    if found is not None and isinstance(found[1], Fact) and found[0].get(key) is not None:
        return Fact(found[0][key], found[1].origin)
    return fields.written({"model": "spec_model", "num_speculative_tokens": "spec_tokens"}.get(key, key))


def draft_tokens(fields: Fields) -> Value[Any] | None:
    return speculative(fields, "num_speculative_tokens") or fields.written("num_speculative_tokens")


def load_time(fields: Fields) -> Value[Any] | None:
    found = fields.written("quantization")
    return found if isinstance(found, Fact) and found.value in LOAD_TIME_QUANTIZATION else None


def cache_types(fields: Fields, model: Model | None) -> dict[str, Value[Any] | None]:
    """The cache's type: `auto` is the model's own, or fp8 where the checkpoint itself says so; and as the engine is told."""
    stated = fields.value("kv_cache_dtype")
    dtype = fields.value("dtype")
    own: Value[Any] | None = None
    if isinstance(dtype, Fact) and dtype.value not in ("auto", None):
        name = {"half": "float16", "float": "float32"}.get(dtype.value, dtype.value)
        own = Fact(name, dtype.origin)
    elif model is not None and isinstance(model.architecture, Fact):
        own = model.dtype
        if isinstance(own, Unknown):
            own = Fact("bfloat16", Assumed("`--dtype auto` is 16 bit for every checkpoint"))
        elif own.value == "float32":
            own = Fact("bfloat16", own.origin)  # `auto` turns 32-bit checkpoints into 16-bit ones
    if isinstance(stated, Fact) and stated.value == "auto" and model is not None and model.entry is not None:
        stated = _of_checkpoint(fields, stated, model, model.entry)
    auto = isinstance(stated, Fact) and stated.value == "auto" and isinstance(own, Fact)
    named: Value[Any] | None = own if auto else stated
    if auto and model is not None and _sparse(model):
        why = "what auto turns into for sparse latent attention differs by release and backend"
        named = Unknown("kv_dtype", why, "--kv-cache-dtype")
    return {"kv_cache_dtype": stated, "kv_dtype": named, "model_dtype": own}


def _sparse(model: Model) -> bool:
    arch = model.architecture
    return isinstance(arch, Fact) and any(part.indexer_dim is not None for part in arch.value.distinct(Latent))


def _of_checkpoint(fields: Fields, auto: Fact[Any], model: Model, entry: Entry) -> Value[Any]:
    """What a ModelOpt checkpoint makes of `auto`, in the releases that ask it."""
    from kvlint.sizing.vllm.releases import rules

    follows = {each.checkpoint_kv for each in rules(fields.world.release)}
    if not entry.own and True in follows and MODELOPT.search(model.id):
        return Unknown("model.kv_scheme", f"whether {model.id} makes `auto` fp8 is not known", "--kv-cache-dtype")
    if entry.kv_cache_dtype is None or not isinstance(model.architecture, Fact):
        return auto
    if len(follows) > 1:
        return Unknown("engine.version", "whether `auto` follows the checkpoint here is not known", "--kv-cache-dtype")
    return Fact(entry.kv_cache_dtype, model.architecture.origin) if follows.pop() else auto
