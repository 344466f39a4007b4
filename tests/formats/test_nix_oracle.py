"""The evaluator against Nix itself: whatever it claims to know, Nix says too."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nix_expressions import expression

from kvlint.formats import nix
from kvlint.source import Source
from kvlint.tree import List, Map, Node, Scalar

NIX = shutil.which("nix-instantiate")
BATCH = 100

pytestmark = pytest.mark.skipif(NIX is None, reason="nix-instantiate is not installed")


class NotKnown(Exception):
    pass


def plain(node: Node) -> Any:
    """The node as JSON has it; `NotKnown` where any of it is unknown."""
    if isinstance(node, Map) and not node.open:
        return {entry.key.value: plain(entry.value) for entry in node}
    if isinstance(node, List) and not node.open:
        return [plain(item) for item in node]
    if not isinstance(node, Scalar) or not node.text.known or node.tag == "path":
        raise NotKnown
    if node.tag == "str":
        return node.value
    return json.loads(node.value) if node.tag != "float" else float(node.value)


def claim(text: str) -> Any:
    reading = nix.read(Source("expression.nix", text))
    if reading.problems:
        raise NotKnown
    return plain(reading.root)


def nix_value(text: str, directory: Path) -> Any:
    """What Nix prints, or None where it fails."""
    places = {"NIX_STATE_DIR": str(directory), "NIX_LOG_DIR": str(directory), "NIX_REMOTE": ""}
    command = [str(NIX), "--eval", "--strict", "--json", "--store", "dummy://", "-"]
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, env={**os.environ, **places}, timeout=120
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and not isinstance(theirs, bool):
        return isinstance(theirs, (int, float)) and math.isclose(ours, theirs, rel_tol=1e-5, abs_tol=1e-12)
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    return bool(ours == theirs)


def disagreements(claims: list[tuple[str, Any]], directory: Path) -> list[str]:
    attributes = "\n".join(f"x{number} = (\n{text}\n);" for number, (text, _) in enumerate(claims))
    answers = nix_value("{" + attributes + "}", directory)
    if answers is not None:
        return [text for number, (text, ours) in enumerate(claims) if not same(ours, answers[f"x{number}"])]
    if len(claims) == 1:
        return [claims[0][0]]
    half = len(claims) // 2
    return disagreements(claims[:half], directory) + disagreements(claims[half:], directory)


@pytest.mark.parametrize("start", range(0, 600, BATCH))
def test_what_is_known_is_what_nix_says(start: int, tmp_path: Path) -> None:
    claims = []
    unknown = []
    for seed in range(start, start + BATCH):
        text = expression(seed)
        try:
            claims.append((text, claim(text)))
        except NotKnown:
            unknown.append(text)
    assert disagreements(claims, tmp_path) == []
    assert len(claims) > BATCH * 0.8
    sample = unknown[:5]
    assert [text for text in sample if nix_value(text, tmp_path) is not None] == []


EXPRESSIONS = Path(__file__).with_name("nix_expressions.txt")


def test_written_expressions(tmp_path: Path) -> None:
    texts = [text.strip("\n") for text in EXPRESSIONS.read_text(encoding="utf-8").split("\n;;\n")]
    claims = [(text, claim(text)) for text in texts]
    assert len(claims) > 150
    assert disagreements(claims, tmp_path) == []
