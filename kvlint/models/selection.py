"""Which fields of a `config.json` matter: what scripts/build_models.py keeps in the catalogue, and `kvlint lock` in the lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvlint.models.config import NESTED, text_config
from kvlint.patterns import regex

# Fields that say something of caches, weights, positions or formats; everything else of a configuration is left out.
KEPT = regex(
    r"model_type|architectures|.*(attention|attn|head|layer|window|rope|position|seq_len|seq_length|max_seq|max_sequence|model_max"
    r"|expert|moe|dtype|vocab|quant|compression|kv|mamba|ssm|conv|state_size|linear|lora|index|compress|share|cross|chunk|block"
    r"|pattern|nextn|mtp|swa|query|n_group|expand|lru|interval|interleave|dense|multi_query|decoder_architecture|hidden_size"
    r"|intermediate|ffn|global|sparse|sliding|tie_word|encoder_decoder|bidirectional|time_step_rank|latent|alibi|type_list).*"
    r"|n_embd|n_head|n_layer|n_layers|n_heads|n_positions|n_ctx|n_inner|d_model|n_groups|use_cla|use_mla|hf_quant_config"
)
DROPPED = regex(
    r".*(dropout|_id|id2label|label2id|_eps|epsilon|initializer|hidden_act|scale|_coef|jitter|layer_norm_type|norm_type|parallel_residual"
    r"|output_attentions|output_hidden|implementation|_loss|multiplier|activation|routing|clip|pdrop|_bias|path|preprocess|slice|init_"
    r"|image|vision|video|audio|mlp_bias|float_tag|topk_method|attn_res|index_n_heads|cross_attention_hidden_size|add_cross_attention"
    r"|chunk_size_feed_forward|layer_share|use_mamba_kernels|proj_bias).*"
)
QUANTIZED = ("quantization_config", "compression_config", "quantization", "hf_quant_config")
UNUSED = ("input_activations", "output_activations", "targets", "producer", "observer_kwargs", "version")
LAYER = regex(r"\.\d+(?=\.|$)")


def selected(config: Mapping[str, Any]) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
    """The fields of the root, the key under which the text model is nested (None: it is the root), and its fields."""
    nested = next(
        (key for key in (*NESTED, "thinker_config") if isinstance(config.get(key), dict) and config[key]), None
    )
    root = pruned({key: value for key, value in config.items() if key not in NESTED and key != "thinker_config"})
    if nested is None:
        return root, None, {}
    return root, "text_config" if nested == "thinker_config" else nested, pruned(text_config(config))


def pruned(fields: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for key, value in fields.items():
        if key in QUANTIZED:
            kept[key] = layout(value)
        elif KEPT.fullmatch(key) and not DROPPED.fullmatch(key):
            kept[key] = short(value)
    return kept


def short(value: Any) -> Any:
    """Without the long per-dimension factors of rotary scaling."""
    if isinstance(value, dict):
        return {
            key: short(entry)
            for key, entry in value.items()
            if not key.endswith("_factor") or not isinstance(entry, list)
        }
    return value


def layout(value: Any) -> Any:
    """Module names with layer numbers replaced by a star, each once; groups with what they say of weights."""
    if isinstance(value, list):
        names = {LAYER.sub(".*", entry) for entry in value if isinstance(entry, str)}
        return sorted(names) if names else value
    if not isinstance(value, dict):
        return value
    kept: dict[str, Any] = {}
    for key, entry in value.items():
        if key in UNUSED:
            continue
        if key == "quantized_layers" and isinstance(entry, dict):
            kept[key] = {LAYER.sub(".*", name): one for name, one in entry.items()}
        else:
            kept[key] = layout(entry)
    return kept
