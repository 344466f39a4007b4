"""The derived values of an SGLang server: what a token takes on a rank, and what the pool of every rank holds."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Union

from kvlint.facts import Fact, Range, Unknown, Value, quantity
from kvlint.models.architecture import Architecture
from kvlint.records import fields
from kvlint.sizing import kv_types
from kvlint.sizing.refusals import start_refusal
from kvlint.sizing.server import Sizing
from kvlint.sizing.sglang import sizes as sglang
from kvlint.sizing.sglang.model import sliding_window
from kvlint.sizing.sglang.releases import rules
from kvlint.sizing.sglang.settings import Settings
from kvlint.sizing.sglang.start import Memory, Start
from kvlint.sizing.sglang.start import start as start_of

EXECUTED = "SGLang's own argument resolution and pool sizing, executed release by release"
PLACE = ("total_mib", "capability", "before", "after", "measured")


@quantity("start", unit="", formula="arguments, bytes of a token and pool of one rank", source=EXECUTED)
def start(architecture: Architecture, release: str, **given: Any) -> Start:
    """The start of one rank.  `given`: fields of `Settings`, and what is known of the device (`PLACE`)."""
    known = {field.name for field in fields(Settings)}
    fields_given = {name: value for name, value in given.items() if name in known}
    place = {name: value for name, value in given.items() if name in PLACE}
    settings = Settings(release=release, **fields_given)
    key = ("start", settings, tuple(place.items()))
    found: Start | None = architecture.memo.get(key)
    if found is None:
        found = architecture.memo[key] = start_of(architecture, settings, **place)
    return found


@quantity("kv_dtype", unit="", formula="the cache type after the engine's defaults", source=EXECUTED)
def kv_dtype(start: Start) -> str | Unknown:
    return start.kv_dtype


@quantity("memory_fraction", unit="", formula="1 - what the engine sets aside ÷ memory", source=EXECUTED)
def memory_fraction(start: Start) -> Fraction | Unknown:
    if isinstance(start.arguments, Unknown):
        return start.arguments
    share = start.arguments.mem_fraction_static
    return share if isinstance(share, Unknown) else Fraction(str(share))


@quantity("batched_tokens", unit="tokens", formula="chunk of a prefill on one rank", source=EXECUTED)
def chunk(start: Start) -> int | Unknown:
    return start.arguments.chunked_prefill_size if not isinstance(start.arguments, Unknown) else start.arguments


@quantity("block_size", unit="tokens", formula="page that the attention backend takes", source=EXECUTED)
def page(start: Start) -> int | Unknown:
    return start.arguments.page_size if not isinstance(start.arguments, Unknown) else start.arguments


@quantity("prefix_caching", unit="", formula="the radix cache, where the model's class allows it", source=EXECUTED)
def caches_prefixes(start: Start) -> bool | Unknown:
    return not start.arguments.disable_radix_cache if not isinstance(start.arguments, Unknown) else start.arguments


@quantity("batch_width", unit="sequences", formula="request limit of one rank × data-parallel ranks", source=EXECUTED)
def width(start: Start, data_parallel: int) -> Union[int, Range, Unknown]:
    return start.ranged(lambda pool: pool.requests * data_parallel)


@quantity("model_window", unit="tokens", formula="positions × rope factor", source=EXECUTED)
def model_window(architecture: Architecture, release: str) -> int | Unknown:
    """What the model's positions allow by this release's reading of them."""
    from kvlint.sizing.sglang.model import window

    settings = Settings(release=release)
    found = sglang.agreed(settings, lambda each: window(architecture, settings, each))
    return found if isinstance(found, (int, Unknown)) else Unknown("model.window", found.reason, "--context-length")


def window_checked(release: str) -> bool | None:
    """Whether a longer window is refused; None where the releases that may be meant differ."""
    found = {each.window_checked for each in rules(release)}
    return found.pop() if len(found) == 1 else None


@quantity("kv_bytes_per_token", unit="B", formula="Σ layers that keep every token, one copy", source=EXECUTED)
def kv_bytes_per_token(start: Start) -> int | Unknown:
    return start.alone if isinstance(start.alone, Unknown) else start.alone[0].full


@quantity(
    "kv_bytes_per_token_per_device", unit="B", formula="Σ layers that keep every token, of one rank", source=EXECUTED
)
def per_device(start: Start) -> int | Unknown:
    return start.price if isinstance(start.price, Unknown) else start.price.full


@quantity("pool_token_bytes", unit="B", formula="full layers + ratio × sliding layers, of one rank", source=EXECUTED)
def pool_token_bytes(start: Start) -> Fraction | Unknown:
    """What the engine divides its memory by."""
    price = start.price
    if isinstance(price, Unknown):
        return price
    weighted = {each.split == "weighted" for each in rules(start.settings.release)}
    if not price.sliding or not price.full or weighted == {False}:
        return Fraction(price.whole)
    if len(weighted) > 1:
        return Unknown("engine.version", "releases count sliding layers differently", "an exact engine version")
    return price.full + start.settings.swa_full_tokens_ratio * price.sliding


@quantity(
    "state_bytes_per_sequence", unit="B", formula="Σ recurrent layers of convolution and recurrence", source=EXECUTED
)
def state_bytes(start: Start) -> int | Unknown:
    return start.alone if isinstance(start.alone, Unknown) else start.alone[1]


@quantity("slot_bytes", unit="B", formula="full × window + sliding × min(window, w) + state, one copy", source=EXECUTED)
def slot_bytes(start: Start, window: int) -> int | Unknown:
    if isinstance(start.alone, Unknown):
        return start.alone
    price, state = start.alone
    if not price.sliding or isinstance(start.arguments, Unknown):
        return (
            start.arguments if price.sliding and isinstance(start.arguments, Unknown) else price.full * window + state
        )
    return price.full * window + price.sliding * min(window, sliding_window(start.arguments.model)) + state


@quantity("request_kv_bytes", unit="B", formula="whole pages of the window, of one rank", source=EXECUTED)
def request_kv_bytes(start: Start, window: int) -> int | Unknown:
    """Pages of one request: of sliding layers those of the window and the page being written."""
    price, arguments = start.price, start.arguments
    if isinstance(price, Unknown):
        return price
    if isinstance(arguments, Unknown):
        return arguments
    tokens = aligned(window, arguments.page_size)
    if not price.sliding:
        return price.full * tokens
    kept = aligned(sliding_window(arguments.model), arguments.page_size) + arguments.page_size
    return price.full * tokens + price.sliding * min(tokens, kept)


@quantity("least_pool_bytes", unit="B", formula="the smallest pool whose tokens reach the window", source=EXECUTED)
def least_pool_bytes(start: Start, window: int) -> int | Unknown:
    price, arguments = start.price, start.arguments
    if isinstance(price, Unknown):
        return price
    if isinstance(arguments, Unknown):
        return arguments
    tokens = aligned(window, arguments.page_size)
    if not price.sliding:
        return price.full * tokens
    return price.full * tokens + price.sliding * (sliding_beside(start, tokens) if price.full else tokens)


def sliding_beside(start: Start, full: int) -> int:
    """Tokens of the sliding pool beside `full` tokens: their share, or a number that requests give."""
    share = start.settings.swa_full_tokens_ratio
    page = 1 if isinstance(start.arguments, Unknown) else start.arguments.page_size
    if not isinstance(start.pools, Unknown):
        pool = start.pools[1]
        if pool.full is not None and pool.sliding is not None and abs(pool.sliding - pool.full * share) >= page:
            return pool.sliding
    return int(full * share) // page * page


@quantity(
    "pool_bytes", unit="B", formula="tokens of full and sliding layers × their bytes, of one rank", source=EXECUTED
)
def pool_bytes(start: Start) -> Union[int, Range, Unknown]:
    price = start.price
    if isinstance(price, Unknown):
        return price

    def size(pool: sglang.Pool) -> int:
        if pool.sliding is None:
            return pool.tokens * price.whole
        return (pool.full or 0) * price.full + pool.sliding * price.sliding

    return start.ranged(size)


@quantity("pool_tokens", unit="tokens", formula="tokens of one rank × data-parallel ranks", source=EXECUTED)
def pool_tokens(start: Start, data_parallel: int) -> Union[int, Range, Unknown]:
    return start.ranged(lambda pool: pool.tokens * data_parallel)


@quantity("sliding_pool_tokens", unit="tokens", formula="the same of sliding layers", source=EXECUTED)
def sliding_pool_tokens(start: Start, data_parallel: int) -> Union[int, Range, Unknown, None]:
    if not isinstance(start.pools, Unknown) and start.pools[1].sliding is None:
        return None
    return start.ranged(lambda pool: (pool.sliding or 0) * data_parallel)


@quantity(
    "fitted_pool_tokens",
    unit="tokens",
    formula="(pool_bytes - streams × pages of the sliding window × their bytes) ÷ bytes of full layers, of all ranks",
    source=EXECUTED,
)
def fitted_pool_tokens(start: Start, pool_bytes: int, streams: int, data_parallel: int) -> int | Unknown:
    price, arguments = start.price, start.arguments
    if isinstance(price, Unknown):
        return price
    if isinstance(arguments, Unknown):
        return arguments
    page = arguments.page_size
    kept = -(-streams // data_parallel) * (aligned(sliding_window(arguments.model), page) + page)
    return max(0, pool_bytes - kept * price.sliding) // max(1, price.full) // page * page * data_parallel


@quantity(
    "max_concurrency",
    unit="requests",
    formula="pool_tokens ÷ window in whole pages, at most batch_width",
    source=EXECUTED,
)
def max_concurrency(start: Start, window: int, pool_tokens: int, batch_width: int) -> Union[Fraction, Unknown]:
    if isinstance(start.arguments, Unknown):
        return start.arguments
    return min(Fraction(pool_tokens, max(1, aligned(window, start.arguments.page_size))), Fraction(batch_width))


@quantity(
    "longest_window", unit="tokens", formula="the smaller of the pool of one rank and model_window", source=EXECUTED
)
def longest_window(start: Start, model_window: int) -> Union[int, Range, Unknown]:
    return start.ranged(lambda pool: min(pool.tokens, model_window))


@quantity("state_blocks", unit="blocks", formula="state slots of one rank", source=EXECUTED)
def state_blocks(start: Start) -> Union[int, Range, Unknown, None]:
    if isinstance(start.pools, Unknown) or start.pools[1].states is None:
        return start.pools if isinstance(start.pools, Unknown) else None
    return start.ranged(lambda pool: pool.states or 0)


@quantity("state_requests", unit="requests", formula="⌊state slots ÷ slots of one request⌋", source=EXECUTED)
def state_requests(state_blocks: int, slots: int) -> int:
    return state_blocks // slots


@quantity(
    "slots", unit="slots", formula="state slots of one request, by the strategy of the prefix cache", source=EXECUTED
)
def slots(start: Start) -> int | Unknown:
    return start.slots


@quantity("weights_bytes_per_device", unit="B", formula="(weights ÷ (TP × PP)) - offload", source="arithmetic")
def weights_per_device(weights_bytes: int, tensor_parallel: int, pipeline_parallel: int, cpu_offload_bytes: int) -> int:
    """The least that a rank holds: experts are split over the same ranks, and embeddings may be held whole."""
    return max(0, -(-weights_bytes // (tensor_parallel * pipeline_parallel)) - cpu_offload_bytes)


@quantity(
    "usable_bytes",
    unit="B",
    formula="⌊free before loading × mem_fraction_static⌋",
    source="sglang==0.5.23:sglang/srt/mem_cache/kv_cache_configurator.py:2990-3412",
)
def usable_bytes(free_before: int, memory_fraction: Fraction) -> int:
    return int(free_before * memory_fraction)


@quantity(
    "free_before",
    unit="B",
    formula="device memory - context",
    source="sglang: the least free memory of the ranks, read before the model is loaded",
)
def free_before(device_memory: int, non_torch: int) -> int:
    return max(0, device_memory - non_torch)


@quantity("free_after", unit="B", formula="free before loading - weights", source="a bound: loading leaves more behind")
def free_after(free_before: int, weights: int) -> int:
    return max(0, free_before - weights)


@quantity(
    "heads_remainder",
    unit="heads",
    formula="attention heads mod (TP ÷ attention DP)",
    source="sglang/srt/layers/dp_attention.py: attention TP is TP ÷ DP",
)
def heads_remainder(attention_heads: int, tensor_parallel: int, attention_ranks: int) -> int:
    ranks = tensor_parallel // attention_ranks if attention_ranks else tensor_parallel
    return attention_heads % ranks if ranks > 0 else 0


def aligned(tokens: int, page: int) -> int:
    return -(-tokens // page) * page


class SglangSizing(Sizing):
    """SGLang.  Values of a device are those of one rank; tokens and requests are of all data-parallel ranks."""

    def _start(self) -> Value[Start]:
        return self.need("start")

    def start_refusal(self) -> Value[str] | None:
        """Why the engine stops with this model, these settings and this memory; None where it does not, or nobody knows."""
        found, model = self.server.settings.get("start"), self.server.settings.get("model")
        return start_refusal(found, lambda outcome: outcome.refusal, model)

    def kv_dtype_source(self) -> Value[str] | None:
        return kv_types.source(self)

    def kv_calibrated(self) -> Value[bool]:
        """Whether the checkpoint brings scales for a quantized cache, or a file of its own does."""
        return self.server.settings.get("scales_stated") or kv_types.calibrated(self)

    def heads_remainder(self) -> Value[int] | None:
        ranks = self.server.settings.get("attention_ranks")
        if ranks is None:
            return super().heads_remainder()
        return heads_remainder(self.need("attention_heads"), self.need("tensor_parallel"), ranks)

    def kv_bytes_per_token(self) -> Value[int]:
        return kv_bytes_per_token(self._start())

    def kv_bytes_per_token_per_device(self) -> Value[int]:
        return per_device(self._start())

    def pool_token_bytes(self) -> Value[Fraction]:
        return pool_token_bytes(self._start())

    def state_bytes_per_sequence(self) -> Value[int] | None:
        found = state_bytes(self._start())
        return found if isinstance(found, Unknown) or found.value else None

    def slot_bytes(self) -> Value[int]:
        return slot_bytes(self._start(), self.need("window"))

    def request_kv_bytes(self) -> Value[int]:
        return request_kv_bytes(self._start(), self.need("window"))

    def least_pool_bytes(self) -> Value[int]:
        return least_pool_bytes(self._start(), self.need("window"))

    def weights_bytes_per_device(self) -> Value[Any]:
        parts = ("weights_bytes", "tensor_parallel", "pipeline_parallel", "cpu_offload_bytes")
        return weights_per_device(*(self.need(name) for name in parts))

    def host_memory_bytes(self) -> Value[int] | None:
        return self._host_memory(each_rank=True)

    def budget_bytes(self) -> Value[Any]:
        return self.server.hardware["device_memory"]

    def usable_bytes(self) -> Value[Any]:
        return usable_bytes(self.need("free_before"), self.need("memory_fraction"))

    def pool_bytes(self) -> Value[Any]:
        return pool_bytes(self._start())

    def pool_tokens(self) -> Value[Any]:
        return pool_tokens(self._start(), self.need("data_parallel"))

    def sliding_pool_tokens(self) -> Value[Any] | None:
        return _present(sliding_pool_tokens(self._start(), self.need("data_parallel")))

    def max_concurrency(self) -> Value[Any]:
        return max_concurrency(self._start(), self.need("window"), self.need("pool_tokens"), self.need("batch_width"))

    def longest_window(self) -> Value[Any]:
        longest = self.server.settings.get("model_window")
        return longest_window(self._start(), longest if isinstance(longest, Fact) else self.need("window"))

    def state_blocks(self) -> Value[Any] | None:
        arch = self.server.architecture
        if isinstance(arch, Fact) and not arch.value.hybrid:
            return None
        return _present(state_blocks(self._start()))

    def state_requests(self) -> Value[Any] | None:
        """Requests of one rank that the state slots hold; None without states."""
        found = self.get("state_blocks")
        return state_requests(found, slots(self._start())) if found is not None else None

    def fitted_pool_tokens(self) -> Value[Any] | None:
        """Tokens that the pool would hold with a sliding part of just what the streams need."""
        if self.get("sliding_pool_tokens") is None:
            return None
        return fitted_pool_tokens(
            self._start(), self.need("pool_bytes"), self.need("streams"), self.need("data_parallel")
        )


def _present(value: Value[Any]) -> Value[Any] | None:
    """The value; None where the engine has no such thing."""
    return None if isinstance(value, Fact) and value.value is None else value


__all__ = ["Memory", "SglangSizing", "start", "window_checked"]
