"""Rows from the hub: what is kept of a configuration, what counts as the weights, and what an answer that is none means."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvlint.models.config import architecture
from kvlint.models.hub import Hub, Unreachable, weights
from kvlint.models.selection import selected

from .conftest import DENSE, FIRST
from .conftest import Hub as Fake

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "../shared/facts/models/INDEX.jsonl"


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    pytest.importorskip("huggingface_hub")
    return Fake(tmp_path)


def sized(**sizes: int) -> Any:
    files = [SimpleNamespace(rfilename=f"{name}.safetensors", size=size) for name, size in sizes.items()]
    return SimpleNamespace(siblings=files, safetensors=None)


def index(total: int, *names: str) -> dict[str, Any]:
    return {
        "metadata": {"total_size": total},
        "weight_map": {f"w{name}": f"{name}.safetensors" for name in names},
    }


def test_weights_are_what_the_index_states() -> None:
    """Headers make the files a little larger.  A second format in the repository is no part of the checkpoint."""
    assert weights(sized(a=6_000, b=4_100, consolidated=10_100), index(10_000, "a", "b")) == (None, 10_000)


def test_weights_of_an_index_that_was_not_kept_up_are_the_files() -> None:
    assert weights(sized(a=6_000, b=4_100), index(20_000, "a", "b")) == (None, 10_100)
    assert weights(sized(a=6_000, b=4_100), index(5_000, "a", "b")) == (None, 10_100)


def test_weights_of_one_file() -> None:
    assert weights(sized(model=10_000, adapter=5), None) == (None, 10_000)


def test_weights_without_sizes() -> None:
    assert weights(None, index(10_000, "a")) == (None, 10_000)
    assert weights(None, None) == (None, None)
    assert weights(sized(consolidated=5), None) == (None, None)


def test_a_packed_checkpoint_has_no_count(fake: Fake) -> None:
    """The hub counts 32-bit words of a four-bit checkpoint, and ModelOpt's layout stands in a file of its own."""
    layout = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    fake.add("acme/packed", total=1_000, config__json=DENSE, hf_quant_config__json=layout)
    row = Hub(fake).fetch("acme/packed", None)
    assert row.parameters is None
    assert row.config is not None
    assert row.config["hf_quant_config"] == layout


def test_a_nested_text_model(fake: Fake) -> None:
    config = {"model_type": "acme_vl", "text_config": DENSE, "vision_config": {"depth": 32}, "image_token_id": 5}
    fake.add("acme/vision", config__json=config)
    row = Hub(fake).fetch("acme/vision", None)
    assert row.revision == FIRST
    assert row.config == {
        "model_type": "acme_vl",
        "text_config": {key: value for key, value in DENSE.items() if key != "bos_token_id"},
    }


def test_a_repository_without_a_configuration(fake: Fake) -> None:
    fake.add("acme/dense-GGUF")
    row = Hub(fake).fetch("acme/dense-GGUF", None)
    assert (row.revision, row.config) == (FIRST, None)


@pytest.mark.skipif(not CONFIGS.exists(), reason="the gathered configurations are not here")
def test_the_fields_that_are_kept_are_enough() -> None:
    """The same architecture from the kept fields as from the whole file, for every configuration that is understood."""
    checked = 0
    for line in CONFIGS.read_text().splitlines():
        entry = json.loads(line)
        config = json.loads((CONFIGS.parent / entry["file"]).read_text())
        try:
            whole = architecture(config)
        except Exception:
            continue
        root, nested, text = selected(config)
        kept = architecture({**root, nested: text} if nested else root)
        assert (kept.layers, kept.hidden_size, kept.heads, kept.dtype, kept.positions, kept.draft_layers) == (
            whole.layers,
            whole.hidden_size,
            whole.heads,
            whole.dtype,
            whole.positions,
            whole.draft_layers,
        ), entry["id"]
        checked += 1
    assert checked > 100


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "5"])
def test_a_configuration_that_is_none(fake: Fake, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.add("acme/odd", config__json={})
    monkeypatch.setattr(json, "dumps", lambda value: text)
    if text == "5":
        assert Hub(fake).fetch("acme/odd", None).config is None
        return
    with pytest.raises(Unreachable, match=r"acme/odd: config\.json cannot be read"):
        Hub(fake).fetch("acme/odd", None)


LOCK = "import sys; from kvlint.cli import main; sys.argv = ['kvlint', 'lock', *sys.argv[1:]]; main()"


def lock(folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "HF_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-c", LOCK, str(folder)], env=environment, capture_output=True, text=True, cwd=folder
    )


def test_the_library_itself_without_a_network(tmp_path: Path) -> None:
    """What its cache holds is taken, with the commit that the cache has it under; what it does not hold is unreachable."""
    pytest.importorskip("huggingface_hub")
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    (project / "kvlint.toml").write_text("")
    (project / "serve.sh").write_text("#!/bin/sh\nexec uvx --from vllm==0.13.0 vllm serve acme/dense\n")
    done = lock(project, home)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == "kvlint: acme/dense: its config.json is not in the cache, and HF_HUB_OFFLINE is set\n"

    repository = home / "hub" / "models--acme--dense"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(FIRST)
    (repository / "snapshots" / FIRST).mkdir(parents=True)
    (repository / "snapshots" / FIRST / "config.json").write_text(json.dumps(DENSE))
    done = lock(project, home)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"added acme/dense at {FIRST}\n", "")
    assert json.loads((project / "kvlint.lock").read_text())["models"][0]["config"]["num_hidden_layers"] == 36
