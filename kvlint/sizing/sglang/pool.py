"""From free memory to tokens, state slots and requests, as the engine's own code did when it was run.

Memory is in GiB as binary floating-point numbers until bytes are cut from it, as in the engine.
"""

from __future__ import annotations

from kvlint.records import dataclass
from kvlint.sizing.sglang.arguments import Arguments, image_mib
from kvlint.sizing.sglang.cells import Cells, cells, slots_per_request, state_bytes
from kvlint.sizing.sglang.model import sliding_window
from kvlint.sizing.sglang.releases import Rules, constant
from kvlint.sizing.sglang.settings import GIB, Device, Settings
from kvlint.sizing.spans import Outcome, Refusal


@dataclass(frozen=True, slots=True)
class Pool:
    """What one rank holds.

    `tokens`: max_total_num_tokens; `full`, `sliding`: of the two pools where there are two; `states`: max_mamba_cache_size;
    `requests`: max_running_requests of one rank; `slots`: rows of the request pool where they are counted apart.
    """

    tokens: int
    requests: int
    full: int | None = None
    sliding: int | None = None
    states: int | None = None
    slots: int | None = None


def cut(arguments: Arguments, settings: Settings, device: Device, rules: Rules) -> Pool | Outcome:
    """The pool of one rank, or why the engine stops."""
    price = cells(arguments, settings, rules)
    if not isinstance(price, Cells):
        return price
    if not isinstance(arguments.mem_fraction_static, float):
        return arguments.mem_fraction_static
    rest = device.gib_after - device.gib_before * (1 - arguments.mem_fraction_static)
    rest -= image_mib(arguments.model, settings, rules, device) / 1024
    states = None
    if arguments.model.recurrent:
        taken = take_states(arguments, settings, rules, rest)
        if not isinstance(taken, tuple):
            return taken
        states, rest = taken
    if rest <= 0:
        return Refusal("the weights leave no memory for the cache under mem_fraction_static", "pool")
    sizes = token_pools(arguments, settings, rules, price, rest)
    if not isinstance(sizes, tuple):
        return sizes
    tokens, full, sliding, profiled = sizes
    if arguments.mem_fraction_static > 1 and allocated_bytes(price, tokens, 0, sliding) > device.gib_after * GIB:
        return Refusal("mem_fraction_static above 1 makes a cache larger than the memory that is free", "pool")
    if tokens <= 0:
        return Refusal("no page of the cache fits under mem_fraction_static", "pool")
    requests, slots = request_limit(arguments, settings, rules, tokens, profiled, states)
    if requests <= 0:
        return Refusal("the pool of states is too small for one request", "pool")
    return Pool(tokens, requests, full, sliding, states, slots)


def allocated_bytes(price: Cells, tokens: int, page_size: int, sliding: int | None = None) -> int:
    """Bytes that the engine reports for its pools: each has a page of rows more than tokens."""
    if sliding is None:
        return price.whole * (tokens + page_size)
    return price.full * (tokens + page_size) + price.sliding * (sliding + page_size)


def take_states(arguments: Arguments, settings: Settings, rules: Rules, rest: float) -> tuple[int, float] | Outcome:
    """State slots, and the GiB left after them (_handle_max_mamba_cache)."""
    size = state_bytes(arguments, settings, rules)
    if not isinstance(size, int):
        return size
    tokens = arguments.draft[2] if arguments.draft is not None else 0
    if rules.state_budget == "ratio-or-512":
        return oldest_states(arguments, settings, rest, size, tokens)
    padding = 1 if rules.state_budget == "padded" else 0
    ranks, running = arguments.attention_dp, arguments.max_running_requests
    wanted = max(padding, running // ranks) if running is not None else 0
    if rules.state_budget == "ratio" and tokens:
        rest -= size * wanted * tokens / GIB
        tokens = 0
    ratio = float(settings.mamba_full_memory_ratio)
    slots = slots_per_request(arguments)
    if settings.max_mamba_cache_size is not None:
        count = settings.max_mamba_cache_size // ranks
    elif arguments.disable_radix_cache and running is not None:
        count, slots = wanted, 1
    else:
        budget = rest * ratio / (1 + ratio) * GIB
        count = int((budget - padding * size * (1 + tokens)) // (size * (1 + tokens / slots)))
    if tokens:
        rest -= size * (min(wanted, count // slots) + padding) * tokens / GIB
    if count <= 0:
        return Refusal("there is no memory for the states of the recurrent layers", "pool")
    return count, rest - (count + padding) * size / GIB


def oldest_states(arguments: Arguments, settings: Settings, rest: float, size: int, drafts: int) -> tuple[int, float]:
    """sglang==0.5.5:srt/model_executor/model_runner.py:1325."""
    if arguments.disable_radix_cache:
        count = settings.max_mamba_cache_size or arguments.max_running_requests or constant("default_states")
    else:
        ratio = float(settings.mamba_full_memory_ratio)
        count = int(rest * ratio / (1 + ratio) * GIB // size // (1 + drafts))
    if any(part.kind == "gdn" for layer in arguments.model.arch.layers for part in layer if hasattr(part, "kind")):
        count //= arguments.attention_dp
    return count, rest - count * size * (1 + drafts) / GIB


def token_pools(
    arguments: Arguments, settings: Settings, rules: Rules, price: Cells, rest: float
) -> tuple[int, int | None, int | None, int] | Outcome:
    """Tokens, those of the full and of the sliding pool, and the tokens before any cap."""
    split = arguments.model.split
    if rules.split == "weighted" and split:
        return weighted_pools(arguments, settings, rules, price, rest)
    page = arguments.page_size
    profiled = int(rest * GIB) // price.whole
    tokens = profiled
    if rules.draft_pool == "rows" and arguments.draft is not None:
        steps, topk, drafts = arguments.draft
        slots = request_slots(arguments, settings, profiled)
        tokens += slots * (steps * topk + drafts) + 100
    if settings.max_total_tokens is not None:
        tokens = min(tokens, settings.max_total_tokens)
    tokens = tokens // page * page
    ratio = float(settings.swa_full_tokens_ratio)
    if split and rules.split == "by-layers":
        layers, swa = len(arguments.model.arch.layers), len(arguments.model.sliding)
        full = int(tokens * layers / (ratio * swa + len(arguments.model.full)))
        return full, full, int(full * ratio), profiled
    if split:
        full = int(tokens * (price.full + price.sliding) / (price.full + ratio * price.sliding)) // page * page
        return full, full, int(full * ratio) // page * page, profiled
    return chunked_pools(arguments, settings, rules, tokens, profiled)


def chunked_pools(
    arguments: Arguments, settings: Settings, rules: Rules, tokens: int, profiled: int
) -> tuple[int, int | None, int | None, int]:
    """Llama 4 with --hybrid-kvcache-ratio: one layer in four is full (set_num_token_hybrid)."""
    model, page = arguments.model, arguments.page_size
    chunk = model.arch.config.get("attention_chunk_size")
    share = float(settings.hybrid_kvcache_ratio or 0)
    applies = rules.chunk_ratio and share > 0 and model.name == "Llama4ForConditionalGeneration"
    if not applies or not isinstance(chunk, int) or model.context <= chunk:
        return tokens, None, None, profiled
    kept = (1 - share) + share * chunk / model.context
    sliding = 4 * tokens * kept // (3 * kept + 1)
    full = 4 * tokens - 12 * tokens * kept // (3 * kept + 1)
    cut_full = int(full // page * page)
    return cut_full, cut_full, int(sliding // page * page), profiled


def weighted_pools(
    arguments: Arguments, settings: Settings, rules: Rules, price: Cells, rest: float
) -> tuple[int, int | None, int | None, int] | Outcome:
    """Two pools of one price (HybridSWAPoolConfigurator), or a sliding pool by requests (SWARequestCapPoolConfigurator)."""
    page, budget = arguments.page_size, int(rest * GIB)
    ratio = float(settings.swa_full_tokens_ratio)
    cap = request_cap(arguments, rules)
    asked = settings.max_total_tokens
    if price.full == 0:
        tokens = budget // price.sliding // page * page
        tokens = min(tokens, asked // page * page) if asked is not None else tokens
        return tokens, 0, tokens, tokens
    if cap is not None:
        full = (budget - cap * price.sliding) // price.full // page * page
        if full <= 0:
            return Refusal(f"the sliding pool of {cap} tokens leaves no room for the full one", "pool")
        sliding = cap
        if asked is not None and asked < full:
            full, sliding = asked // page * page, min(cap, asked)
        return full, full, sliding, full
    full = int(budget // (price.full + ratio * price.sliding)) // page * page
    if asked is not None:
        full = min(full, asked // page * page)
    sliding = int(full * ratio) // page * page
    window = sliding_window(arguments.model)
    if rules.sliding_floor and sliding <= window + page:
        return Refusal(f"the sliding pool of {sliding} tokens does not hold the window of {window} and a page", "pool")
    return full, full, sliding, full


def request_cap(arguments: Arguments, rules: Rules) -> int | None:
    """Sliding tokens that the explicit number of requests can hold at once; None where the ratio rules."""
    running, chunk, page = arguments.max_running_requests, arguments.chunked_prefill_size, arguments.page_size
    if rules.request_cap == "never" or not arguments.disable_radix_cache or running is None:
        return None
    if rules.request_cap == "chunked" and chunk <= 0:
        return None
    drafts = arguments.draft[2] if arguments.draft is not None else 1
    trailing = sliding_window(arguments.model) + constant("eviction_interval") * drafts + page
    each = trailing + decode_rows(arguments)
    requests = max(1 if rules.request_cap == "chunked" else 0, running // arguments.attention_dp)
    flight = 1 if arguments.disable_overlap_schedule else 2
    cap = each * requests + flight * chunk + page
    return -(-cap // page) * page


def decode_rows(arguments: Arguments) -> int:
    """Rows that one request may allocate in a decode step."""
    page = arguments.page_size
    if arguments.draft is None:
        return page
    steps, topk, drafts = arguments.draft
    if arguments.disable_overlap_schedule:
        if page > 1:
            steps = -(-(steps + page if topk > 1 else steps) // page) * page
            drafts = -(-drafts // page) * page
        return max(steps * topk, drafts)
    if page == 1 or topk == 1:
        return 2 * max(steps * topk, drafts)
    pages = (page - 1 + steps + page - 1) // page
    return 2 * max(pages * page * topk, drafts)


def estimate(arguments: Arguments, tokens: int) -> int:
    """Requests of a pool before anything else limits them."""
    estimated = int(tokens / arguments.context_length * constant("request_base"))
    return max(min(estimated, constant("request_most")), constant("request_least"))


def request_slots(arguments: Arguments, settings: Settings, profiled: int) -> int:
    """Rows of the request pool in 0.4 and 0.5.5, where an explicit number is not divided by ranks."""
    running = arguments.max_running_requests
    return estimate(arguments, profiled) if running is None else running


def request_limit(
    arguments: Arguments, settings: Settings, rules: Rules, tokens: int, profiled: int, states: int | None
) -> tuple[int, int | None]:
    """Running requests of one rank, and rows of the request pool."""
    running, ranks = arguments.max_running_requests, arguments.attention_dp
    held = None if states is None else states // slots_per_request(arguments)
    if rules.requests == "slots":
        slots = request_slots(arguments, settings, profiled)
        slots = slots if held is None else min(slots, held)
        return min(tokens // 2 if running is None else running // ranks, slots), slots
    if running is None:
        limit = min(estimate(arguments, tokens), tokens // 2)
    elif rules.requests == "estimate":
        limit = min(running // ranks, estimate(arguments, tokens))
    else:
        limit = min(max(1 if rules.state_budget == "padded" else 0, running // ranks), tokens // 2)
    return (limit if held is None else min(limit, held)), None
