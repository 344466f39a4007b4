"""vllm-mlx on the pipeline: what it hears with and without --continuous-batching.  Figures: facts/engines/vllm-mlx.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kvlint.engines.options import Option, options
from kvlint.facts import Fact, Unknown
from kvlint.pipeline import evaluate, memory_project
from kvlint.sizing.vllm_mlx.sizes import data
from kvlint.subjects import Server

BATCHING = (*data()["flags"]["batching"], *data()["flags"]["batching_read_in_part"])
# facts/engines/vllm-mlx.md: parsed and silently ignored in simple mode
FACTS = (
    *("--max-kv-size", "--max-num-seqs", "--prefill-batch-size", "--completion-batch-size"),
    *("--enable-prefix-cache", "--disable-prefix-cache", "--prefix-cache-size", "--cache-memory-mb"),
    *("--cache-memory-percent", "--no-memory-aware-cache", "--kv-cache-quantization", "--kv-cache-min-quantize-tokens"),
    *("--ssd-cache-dir", "--ssd-cache-max-gb", "--use-paged-cache", "--paged-cache-block-size"),
    *("--max-cache-blocks", "--chunked-prefill-tokens", "--mllm-prefill-step-size", "--stream-interval"),
    *("--mtp-num-draft-tokens", "--mtp-optimistic"),
)
VALUES = {"--cache-memory-percent": "0.3", "--kv-cache-quantization-bits": "8", "--gpu-memory-utilization": "0.8"}


def server(args: str, release: str = "0.6.0", config: str = "") -> Server:
    script = f"#!/bin/sh\nexec uvx --from vllm-mlx=={release} vllm-mlx serve Qwen/Qwen3-8B {args}\n"
    evaluation = evaluate(memory_project({"run.sh": script}, config))
    assert evaluation.findings.internal == []
    (group,) = evaluation.groups
    (world,) = group.worlds
    return world


def value(found: Server, name: str) -> Any:
    fact = found.get(name)
    return fact.value if isinstance(fact, Fact) else fact


def kinds(found: Server) -> list[tuple[str, str]]:
    return [(each.kind, each.span.text) for each in found.problems]


def written(option: Option) -> str:
    return option.name if option.nargs == 0 else f"{option.name} {VALUES.get(option.name, '8')}"


def cases() -> Iterator[Any]:
    known = options("vllm-mlx")
    for release in known.releases:
        for option in known.at(release).options:
            plain = (
                option.type in ("int", "float", "bool", "str", "positive_int")
                and option.name != "--continuous-batching"
            )
            if plain and option.action != "help" and not option.positional:
                yield pytest.param(release, option, id=f"{release} {option.name}")


@pytest.mark.parametrize(("release", "option"), list(cases()))
def test_every_flag_that_is_dropped_without_batching(release: str, option: Option) -> None:
    dropped = [text for kind, text in kinds(server(written(option), release)) if kind == "continuous-batching-off"]
    assert dropped == ([option.name] if option.name in BATCHING else [])
    batched = server(f"--continuous-batching {written(option)}", release)
    assert "continuous-batching-off" not in [kind for kind, _ in kinds(batched)]


@pytest.mark.parametrize("flag", FACTS)
def test_the_facts_name_no_flag_that_is_not_known_as_dropped(flag: str) -> None:
    assert flag in BATCHING


@pytest.mark.parametrize(
    ("args", "mode"),
    [
        ("", "memory-aware"),
        ("--no-memory-aware-cache", "entries"),
        ("--use-paged-cache", "paged"),
        ("--use-paged-cache --no-memory-aware-cache", "paged"),
        ("--use-paged-cache --disable-prefix-cache", "none"),
    ],
)
@pytest.mark.parametrize("flag", ["--cache-memory-mb 512", "--prefix-cache-size 8", "--max-cache-blocks 500"])
def test_a_limit_belongs_to_one_cache(args: str, mode: str, flag: str) -> None:
    owner = {"--cache-memory-mb": "memory-aware", "--prefix-cache-size": "entries", "--max-cache-blocks": "paged"}
    found = server(f"--continuous-batching {args} {flag}")
    name = flag.split()[0]
    assert kinds(found) == ([] if owner[name] == mode else [("prompt-cache-limit-ignored", name)])
    assert value(found, "prefix_caching") is (mode != "none")


@pytest.mark.parametrize(
    ("args", "width"),
    [
        ("", 1),
        ("--max-num-seqs 64", 1),
        ("--continuous-batching", 32),
        ("--continuous-batching --max-num-seqs 4", 4),
        ("--continuous-batching --completion-batch-size 4", 8),
        ("--continuous-batching --completion-batch-size 64 --max-num-seqs 48", 48),
    ],
)
def test_effective_width(args: str, width: int) -> None:
    assert value(server(args), "batch_width") == width


def test_capacity_by_mode() -> None:
    # 36 layers x 8 heads x (128 + 128) x 2 bytes = 147,456 bytes a token
    assert value(server("--continuous-batching --cache-memory-mb 4096"), "prompt_cache_capacity_bytes") == 4096 << 20
    paged = server("--continuous-batching --use-paged-cache")
    assert value(paged, "prompt_cache_capacity_bytes") == 64 * 1000 * 147_456
    entries = server("--continuous-batching --no-memory-aware-cache --prefix-cache-size 4")
    assert entries.get("prompt_cache_capacity_bytes") is None
    assert value(entries, "prompt_cache_entries") == 4
    assert server("--cache-memory-mb 4096").get("prompt_cache_capacity_bytes") is None


def test_a_share_of_free_memory_is_not_in_the_files() -> None:
    found = server("--continuous-batching --cache-memory-percent 0.25")
    assert isinstance(found.get("prompt_cache_capacity_bytes") or found.get("cache_limit"), Unknown)
    known = server(
        "--continuous-batching --cache-memory-percent 0.25", config='[[hardware]]\nmatch = "**"\nfree = "40GiB"\n'
    )
    assert value(known, "prompt_cache_capacity_bytes") == 10 << 30


def test_the_window_is_not_the_engines_own() -> None:
    found = server("--continuous-batching --max-tokens 4096")
    assert value(found, "window_kind") == "none"
    assert value(found, "max_output") == 4096


def test_a_share_above_one_does_not_start() -> None:
    assert kinds(server("--continuous-batching --cache-memory-percent 20")) == [("malformed-value", "20")]


def test_buffers_of_the_paged_cache() -> None:
    found = server("--continuous-batching --use-paged-cache --max-cache-blocks 8000")
    assert value(found, "buffers").nominal == 8000 * 36 * 2
    # 512,000 tokens in at most 499,000 // 72 blocks
    assert value(found, "smallest_block_size").nominal == -(-512_000 // (499_000 // 72))
