"""The ratios of `benchmarks/README.md`, with air for a busy machine."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def ratios() -> Any:
    spec = importlib.util.spec_from_file_location("ratios", FOLDER / "ratios.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_start(ratios: Any) -> None:
    ours, theirs = ratios.ratio(
        [sys.executable, "-m", "kvlint", "--version"], [sys.executable, "-c", "import click"], 5
    )
    assert ours / theirs <= 1.6


def test_one_manifest(ratios: Any, tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_text(ratios.MANIFEST)
    command = [sys.executable, "-m", "kvlint", "check", "--isolated", str(tmp_path / "manifest.yaml")]
    ours, theirs = ratios.ratio(command, [sys.executable, "-c", "import click, yaml"], 5)
    assert ours / theirs <= 3.5


def test_a_tree(ratios: Any, tmp_path: Path) -> None:
    """A fifth of the benchmark's tree, on which starting up weighs more."""
    ratios.own_tree.write(tmp_path, files=400)
    command = [sys.executable, "-m", "kvlint", "check", "--isolated", str(tmp_path)]
    ours, theirs = ratios.ratio(command, [sys.executable, "-c", ratios.COMPOSE, str(tmp_path)], 3)
    assert ours / theirs <= 2.5
    assert ratios.peak_mib(command) <= 60


DENSE = Path(__file__).resolve().parents[2] / "shared/bench/gen_corpus.py"


@pytest.mark.skipif(not DENSE.exists(), reason="the generator of the dense tree is not here")
def test_a_dense_tree(ratios: Any, tmp_path: Path) -> None:
    """As many servers among shorter manifests: a ratio of 0.97, with air for a busy machine."""
    subprocess.run([sys.executable, str(DENSE), str(tmp_path)], check=True)
    command = [sys.executable, "-m", "kvlint", "check", "--isolated", str(tmp_path)]
    ours, theirs = ratios.ratio(command, [sys.executable, "-c", ratios.COMPOSE, str(tmp_path)], 5)
    assert ours / theirs <= 1.2
    assert ratios.peak_mib(command) <= 60
