"""Strict reading of a model configuration: a field is there and sane, or the architecture is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from kvlint.models.architecture import Layer, UnknownArchitecture
from kvlint.records import dataclass, field

LARGEST = 1 << 31
MOST_LAYERS = 4096


@dataclass(frozen=True, slots=True)
class Shape:
    """What a family's reader gives: the layers, and those of the draft where they are not like the last layer."""

    layers: list[Layer]
    draft: list[Layer] | None = None


@dataclass(frozen=True, slots=True)
class Fields:
    """A configuration with what the code of its class fixes.

    `constants` stand in for absent keys only (an explicit null is a statement); `rules` name what the class works out.
    """

    config: Mapping[str, Any]
    constants: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)

    def raw(self, *names: str) -> Any:
        """The first of the names that is written and not null, then the class constants; None where there is neither."""
        for name in names:
            if self.config.get(name) is not None:
                return self.config[name]
        for name in names:
            if name not in self.config and self.constants.get(name) is not None:
                return self.constants[name]
        return None

    def maybe(self, *names: str) -> int | None:
        """A positive integer, or None where it is not stated.  Raises on anything else."""
        value = self.raw(*names)
        return None if value is None else self._integer(value, names)

    def integer(self, *names: str) -> int:
        """A positive integer that must be stated."""
        value = self.raw(*names)
        if value is None:
            unknown(names[0], f"the configuration states no {names[0]}")
        return self._integer(value, names)

    def count(self, *names: str) -> int:
        """An integer that may be 0, and is 0 where it is not stated."""
        value = self.raw(*names)
        if value is None or value == 0:
            return 0
        return self._integer(value, names)

    def flag(self, name: str) -> bool:
        value = self.raw(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            unknown(name, f"{name} is {value!r}, not true or false")
        return value

    def sequence(self, name: str) -> Sequence[Any] | None:
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            unknown(name, f"{name} is not a list")
        if len(value) > MOST_LAYERS:
            unknown(name, f"{name} has {len(value)} entries")
        return value

    def per_layer(self, name: str, layers: int) -> Sequence[Any] | None:
        """A list with an entry for every layer; entries past the last layer belong to the draft and are left out."""
        value = self.sequence(name)
        if value is None or not value:
            return None
        if len(value) < layers:
            unknown(name, f"{name} has {len(value)} entries for {layers} layers")
        return value[:layers]

    def table(self, name: str) -> Mapping[str, Any] | None:
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            unknown(name, f"{name} is not an object")
        return value

    def _integer(self, value: Any, names: tuple[str, ...]) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < LARGEST:
            unknown(names[0], f"{names[0]} is {value!r}, not a positive integer")
        return value


def unknown(field: str, message: str) -> NoReturn:
    raise UnknownArchitecture(field, message)


def number_of_layers(fields: Fields) -> int:
    layers = fields.integer("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    if layers > MOST_LAYERS:
        unknown("num_hidden_layers", f"num_hidden_layers is {layers}")
    return layers


def hidden_size(fields: Fields) -> int:
    return fields.integer("hidden_size", "n_embd", "d_model", "n_embed")


def query_heads(fields: Fields) -> int:
    return fields.integer("num_attention_heads", "n_head", "n_heads", "num_heads")


def head_size(fields: Fields) -> int:
    """The size of one head: as stated, else the hidden size over the heads, which must divide."""
    stated = fields.maybe("head_dim", "kv_channels", "attention_head_dim", "hidden_size_per_head")
    if stated is not None:
        return stated
    size, heads = hidden_size(fields), query_heads(fields)
    if size % heads:
        unknown("head_dim", f"head_dim is not stated, and {heads} heads do not divide a hidden size of {size}")
    return size // heads
