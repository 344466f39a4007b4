"""What SGLang takes a configuration for: its class, its kind of cache, its window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvlint.models.architecture import Architecture, Attention, Compressed, Cross, Latent, Layer, State
from kvlint.records import dataclass
from kvlint.sizing.sglang.releases import Rules, data, named
from kvlint.sizing.sglang.settings import Settings
from kvlint.sizing.spans import TYPE_BYTES, Outcome, Refusal, unknown

POSITIONS = (
    *("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings"),
    "n_positions",  # the same under another name (attribute_map of the configuration classes)
)


@dataclass(frozen=True, slots=True)
class Model:
    """A checkpoint as one release reads it.

    `latent`: multi-head latent attention; `sparse`: with an indexer (DSA); `recurrent`: states are pooled; `kda`: of Kimi's kind;
    `split`: sliding layers can have their own pool; `context`: tokens one request may hold.
    """

    arch: Architecture
    name: str
    dtype: str
    latent: bool
    sparse: bool
    recurrent: bool
    kda: bool
    split: bool
    multimodal: bool
    sinks: bool
    unequal: bool
    windowed: bool
    context: int

    @property
    def full(self) -> tuple[Attention, ...]:
        """The attention layers whose cache grows without bound, those that share another's cache too."""
        return self._attention[0]

    @property
    def sliding(self) -> tuple[Attention, ...]:
        return self._attention[1]

    @property
    def _attention(self) -> tuple[tuple[Attention, ...], tuple[Attention, ...]]:
        found: tuple[tuple[Attention, ...], tuple[Attention, ...]] | None = self.arch.memo.get("bounded")
        if found is None:
            parts = tuple(self.arch.parts(Attention))
            full = tuple(part for part in parts if part.window is None and part.chunk is None)
            sliding = tuple(part for part in parts if part.window is not None or part.chunk is not None)
            found = self.arch.memo["bounded"] = full, sliding
        return found


def read_model(arch: Architecture, settings: Settings, rules: Rules) -> Model | Outcome:
    """The model under one set of rules; `Unknown` where the release's layout of it was not worked out."""
    key = ("model", id(settings), rules)  # `settings` is kept with the answer, and with it its identity
    kept: tuple[Settings, Model | Outcome] | None = arch.memo.get(key)
    if kept is None:
        kept = arch.memo[key] = settings, _read_model(arch, settings, rules)
    return kept[1]


def _read_model(arch: Architecture, settings: Settings, rules: Rules) -> Model | Outcome:
    name = class_name(arch)
    if name is None:
        return unknown("the configuration names no class", "model.architectures", "architectures in config.json")
    dtype = settings.model_dtype or arch.dtype or "bfloat16"
    if dtype not in TYPE_BYTES:
        return unknown(f"no layout is known for the type {dtype}", "model.dtype", "--dtype")
    latent, recurrent = present(arch, Latent), present(arch, State)
    strange = not_worked_out(arch, name, latent, recurrent, rules)
    if strange is not None:
        return strange
    context = window(arch, settings, rules)
    if not isinstance(context, int):
        return context
    attention = arch.distinct(Attention)
    return Model(
        arch=arch,
        name=name,
        dtype=dtype,
        latent=latent,
        sparse=latent and name in rules.sparse_classes and arch.config.get("index_topk") is not None,
        recurrent=recurrent,
        kda=any(part.kind == "kda" for part in arch.distinct(State)),
        split=splits(arch, name, settings, rules),
        multimodal=is_multimodal(arch, name, settings, rules),
        sinks=has_sinks(arch, name),
        unequal=any(part.key_dim != part.value_dim for part in attention),
        windowed=any(part.window or part.chunk for part in attention),
        context=context,
    )


def class_name(arch: Architecture) -> str | None:
    """The class that serves the checkpoint; empty where none is named and plain attention needs none."""
    table = data()["classes"]
    if arch.classes:
        renamed: Mapping[str, str] = table["renamed"]
        return renamed.get(arch.classes[0], arch.classes[0])
    of_type: Mapping[str, str] = table["of_type"]
    plain = all(isinstance(part, Attention) and part.window is None for layer in arch.layers for part in layer)
    return of_type.get(arch.model_type, "" if plain else None)


def present(arch: Architecture, kind: type[Any]) -> bool:
    return bool(arch.distinct(kind))


def not_worked_out(arch: Architecture, name: str, latent: bool, recurrent: bool, rules: Rules) -> Outcome | None:
    """Why the layout is not known, None where it is."""
    if present(arch, Compressed):
        return unknown("compressed attention has pools of its own that were not worked out")
    if present(arch, Cross):
        return unknown("cross attention was not worked out")
    if latent and name not in rules.latent_classes:
        return unknown(f"whether this release keeps a latent cache for {name} was not worked out")
    if recurrent and name not in rules.state_classes:
        return unknown(f"whether this release pools the states of {name} was not worked out")
    if arch.config.get("sparse_attention_config") is not None:
        return unknown("sparse attention with a pool of its own was not worked out")
    return None


def window(arch: Architecture, settings: Settings, rules: Rules) -> int | Outcome:
    """`context_length`, or the model's positions times their rope factor (get_context_length)."""
    stated = (arch.config[key] for key in POSITIONS if isinstance(arch.config.get(key), int))
    positions: int | None = next(stated, data()["classes"]["positions"].get(arch.model_type))
    if positions is None:
        if settings.context_length is not None:
            return settings.context_length
        return unknown("the configuration states no positions", "model.window", "--context-length")
    derived = int(rope_factor(arch, rules) * positions)
    asked = settings.context_length
    if asked is not None and asked > derived and rules.window_checked and not settings.allow_longer:
        return Refusal(f"the context length {asked} is above the model's own {derived}")
    return derived if asked is None else asked


def rope_factor(arch: Architecture, rules: Rules) -> float:
    scaling = arch.config.get("rope_scaling") or arch.config.get("rope_parameters") or {}
    if not isinstance(scaling, Mapping) or "original_max_position_embeddings" in scaling:
        return 1
    if rules.rope_by_layer_type and arch.model_type in named("rope_by_layer_type"):
        return 1
    factor = scaling.get("factor", 1)
    return factor if scaling.get("rope_type") != "llama3" and isinstance(factor, (int, float)) else 1


def splits(arch: Architecture, name: str, settings: Settings, rules: Rules) -> bool:
    """Whether sliding layers get a pool of their own."""
    if settings.disable_hybrid_swa_memory:
        return False
    listed = name in rules.split_classes or (rules.split == "weighted" and bool(arch.config.get("is_hybrid_swa")))
    return listed and any(part.window or part.chunk for part in arch.distinct(Attention))


def is_multimodal(arch: Architecture, name: str, settings: Settings, rules: Rules) -> bool:
    enabled = settings.enable_multimodal
    if enabled is None:
        enabled = name not in rules.multimodal_off
        if name == "MiMoV2ForCausalLM" and not ("vision_config" in arch.root and "audio_config" in arch.root):
            enabled = False
    if not enabled:
        return False
    if name in rules.multimodal_classes:
        return True
    nested = arch.root is not arch.config
    if rules.multimodal == "vision":
        return nested or "vision_config" in arch.root or "audio_config" in arch.root
    return rules.multimodal == "nested" and nested


def has_sinks(arch: Architecture, name: str) -> bool:
    if name in named("sinks_stated"):
        stated = ("add_swa_attention_sink_bias", "add_full_attention_sink_bias")
        return any(bool(arch.config.get(field)) for field in stated)
    return name in named("sinks")


def sliding_window(model: Model) -> int:
    """The window as the pool knows it."""
    part = model.sliding[0]
    size = part.window if part.window is not None else part.chunk
    return (size or 0) - (1 if model.name in named("window_less_one") else 0)


def draft_attention_layers(model: Model, settings: Settings) -> int | Outcome:
    """Attention layers of the draft model; 0 without one."""
    if settings.speculative_algorithm is None:
        return 0
    if settings.draft_layers is not None:
        return settings.draft_layers
    own: tuple[Layer, ...] = model.arch.draft_layers
    if own:
        return len(own)
    return unknown("the layers of the draft model are not known", "draft_model", "the draft model's configuration")
