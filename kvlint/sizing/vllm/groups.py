"""How vLLM puts layers in groups that draw blocks from one pool."""

from __future__ import annotations

from kvlint.facts import Unknown
from kvlint.records import dataclass, replace
from kvlint.sizing.vllm.releases import Rules
from kvlint.sizing.vllm.settings import Refusal, Settings, unknown_layout
from kvlint.sizing.vllm.specs import Spec, Specs

_UNEVEN = "layers with pages of different sizes cannot share a pool in this release"


@dataclass(frozen=True, slots=True)
class Group:
    """Layers that are allocated block by block together; `specs` differ in page size only where there is one group."""

    specs: tuple[Spec, ...]

    @property
    def kind(self) -> str:
        return self.specs[0].kind

    @property
    def layers(self) -> int:
        return len(self.specs)

    @property
    def block_size(self) -> int:
        return self.specs[0].block_size

    @property
    def bytes_per_block(self) -> int:
        return sum([spec.page_bytes for spec in self.specs])

    def of_layers(self, start: int, end: int) -> Group | None:
        """The part of the group that a pipeline stage of layers `start:end` holds."""
        held = tuple(spec for spec in self.specs if start <= spec.layer < end)
        return Group(held) if held else None


def promoted(specs: tuple[Spec, ...], manager: bool, rules: Rules) -> Specs:
    """Window layers as full ones, where the release or the switched-off manager charges them so."""
    kinds = {spec.kind for spec in specs}
    if rules.window_layers == "full":
        return tuple([spec if spec.span is None else _full(spec, rules) for spec in specs])
    if manager or len(kinds) == 1:
        return specs
    if "state" in kinds:
        return Refusal("recurrent and attention layers cannot share a pool without the hybrid KV cache manager")
    if not kinds & {"full", "latent"}:
        return Refusal("layers of several kinds, none of them full, need the hybrid KV cache manager")
    return tuple([spec if spec.span is None else _full(spec, rules) for spec in specs])


def _full(spec: Spec, rules: Rules) -> Spec:
    page = spec.page_bytes
    if rules.promotion_drops_value_dim:
        _, key_dim, value_dim = spec.shape
        page = page * 2 * key_dim // (key_dim + value_dim)
    return replace(spec, kind="full", span=None, page_bytes=page)


def groups(specs: tuple[Spec, ...], settings: Settings, rules: Rules) -> tuple[Group, ...] | Refusal | Unknown:
    if len({(spec.kind, spec.span) for spec in specs}) == 1:
        return _one_group(specs, rules)
    even = _even_pages(specs, settings, rules)
    if not isinstance(even, tuple):
        return even
    buckets: list[list[Spec]] = []
    for spec in even:
        alike = next((bucket for bucket in buckets if bucket[0].like(spec)), None)
        if alike is None:
            buckets.append([spec])
        else:
            alike.append(spec)
    sizes = [len(bucket) for bucket in buckets]
    size = max(sizes) if max(sizes) < rules.even_ratio * min(sizes) else min(sizes)
    return tuple(group for bucket in buckets for group in _cut(bucket, size, rules))


def _one_group(specs: tuple[Spec, ...], rules: Rules) -> tuple[Group, ...] | Refusal | Unknown:
    if len({spec.page_bytes for spec in specs}) > 1:
        if rules.sizes_of_one_kind == "refuse":
            return Refusal(_UNEVEN)
        if rules.sizes_of_one_kind == "unknown":
            return unknown_layout("layers with pages of different sizes were not worked out for this release")
    return (Group(specs),)


def _cut(bucket: list[Spec], size: int, rules: Rules) -> list[Group]:
    count = -(-len(bucket) // size)
    if rules.strided_groups:
        return [Group(tuple(bucket[first::count])) for first in range(count)]
    return [Group(tuple(bucket[first : first + size])) for first in range(0, len(bucket), size)]


def _even_pages(specs: tuple[Spec, ...], settings: Settings, rules: Rules) -> Specs:
    """Specs whose pages are equal: larger blocks for the smaller ones, or padding, as the release does it."""
    largest = max(spec.page_bytes for spec in specs)
    even = []
    for spec in specs:
        if spec.page_bytes == largest:
            even.append(spec)
        elif rules.sizes_of_several_kinds == "refuse":
            return Refusal(_UNEVEN)
        elif spec.kind != "state" and largest % spec.page_bytes == 0:
            times = largest // spec.page_bytes
            even.append(replace(spec, block_size=spec.block_size * times, page_bytes=largest))
        elif _padded(spec, settings, rules):
            even.append(replace(spec, page_bytes=largest))
        else:
            return Refusal(_UNEVEN)
    return tuple(even)


def _padded(spec: Spec, settings: Settings, rules: Rules) -> bool:
    if spec.kind == "state":
        return rules.pad_state_pages
    if rules.sizes_of_several_kinds == "pad-strided":
        return settings.strided_attention
    return rules.sizes_of_several_kinds == "pad" and spec.kind != "latent"
