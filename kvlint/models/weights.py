"""Bytes of a checkpoint's weights: parameters, what quantization leaves at 16 bits, and the experts' share.

Formulas: bits per weight of each layout with its scales (AutoAWQ, compressed-tensors, ModelOpt, MLX affine b + 32/g, OCP MX).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any

from kvlint.facts import Range, Unknown
from kvlint.models.architecture import Architecture, Attention, Latent
from kvlint.records import dataclass

MX_BITS = {"mxfp4": Fraction(17, 4), "nvfp4": Fraction(9, 2), "mxfp8": Fraction(33, 4)}
ALGORITHM_BITS = {"FP8": Fraction(8), "NVFP4": Fraction(9, 2), "W4A16_NVFP4": Fraction(9, 2), "MXFP4": Fraction(17, 4)}
EXPERT_COUNTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


@dataclass(frozen=True, slots=True)
class Quantization:
    """`low_bits` to `high_bits`: bits of a quantized weight with its share of scales; they differ where layouts are mixed.

    `kept`: patterns of modules left at 16 bits, digits replaced by a star.  `everything`: embeddings are quantized as well (MLX).
    `kv_cache`: the type that the checkpoint makes an engine's `auto` mean; None leaves it alone.
    """

    method: str
    low_bits: Fraction | None
    high_bits: Fraction | None
    kept: tuple[str, ...] = ()
    everything: bool = False
    kv_cache: str | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """Parameters of parts of a model; None where the configuration does not determine a part."""

    embedding: int | None
    head: int | None
    experts: int | None
    attention: int | None


def quantization(root: Mapping[str, Any], text: Mapping[str, Any]) -> Quantization | None:
    """How the checkpoint is quantized, wherever its files say so; None for a checkpoint that is not."""
    block = next((found for where in (root, text) for found in blocks(where)), None)
    beside = root.get("hf_quant_config")
    beside = beside.get("quantization") if isinstance(beside, Mapping) else None
    if block is None and not isinstance(beside, Mapping):
        return None
    block = block if isinstance(block, Mapping) else beside or {}
    low, high = bits(block, text)
    return Quantization(
        method=method(block),
        low_bits=low,
        high_bits=high,
        kept=kept(block),
        everything=method(block) == "mlx",
        kv_cache=next((scheme for where in (block, beside or {}) if (scheme := kv_scheme(where))), None),
    )


def blocks(where: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    for key in ("quantization_config", "compression_config", "quantization"):
        if isinstance(where.get(key), Mapping):
            yield where[key]


def method(block: Mapping[str, Any]) -> str:
    name = block.get("quant_method")
    if isinstance(name, str) and name:
        return name
    if block.get("quant_algo"):
        return "modelopt"
    return "mlx" if "bits" in block and "group_size" in block else "unknown"


def bits(block: Mapping[str, Any], text: Mapping[str, Any]) -> tuple[Fraction | None, Fraction | None]:
    """The least and the most bits of a quantized weight, scales included."""
    name = method(block)
    found: list[Fraction | None]
    if name == "mlx":
        found = [mlx_bits(entry) for entry in (block, *overrides(block))]
    elif name in ("awq", "gptq"):
        found = [grouped_bits(block.get("bits"), block.get("group_size"), zero=True)]
    elif name in MX_BITS:
        found = [MX_BITS[name]]
    elif name == "fp8":
        found = [block_bits(block.get("weight_block_size"))]
        if text.get("expert_dtype") == "fp4":
            found.append(MX_BITS["mxfp4"])
    else:
        found = list(listed_bits(block))
    known = [entry for entry in found if entry is not None]
    if not known or len(known) < len(found):
        return None, None
    return min(known), max(known)


def mlx_bits(entry: Mapping[str, Any]) -> Fraction | None:
    if entry.get("mode") in MX_BITS:
        return MX_BITS[entry["mode"]]
    width, group = entry.get("bits"), entry.get("group_size")
    if not isinstance(width, int) or not isinstance(group, int) or group <= 0:
        return None
    return width + Fraction(32, group)


def overrides(block: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (entry for entry in block.values() if isinstance(entry, Mapping) and "bits" in entry)


def grouped_bits(width: Any, group: Any, *, zero: bool) -> Fraction | None:
    """A 16-bit scale, and a zero of the weight's own width, for each group; without groups a scale a row is nothing."""
    if not isinstance(width, int) or isinstance(width, bool):
        return None
    if not isinstance(group, int) or group <= 0:
        return Fraction(width)
    return width + Fraction(16 + (width if zero else 0), group)


def block_bits(shape: Any) -> Fraction:
    """Eight bits, and a 32-bit scale for each block."""
    if (
        isinstance(shape, (list, tuple))
        and len(shape) == 2
        and all(isinstance(side, int) and side > 0 for side in shape)
    ):
        return 8 + Fraction(32, shape[0] * shape[1])
    return Fraction(8)


def listed_bits(block: Mapping[str, Any]) -> Iterable[Fraction | None]:
    """compressed-tensors and ModelOpt: a group of modules each, or an algorithm for all."""
    layers = block.get("quantized_layers")
    if isinstance(layers, Mapping) and layers:
        for algorithm in {entry.get("quant_algo") for entry in layers.values() if isinstance(entry, Mapping)}:
            yield ALGORITHM_BITS.get(str(algorithm))
        return
    groups = block.get("config_groups")
    if isinstance(groups, Mapping) and groups:
        for group in groups.values():
            yield weight_bits(group.get("weights") if isinstance(group, Mapping) else None)
        return
    yield ALGORITHM_BITS.get(str(block.get("quant_algo")))


def weight_bits(weights: Any) -> Fraction | None:
    if not isinstance(weights, Mapping):
        return None
    width, group, kind = weights.get("num_bits"), weights.get("group_size"), weights.get("type")
    if kind == "float" and width == 4:
        return MX_BITS["nvfp4" if group == 16 else "mxfp4"]
    if kind == "float" and width == 8:
        return block_bits(weights.get("block_structure"))
    return grouped_bits(width, group, zero=not weights.get("symmetric", True))


def kept(block: Mapping[str, Any]) -> tuple[str, ...]:
    names: list[str] = []
    for key in ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"):
        listed = block.get(key)
        names += [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    return tuple(sorted({re.sub(r"\.\d+(?=\.|$)", ".*", name) for name in names}))


def kv_scheme(block: Mapping[str, Any]) -> str | None:
    """ModelOpt and compressed-tensors checkpoints may carry scales for an FP8 cache; `auto` then means fp8_e4m3."""
    for key in ("kv_cache_quant_algo", "kv_cache_scheme"):
        scheme = block.get(key)
        if scheme == "FP8" or (
            isinstance(scheme, Mapping) and scheme.get("num_bits") == 8 and scheme.get("type") == "float"
        ):
            return "fp8_e4m3"
        if isinstance(scheme, str) and scheme:
            return scheme.lower()
    return None


def split(architecture: Architecture) -> Split:
    """Parameters of embeddings, head, routed experts and attention projections (norms and biases left out)."""
    vocabulary = architecture.vocab_size
    embedding = vocabulary * architecture.hidden_size if vocabulary else None
    tied = tie(architecture)
    head = None if embedding is None or tied is None else 0 if tied else embedding
    return Split(embedding, head, experts(architecture), attention(architecture))


def tie(architecture: Architecture) -> bool | None:
    for where in (architecture.config, architecture.root):
        if isinstance(where.get("tie_word_embeddings"), bool):
            return bool(where["tie_word_embeddings"])
    return None


def attention(architecture: Architecture) -> int | None:
    """Query, key, value and output projections of layers with plain attention; None where a layer has something else."""
    total = 0
    for layer in architecture.layers:
        for part in layer:
            if isinstance(part, Latent) or not isinstance(part, Attention):
                return None
            width = architecture.heads * (part.key_dim + part.value_dim) + part.kv_heads * (
                part.key_dim + part.value_dim
            )
            total += architecture.hidden_size * width
    return total


def experts(architecture: Architecture) -> int | None:
    """Routed experts' parameters: 0 for a dense model, None where the layers that have experts are not determined."""
    text = architecture.config
    count: int = next((text[key] for key in EXPERT_COUNTS if isinstance(text.get(key), int)), 0)
    if count <= 1:
        return 0
    width = (
        text.get("moe_intermediate_size") or text.get("expert_intermediate_size") or text.get("expert_ffn_hidden_size")
    )
    if width is None and text.get("model_type") in (
        "mixtral",
        "phimoe",
        "gpt_oss",
        "llama4_text",
        "minimax_m2",
        "olmoe",
    ):
        width = text.get("intermediate_size")
    layers = expert_layers(architecture)
    if not isinstance(width, int) or layers is None:
        return None
    return layers * count * 3 * architecture.hidden_size * int(width)


def expert_layers(architecture: Architecture) -> int | None:
    """How many layers route to experts: all after the first dense ones, or by the intervals that files state."""
    text, total = architecture.config, len(architecture.layers)
    kinds, frequency = text.get("mlp_layer_types"), text.get("moe_layer_freq")
    if isinstance(kinds, list):
        return len([kind for kind in kinds[:total] if kind == "sparse"])
    if any(
        text.get(key)
        for key in ("hybrid_override_pattern", "layers_block_type", "expert_layer_period", "block_configs")
    ):
        return None
    if isinstance(frequency, list):
        return len([entry for entry in frequency[:total] if entry])
    interval = (
        text.get("decoder_sparse_step") or text.get("interleave_moe_layer_step") or text.get("moe_layer_interval") or 1
    )
    if not isinstance(interval, int) or interval < 1 or (isinstance(frequency, int) and frequency != 1):
        return None
    first: int = (
        text.get("first_k_dense_replace", text.get("moe_layer_start_index", text.get("num_dense_layers", 0))) or 0
    )
    dense = text.get("mlp_only_layers") or []
    return sum(1 for index in range(first, total) if (index + 1) % interval == 0 and index not in dense)


def weight_bytes(
    parameters: int | None, architecture: Architecture, layout: Quantization | None
) -> int | Range | Unknown:
    """Bytes of one copy of the weights as the checkpoint stores them.

    Exact for a checkpoint that is not quantized.  For a quantized one the bounds are: everything but the embeddings quantized,
    and only the experts (dense models: only the feed-forward part); nominal follows the list of modules that are kept.
    """
    if parameters is None:
        return Unknown("model.weights", "the number of parameters is not known", "set weights in [[model]]")
    wide = 4 if architecture.dtype == "float32" else 2
    if layout is None:
        return parameters * wide
    if layout.low_bits is None or layout.high_bits is None:
        return Unknown(
            "model.weights", f"the layout of {layout.method} weights is not known", "set weights in [[model]]"
        )
    parts = split(architecture)
    if layout.everything:
        return between(parameters, parameters, parameters, layout)
    if parts.embedding is None:
        return Unknown("model.weights", "the vocabulary is not stated", "set weights in [[model]]")
    head = parts.embedding if parts.head is None else parts.head
    most = parameters - parts.embedding - (0 if "lm_head" not in " ".join(layout.kept) else head)
    nominal = parameters - parts.embedding - head - (attention_kept(parts, layout) or 0)
    least = parts.experts or parameters - parts.embedding - head - (parts.attention or 0)
    return between(parameters, min(least, nominal), most, layout, nominal)


def attention_kept(parts: Split, layout: Quantization) -> int | None:
    keeps = any(re.search(r"layers\.\*?\.?self_attn(\*|$|\.[qkvo]_)", name) for name in layout.kept)
    return parts.attention if keeps else None


def between(parameters: int, least: int, most: int, layout: Quantization, nominal: int | None = None) -> int | Range:
    """Bytes when `least` to `most` parameters are quantized and the rest have 16 bits."""
    low_bits, high_bits = layout.low_bits or Fraction(16), layout.high_bits or Fraction(16)
    middle = most if nominal is None else nominal
    low = floor((most * low_bits + (parameters - most) * 16) / 8)
    high = ceil((least * high_bits + (parameters - least) * 16) / 8)
    return Range(low, floor((middle * (low_bits + high_bits) / 2 + (parameters - middle) * 16) / 8), high)
