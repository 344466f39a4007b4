"""Figures in the log of an engine's start: the memory of its pool, and what it made of window and width.

Formats: vllm 0.6.4, 0.8.5, 0.10.2, 0.33.0 (vllm/worker/worker.py, vllm/v1/worker/gpu_worker.py, vllm/v1/core/kv_cache_utils.py);
sglang 0.4.10 to 0.5.10 (srt/mem_cache/memory_pool.py, srt/managers/scheduler.py); llama-server b4000 to b11434 (tools/server).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Union

from kvlint.facts import Range, nominal
from kvlint.lock import Figure
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.units import GIB

COLOUR = regex(r"\x1b\[[0-9;]*m")
LONGEST = 10_000  # characters of a line that are looked at


@dataclass(frozen=True, slots=True)
class Pattern:
    """`begins`: what a start of the engine prints first; `figures`: names and expressions, of which one group is the number.

    A name may have several expressions; the first that occurs in the log counts.
    """

    begins: re.Pattern[str]
    figures: tuple[tuple[str, re.Pattern[str]], ...]


VLLM = Pattern(
    regex(r"vLLM API server version"),
    (
        ("available_kv", regex(r"Current kv cache memory in use is (?P<bytes>\d+) bytes")),
        ("available_kv", regex(r"Available KV cache memory: (?P<gib>-?[\d.]+) ?GiB")),
        ("available_kv", regex(r"memory reserved for KV Cache is (?P<gib>-?[\d.]+) ?GiB")),
        ("available_kv", regex(r"\bkv_cache_size=(?P<gib>-?[\d.]+) ?GiB")),
        ("pool_tokens", regex(r"GPU KV cache size: (?P<number>[\d,]+) tokens")),
        ("window", regex(r"Maximum concurrency for (?P<number>[\d,]+) tokens per request")),
    ),
)
SGLANG = Pattern(
    regex(r"\bserver_args=ServerArgs"),
    (
        ("pool_tokens", regex(r"\bmax_total_num_tokens=(?P<number>\d+)")),
        ("window", regex(r"\bcontext_len=(?P<number>\d+)")),
    ),
)
LLAMA_SERVER = Pattern(
    regex(r"\bbuild(?:_info)?: "),
    (
        ("batch_width", regex(r"\bn_slots = (?P<number>\d+)")),
        ("window", regex(r"\bn_ctx_slot = (?P<number>\d+)")),
        ("window", regex(r"\bnew slot,? n_ctx = (?P<number>\d+)")),
    ),
)
PATTERNS = {"vllm": VLLM, "sglang": SGLANG, "llama-server": LLAMA_SERVER}

# SGLang allocates a pool of tokens on each rank, one more for layers with a sliding window, and maybe one for a draft model.
POOL = regex(
    r"(?:\b(?P<rank>(?:DP\d+ )?(?:ATTN\w+ )?TP\d+)[^\]]*\] )?KV Cache is allocated\..*#tokens: (?P<tokens>\d+), "
    r"(?:K size: (?P<keys>[\d.]+) GB, V size: (?P<values>[\d.]+)|KV size: (?P<both>[\d.]+)) GB"
)
SLIDING = regex(r"\bfull_layer_tokens=(?P<full>\d+), swa_layer_tokens=(?P<sliding>\d+)")


def read(engine: str, lines: Iterable[str]) -> dict[str, Figure]:
    """What the last start in a log printed.  The smallest where several ranks or slots print a figure: that one decides."""
    pattern = PATTERNS[engine]
    started = list(_last_start(pattern, lines))
    found: dict[str, Figure] = {}
    for name, expression in pattern.figures:
        figures = list(_figures(expression, started))
        if figures and name not in found:
            found[name] = min(figures, key=lambda each: nominal(each.value))
    pool = _pool(started) if engine == "sglang" else None
    if pool is not None:
        found["available_kv"] = pool
    return {name: each for name, each in found.items() if nominal(each.value) > 0}


Line = tuple[int, str]


def _last_start(pattern: Pattern, lines: Iterable[str]) -> Iterable[Line]:
    started: list[Line] = []
    for number, line in enumerate(lines, 1):
        text = COLOUR.sub("", line[:LONGEST])
        if pattern.begins.search(text):
            started.clear()
        started.append((number, text))
    return started


def _figures(expression: re.Pattern[str], lines: Iterable[Line]) -> Iterator[Figure]:
    for number, line in lines:
        match = expression.search(line)
        if match is not None:
            ((unit, text),) = match.groupdict().items()
            yield Figure(_rounded(text) if unit == "gib" else int(text.replace(",", "")), number)


def _rounded(text: str) -> Union[int, Range]:
    """Bytes of GiB as printed; a figure with decimals stands for everything that rounds to it."""
    value, half = Fraction(text), Fraction(1, 2 * 10 ** len(text.partition(".")[2]))
    return Range(int((value - half) * GIB), int(value * GIB), int((value + half) * GIB))


def _pool(lines: list[Line]) -> Figure | None:
    """Bytes of keys and values on the rank that has the fewest, as SGLang adds them up: hundredths of a GiB, which it calls GB.

    Without sliding layers the first pool of a rank is the model's, and a second one a draft model's.
    """
    said = next((match for _, line in lines if (match := SLIDING.search(line))), None)
    waiting: dict[str, list[str]] = {}
    ranks: dict[str, tuple[Fraction, int]] = {}
    for number, line in lines:
        match = POOL.search(line)
        if match is None:
            continue
        rank, tokens = match["rank"] or "", match["tokens"]
        expected = waiting.setdefault(rank, list(said.groups()) if said is not None else [tokens])
        if tokens in expected:
            expected.remove(tokens)
            size = Fraction(match["both"]) if match["both"] else Fraction(match["keys"]) + Fraction(match["values"])
            ranks[rank] = (ranks[rank][0] + size if rank in ranks else size, number)
    if not ranks or any(waiting.values()):
        return None
    size, number = min(ranks.values())
    return Figure(int(size * GIB), number)
