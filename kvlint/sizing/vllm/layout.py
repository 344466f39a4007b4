"""The groups of every pipeline stage of one vLLM server."""

from __future__ import annotations

from kvlint.facts import Unknown
from kvlint.models.architecture import Architecture, State
from kvlint.records import dataclass, field, replace
from kvlint.sizing.vllm.groups import Group, groups, promoted
from kvlint.sizing.vllm.releases import Rules, neighbours, rules
from kvlint.sizing.vllm.settings import Refusal, Settings, cache_mode, manager_on, stage_sizes, unknown_layout
from kvlint.sizing.vllm.specs import Spec, specs


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline stage.  `specs`: its layers before window layers are promoted, which some releases' length check reads.

    `bytes_per_block`: of the pool on one device of the stage.  `alike`: how many layers are as one of them.
    """

    groups: tuple[Group, ...]
    specs: tuple[Spec, ...]
    bytes_per_block: int = field(init=False, repr=False, compare=False)
    alike: tuple[tuple[int, Spec], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes_per_block", max((group.bytes_per_block for group in self.groups), default=0))
        counts: dict[tuple[object, ...], tuple[int, Spec]] = {}
        for spec in self.specs:
            key = (spec.kind, spec.block_size, spec.page_bytes, spec.span, spec.checkpoint)
            count, first = counts.get(key, (0, spec))
            counts[key] = (count + 1, first)
        object.__setattr__(self, "alike", tuple(counts.values()))


@dataclass(frozen=True, slots=True)
class Layout:
    """How a server's cache is cut; what it holds and needs is in `vllm_blocks`.

    `whole`: all layers as one stage.  Lengths other than `settings.max_model_len` may be asked for.
    """

    settings: Settings
    rules: Rules
    mode: str
    stages: tuple[Stage, ...]
    whole: Stage

    @property
    def bytes_per_block(self) -> int:
        """Of the fullest stage."""
        return max(stage.bytes_per_block for stage in self.stages)

    @property
    def block_size(self) -> int:
        """Tokens of an attention block as the engine prints it."""
        return next(spec.block_size for spec in self.whole.specs if spec.kind != "state")

    @property
    def recurrent(self) -> bool:
        return any(spec.kind == "state" for _, spec in self.whole.alike)


def layouts(arch: Architecture, settings: Settings) -> tuple[Layout | Refusal | Unknown, ...]:
    """One layout, or those of the two neighbours of a release that was not read and may follow either."""
    return _layouts(arch, settings, _cutting(arch, settings))


def layout(arch: Architecture, settings: Settings) -> Layout | Refusal | Unknown:
    """The layout of one server; Unknown where no fact gives it, Refusal where the engine stops whatever the memory."""
    alike = _cutting(arch, settings)
    found = _layouts(arch, settings, alike)
    if len(found) == 1:
        return found[0]
    key = (alike, rules(settings.release))
    same = arch.memo.get(key)
    if same is None:
        same = arch.memo[key] = _same(found)
    if same:
        return found[0]
    around = " and ".join(neighbours(settings.release))
    return unknown_layout(
        f"vLLM {settings.release} was not read, and {around} size this differently",
        "engine.version",
        "a release that was read",
    )


def _same(found: tuple[Layout | Refusal | Unknown, ...]) -> bool:
    """Both neighbours give one answer to everything but how the log counts tokens."""
    first = found[0]
    if not isinstance(first, Layout):
        return all(type(other) is type(first) for other in found)
    return all(
        isinstance(other, Layout)
        and other.stages == first.stages
        and _counts(other.rules, other) == _counts(first.rules, first)
        for other in found
    )


def _counts(each: Rules, layout: Layout) -> tuple[object, ...]:
    """What of the rules still matters once the groups are known."""
    windows = any(spec.span is not None for _, spec in layout.whole.alike)
    several = len(layout.whole.groups) > 1
    return (
        each.spare_blocks,
        each.concurrent_batches and windows,
        (each.request_count, each.window_layers) if several else None,
        (layout.mode, each.state_count, each.all_mode_drafts) if layout.recurrent else None,
        each.whole_model_check if len(layout.stages) > 1 else None,
    )


def _layouts(arch: Architecture, settings: Settings, alike: Settings) -> tuple[Layout | Refusal | Unknown, ...]:
    """Each cut once for all servers whose settings differ in nothing that cuts it."""
    found = []
    for each in rules(settings.release):
        made = arch.memo.get((alike, each))
        if made is None:
            made = arch.memo[alike, each] = _cut(arch, alike, each)
        found.append(replace(made, settings=settings) if isinstance(made, Layout) else made)
    return (found[0],) if found[1:] == found[:1] else tuple(found)


def _cutting(arch: Architecture, settings: Settings) -> Settings:
    """The settings without those that cut no layer."""
    lengths = any(isinstance(part, State) for layer in settings.draft for part in layer) or arch.distinct(State)
    return replace(
        settings,
        release="",
        max_model_len=settings.max_model_len if lengths else 0,
        max_num_batched_tokens=0,
        async_scheduling=None,
        model_runner="",
    )


def _cut(arch: Architecture, settings: Settings, each: Rules) -> Layout | Refusal | Unknown:
    every = specs(arch, settings, each)
    if not isinstance(every, tuple):
        return every
    if not every:
        return unknown_layout("the model keeps no cache")
    if settings.decode_context_parallel > 1 and any(spec.kind not in ("full", "latent") for spec in every):
        return unknown_layout("decode context parallelism was worked out for full attention alone")
    charged = promoted(every, manager_on(arch, settings, each), each)
    if not isinstance(charged, tuple):
        return charged
    whole = groups(charged, settings, each)
    if not isinstance(whole, tuple):
        return whole
    stages = _stages(arch, settings, each, every, charged, whole)
    if not isinstance(stages, tuple):
        return stages
    return Layout(settings, each, cache_mode(arch, settings, each), stages, Stage(whole, every))


def _stages(
    arch: Architecture,
    settings: Settings,
    each: Rules,
    every: tuple[Spec, ...],
    charged: tuple[Spec, ...],
    whole: tuple[Group, ...],
) -> tuple[Stage, ...] | Refusal | Unknown:
    sizes = stage_sizes(len(arch.layers), settings, each)
    if not isinstance(sizes, tuple):
        return sizes
    stages = []
    start = 0
    for number, size in enumerate(sizes):
        # a draft's layers stand behind the last one, on the last stage
        end = start + size + (len(settings.draft) if number == len(sizes) - 1 else 0)
        held = every if len(sizes) == 1 else tuple([spec for spec in every if start <= spec.layer < end])
        if each.model_groups:
            own: tuple[Group, ...] | Refusal | Unknown = tuple(
                [part for group in whole if (part := group.of_layers(start, end)) is not None]
            )
        elif len(sizes) == 1:
            own = whole
        else:
            own = groups(tuple([spec for spec in charged if start <= spec.layer < end]), settings, each) if held else ()
        if not isinstance(own, tuple):
            return own
        stages.append(Stage(own, held))
        start += size
    return tuple(stages)
