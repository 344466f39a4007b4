"""Which reader reads which model type, and what its class fixes: data of data/models/families.toml, compiled.

A new family is one function that turns `Fields` into a `Shape`, and one table in the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from kvlint.compiled import load
from kvlint.models import families_attention as attention
from kvlint.models import families_latent as latent
from kvlint.models import families_state as state
from kvlint.models.families_fields import Fields, Shape
from kvlint.records import dataclass, field

READERS: dict[str, Callable[[Fields], Shape]] = {
    "attention": attention.attention,
    "attn_config": attention.attn_config,
    "block_configs": attention.block_configs,
    "chatglm": attention.chatglm,
    "cross_layer": attention.cross_layer,
    "decoder_only": attention.decoder_only,
    "falcon": attention.falcon,
    "image_cross": attention.image_cross,
    "kv_channels": attention.kv_channels,
    "multi_query": attention.multi_query,
    "speech_decoder": attention.speech_decoder,
    "compressed": latent.compressed,
    "indexed": latent.indexed,
    "latent": latent.latent,
    "hybrid": state.hybrid,
    "kimi_linear": state.kimi_linear,
    "lettered_hybrid": state.lettered_hybrid,
    "pure_state": state.pure_state,
    "shared_blocks": state.shared_blocks,
}


@dataclass(frozen=True, slots=True)
class Family:
    """How one model type is read.  `constants` are the class's, for absent keys; `source` says who fixes them."""

    reader: str
    constants: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    def read(self, config: Mapping[str, Any]) -> Shape:
        return READERS[self.reader](Fields(config, self.constants, self.rules))


PLAIN = Family("attention", source="fields that describe plain attention and nothing else")


@lru_cache(maxsize=1)
def compiled() -> Mapping[str, Any]:
    data: Mapping[str, Any] = load("models-families.json")
    return data


def family_of(model_type: str) -> Family | None:
    """The family of a text model's type; None for a type that is not in the data."""
    number = compiled()["types"].get(model_type)
    return None if number is None else Family(**compiled()["families"][number])


def text_type(root_type: str, nested_type: str) -> str:
    """The type that reads the text model: the nested one's own, else the one the composite's class takes."""
    data = compiled()
    name = nested_type or data["composite"].get(root_type, root_type)
    renamed: str = data["renamed"].get(name, name)
    return renamed


def class_shape(model_type: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a nested text model leaves out because it equals its class (see [[nested]] in the data)."""
    for entry in compiled()["nested"]:
        if entry["type"] == model_type and not any(key in config for key in entry["absent"]):
            values: Mapping[str, Any] = entry["values"]
            return values
    return {}


def type_of_class(names: tuple[str, ...]) -> str:
    """The type behind a model class, for the few files that name a class and no type."""
    return next((found for name in names if (found := compiled()["classes"].get(name))), "")
