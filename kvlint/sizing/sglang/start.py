"""One start of SGLang as far as its inputs are known: arguments, what a token costs, and the pool of one rank.

What does not depend on the device is known without one: the start is worked out for every kind of device, and kept where all
that start agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, TypeVar, Union

from kvlint.facts import Range, Unknown, high, low, nominal
from kvlint.models.architecture import Architecture
from kvlint.records import dataclass, replace
from kvlint.sizing.sglang import pool as sglang_pool
from kvlint.sizing.sglang import sizes as sglang
from kvlint.sizing.sglang.arguments import standing_alone
from kvlint.sizing.sglang.cells import cells as cells_of
from kvlint.sizing.sglang.cells import slots_per_request, state_bytes
from kvlint.sizing.sglang.model import Model, read_model
from kvlint.sizing.sglang.releases import Rules
from kvlint.sizing.sglang.settings import GIB
from kvlint.sizing.sglang.sizes import Arguments, Cells, Device, Pool, Settings
from kvlint.sizing.spans import Outcome, Refusal

T = TypeVar("T")
Known = Union[T, Unknown]

# Cards of every class that the engine tells apart by memory (MiB as nvidia-smi prints them) and by compute capability.
TOTALS = (16376, 24564, 49140, 81559, 143771, 183359)
CAPABILITIES = (80, 89, 90, 100, 120)
NO_DEVICE = Unknown("hardware.memory", "the device decides it", "[[hardware]] device, or memory and capability")
NO_MEMORY = Unknown(
    "hardware.free",
    "what the weights leave free is not known",
    "[[hardware]] free and loaded_free, as the start log prints them",
)
EMPTY = Pool(0, 0)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one device; a range stands in a value of its own, so that a start is worked out for its ends at once."""

    bytes: Union[int, Fraction, Range]


@dataclass(frozen=True, slots=True)
class Start:
    """`kv_dtype`: the cache's, where all devices that it may be agree, as they do on most of a start.

    `price`, `state`: bytes of one token and of one state slot on one rank; `alone`: the same on one device without drafts.

    `pools`: at the low end, nominal, and at the high end of what is free.  `refusal`: why the engine stops.
    """

    arguments: Known[Arguments]
    price: Known[Cells]
    state: Known[int]
    alone: Known[tuple[Cells, int]]
    kv_dtype: Known[str]
    pools: Known[tuple[Pool, Pool, Pool]]
    settings: Settings
    refusal: Refusal | None = None

    def ranged(self, value: Callable[[Pool], int]) -> Known[Union[int, Range]]:
        """A figure of the pool; a range where what is free is one."""
        if isinstance(self.pools, Unknown):
            return self.pools
        least, likely, most = (value(pool) for pool in self.pools)
        return likely if least == most else Range(min(least, most), likely, max(least, most))

    @property
    def slots(self) -> Known[int]:
        """State slots that one running request may take."""
        return self.arguments if isinstance(self.arguments, Unknown) else slots_per_request(self.arguments)


def start(
    arch: Architecture,
    settings: Settings,
    total_mib: int | None = None,
    capability: int | None = None,
    before: Memory | None = None,
    after: Memory | None = None,
    measured: int | None = None,
) -> Start:
    """The start with these settings; `measured`: bytes of the pool itself, which replace what memory would give."""
    devices = candidates(total_mib, capability)
    resolved = [sglang.resolve(arch, settings, device) for device in devices]
    running = [device for device, each in zip(devices, resolved, strict=True) if not isinstance(each, Refusal)]
    found = Start(
        arguments=same(resolved, NO_DEVICE),
        price=same([sglang.cells(arch, settings, device) for device in running], NO_DEVICE),
        state=same([sglang.state_bytes_per_slot(arch, settings, device) for device in running], NO_DEVICE),
        kv_dtype=same([_type(each) for each in resolved], NO_DEVICE),
        alone=_alone(arch, settings, {device.capability for device in running or devices}),
        pools=NO_MEMORY,
        settings=settings,
    )
    if not running:
        return replace(found, refusal=next(each for each in resolved if isinstance(each, Refusal)))
    if len(devices) > 1:
        return replace(found, pools=NO_DEVICE)
    if measured is not None:
        return with_pools(
            found, [sglang.agreed(settings, lambda each: of_bytes(arch, settings, devices[0], each, measured))]
        )
    if before is None or after is None:
        return found
    ends = [
        replace(devices[0], free_before=end(before.bytes), free_after=end(after.bytes)) for end in (low, nominal, high)
    ]
    return with_pools(found, [sglang.pool(arch, settings, device) for device in ends])


def _type(resolved: Any) -> Any:
    """The cache type, or why there is none."""
    if not isinstance(resolved, Arguments):
        return resolved
    return resolved.model.dtype if resolved.kv_cache_dtype == "auto" else resolved.kv_cache_dtype


def _alone(arch: Architecture, settings: Settings, capabilities: set[int]) -> Known[tuple[Cells, int]]:
    """The sizes of one copy.  The type of a sparse cache is the one thing of them that depends on the device."""
    each = partial(on_one, arch, settings)
    found = [sglang.agreed(settings, partial(each, capability=capability)) for capability in sorted(capabilities)]
    return same(found, NO_DEVICE)  # type: ignore[no-any-return]


def candidates(total_mib: int | None, capability: int | None) -> list[Device]:
    """The device, or one of every kind that it may be."""
    totals = TOTALS if total_mib is None else (total_mib,)
    capabilities = CAPABILITIES if capability is None else (capability,)
    return [Device(total, each, 0, 0) for total, each in product(totals, capabilities)]


def same(outcomes: Sequence[Any], otherwise: Unknown) -> Any:
    """What all outcomes but refusals are; `otherwise` where they differ, or where there are none."""
    kept = [each for each in outcomes if not isinstance(each, Refusal)]
    if not kept or any(each != kept[0] for each in kept[1:]):
        return otherwise
    return kept[0]


def with_pools(found: Start, pools: Sequence[Union[Pool, Outcome]]) -> Start:
    """The start with its pools at the ends of a range, or with one exact pool."""
    ends = list(pools) if len(pools) == 3 else [pools[0]] * 3
    unknown = next((each for each in ends if isinstance(each, Unknown)), None)
    if unknown is not None:
        return replace(found, pools=unknown)
    if isinstance(ends[2], Refusal):
        return replace(found, refusal=ends[2])
    low_end, likely, most = (each if isinstance(each, Pool) else EMPTY for each in ends)
    return replace(found, pools=(low_end, likely, most))


def of_bytes(arch: Architecture, settings: Settings, device: Device, rules: Rules, size: int) -> Union[Pool, Outcome]:
    """The pool of `size` bytes for keys and values, as a log or an owner states them."""
    arguments = sglang.resolve(arch, settings, device)
    if not isinstance(arguments, Arguments):
        return arguments
    price = cells_of(arguments, settings, rules)
    if not isinstance(price, Cells):
        return price
    sizes = sglang_pool.token_pools(arguments, settings, rules, price, size / GIB)
    if not isinstance(sizes, tuple):
        return sizes
    tokens, full, sliding, profiled = sizes
    requests, slots = sglang_pool.request_limit(arguments, settings, rules, tokens, profiled, None)
    return Pool(tokens, requests, full, sliding, None, slots)


def on_one(arch: Architecture, settings: Settings, rules: Rules, capability: int) -> Union[tuple[Cells, int], Outcome]:
    """Bytes of a token and of a state where one device holds the whole model."""
    plain = replace(settings, tp_size=1, dp_size=1, pp_size=1, enable_dp_attention=False, speculative_algorithm=None)
    model = read_model(arch, plain, rules)
    if not isinstance(model, Model):
        return model
    arguments = standing_alone(model, plain, rules, capability)
    if not isinstance(arguments, Arguments):
        return arguments
    price, state = cells_of(arguments, plain, rules), state_bytes(arguments, plain, rules)
    if not isinstance(price, Cells):
        return price
    return (price, state) if isinstance(state, int) else state
