"""A Hugging Face `config.json`, parsed, to the cache-bearing shape of its text model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvlint.models.architecture import Architecture, Attention, Latent, Layer
from kvlint.models.families import PLAIN, Family, class_shape, compiled, family_of, text_type, type_of_class
from kvlint.models.families_attention import draft_count
from kvlint.models.families_fields import Fields, Shape, hidden_size, query_heads, unknown
from kvlint.patterns import regex

NESTED = ("text_config", "llm_config", "language_config", "llm_cfg")

POSITIONS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length", "max_target_positions",
    "max_sequence_length", "max_seq_length", "seq_len", "n_ctx",
)  # fmt: skip

# Words in the name of a field that may change what is cached; and the fields with such a word that do not.
HINTS = regex(
    r"attn|attention|head|window|layer_type|block|pattern|mamba|ssm|conv|state|linear|lora|latent|indexer|index_|compress|share"
    r"|cross|recur|memor|chunk|sliding|global|local|sparse|kv|loop|encoder|num_.*layers|expand"
)
PLAIN_FIELDS = regex(
    r"num_attention_heads|num_key_value_heads|num_hidden_layers|head_dim|attention_(bias|dropout|multiplier|probs_dropout_prob)"
    r"|attn_(dropout|pdrop|implementation|logit_softcapping)|_attn_implementation.*|output_(attentions|hidden_states)"
    r"|use_cache|cross_attention_hidden_size|add_cross_attention|chunk_size_feed_forward|is_encoder_decoder|tie_encoder_decoder"
    r"|encoder_no_repeat_ngram_size|mlp_only_layers|num_dense_layers|n?u?m?_?n?_?shared_experts|shared_expert.*|moe_shared.*"
    r"|.*shared_experts|num_local_experts|cache_implementation|classifier_dropout|lm_head.*|pruned_heads|expert_.*|num_nextn_predict_layers"
    r"|linear_bias|shared_intermediate_size"
)


def architecture(config: Mapping[str, Any], *, source: str = "") -> Architecture:
    """The architecture that a parsed `config.json` describes.

    Raises UnknownArchitecture with the field that could not be read.  Shapes are never taken from class defaults;
    what a class fixes for an absent key is data with its source (data/models/families.toml).
    """
    if not isinstance(config, Mapping):
        unknown("model_type", "the configuration is not an object")
    text = text_config(config)
    root_type, own_type = string(config, "model_type"), string(text, "model_type")
    nested = text is not config
    model_type = text_type(root_type, own_type if nested else "")
    if nested:
        text = {**class_shape(model_type, text), **text}
    elif not model_type:
        model_type = type_of_class(classes(config, text))
    family = family_of(model_type) or plain_family(model_type, text)
    if family.reader != "attention" and text.get("per_layer_config"):
        unknown("per_layer_config", f"layers of {model_type} have a per_layer_config of their own")
    shape = family.read(text)
    fields = Fields(text, family.constants, family.rules)
    return Architecture(
        model_type=model_type,
        classes=classes(config, text),
        layers=tuple(shape.layers),
        hidden_size=hidden_size(fields),
        heads=heads(fields, shape),
        vocab_size=Fields(text).maybe("vocab_size", "padded_vocab_size", "embedding_size"),
        dtype=dtype(config, text),
        positions=positions(text),
        draft_layers=tuple(draft(fields, shape)),
        config=text,
        root=config,
        source=source,
    )


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object that describes the text model: nested in multimodal models, the root elsewhere."""
    thinker = config.get("thinker_config")
    if isinstance(thinker, Mapping):
        return text_config(thinker)
    for key in NESTED:
        nested = config.get(key)
        if isinstance(nested, Mapping) and nested:
            return nested
    return config


def plain_family(model_type: str, text: Mapping[str, Any]) -> Family:
    """A type that is not in the data is read as plain attention only when it says all of it and nothing that hints at more.

    It must state layers, heads, KV heads and a size, and have no other field whose name may bear on the cache.
    """
    if model_type in compiled()["unread"]:
        unknown("model_type", f"how models of type {model_type} cache is not known")
    for field in ("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "hidden_size"):
        if text.get(field) is None:
            unknown(
                field if model_type else "model_type",
                f"model type {model_type!r} is not known, and {field} is not stated",
            )
    for field, value in text.items():
        if not harmless(field, value):
            unknown(field, f"model type {model_type!r} is not known, and its field {field} may change what is cached")
    return PLAIN


def harmless(field: str, value: Any) -> bool:
    if not HINTS.search(field) or PLAIN_FIELDS.fullmatch(field):
        return not (field == "is_encoder_decoder" and value)
    if field == "layer_types":
        return isinstance(value, list) and all(kind == "full_attention" for kind in value)
    return value is None or value is False


def classes(config: Mapping[str, Any], text: Mapping[str, Any]) -> tuple[str, ...]:
    names = config.get("architectures") or text.get("architectures")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def heads(fields: Fields, shape: Shape) -> int:
    """Query heads; a model without attention has none."""
    if fields.maybe("decoder_attention_heads"):
        return fields.integer("decoder_attention_heads")
    if any(isinstance(part, (Attention, Latent)) for layer in shape.layers for part in layer):
        stated = fields.maybe("num_attention_heads", "n_head", "n_heads", "num_heads")
        if stated is None and fields.maybe("kv_channels"):
            return fields.integer("num_key_value_heads") * fields.integer("num_experts_per_tok")
        return query_heads(fields) if stated is None else stated
    return 0


def dtype(config: Mapping[str, Any], text: Mapping[str, Any]) -> str | None:
    """The weights' type as the file names it, without a `torch.` before it."""
    for where in (config, text):
        for key in ("dtype", "torch_dtype"):
            value = where.get(key)
            if isinstance(value, str) and value != "auto":
                return value.removeprefix("torch.")
    return None


def positions(text: Mapping[str, Any]) -> int | None:
    found = [text[key] for key in POSITIONS if isinstance(text.get(key), int) and not isinstance(text[key], bool)]
    return max(found, default=None)


def draft(fields: Fields, shape: Shape) -> list[Layer]:
    """Each multi-token-prediction layer is one more of the model's last growing layer, without its state."""
    if shape.draft is not None:
        return shape.draft
    count = draft_count(fields)
    if not count:
        return []
    for layer in reversed(shape.layers):
        kept = tuple(part for part in layer if isinstance(part, (Attention, Latent)))
        if kept:
            return [kept[:1]] * count
    return []


def string(config: Mapping[str, Any], key: str) -> str:
    value = config.get(key)
    return value if isinstance(value, str) else ""
