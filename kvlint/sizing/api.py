"""The library's one question about caches: how many bytes an engine holds for so many tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from kvlint.models.architecture import Architecture, UnknownArchitecture
from kvlint.models.config import architecture as read_config
from kvlint.sizing import kv_transformers
from kvlint.sizing.kv import ELEMENT_BYTES
from kvlint.sizing.mlx import kv as kv_mlx

GGUF_KEY = "general.architecture"
ENGINES = (
    "transformers",
    "mlx-lm",
    "vllm-mlx",
    "vllm",
    "llama-server",
    "ollama",
    "sglang",
    "tgi",
    "trtllm",
    "lmdeploy",
)
# Engines whose caches another one makes: vllm-mlx batches with mlx-lm, Ollama starts llama-server.  Their releases are their own.
MADE_BY = {"vllm-mlx": "mlx-lm", "ollama": "llama-server"}


def kv_cache_bytes(
    config: Mapping[str, Any],
    tokens: int,
    *,
    sequences: int = 1,
    engine: str = "transformers",
    version: str | None = None,
    kv_dtype: str | None = None,
    block_size: int | None = None,
    batched_tokens: int | None = None,
    slots: int | None = None,
) -> int:
    """Bytes that `engine` holds for `sequences` sequences of `tokens` tokens each, after one forward pass of all tokens.

    `config`: a parsed `config.json`, or GGUF metadata (`general.architecture`, ...).  One copy over all devices, recurrent state
    included.  `kv_dtype` None is the configuration's own type, bfloat16 where it names none.  `block_size`, `batched_tokens` and
    `slots` serve the engines that have them.  Raises UnknownArchitecture naming the field that could not be read, ValueError for
    an engine, a type or a number that makes no sense; never returns 0 for "do not know".
    """
    if not isinstance(config, Mapping):
        raise UnknownArchitecture("model_type", "the configuration is not an object")
    for name, count in (("tokens", tokens), ("sequences", sequences)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"{name} is {count!r}, not a number of {name}")
    if engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}; one of {', '.join(ENGINES)}")
    if engine in MADE_BY:
        engine, version = MADE_BY[engine], None
    options = {"sequences": sequences, "version": version, "kv_dtype": kv_dtype}
    if engine == "llama-server":
        source = config if GGUF_KEY in config else read_config(config)
        return engine_bytes("llama")(source, tokens, slots=slots, batched_tokens=batched_tokens, **options)
    arch = architecture(kv_mlx.read_as(config) if engine == "mlx-lm" else config)
    if engine == "vllm":
        return engine_bytes("vllm")(arch, tokens, block_size=block_size, batched_tokens=batched_tokens, **options)
    if engine in ("trtllm", "lmdeploy"):
        return engine_bytes(engine)(arch, tokens, block_size=block_size, **options)
    if engine == "sglang":
        return engine_bytes("sglang")(arch, tokens, **options)
    dtype = cache_type(arch, kv_dtype)
    if engine == "tgi":
        from kvlint.sizing.slots import tgi_shape

        return sequences * tgi_shape(arch, dtype)(tokens)
    if engine == "mlx-lm":
        return kv_mlx.cache_bytes(arch, tokens, sequences, version, dtype)
    return kv_transformers.cache_bytes(arch, tokens, sequences, dtype)


def architecture(config: Mapping[str, Any]) -> Architecture:
    if GGUF_KEY not in config:
        return read_config(config)
    read: Callable[[Mapping[str, Any]], Architecture] = import_module("kvlint.models.gguf").architecture
    return read(config)


def cache_type(arch: Architecture, kv_dtype: str | None) -> str:
    """The cache's type by name; the model's own where none is asked for."""
    asked = None if kv_dtype == "auto" else kv_dtype
    name = (asked or arch.dtype or "bfloat16").removeprefix("torch.").lower()
    if name not in ELEMENT_BYTES:
        raise ValueError(f"the size of an element of type {name!r} is not known")
    return name


def engine_bytes(module: str) -> Callable[..., int]:
    """The engine's own function, loaded when it is asked for."""
    try:
        found: Callable[..., int] = import_module(f"kvlint.sizing.{module}.sizes").cache_bytes
    except ModuleNotFoundError as error:
        raise ValueError(f"caches of this engine cannot be sized: {error}") from error
    return found
