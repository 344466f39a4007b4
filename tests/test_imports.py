"""What each way through the program may load: a slow start begins with one import too many."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Never in a run without a network: a client of the Hub, what only the tests need, what reads package metadata.
NEVER = (
    "huggingface_hub",
    "jsonschema",
    "importlib.metadata",
    "httpx",
    "requests",
    "hypothesis",
    "pytest",
    "asyncio",
    "ssl",
)
MANIFEST = """\
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec:
  containers:
    - name: engine
      image: vllm/vllm-openai:v0.11.0
      args: ["--model", "Qwen/Qwen3-8B", "--max-model-len", "16384", "--max-num-seqs", "16"]
"""
MODULE = '{ systemd.services.chat.serviceConfig.ExecStart = "mlx_lm.server --model m"; }\n'


def loaded(*words: str, directory: Path) -> set[str]:
    script = (
        "import sys\n"
        "from kvlint.cli import main\n"
        "sys.argv = ['kvlint', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*sorted(sys.modules), sep='\\n', file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=directory, capture_output=True, text=True, check=True
    )
    return set(done.stderr.splitlines())


def held(modules: set[str], names: tuple[str, ...]) -> set[str]:
    return {each for each in modules if any(each == name or each.startswith(f"{name}.") for name in names)}


def test_the_version_reads_nothing(tmp_path: Path) -> None:
    modules = loaded("--version", directory=tmp_path)
    assert held(modules, (*NEVER, "yaml", "tree_sitter", "json", "fractions")) == set()
    assert {each for each in modules if each.startswith("kvlint.")} == {"kvlint.cli"}


def test_a_manifest_needs_no_parser_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(MANIFEST)
    modules = loaded("check", ".", directory=tmp_path)
    assert "yaml" in modules
    assert held(modules, (*NEVER, "tree_sitter", "tree_sitter_nix", "xml", "plistlib", "tomli", "tomllib")) == set()
    engines = {each.rpartition(".")[2] for each in held(modules, ("kvlint.engines",))}
    assert engines & {"vllm", "sglang", "mlx_lm", "llama_server", "ollama", "tgi", "trtllm", "lmdeploy"} == {"vllm"}


@pytest.mark.parametrize("name", ["empty.yaml", "notes.yaml"])
def test_a_file_that_cannot_matter_is_not_parsed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("" if name.startswith("empty") else "colour: blue\n")
    modules = loaded("check", ".", directory=tmp_path)
    assert held(modules, (*NEVER, "yaml", "tree_sitter")) == set()


def test_tree_sitter_comes_with_nix_alone(tmp_path: Path) -> None:
    (tmp_path / "host.nix").write_text(MODULE)
    modules = loaded("check", ".", directory=tmp_path)
    assert {"tree_sitter", "tree_sitter_nix"} <= modules
    assert held(modules, NEVER) == set()


def test_sizes_without_a_file(tmp_path: Path) -> None:
    words = ("size", "--weights", "17GiB", "--kv-bytes-per-token", "65536", "--budget", "48GiB", "--windows", "131072")
    assert held(loaded(*words, directory=tmp_path), (*NEVER, "yaml", "tree_sitter")) == set()
