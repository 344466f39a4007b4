"""Lengths of positions that the catalogue cannot vouch for."""

from __future__ import annotations

import pytest

from kvlint.models.architecture import Architecture
from kvlint.models.catalogue import doubted, find, without_lengths
from kvlint.models.config import positions
from kvlint.pipeline import check_files


@pytest.mark.parametrize(
    ("stated", "context", "expected"),
    [
        ({"max_position_embeddings": 512}, 32_768, True),  # shortened for somebody's build
        ({"max_position_embeddings": 40_960}, 262_144, True),  # a longer release of the same shape
        ({"max_position_embeddings": 40_960}, 40_960, False),
        ({"max_position_embeddings": 40_960}, None, False),
        # 131,072 × 8: the other source multiplied by a factor that the engine does not multiply by
        (
            {"max_position_embeddings": 131_072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
            1_048_576,
            False,
        ),
    ],
)
def test_lengths_that_two_sources_dispute(stated: dict[str, object], context: int | None, expected: bool) -> None:
    assert doubted(stated, context) is expected


def test_lengths_are_taken_out_of_the_text_model_too() -> None:
    kept = without_lengths({"model_type": "x", "text_config": {"max_position_embeddings": 4096, "hidden_size": 64}})
    assert kept == {"model_type": "x", "text_config": {"hidden_size": 64}}
    assert positions(kept["text_config"]) is None


def test_an_alias_that_states_another_length_has_no_positions() -> None:
    longer, base = find("lmstudio-community/Qwen3-4B-Instruct-2507-MLX-4bit"), find("Qwen/Qwen3-4B")
    assert longer is not None
    assert base is not None
    assert isinstance(longer.architecture, Architecture)
    assert isinstance(base.architecture, Architecture)
    assert longer.architecture.layers == base.architecture.layers
    assert (longer.architecture.positions, base.architecture.positions) == (None, 40_960)


@pytest.mark.parametrize("model", ["amd/Qwen3-235B-A22B-Instruct-2507-MXFP4", "mistralai/Mistral-7B-Instruct-v0.2"])
def test_no_window_is_beyond_a_length_in_dispute(model: str) -> None:
    found = check_files({"serve.sh": f"#!/bin/sh\nvllm serve {model} --max-model-len 32768\n"})
    assert "window-beyond-model" not in {each.rule for each in found.findings}
