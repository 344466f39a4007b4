"""What vLLM takes for settings that are not given: the batch, and the window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture, Attention
from kvlint.sizing.spans import parse
from kvlint.sizing.vllm.releases import Rules, constant, data, rules

_GIB = 1 << 30


def default_batch(
    release: str,
    *,
    max_model_len: int,
    device_bytes: int | None = None,
    device_name: str | None = None,
    platform: str = "cuda",
    world: int = 1,
    chunked_prefill: bool | None = None,
    performance_mode: str | None = None,
    batched_tokens: int | None = None,
    sequences: int | None = None,
) -> tuple[int, int] | Unknown:
    """`max_num_batched_tokens` and `max_num_seqs` of the API server; what is given stays, what is not is capped.

    `device_bytes`: total memory of one device.  `world`: tensor x pipeline parallel (CPU only).
    """
    if batched_tokens is not None and sequences is not None:
        return batched_tokens, sequences
    found = set()
    for each in rules(release):
        tiers = _tier(each, max_model_len, device_bytes, device_name, platform, world, chunked_prefill)
        if isinstance(tiers, Unknown):
            return tiers
        times = 2 if performance_mode == "throughput" and each.throughput_mode else 1
        tokens, width = tiers[0] * times, tiers[1] * times
        found.add(_capped(each, tokens, width, max_model_len, chunked_prefill, batched_tokens, sequences))
    if len(found) > 1:
        return Unknown(
            "engine.version",
            f"the defaults around vLLM {release} differ",
            "an exact engine version, or the flags themselves",
        )
    return found.pop()


def chunks_by_default(release: str, max_model_len: int) -> bool | None:
    """False where V0 reads a prompt in one pass unless told otherwise; None where the model's kind or the release decides."""
    one_pass = max_model_len <= constant("v0_chunked_above")
    return False if one_pass and not any(each.batch_tiers for each in rules(release)) else None


def chunks_always(release: str) -> bool:
    """Whether V1 reads prompts in pieces whatever it is told."""
    return all(each.chunks_always for each in rules(release))


def _tier(
    each: Rules,
    max_model_len: int,
    device_bytes: int | None,
    device_name: str | None,
    platform: str,
    world: int,
    chunked_prefill: bool | None,
) -> tuple[int, int] | Unknown:
    if platform == "cpu":
        return constant("cpu_tokens") * world, constant("cpu_seqs") * world
    if platform not in ("cuda", "rocm"):
        return Unknown(
            "engine.platform", f"vLLM's defaults on {platform} were not worked out", "--max-num-batched-tokens"
        )
    if not each.batch_tiers:
        chunked = max_model_len > constant("v0_chunked_above") if chunked_prefill is None else chunked_prefill
        return (each.chunked_tokens if chunked else max(max_model_len, constant("v0_tokens"))), constant("v0_seqs")
    name = (device_name or "").lower().replace("-", "").replace(" ", "")
    if any(small in name for small in each.small_devices):
        return each.batch_tiers[-1][1:]
    if device_bytes is None:
        return Unknown("hardware.memory", "vLLM's batch defaults follow the device's memory", "the GPU product")
    return next(tier[1:] for tier in each.batch_tiers if device_bytes >= tier[0] * _GIB)


def _capped(
    each: Rules,
    tokens: int,
    width: int,
    max_model_len: int,
    chunked_prefill: bool | None,
    batched_tokens: int | None,
    sequences: int | None,
) -> tuple[int, int]:
    """Tokens are at most what `width` full requests hold, the width at most the tokens."""
    width = sequences if sequences is not None else width
    if batched_tokens is not None:
        tokens = batched_tokens
    elif each.batch_tiers:
        if chunked_prefill is False:
            tokens = max(tokens, max_model_len)
        tokens = min(tokens, width * max_model_len)
    return tokens, sequences if sequences is not None else min(width, tokens)


def derived_max_model_len(
    arch: Architecture, release: str, *, tokenizer_length: int | None = None, disable_sliding_window: bool = False
) -> int | Unknown:
    """The window above which the server refuses to start, and the default but for longrope: see `default_max_model_len`.

    Keys that the file leaves to its class's defaults are not guessed.
    """
    lengths = data()["lengths"]
    stated = [arch.config[key] for key in lengths["keys"] if isinstance(arch.config.get(key), int)]
    if not stated:
        return Unknown("model.positions", "the configuration states no length", "--max-model-len")
    length = min(stated)
    if isinstance(arch.config.get(lengths["winner"]), int):
        length = arch.config[lengths["winner"]]
    if disable_sliding_window:
        windows = [part.window for part in arch.parts(Attention) if part.window is not None]
        length = min(length, *windows) if windows else length
    if tokenizer_length is not None:
        length = min(length, tokenizer_length)
    found = {_scaled(arch, each, length) for each in rules(release)}
    if len(found) > 1:
        return Unknown(
            "engine.version", f"the releases around vLLM {release} scale yarn differently", "an exact engine version"
        )
    return found.pop()


def default_max_model_len(arch: Architecture, release: str, *, tokenizer_length: int | None = None) -> int | Unknown:
    """The window without `--max-model-len`: the derived one, or the original length of a longrope checkpoint."""
    derived = derived_max_model_len(arch, release, tokenizer_length=tokenizer_length)
    originals = [_original(arch, rope) for rope in _ropes(arch) if _kind(rope) == "longrope"]
    if isinstance(derived, Unknown) or not originals:
        return derived
    original = originals[0]
    if original is None:
        return Unknown("model.positions", "a longrope checkpoint without its original length", "--max-model-len")
    if parse(release) < parse(data()["lengths"]["longrope_default"]) and original != derived:
        return Unknown(
            "engine.version",
            "since when longrope checkpoints default to their original length is not known",
            "--max-model-len",
        )
    return min(original, derived)


def _scaled(arch: Architecture, each: Rules, length: int) -> int | Unknown:
    lengths = data()["lengths"]
    model_types = (arch.model_type, str(arch.root.get("model_type") or ""))
    if any(lengths["unscaled_models"] in name for name in model_types):
        return length
    factor: Fraction | None = None
    for rope in _ropes(arch):
        kind = _kind(rope)
        if kind in lengths["unscaled_ropes"] or (kind == "yarn" and each.yarn_length == "written"):
            continue
        stated = rope.get("factor")
        factor = Fraction(str(stated)) if isinstance(stated, int | float) and stated > 0 else factor
        if kind == "yarn":
            original = _original(arch, rope)
            if original is None:
                return Unknown("model.positions", "a yarn checkpoint without its original length", "--max-model-len")
            length = original
    return length if factor is None else int(length * factor)


def _ropes(arch: Architecture) -> Iterator[Mapping[str, Any]]:
    """The rope settings: one for the model, or one for each kind of layer."""
    for key in ("rope_parameters", "rope_scaling"):
        rope = arch.config.get(key)
        if not isinstance(rope, Mapping) or not rope:
            continue
        nested = [each for each in rope.values() if isinstance(each, Mapping)]
        yield from nested if nested and _kind(rope) is None else [rope]
        return


def _kind(rope: Mapping[str, Any]) -> str | None:
    kind = rope.get("rope_type", rope.get("type"))
    return kind if isinstance(kind, str) else None


def _original(arch: Architecture, rope: Mapping[str, Any]) -> int | None:
    for place in (rope, arch.config):
        original = place.get("original_max_position_embeddings")
        if isinstance(original, int):
            return original
    return None


def gdn_prefill_backend(capability: tuple[int, int], key_dim: int, cuda_major: int | None = None) -> str | Unknown:
    """`flashinfer` or `triton`: who prefills Gated DeltaNet layers where no flag says (0.33.0).

    `capability`: compute capability of the device.
    """
    if capability == (9, 0):
        return "flashinfer"
    if capability[0] not in (10, 12) or key_dim != 128:
        return "triton"
    if cuda_major is None:
        return Unknown(
            "hardware.cuda", "the prefill backend of Gated DeltaNet follows the CUDA version here", "the CUDA version"
        )
    return "flashinfer" if cuda_major >= 13 else "triton"
