"""What mlx-lm holds: buffers that grow in steps, rotating and chunked windows, small states; by release and model file.

Formulas: the growth rules of mlx_lm/models/cache.py.  What differs by release is data (data/models/mlx_lm.toml).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

from kvlint.compiled import load
from kvlint.models.architecture import Architecture, Attention, Compressed, Latent, Part, State, UnknownArchitecture
from kvlint.sizing.kv import ELEMENT_BYTES

Version = tuple[int, ...]


@lru_cache(maxsize=1)
def facts() -> Mapping[str, Any]:
    """data/models/mlx_lm.toml and the cache classes of each model file, compiled."""
    data: Mapping[str, Any] = load("models-mlx.json")
    return data


def release(version: str | None) -> Version:
    """A release as numbers; None is the newest one in the data."""
    return tuple(int(number) for number in re.findall(r"\d+", version or facts()["newest"])[:3])


def read_as(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration as the model file reads it: under another type's rules where the data says so."""
    other = facts()["reads_as"].get(config.get("model_type"))
    return {**config, "model_type": other} if other else config


def cache_bytes(
    architecture: Architecture,
    tokens: int,
    sequences: int = 1,
    version: str | None = None,
    dtype: str = "bfloat16",
    *,
    kv_bits: int | None = None,
    kv_group_size: int = 64,
    prefill_step: int | None = None,
    steps: Iterable[int] | None = None,
) -> int:
    """Bytes held for `sequences` sequences of `tokens` tokens, in a batch of equal lengths.

    The tokens come in one forward pass, in passes of `prefill_step`, or in passes of `steps` tokens each.
    `kv_bits`: plain caches are held quantized in groups of `kv_group_size`; rotating, chunked and compound ones are not.
    """
    passes = list(steps) if steps is not None else split(tokens, prefill_step)
    at = release(version)
    layout = Layout(architecture, at, ELEMENT_BYTES[dtype], kv_bits, kv_group_size)
    total = sum(
        (layout.part_bytes(part, layer, passes) for layer in architecture.layers for part in layer), Fraction(0)
    )
    return sequences * ceil(total)


def split(tokens: int, step: int | None) -> list[int]:
    if tokens <= 0:
        return []
    if step is None:
        return [tokens]
    whole, rest = divmod(tokens, step)
    return [step] * whole + ([rest] if rest else [])


class Layout:
    """One architecture in one release: which cache class each part has, and its bytes."""

    __slots__ = ("at", "bits", "classes", "config", "element", "file", "group")

    def __init__(
        self, architecture: Architecture, at: Version, element: Fraction, bits: int | None, group: int
    ) -> None:
        self.file, self.classes = cache_classes(architecture, at)
        self.config = architecture.config
        self.at, self.element, self.bits, self.group = at, element, bits, group

    def part_bytes(self, part: Part, layer: tuple[Part, ...], passes: list[int]) -> Fraction:
        if isinstance(part, Attention):
            return self.attention_bytes(part, passes, compound=len(layer) > 1)
        if isinstance(part, Latent):
            return self.latent_bytes(part, passes, compound=len(layer) > 1)
        if isinstance(part, State):
            return self.state_bytes(part)
        kind = "a compressed cache" if isinstance(part, Compressed) else "cross attention"
        raise UnknownArchitecture("model_type", f"how mlx-lm keeps {kind} is not known")

    def attention_bytes(self, part: Attention, passes: list[int], *, compound: bool) -> Fraction:
        if part.shared:
            return Fraction(0)
        if part.window is not None and self.rotates():
            return rotating_length(passes, part.window) * part.elements * self.element
        if part.chunk is not None and "ChunkedKVCache" in self.classes:
            by_tokens = self.at >= release(facts()["chunk_trim"]["by_tokens_since"])
            return chunked_length(passes, part.chunk, by_tokens=by_tokens) * part.elements * self.element
        size = self.row_bytes(part.kv_heads, part.key_dim, part.value_dim, compound=compound)
        return grown_length(passes) * size

    def rotates(self) -> bool:
        """Whether the model file keeps windows; some do only for a configuration that lists its layers."""
        if "RotatingKVCache" not in self.classes:
            return False
        return self.file not in facts()["windows"]["by_layer_types"] or bool(self.config.get("layer_types"))

    def row_bytes(self, heads: int, key: int, value: int, *, compound: bool) -> Fraction:
        """One token's keys and values; quantized: packed bits, and a scale and a bias for each group."""
        if self.bits is None or compound:
            return heads * (key + value) * self.element
        if key % self.group or value % self.group:
            raise UnknownArchitecture("head_dim", f"groups of {self.group} do not divide heads of {key} and {value}")
        return heads * (key + value) * (Fraction(self.bits, 8) + Fraction(2, self.group) * self.element)

    def latent_bytes(self, part: Latent, passes: list[int], *, compound: bool) -> Fraction:
        since = facts()["latent_since"].get(self.file)
        indexed = part.indexer_dim is not None
        if since is not None and self.at >= release(since):
            row = self.row_bytes(1, part.rank, part.rope_dim, compound=compound or indexed)
        else:
            row = self.row_bytes(
                part.heads, part.nope_dim + part.rope_dim, part.value_dim, compound=compound or indexed
            )
        if part.indexer_dim is not None:
            row += part.indexer_dim * self.indexer_copies() * self.element
        return grown_length(passes) * row

    def indexer_copies(self) -> int:
        copies = [entry["copies"] for entry in facts()["indexer_copies"] if self.at >= release(entry["since"])]
        return int(copies[-1])

    def state_bytes(self, part: State) -> Fraction:
        """Convolution states have one column less than the kernel."""
        since = facts()["float32_state_since"].get(part.kind)
        wide = since is not None and self.at >= release(since)
        recurrent = ELEMENT_BYTES["float32"] if wide else self.element
        columns = max(part.conv_kernel - 1, 0)
        return part.conv_channels * columns * self.element + part.recurrent * recurrent


def cache_classes(architecture: Architecture, at: Version) -> tuple[str, frozenset[str]]:
    """The model file that serves the architecture, and the cache classes that it builds in this release."""
    for model_type in (str(architecture.root.get("model_type") or ""), architecture.model_type):
        file = facts()["remapped"].get(model_type, model_type)
        classes = classes_of(file, at)
        if classes is not None and "delegates" not in classes:
            return file, classes
    raise UnknownArchitecture(
        "model_type", f"mlx-lm has no model file for {architecture.model_type!r} that is known here"
    )


def classes_of(file: str, at: Version) -> frozenset[str] | None:
    """By the newest release in the data that is not newer than `at`; before the first one, by that."""
    entries = facts()["classes"].get(file)
    if not entries:
        return None
    older = [entry for entry in entries if release(entry["since"]) <= at]
    return frozenset((older[-1] if older else entries[0])["classes"])


def grown_length(passes: Iterable[int]) -> int:
    """Rows of a KVCache: grown by whole steps for each pass that does not fit; a part-filled end is cut first."""
    step = int(facts()["step"])
    offset = length = 0
    for count in passes:
        if offset + count > length:
            length = (offset if offset % step else length) + step * ceil(Fraction(count, step))
        offset += count
    return length


def rotating_length(passes: Iterable[int], window: int) -> int:
    """Rows of a RotatingKVCache: a pass of several tokens is appended whole, after the older rows are cut to the window.

    Single tokens grow it by steps up to the window, then overwrite the oldest.
    """
    step = int(facts()["step"])
    offset = length = index = 0
    for count in passes:
        if count == 1:
            if length == 0 or (offset >= length and length < window):
                length, index = length + min(step, window - offset), offset
            if length > window:
                length = index = window
            index = 1 if index == window else index + 1
        else:
            kept = length if index == length or index < offset else index
            length = index = min(kept, window - 1) + count
        offset += count
    return length


def chunked_length(passes: Iterable[int], chunk: int, *, by_tokens: bool) -> int:
    """Rows of a ChunkedKVCache, which is cut to the chunk before each pass and then grows like a plain one."""
    step = int(facts()["step"])
    offset = length = start = 0
    for count in passes:
        if by_tokens and offset - start > chunk:
            start = offset - chunk
            length = chunk
        elif not by_tokens and length >= chunk > 0 and length:
            start += length - chunk
            length = chunk
        held = offset - start
        if held + count > length:
            length = (held if held % step else length) + step * ceil(Fraction(count, step))
        offset += count
    return length
