"""Lookups in the bundled catalogue, and that it is current."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from kvlint.facts import Range, Unknown
from kvlint.models import catalogue
from kvlint.models.architecture import Architecture
from kvlint.models.catalogue import find, lookup, lookup_config

ROOT = Path(__file__).resolve().parents[2]
FACTS = ROOT / "../shared" / "facts"


def shape(model: str) -> Architecture:
    entry = find(model)
    assert entry is not None
    assert isinstance(entry.architecture, Architecture)
    return entry.architecture


@pytest.mark.parametrize("name", ["Qwen/Qwen3-8B", "qwen/qwen3-8b", "QWEN/QWEN3-8B", " Qwen/Qwen3-8B/ "])
def test_found_in_any_case(name: str) -> None:
    entry = find(name)
    assert entry is not None
    assert (entry.id, entry.parameters, entry.context) == ("Qwen/Qwen3-8B", 8_190_735_360, 40_960)
    assert entry.confidence == "real config.json"
    assert "aiconfigurator" in entry.source
    assert entry.weight_bytes() == 2 * 8_190_735_360


@pytest.mark.parametrize("name", ["", "nobody/nothing", "0/0", "zzzz/zzzz", "qwen/qwen3-8", "qwen/qwen3-8bb"])
def test_not_found(name: str) -> None:
    assert find(name) is None


def test_an_alias_has_a_shape_and_nothing_of_its_own() -> None:
    entry = find("lmstudio-community/Qwen3.8-27B-MLX-6bit")
    assert entry is not None
    assert entry.architecture == shape("Qwen/Qwen3.5-27B")
    assert (entry.like, entry.confidence) == ("Qwen/Qwen3.5-27B", "same shape")
    assert (entry.dtype, entry.quantization, entry.own) == (None, None, False)
    assert isinstance(entry.weight_bytes(), Unknown)


def test_an_alias_that_the_hub_counts_in_full_has_8_to_16_bits() -> None:
    entry = find("01-ai/Yi-1.5-34B-32K")
    assert entry is not None
    assert entry.weight_bytes() == Range(34_388_917_248, 68_777_834_496, 68_777_834_496)


def test_a_scraped_shape_only_where_it_is_plain() -> None:
    assert find("facebook/opt-125m") is None
    entry = find("EleutherAI/pythia-160m")
    assert entry is not None
    assert entry.confidence == "scraped"
    assert len(shape("EleutherAI/pythia-160m").layers) == 12
    assert isinstance(entry.weight_bytes(), Unknown)


def test_exact_file_sizes_beat_formulas() -> None:
    entry = find("mlx-community/DeepSeek-V3.2-4bit")
    assert entry is not None
    assert entry.weight_bytes() == 378_086_226_621
    assert entry.like == "deepseek-ai/DeepSeek-V3.2"
    rounded = find("mlx-community/DeepSeek-V3.1-4bit")
    assert rounded is not None
    assert rounded.file_bytes is None


def test_a_checkpoint_that_makes_auto_mean_fp8() -> None:
    entry = find("nvidia/Llama-3.1-70B-Instruct-FP8")
    assert entry is not None
    assert entry.kv_cache_dtype == "fp8_e4m3"
    plain = find("Qwen/Qwen3-8B")
    assert plain is not None
    assert plain.kv_cache_dtype is None


def test_rope_and_positions_travel() -> None:
    found = shape("deepseek-ai/DeepSeek-V3")
    assert found.positions == 163_840
    assert found.config["rope_scaling"]["factor"] == 40
    assert found.config["rope_scaling"]["original_max_position_embeddings"] == 4096


def test_a_configuration_that_is_not_in_the_catalogue() -> None:
    entry = lookup_config({"model_type": "llama"}, name="acme/private")
    assert isinstance(entry.architecture, Unknown)
    assert "num_hidden_layers" in entry.architecture.reason


def test_a_lookup_reads_little() -> None:
    catalogue.entry.cache_clear()
    find("Qwen/Qwen3-8B")
    tracemalloc.start()
    lookup(catalogue.COMPILED, "zai-org/glm-4.6")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_every_row_is_reached() -> None:
    keys = [line.split("\t", 1)[0] for line in catalogue.COMPILED.read_text().splitlines()]
    assert keys == sorted(keys, key=str.encode)
    assert len(keys) == len(set(keys)) > 1500
    for key in keys[:: max(1, len(keys) // 200)] + keys[-1:]:
        row = lookup(catalogue.COMPILED, key)
        assert row is not None
        assert row["id"].lower() == key


@pytest.mark.skipif(not FACTS.exists(), reason="the facts are not here")
def test_the_compiled_files_are_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "build_models.py"), "--facts", str(FACTS), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not FACTS.exists(), reason="the facts are not here")
def test_nothing_of_a_configuration_that_matters_is_lost() -> None:
    from kvlint.models.architecture import UnknownArchitecture
    from kvlint.models.config import architecture

    for row in map(json.loads, (FACTS / "models" / "INDEX.jsonl").read_text().splitlines()):
        entry = find(row["id"])
        assert entry is not None
        try:
            whole = architecture(json.loads((FACTS / "models" / row["file"]).read_text()))
        except UnknownArchitecture:
            assert isinstance(entry.architecture, Unknown)
            continue
        kept = entry.architecture
        assert isinstance(kept, Architecture)
        for name in ("layers", "draft_layers", "heads", "hidden_size", "vocab_size", "dtype", "classes"):
            assert getattr(kept, name) == getattr(whole, name), (row["id"], name)
        disputed = catalogue.doubted(whole.config, row.get("max_context_hub"))
        assert kept.positions == (None if disputed else whole.positions), row["id"]
