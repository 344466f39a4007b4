"""Print kvlint's cost as ratios of what any tool in Python pays for the same input, all measured in one run.

    python benchmarks/ratios.py [TREE] [--runs 5]

TREE: a directory of YAML files; without one, `benchmarks/tree.py` writes 2,000 files.  Times are CPU time, user and system, of
whole processes: the smallest of several runs, taken in turn so that a busy machine is busy for both sides.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import tree as own_tree  # noqa: E402

COMPOSE = """
import sys, yaml
from pathlib import Path
for path in sorted(Path(sys.argv[1]).rglob("*.y*ml")):
    for node in yaml.compose_all(path.read_bytes(), Loader=yaml.CSafeLoader):
        pass
"""
MANIFEST = own_tree.SERVING.format(
    name="chat",
    team="demo",
    replicas=1,
    image="vllm/vllm-openai:v0.11.0",
    command='          args: ["--model", "Qwen/Qwen3-8B", "--max-model-len", "16384", "--max-num-seqs", "16"]',
)


def cpu_seconds(command: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(), check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr.decode(errors='replace')}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def environment() -> dict[str, str]:
    """Compiled files are kept, as in any installation."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def peak_mib(command: Sequence[str]) -> float:
    """The largest resident set of one process, in MiB; measured in a child so that earlier ones do not count."""
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    out = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, check=True, env=environment())
    unit = 1 if sys.platform == "darwin" else 1024
    return int(out.stdout) * unit / 2**20


def ratio(command: Sequence[str], base: Sequence[str], runs: int) -> tuple[float, float]:
    """The smallest times of both."""
    pairs = [(cpu_seconds(command), cpu_seconds(base)) for _ in range(runs + 1)][1:]  # the first one compiles
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("tree", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    python, kvlint = sys.executable, [sys.executable, "-m", "kvlint"]
    with tempfile.TemporaryDirectory() as directory:
        manifest = Path(directory) / "one" / "manifest.yaml"
        manifest.parent.mkdir()
        manifest.write_text(MANIFEST, encoding="utf-8")
        files = given.tree or Path(directory) / "tree"
        if given.tree is None:
            own_tree.write(files)
        rows = [
            ("kvlint --version", "import click", [*kvlint, "--version"], [python, "-c", "import click"], 1.6),
            (
                "check, one manifest",
                "import click, yaml",
                [*kvlint, "check", "--isolated", str(manifest)],
                [python, "-c", "import click, yaml"],
                3.0,
            ),
            (
                "check, the tree",
                "composing each file",
                [*kvlint, "check", "--isolated", str(files)],
                [python, "-c", COMPOSE, str(files)],
                1.0,
            ),
        ]
        for name, against, command, base, aim in rows:
            ours, theirs = ratio(command, base, given.runs)
            print(f"{name:20} {ours:6.3f} s  / {against:20} {theirs:6.3f} s  = {ours / theirs:5.2f}  (aim {aim})")
        peak = peak_mib([*kvlint, "check", "--isolated", str(files)])
        print(f"{'check, the tree':20} {peak:6.1f} MiB at its peak  (aim 60)")


if __name__ == "__main__":
    main()
