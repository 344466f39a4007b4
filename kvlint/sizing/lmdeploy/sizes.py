"""LMDeploy: what `cache_max_entry_count` means in a release, and the pool that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, Union

from kvlint.compiled import load
from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture, Attention, Latent, UnknownArchitecture
from kvlint.records import dataclass
from kvlint.sizing.spans import TYPE_BYTES, Outcome, Refusal, alternatives, in_blocks, unknown
from kvlint.sizing.spans import plain as plain_part


@dataclass(frozen=True, slots=True)
class Rules:
    """One release's way of sizing; what each field means is said in data/engines/lmdeploy.memory.toml."""

    turbomind_count: str
    pytorch_count: str
    share: int
    quantized: tuple[int, ...]
    sparse_quantized: tuple[int, ...]
    turbomind_classes: tuple[str, ...]
    turbomind_heads: tuple[tuple[Any, ...], ...]
    batch_sizes: tuple[tuple[str, int], ...]
    reserve: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Settings:
    """Plain settings of one server under the names of its flags; None where the engine chooses.

    `backend`: turbomind, which becomes pytorch where a model is not supported, or pytorch.
    `device_name`: for the default batch.  `device`: the kind that the PyTorch engine runs on.
    """

    release: str
    backend: str = "turbomind"
    tp: int = 1
    model_dtype: str | None = None
    quant_policy: int = 0
    cache_max_entry_count: Fraction | None = None
    cache_block_seq_len: int | None = None
    session_len: int | None = None
    max_batch_size: int | None = None
    max_prefill_token_num: int | None = None
    num_gpu_blocks: int = 0
    device_name: str | None = None
    device: str = "cuda"


@cache
def data() -> Mapping[str, Any]:
    """The compiled data file."""
    loaded: dict[str, Any] = load("lmdeploy_memory.json")
    return loaded


def constant(name: str) -> int:
    return int(data()["constants"][name])


@cache
def rules(release: str) -> tuple[Rules, ...]:
    """The rules that a release may follow: one set, or those of its two neighbours where they differ."""
    return alternatives(Rules, data()["rules"], release)


def semantic_class(release: str) -> tuple[Rules, ...]:
    """Releases with equal classes mean the same by their settings."""
    return rules(release)


def turbomind_serves(arch: Architecture, each: Rules) -> bool:
    """Whether TurboMind serves a model of a known class, else the PyTorch engine does."""
    name = arch.classes[0]
    widths = {part.key_dim for part in arch.distinct(Attention)}
    return name in each.turbomind_classes and all(
        widths <= {*dims} for kind, *dims in each.turbomind_heads if kind == name
    )


def entry_count_meaning(settings: Settings) -> str | Unknown:
    """What cache_max_entry_count is: `sequences`, `blocks`, or a share of the `total` memory or of what weights leave `free`."""
    found = {_meaning(each, settings) for each in rules(settings.release)}
    if len(found) == 1:
        return found.pop()
    return unknown("cache_max_entry_count means different things around this release", "engine.version", "a release")


def _meaning(each: Rules, settings: Settings) -> str:
    kind = each.pytorch_count if settings.backend == "pytorch" else each.turbomind_count
    if kind.endswith("-or-blocks"):
        return "blocks" if entry_count(each, settings) >= 1 else kind.removesuffix("-or-blocks")
    return "free" if kind == "free-only" else kind


def entry_count(each: Rules, settings: Settings) -> Fraction:
    stated = settings.cache_max_entry_count
    return stated if stated is not None else Fraction(each.share, 100)


def refused(settings: Settings) -> Refusal | None:
    """Why every release that may be meant stops, whatever the memory."""
    reasons = [_refused(each, settings) for each in rules(settings.release)]
    return Refusal(reasons[0]) if reasons[0] is not None and all(reasons) else None


def _refused(each: Rules, settings: Settings) -> str | None:
    kind = each.pytorch_count if settings.backend == "pytorch" else each.turbomind_count
    count = entry_count(each, settings)
    if kind == "free-only" and not 0 < count < 1:
        return f"cache_max_entry_count must be above 0 and below 1, not {plain(count)}"
    if kind != "sequences" and count <= 0:
        return f"cache_max_entry_count must be above 0, not {plain(count)}"
    if kind == "sequences" and settings.max_batch_size and count < settings.max_batch_size:
        return f"cache_max_entry_count {plain(count)} is below max_batch_size {settings.max_batch_size}"
    if settings.quant_policy not in each.quantized:
        return f"this release knows no quant_policy {settings.quant_policy}"
    if settings.quant_policy in (16, 17) and settings.backend == "turbomind":
        return "TurboMind has no FP8 cache"
    if settings.quant_policy and settings.backend == "pytorch" and settings.device not in ("cuda", "ascend"):
        return f"quantized keys and values run on CUDA and Ascend only, not on {settings.device}"
    return None


def plain(count: Fraction) -> str:
    """A count as people write it."""
    return str(count.numerator if count.denominator == 1 else float(count))


def bytes_per_token_per_device(arch: Architecture, settings: Settings) -> int | Outcome:
    """Keys and values of one token in every layer of one device, with the scales of quantized ones."""
    wrong = refused(settings)
    if wrong is not None:
        return wrong
    sparse = any(part.indexer_dim is not None for part in arch.distinct(Latent))
    if sparse and all(settings.quant_policy not in each.sparse_quantized for each in rules(settings.release)):
        return Refusal(f"sparse attention (DSA) takes quant_policy 0 or 16, not {settings.quant_policy}")
    name = settings.model_dtype or arch.dtype
    if name not in TYPE_BYTES:
        return unknown("the model's type is not known", "model.dtype", "--dtype")
    total = 0
    for layer in arch.layers:
        if len(layer) != 1 or not isinstance(layer[0], Attention):
            return unknown("caches other than keys and values were not worked out for this engine")
        size = layer_bytes(layer[0], settings, TYPE_BYTES[name])
        if not isinstance(size, int):
            return size
        total += size
    return total


def cache_bytes(
    arch: Architecture,
    tokens: int,
    *,
    sequences: int = 1,
    version: str | None = None,
    kv_dtype: str | None = None,
    block_size: int | None = None,
) -> int:
    """Bytes of `sequences` sequences of `tokens` tokens in whole blocks, one copy; `version` None: the newest release read.

    UnknownArchitecture for layers and types whose layout was not read.
    """
    name = (kv_dtype or arch.dtype or "bfloat16").removeprefix("torch.").lower()
    policy = 0 if name in TYPE_BYTES or name == "auto" else CACHE_NAMES.get(name)
    if policy is None:
        raise UnknownArchitecture("kv_dtype", f"LMDeploy has no cache of type {name}")
    own = name if name in TYPE_BYTES else arch.dtype if arch.dtype in TYPE_BYTES else "bfloat16"
    if not all(len(layer) == 1 and plain_part(layer[0]) for layer in arch.layers):
        raise UnknownArchitecture("model_type", "how LMDeploy keeps these layers is not known")
    settings = Settings(version or str(data()["read"][-1]), "pytorch", quant_policy=policy, model_dtype=own)
    price = bytes_per_token_per_device(arch, settings)
    if not isinstance(price, int):
        raise UnknownArchitecture("kv_dtype" if policy else "model_type", price.reason)
    return sequences * in_blocks(tokens, constant("block_tokens") if block_size is None else block_size) * price


CACHE_NAMES = {
    "int4": 4,
    "int8": 8,
    "fp8": 16,
    "fp8_e4m3": 16,
    "fp8_e4m3fn": 16,
    "float8_e4m3fn": 16,
    "fp8_e5m2": 17,
    "float8_e5m2": 17,
}


def layer_bytes(part: Attention, settings: Settings, element: int) -> int | Outcome:
    """One layer.  Quantized keys and values have a scale and a zero for each token, head and side in the model's type.

    TurboMind: src/turbomind/kernels/attention/block.h (token_param_size).
    """
    if settings.backend == "pytorch" and part.kv_heads % settings.tp:
        return Refusal(f"{part.kv_heads} KV heads are not divisible by tp {settings.tp}")
    heads = max(1, part.kv_heads // settings.tp)
    elements, policy = part.key_dim + part.value_dim, settings.quant_policy
    if policy == 0:
        return heads * elements * element
    if policy in (16, 17):
        return heads * elements
    if policy in (4, 8):
        return heads * (elements * policy // 8 + 4 * element)
    return unknown(f"the layout of quant_policy {policy} was not worked out")


def block_tokens(settings: Settings) -> int:
    return settings.cache_block_seq_len or constant("block_tokens")


def batch_size(settings: Settings) -> int | Unknown:
    """max_batch_size, by the device where it is not set."""
    if settings.max_batch_size is not None:
        return settings.max_batch_size
    if settings.device_name is None:
        return unknown("the default batch follows the device", "hardware.device", "the GPU product")
    name, usual = settings.device_name.lower(), constant("batch_size")
    found = {next((n for word, n in each.batch_sizes if word in name), usual) for each in rules(settings.release)}
    if len(found) == 1:
        return found.pop()
    return unknown("the default batch differs around this release", "engine.version", "--max-batch-size")


def pool_blocks(arch: Architecture, settings: Settings, free_bytes: int, total_bytes: int) -> int | Outcome:
    """Blocks of the pool of one device: `free_bytes` after the weights, of `total_bytes`."""
    price, meaning = bytes_per_token_per_device(arch, settings), entry_count_meaning(settings)
    if not isinstance(price, int):
        return price
    if settings.backend == "pytorch" and settings.num_gpu_blocks:
        return settings.num_gpu_blocks
    if not isinstance(meaning, str):
        return meaning
    counts = {entry_count(each, settings) for each in rules(settings.release)}
    if len(counts) > 1:
        return unknown("the default share differs around this release", "engine.version", "a release")
    count = counts.pop()
    if meaning == "blocks":
        return int(count)
    if meaning == "sequences":
        return unknown("a cache counted in sequences has no blocks", "engine.layout", "a newer release")
    if meaning == "total":
        return max(0, int(total_bytes * count // (price * block_tokens(settings))))
    left: Union[int, Unknown] = free_bytes
    if settings.backend == "pytorch":
        left = after_logits(arch, settings, free_bytes)
    return max(0, int(left * count // (price * block_tokens(settings)))) if isinstance(left, int) else left


def after_logits(arch: Architecture, settings: Settings, free_bytes: int) -> int | Unknown:
    """What the PyTorch engine leaves after its run-time reserve, which grows with the vocabulary."""
    reserves = {each.reserve for each in rules(settings.release)}
    if len(reserves) > 1:
        return unknown("the run-time reserve differs around this release", "engine.version", "a release")
    a_token, a_row = reserves.pop()
    batch = batch_size(settings) if a_row else 0
    if not isinstance(batch, int):
        return batch
    if arch.vocab_size is None:
        return unknown("the vocabulary is not stated", "model.vocab_size", "vocab_size in config.json")
    prefill = settings.max_prefill_token_num or constant("max_prefill_tokens")
    return free_bytes - (prefill * a_token + batch * a_row) * arch.vocab_size


def pool_tokens(arch: Architecture, settings: Settings, free_bytes: int, total_bytes: int) -> int | Outcome:
    blocks = pool_blocks(arch, settings, free_bytes, total_bytes)
    return blocks * block_tokens(settings) if isinstance(blocks, int) else blocks


def window(settings: Settings, model_window: int, pool: int) -> int:
    """Tokens one request may hold: session_len, or what the pool has."""
    return min(settings.session_len or model_window, pool)
