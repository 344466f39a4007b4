"""GGUF metadata, parsed, to the cache-bearing shape of its model, as llama.cpp's loaders read it.

What each `general.architecture` makes of its keys is data (data/engines/llama-server.memory.toml, sections `gguf`), read from the
loaders of build b11434.  Values are taken as a JSON rendering of the metadata has them: a per-layer value is a number or a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn

from kvlint.compiled import load
from kvlint.models.architecture import (
    Architecture,
    Attention,
    Compressed,
    Latent,
    Layer,
    Part,
    State,
    UnknownArchitecture,
)
from kvlint.records import dataclass

MOST_LAYERS = 4096


@cache
def _tables() -> Mapping[str, Any]:
    loaded: dict[str, Any] = load("llama_memory.json")["gguf"]
    return loaded


@dataclass(frozen=True, slots=True)
class Keys:
    """The metadata of one model; `name` is its general.architecture, `layers` its block count, drafting layers included."""

    metadata: Mapping[str, Any]
    name: str
    layers: int

    def raw(self, key: str) -> Any:
        return self.metadata.get(f"{self.name}.{key}")

    def fail(self, key: str, message: str) -> NoReturn:
        full = f"{self.name}.{key}"
        raise UnknownArchitecture(full, f"{full} {message}")

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number of at least 0; UnknownArchitecture where it is absent without a default, or something else."""
        value = self.raw(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            self.fail(key, "is not stated" if value is None else "is not a whole number")
        return int(value)

    def each(self, key: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """One number a layer: a list as long as the model, or a number for all."""
        value = self.raw(key)
        if value is None and default is not None:
            return default
        if isinstance(value, (list, tuple)):
            if len(value) != self.layers or not all(isinstance(item, int) and item >= 0 for item in value):
                self.fail(key, f"is not a list of {self.layers} numbers")
            return tuple(int(item) for item in value)
        if isinstance(value, bool):
            return (int(value),) * self.layers
        return (self.integer(key),) * self.layers

    def flags(self, key: str, needed: int) -> tuple[bool, ...] | None:
        """A list of flags as long as the model's own layers at least; None where the value is no list."""
        value = self.raw(key)
        if not isinstance(value, (list, tuple)):
            return None
        if len(value) < needed or not all(isinstance(item, int) for item in value):
            self.fail(key, f"is not a list of {needed} flags")
        return tuple(bool(item) for item in value[: self.layers]) + (False,) * (self.layers - len(value))


def is_gguf(metadata: Mapping[str, Any]) -> bool:
    """Whether a parsed object is GGUF metadata rather than a config.json."""
    return "general.architecture" in metadata


def architecture(metadata: Mapping[str, Any], *, source: str = "") -> Architecture:
    """The architecture that GGUF metadata describes; `model_type` is its general.architecture.

    Raises UnknownArchitecture with the key that could not be read.
    """
    keys = _keys(metadata)
    drafting = keys.integer("nextn_predict_layers", 0)
    if drafting > keys.layers:
        keys.fail("nextn_predict_layers", "is above the block count")
    heads = keys.each("attention.head_count", (0,) * keys.layers)
    layers = _layers(keys, keys.layers - drafting, heads)
    vocabulary = keys.raw("vocab_size")
    return Architecture(
        model_type=keys.name,
        classes=(),
        layers=layers[: keys.layers - drafting],
        hidden_size=keys.integer("embedding_length"),
        heads=heads[0],
        vocab_size=vocabulary if isinstance(vocabulary, int) else None,
        dtype=None,
        positions=keys.integer("context_length"),
        draft_layers=layers[keys.layers - drafting :],
        config=metadata,
        root=metadata,
        source=source,
    )


def _keys(metadata: Mapping[str, Any]) -> Keys:
    name = metadata.get("general.architecture")
    if not isinstance(name, str):
        raise UnknownArchitecture("general.architecture", "general.architecture is not stated")
    tables = _tables()
    if name not in tables["known"] and name not in tables["none"]:
        raise UnknownArchitecture("general.architecture", f"general.architecture {name!r} is not one that kvlint knows")
    layers = Keys(metadata, name, 0).integer("block_count")
    if not 0 < layers <= MOST_LAYERS:
        raise UnknownArchitecture(f"{name}.block_count", f"{name}.block_count {layers} is out of range")
    return Keys(metadata, name, layers)


def _layers(keys: Keys, trunk: int, heads: tuple[int, ...]) -> tuple[Layer, ...]:
    """Every layer, the drafting ones last (they attend, and never slide unless the list of flags says so)."""
    tables = _tables()
    if keys.name in tables["none"]:
        return ((),) * keys.layers
    if keys.name in tables["compressed"]:
        return _compressed(keys)
    kv_heads = keys.each("attention.head_count_kv", heads)
    recurrent = _recurrent(keys, trunk, kv_heads)
    state = _state(keys, heads[0]) if any(recurrent) else None
    window, sliding = _sliding(keys, trunk, recurrent)
    silent = _feed_forward_only(keys)
    borrowed = 0 if keys.name in tables["borrows"] else _shared_from(keys)
    layers: list[Layer] = []
    for index in range(keys.layers):
        parts: list[Part] = []
        if keys.name not in tables["recurrent"] and not silent[index]:
            parts += _attention(keys, index, kv_heads[index], window if sliding[index] else None, index >= borrowed)
        if recurrent[index] and state is not None:
            parts = [*parts, state] if keys.name in tables["beside"] else [state]
        layers.append(tuple(parts))
    return tuple(layers)


def _compressed(keys: Keys) -> tuple[Layer, ...]:
    """DeepSeek V4: every layer a window of full rows, and by its ratio one row for so many tokens."""
    ratios = keys.raw("attention.compress_ratios")
    if not isinstance(ratios, (list, tuple)) or len(ratios) < keys.layers:
        keys.fail("attention.compress_ratios", f"is not a list of {keys.layers} numbers")
    if any(ratio not in (0, 4, 128) for ratio in ratios[: keys.layers]):
        keys.fail("attention.compress_ratios", "has a ratio other than 0, 4 and 128")
    window, head = keys.integer("attention.sliding_window"), _head_sizes(keys, swa=False)[0]
    index = keys.integer("attention.indexer.key_length")
    return tuple((Compressed(int(ratio), window, head, index),) for ratio in ratios[: keys.layers])


def _attention(keys: Keys, index: int, kv_heads: int, window: int | None, shared: bool) -> list[Part]:
    if not kv_heads:
        return []
    tables = _tables()
    key_dim, value_dim = _head_sizes(keys, swa=window is not None)
    if keys.name in tables["latent"] and keys.integer("attention.key_length_mla", 0):
        return [_latent(keys, index, kv_heads * key_dim)]
    chunked = bool(tables["sliding"].get(keys.name, {}).get("chunked"))
    parts: list[Part] = [
        Attention(
            kv_heads,
            key_dim,
            value_dim,
            window=None if chunked else window,
            chunk=window if chunked else None,
            shared=shared,
        )
    ]
    if keys.name in tables["side_indexer"] and index >= keys.integer("leading_dense_block_count", 0):
        parts.append(Attention(1, keys.integer("attention.indexer.key_length"), value_dim))
    return parts


def _latent(keys: Keys, index: int, row: int) -> Latent:
    """A latent row of `row` elements: kv_lora_rank and the rope part; the cache keeps no values."""
    rank = keys.integer("attention.kv_lora_rank")
    expanded = keys.integer("attention.key_length_mla")
    if row < rank or expanded < row - rank:
        keys.fail("attention.key_length", f"gives a latent row of {row} elements for a rank of {rank}")
    indexed = keys.name in _tables()["indexer"] and _indexed(keys, index)
    return Latent(
        rank=rank,
        rope_dim=row - rank,
        heads=keys.each("attention.head_count")[index],
        nope_dim=expanded - (row - rank),
        value_dim=keys.integer("attention.value_length_mla"),
        indexer_dim=keys.integer("attention.indexer.key_length") if indexed else None,
    )


def _indexed(keys: Keys, index: int) -> bool:
    """Whether the layer owns an indexer: the model's own layers, all or as attention.indexer.types lists them."""
    tables = _tables()
    trunk = keys.layers - keys.integer("nextn_predict_layers", 0)
    if index >= trunk:
        return False
    listed = keys.flags("attention.indexer.types", trunk)
    if listed is not None:
        return listed[index]
    if keys.name != "glm-dsa" or keys.integer("context_length") < tables["indexer_types_from"]:
        return True
    leading = int(tables["indexer_leading"])
    return index < leading or (index - leading) % int(tables["indexer_period"]) == 0


def _head_sizes(keys: Keys, *, swa: bool) -> tuple[int, int]:
    """Sizes of a key and of a value head; sliding layers may have their own."""
    heads = keys.each("attention.head_count")[0]
    if not heads:
        keys.fail("attention.head_count", "is 0 in the first layer")
    even = keys.integer("embedding_length") // heads
    key_dim = keys.integer("attention.key_length", even)
    value_dim = keys.integer("attention.value_length", even)
    if keys.name in _tables()["latent_value_is_rank"]:
        value_dim = keys.integer("attention.kv_lora_rank")
    if swa:
        return keys.integer("attention.key_length_swa", key_dim), keys.integer("attention.value_length_swa", value_dim)
    return key_dim, value_dim


def _shared_from(keys: Keys) -> int:
    """The first layer that reads an earlier layer's cache; the block count where none does."""
    fixed = _tables()["shared_from"].get(keys.name)
    if fixed is not None:
        return int(fixed)
    if keys.name == "gemma4":
        return keys.layers - keys.integer("attention.shared_kv_layers", 0)
    return keys.layers


def _sliding(keys: Keys, trunk: int, recurrent: tuple[bool, ...]) -> tuple[int | None, tuple[bool, ...]]:
    """The window, and which layers slide."""
    none = (False,) * keys.layers
    rule = _tables()["sliding"].get(keys.name)
    if rule is None or rule.get("layers", trunk) != trunk:
        return None, none
    written = keys.raw("attention.sliding_window")
    if not written and (rule.get("optional") or (rule.get("fixed") and written == 0)):
        return None, none
    window = rule.get("fixed") or keys.integer("attention.sliding_window", rule.get("window"))
    if not window:
        keys.fail("attention.sliding_window", "is 0")
    if rule.get("all"):
        return window, tuple(index < trunk and not recurrent[index] for index in range(keys.layers))
    listed = keys.flags("attention.sliding_window_pattern", trunk)
    if listed is not None:
        return window, listed
    if rule.get("list"):
        keys.fail("attention.sliding_window_pattern", "is not a list of flags")
    period = keys.integer("attention.sliding_window_pattern", rule["period"])
    full = 0 if rule.get("first") else period - 1
    return window, tuple(index < trunk and (not period or index % period != full) for index in range(keys.layers))


def _recurrent(keys: Keys, trunk: int, kv_heads: tuple[int, ...]) -> tuple[bool, ...]:
    """Which layers keep a state."""
    tables = _tables()
    if keys.name in tables["recurrent"] or keys.name in tables["beside"]:
        return (True,) * keys.layers
    if keys.name in tables["by_heads"]:
        return tuple(index < trunk and not heads for index, heads in enumerate(kv_heads))
    if keys.name in tables["by_feed_forward"]:
        silent = _feed_forward_only(keys)
        return tuple(index < trunk and not heads and not silent[index] for index, heads in enumerate(kv_heads))
    interval = tables["by_interval"].get(keys.name)
    if interval is None:
        return (False,) * keys.layers
    if keys.raw("attention.recurrent_layers") is not None:
        return tuple(map(bool, keys.each("attention.recurrent_layers")))
    every = keys.integer("full_attention_interval", interval)
    if not every:
        keys.fail("full_attention_interval", "is 0")
    return tuple(index < trunk and (index + 1) % every != 0 for index in range(keys.layers))


def _feed_forward_only(keys: Keys) -> tuple[bool, ...]:
    """Layers that keep nothing because they are a feed-forward block (Nemotron-H)."""
    if keys.name not in _tables()["by_feed_forward"]:
        return (False,) * keys.layers
    return tuple(size > 0 for size in keys.each("feed_forward_length", (0,) * keys.layers))


def _state(keys: Keys, heads: int) -> State:
    """The state of one recurrent layer: llama_hparams::n_embd_r and n_embd_s of llama.cpp."""
    tables = _tables()
    width = keys.integer("embedding_length")
    head = keys.integer("wkv.head_size", 0)
    if head:
        shift = keys.integer("token_shift_count", 2)
        return State("rwkv", conv_channels=width, conv_kernel=shift + 1, recurrent=width * head)
    if keys.name in tables["short_convolution"]:
        kernel = keys.integer("shortconv.l_cache")
        return State("short-conv", conv_channels=width, conv_kernel=kernel, recurrent=0)
    head = keys.integer("kda.head_dim", 0)
    if head:
        kernel = keys.integer("ssm.conv_kernel", 0) or 4
        return State(
            "kda", conv_channels=3 * heads * head, conv_kernel=kernel, recurrent=head * head * heads, heads=heads
        )
    if keys.name == "minimax-01":
        head = _head_sizes(keys, swa=False)[0]
        return State("lightning", conv_channels=0, conv_kernel=1, recurrent=head * head * heads, heads=heads)
    return _state_space(keys)


def _state_space(keys: Keys) -> State:
    """State spaces and delta nets: `ssm.*`.  The delta net's value width is the inner size, its key heads are the groups."""
    inner, state = keys.integer("ssm.inner_size"), keys.integer("ssm.state_size")
    ungrouped = keys.name in _tables()["ungrouped_state"]
    groups = 0 if ungrouped else keys.integer("ssm.group_count")
    kernel = keys.integer("ssm.conv_kernel")
    if not (inner and state and kernel):
        keys.fail("ssm.inner_size", "or ssm.state_size or ssm.conv_kernel is 0")
    delta = keys.name in _tables()["by_interval"]
    return State(
        "gdn" if delta else "mamba1" if ungrouped else "mamba2",
        conv_channels=inner + 2 * groups * state,
        conv_kernel=kernel,
        recurrent=state * inner,
        heads=keys.integer("ssm.time_step_rank", 1),
        key_heads=max(groups, 1),
        key_dim=state,
        groups=max(groups, 1),
    )
