"""vllm-mlx's widths, prefix caches and limits; numbers from its help texts and its code (facts/engines/vllm-mlx.md)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from kvlint.facts import Unknown
from kvlint.sizing.vllm_mlx.sizes import (
    Dropped,
    PrefixCache,
    Settings,
    batch_width,
    buffer_pool_bytes,
    buffers,
    dropped,
    memory_limit_bytes,
    prefix_cache,
    pressure_bytes,
    refused,
    release,
    simple_admission,
)

NEWEST = (0, 6, 0)
GIB = 1 << 30
MIB = 1 << 20


@pytest.mark.parametrize(
    ("settings", "width"),
    [
        ({}, 1),
        ({"max_num_seqs": 64}, 1),
        ({"continuous_batching": True}, 32),  # not the 256 of --max-num-seqs
        ({"continuous_batching": True, "max_num_seqs": 4}, 4),
        ({"continuous_batching": True, "completion_batch_size": 64}, 64),
        ({"continuous_batching": True, "completion_batch_size": 4}, 8),  # the prefill batch is wider
        ({"continuous_batching": True, "completion_batch_size": 512, "prefill_batch_size": 1}, 256),
    ],
)
def test_width(settings: dict[str, Any], width: int) -> None:
    assert batch_width(Settings(**settings)) == width


def test_simple_admission() -> None:
    assert simple_admission(NEWEST) == "refuse"
    assert simple_admission(NEWEST, " Wait") == "wait"
    assert simple_admission((0, 2, 9)) == "wait"
    assert isinstance(simple_admission((0, 3, 0)), Unknown)
    assert isinstance(simple_admission((0, 2, 0)), Unknown)


@pytest.mark.parametrize(
    ("settings", "version", "found"),
    [
        ({"continuous_batching": False, "cache_memory_mb": 512}, NEWEST, PrefixCache("none")),
        ({"disable_prefix_cache": True}, NEWEST, PrefixCache("none")),
        ({"cache_memory_mb": 512}, NEWEST, PrefixCache("memory-aware", 512 * MIB, entries=1000)),
        (
            {"cache_memory_mb": 512, "cache_memory_percent": Fraction(1, 2)},
            NEWEST,
            PrefixCache("memory-aware", 512 * MIB, entries=1000),
        ),
        ({"paged": True, "cache_memory_mb": 512}, NEWEST, PrefixCache("paged", tokens=64000)),
        ({"paged": True, "memory_aware": False, "max_cache_blocks": 10}, NEWEST, PrefixCache("paged", tokens=640)),
        ({"memory_aware": False}, NEWEST, PrefixCache("entries", entries=100)),
        ({"prefix_cache_size": 7}, (0, 2, 0), PrefixCache("entries", entries=7)),
    ],
)
def test_prefix_cache(settings: dict[str, Any], version: Any, found: PrefixCache) -> None:
    assert prefix_cache(Settings(**{"continuous_batching": True, **settings}), version) == found


def test_a_share_of_free_memory() -> None:
    batching = Settings(continuous_batching=True)
    assert isinstance(prefix_cache(batching, NEWEST), Unknown)
    assert prefix_cache(batching, NEWEST, 10 * GIB) == PrefixCache("memory-aware", 2 * GIB, entries=1000)
    assert prefix_cache(batching, NEWEST, 100 * MIB) == PrefixCache("memory-aware", 100 * MIB, entries=1000)
    half = Settings(continuous_batching=True, cache_memory_percent=Fraction("0.30"))
    assert prefix_cache(half, NEWEST, 10 * GIB) == PrefixCache("memory-aware", 3 * GIB, entries=1000)
    assert isinstance(prefix_cache(Settings(continuous_batching=True), (0, 2, 2), GIB), Unknown)


def test_dropped() -> None:
    written = ["--max-kv-size", "--stream-interval", "--port", "--prefix-trie-cache"]
    assert dropped(written, Settings()) == (
        Dropped("--max-kv-size", "--continuous-batching"),
        Dropped("--stream-interval", "--continuous-batching", certain=False),
    )
    batching = Settings(continuous_batching=True)
    assert dropped(written, batching) == (Dropped("--prefix-trie-cache", "no --continuous-batching"),)
    assert dropped(["--prefix-cache-size", "--cache-memory-mb"], batching) == (
        Dropped("--prefix-cache-size", "the entries prefix cache"),
    )
    paged = Settings(continuous_batching=True, paged=True)
    assert [item.flag for item in dropped(["--kv-cache-quantization", "--max-cache-blocks"], paged)] == [
        "--kv-cache-quantization"
    ]
    off = Settings(continuous_batching=True, disable_prefix_cache=True)
    assert [item.flag for item in dropped(["--cache-memory-mb", "--max-num-seqs"], off)] == ["--cache-memory-mb"]


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, None),
        ({"max_tokens": 32768}, None),
        ({"max_tokens": 65536}, "max-tokens-above-request-limit"),
        ({"max_tokens": 65536, "max_request_tokens": 65536}, None),
        ({"max_request_tokens": 1024}, "max-tokens-above-request-limit"),
        ({"max_tokens": 0}, "token-limit"),
        ({"gpu_memory_utilization": Fraction(0)}, "gpu-memory-utilization"),
        ({"gpu_memory_utilization": Fraction("1.5")}, "gpu-memory-utilization"),
        ({"cache_memory_percent": Fraction(20)}, None),  # not heard
        ({"cache_memory_percent": Fraction(20), "continuous_batching": True}, "cache-memory-percent"),
        ({"cache_memory_percent": Fraction(20), "continuous_batching": True, "paged": True}, None),
    ],
)
def test_refused(settings: dict[str, Any], kind: str | None) -> None:
    found = refused(Settings(**settings))
    assert (found and found.kind) == kind


def test_device_memory() -> None:
    batching = Settings(continuous_batching=True)
    assert memory_limit_bytes(Settings(), 96 * GIB) is None
    assert memory_limit_bytes(batching, 100 * GIB) == 90 * GIB
    assert buffer_pool_bytes(batching, 100 * GIB, NEWEST) == 90 * GIB
    assert buffer_pool_bytes(batching, 100 * GIB, (0, 2, 8)) == 32 * GIB
    assert isinstance(buffer_pool_bytes(batching, 100 * GIB, (0, 4, 0)), Unknown)
    assert buffer_pool_bytes(batching, 100 * GIB, (0, 2, 5)) is None
    assert pressure_bytes(batching, 100 * GIB) == 95 * GIB
    assert pressure_bytes(Settings(gpu_memory_utilization=Fraction(1)), 100 * GIB) == 99 * GIB
    assert isinstance(buffers(), Unknown)


def test_release() -> None:
    assert (release("0.6.0"), release("v0.2.9"), release("latest")) == ((0, 6, 0), (0, 2, 9), None)
