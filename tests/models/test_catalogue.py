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


def test_a_length_under_another_key_than_a_table_looks_for() -> None:
    entry = find("moonshotai/Kimi-Linear-48B-A3B-Instruct")
    assert entry is not None
    assert not isinstance(entry.architecture, Unknown)
    assert entry.architecture.positions == 1_048_576  # kv-formulas 12: model_max_length


@pytest.mark.parametrize("name", ["", "nobody/nothing", "0/0", "zzzz/zzzz", "qwen/qwen3-8", "qwen/qwen3-8bb"])
def test_not_found(name: str) -> None:
    assert find(name) is None


def test_an_alias_has_a_shape_and_nothing_of_its_own() -> None:
    entry = find("lmstudio-community/Qwen3.8-27B-MLX-6bit")
    assert entry is not None
    assert entry.architecture == shape("Qwen/Qwen3.5-27B")
    assert (entry.like, entry.confidence) == ("Qwen/Qwen3.5-27B", "same shape")
    assert (entry.dtype, entry.quantization, entry.own) == (None, None, False)
    # 26,895,998,464 of text in 6.25 bits at least; in 6.5, and 460,730,096 of vision in 16
    size = entry.weight_bytes()
    assert isinstance(size, Range)
    assert (size.low, size.nominal) == (26_895_998_464 * 25 // 32, 26_895_998_464 * 13 // 16 + 2 * 460_730_096)


def test_an_alias_that_the_hub_counts_in_full_has_8_to_16_bits() -> None:
    entry = find("01-ai/Yi-1.5-34B-32K")
    assert entry is not None
    assert entry.weight_bytes() == Range(34_388_917_248, 68_777_834_496, 68_777_834_496)


@pytest.mark.parametrize(
    "name",
    [
        "unsloth/Llama-3.2-3B-Instruct-bnb-4bit",
        "unsloth/Qwen3-30B-A3B-GGUF",
        "moonshotai/Kimi-K2-Thinking",
    ],
)
def test_a_full_count_bounds_no_packed_layout(name: str) -> None:
    """The hub counts these in full, and their names or the size of a file say that they take a quarter of 16 bits."""
    entry = find(name)
    assert entry is not None
    assert isinstance(entry.weight_bytes(), Unknown)


@pytest.mark.parametrize(
    ("name", "few"),
    [
        *(("a/b-4B", False), ("a/b-8bit", False), ("a/Phi-3.5-mini", False), ("a/b-FP8-dynamic", False)),
        *(("a/b-quantized.w8a8", False), ("a/b-1_5", False), ("a/b-Int8", False), ("a/b-E4B-it", False)),
        *(("a/b-4bit-DWQ", True), ("a/b-quantized.w4a16", True), ("a/b-GPTQ", True), ("a/b-NVFP4", True)),
        *(("a/b-Q4_K_M", True), ("a/b-4.65bpw", True), ("a/b-mixed_3_6bit", True), ("a/b-MXFP4_MOE", True)),
        *(("a/b-AWQ", True), ("a/b-INT4-AutoRound", True), ("a/b-6-bit", True)),
    ],
)
def test_names_with_fewer_than_eight_bits(name: str, few: bool) -> None:
    assert bool(catalogue.FEWER_BITS.search(name)) is few


def test_a_layout_that_somebody_elses_build_has_is_not_the_models() -> None:
    """2,208,985,600 weights of 16 bits: the configuration was read where the model had been quantized for other devices."""
    entry = find("Qwen/Qwen2-VL-2B-Instruct")
    assert entry is not None
    assert (entry.quantization, entry.weight_bytes()) == (None, 2 * 2_208_985_600)
    speaking = find("Qwen/Qwen2.5-Omni-7B")  # engines load its thinker alone
    assert speaking is not None
    assert isinstance(speaking.weight_bytes(), Unknown)
    named = find("nvidia/Llama-3.1-70B-Instruct-FP8")
    assert named is not None
    assert named.quantization is not None


def test_a_copy_may_keep_the_layout_of_its_model() -> None:
    """gpt-oss-20b has 4.25 bits for each weight of an expert: its copy may be as small, whoever counts it in full."""
    model, copy, wide = map(find, ("openai/gpt-oss-20b", "unsloth/gpt-oss-20b", "unsloth/gpt-oss-20b-BF16"))
    assert model is not None
    assert copy is not None
    assert wide is not None
    smaller, found, widened = model.weight_bytes(), copy.weight_bytes(), wide.weight_bytes()
    assert isinstance(smaller, Range)
    assert isinstance(found, Range)
    assert isinstance(widened, Range)
    assert (found.low, found.nominal) == (smaller.low, smaller.nominal)
    assert (found.high, widened.nominal) == (2 * 20_914_757_184, 2 * 20_914_757_184)


def test_a_layout_that_the_name_of_the_like_model_states_is_not_its_copies() -> None:
    """70,553,706,496 weights of 16 bits, though the shape is that of a repository with FP8 weights."""
    entry = find("NousResearch/Hermes-3-Llama-3.1-70B")
    assert entry is not None
    assert entry.like == "nvidia/Llama-3.1-70B-Instruct-FP8"
    assert entry.weight_bytes() == Range(70_553_706_496, 141_107_412_992, 141_107_412_992)


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


def test_a_model_tuned_by_its_own_organisation_has_the_base_s_shape() -> None:
    """42 layers, 8 KV heads of 256 (Gemma 2 technical report, table 1); the length and the files are not the base's."""
    entry = find("google/gemma-2-9b-it")
    assert entry is not None
    assert (entry.id, entry.like, entry.context, entry.file_bytes, entry.dtype) == (
        "google/gemma-2-9b-it",
        "google/gemma-2-9b",
        None,
        None,
        None,
    )
    tuned, base = shape("google/gemma-2-9b-it"), shape("google/gemma-2-9b")
    assert len(tuned.layers) == len(base.layers) == 42
    assert find("nobody/gemma-2-9b-it") is None
    assert find("google/gemma-2-9b-it-awq") is None
