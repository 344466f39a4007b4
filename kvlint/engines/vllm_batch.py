"""vLLM's window and batch: as they are written, else what a release makes of the model and the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvlint.engines.fields import Fields, environment
from kvlint.facts import Assumed, Default, Fact, Quantity, Unknown, Value, nominal, quantity
from kvlint.models.lookup import Model
from kvlint.subjects import Problem

ANY_LENGTH: Fact[int] = Fact(1 << 40, Assumed("longer than any batch"))
ROPE_FLAGS = ("rope_scaling", "rope_theta")


@quantity(
    "model_window",
    unit="tokens",
    formula="smallest stated length, scaled by rope",
    source="vllm/config: the smallest of the length keys, times the rope factor",
)
def model_window(architecture: Any, release: str) -> int | Unknown:
    from kvlint.sizing.vllm.sizes import derived_max_model_len

    return derived_max_model_len(architecture, release)


@quantity(
    "window",
    unit="tokens",
    formula="the model's own length",
    source="vllm/config: the smallest of the length keys, times the rope factor",
)
def default_window(architecture: Any, release: str) -> int | Unknown:
    from kvlint.sizing.vllm.sizes import default_max_model_len

    return default_max_model_len(architecture, release)


def window_of(fields: Fields, model: Model | None) -> dict[str, Value[Any] | None]:
    """The window, and the longest that the model or a variable allows."""
    release: Fact[str] = Fact(fields.world.release, Default("vllm", fields.world.releases, ""))
    arch: Value[Any] = model.architecture if model else Unknown("model", "no model is named", "name the model")
    overridden = fields.given("hf_overrides") or any(fields.given(flag) for flag in ROPE_FLAGS)
    longest: Value[Any] | None = model_window(arch, release)
    if overridden:
        longest = Unknown("model.positions", "positions are overridden on the command line", "the resulting length")
    allowed = environment(fields.world, "VLLM_ALLOW_LONG_MAX_MODEL_LEN")
    if isinstance(allowed, Fact) and allowed.value in ("1", "true", "True"):
        longest = None
    elif isinstance(allowed, Unknown):
        longest = allowed
    window = fields.written("max_model_len")
    if isinstance(window, Fact) and (isinstance(window.value, str) or window.value in (-1, None)):
        window = Unknown("window", "the engine fits the window to its memory", "a literal --max-model-len")
    elif isinstance(window, Fact) and window.value <= 0:
        window = Unknown("window", f"nothing fits in {window.value} tokens", "a --max-model-len above zero")
    elif window is None:
        window = fields.unseen("max_model_len") if fields.open else default_window(arch, release)
        if overridden and isinstance(window, Fact):
            window = longest
    return {
        "window": window,
        "model_window": longest,
        "window_kind": Fact("refuse", Default("vllm", fields.world.releases, "--max-model-len")),
    }


@quantity(
    "batched_tokens",
    unit="tokens",
    formula="by device memory and release",
    source="vllm/engine/arg_utils.py: defaults by device memory",
)
def default_tokens(**inputs: Any) -> int | Unknown:
    return _defaults(inputs, 0)


@quantity(
    "batch_width",
    unit="sequences",
    formula="by device memory and release",
    source="vllm/engine/arg_utils.py: defaults by device memory",
)
def default_width(**inputs: Any) -> int | Unknown:
    return _defaults(inputs, 1)


def _defaults(inputs: Mapping[str, Any], which: int) -> int | Unknown:
    from kvlint.sizing.vllm.sizes import default_batch

    pair = default_batch(**inputs)
    return pair if isinstance(pair, Unknown) else pair[which]


@quantity(
    "batch_width", unit="sequences", formula="--max-num-seqs × data-parallel ranks", source="contract: batch_width"
)
def over_ranks(width: int, data_parallel: int) -> int:
    return width * data_parallel


@quantity(
    "chunked_prefill",
    unit="",
    formula="off up to 32,768 tokens",
    source="vllm/engine/arg_utils.py: V0 turns chunks on above 32,768 tokens",
)
def default_chunks(release: str, max_model_len: int) -> bool | None:
    from kvlint.sizing.vllm.sizes import chunks_by_default

    return chunks_by_default(release, max_model_len)


def chunks_of(fields: Fields, values: Mapping[str, Value[Any] | None]) -> Value[Any] | None:
    """As written where the release heeds it; of V0 also its default, where that is no matter of the model's kind."""
    from kvlint.sizing.vllm.sizes import chunks_always

    stated, window = values["chunked_prefill"], values["window"]
    off = isinstance(stated, Fact) and stated.value is False
    if off and "VLLM_USE_V1" not in fields.world.env and chunks_always(fields.world.release):
        return Fact(True, Default("vllm", fields.world.releases, "--enable-chunked-prefill"))
    if stated is not None or fields.open or not isinstance(window, Fact):
        return stated
    found = default_chunks(Fact(fields.world.release, Default("vllm", fields.world.releases, "")), window)
    return found if isinstance(found, Fact) and found.value is not None else None


def batch_of(fields: Fields, values: Mapping[str, Value[Any] | None]) -> dict[str, Value[Any] | None]:
    """Tokens of a step, and sequences of a rank and of all of them."""
    tokens, width = fields.written("max_num_batched_tokens"), fields.written("max_num_seqs")
    if tokens is None or width is None:
        inputs = _batch_inputs(fields, values, tokens, width)
        missing = fields.unseen("max_num_seqs") if fields.open else None
        tokens = tokens if tokens is not None else missing or _default(default_tokens, inputs)
        width = width if width is not None else missing or _default(default_width, inputs)
    ranks = values["data_parallel"]
    single = isinstance(ranks, Fact) and ranks.value == 1
    return {
        "batched_tokens": tokens,
        "width_per_rank": width,
        "batch_width": width if single or ranks is None else over_ranks(width, ranks),
        "prefill_width": None,
    }


def _default(default: Quantity[Any], inputs: Mapping[str, Value[Any]]) -> Value[Any]:
    """A default of the batch.  The window is a cause of it only where it is so short that it changes the number."""
    found = default(**inputs)
    free = default(**{**inputs, "max_model_len": ANY_LENGTH})
    same = isinstance(found, Fact) and isinstance(free, Fact) and found.value == free.value
    return free if same else found


def _batch_inputs(
    fields: Fields, values: Mapping[str, Value[Any] | None], tokens: Value[Any] | None, width: Value[Any] | None
) -> dict[str, Value[Any]]:
    window = values.get("window")
    inputs: dict[str, Value[Any]] = {
        "release": Fact(fields.world.release, Default("vllm", fields.world.releases, "")),
        "max_model_len": window if isinstance(window, Fact) else ANY_LENGTH,
    }
    memory, name = fields.world.hardware["device_memory"], fields.world.hardware.get("device_name")
    if isinstance(memory, Fact):
        inputs["device_bytes"] = Fact(int(nominal(memory.value)), memory.origin)
    if isinstance(name, Fact):
        inputs["device_name"] = name
    for key, found in (("batched_tokens", tokens), ("sequences", width)):
        if isinstance(found, Fact):
            inputs[key] = found
    chunked, mode = values.get("chunked_prefill"), fields.written("performance_mode")
    if isinstance(chunked, Fact):
        inputs["chunked_prefill"] = chunked
    if mode is not None:
        inputs["performance_mode"] = mode
    return inputs


def thousands(fields: Fields) -> Iterator[Problem]:
    """`32k` is 32,000 and `32K` 32,768 (vllm/utils/argparse_utils.py)."""
    for dest in ("max_model_len", "max_num_batched_tokens"):
        given = fields.given(dest)
        text = given.value if given is not None else None
        if (
            given is None
            or text is None
            or not text.known
            or not given.option.type.startswith("human_int")
            or text.value[-1:] not in ("k", "m")
        ):
            continue
        if isinstance(given.typed, int):
            binary = text.value[:-1] + text.value[-1].upper()
            data = {
                "engine": "vllm",
                "flag": given.spelling,
                "value": text.value,
                "effective": given.typed,
                "suggestion": binary,
            }
            yield Problem("thousand-or-1024", text.span, data)
