"""A pull request that raised a hybrid model's window from 32,768 to 131,072 "for free" (vllm.md 4.5: 95 blocks).

Qwen3.5-27B, fp8 cache, one device, vLLM 0.24.0.  A state of 16 heads × 128 keys and 48 × 128 values: convolution 10,240 × 3 × 2 B
and 786,432 × 4 B in 32 bit = 3,207,168 B.  Attention: 4 KV heads × 2 × 256 × 1 B = 2,048 B a token and layer.  The block is
raised to 16 × ⌈3,207,168 ÷ (16 × 2,048)⌉ = 1,568 tokens; four groups of 16 layers share blocks of 1,568 × 2,048 × 16 =
51,380,224 B.  A pool of 95 of them: 4,881,121,280 B.  One request: ⌈131,072 ÷ 1,568⌉ + 3 = 87 blocks;
at 32,768 it was 21 + 3 = 24.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BLOCK = 1568 * 2048 * 16
MANIFEST = """apiVersion: apps/v1
kind: Deployment
metadata: {{name: qwen}}
spec:
  template:
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.24.0
          args:
            - --model=Qwen/Qwen3.5-27B
            - --kv-cache-dtype=fp8
            - --no-enable-prefix-caching
            - --max-num-seqs={width}
            - --max-model-len={window}
"""
CONFIG = f"""[[hardware]]
match = "**"
available_kv = {95 * BLOCK}

[[floor]]
match = "**"
min_concurrency = 2
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def kvlint(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(folder, sys.executable, "-m", "kvlint", *words)


def commit(folder: Path, **given: int) -> None:
    (folder / "qwen.yaml").write_text(MANIFEST.format(**given))
    run(folder, "git", "add", "-A")
    run(folder, "git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "change")


def test_the_window_that_was_free(tmp_path: Path) -> None:
    run(tmp_path, "git", "init", "-q", "-b", "main")
    (tmp_path / "kvlint.toml").write_text(CONFIG)
    commit(tmp_path, window=32768, width=64)
    commit(tmp_path, window=131072, width=256)

    compared = kvlint(tmp_path, "diff", "HEAD~1", "HEAD", "--format", "json")
    assert compared.returncode == 1, compared.stderr  # the floor of two requests is broken
    server = json.loads(compared.stdout)["servers"][0]
    before, after = server["before"]["measures"], server["after"]["measures"]
    assert (before["window"]["value"], after["window"]["value"]) == (32768, 131072)
    assert (before["request_kv_bytes"]["value"], after["request_kv_bytes"]["value"]) == (24 * BLOCK, 87 * BLOCK)
    assert after["state_blocks"]["value"] == 95
    assert abs(after["max_concurrency"]["value"] - 95 / 87) < 1e-9
    assert server["after"]["limited_by"]["concurrency"] == ["state blocks"]

    text = kvlint(tmp_path, "diff", "HEAD~1", "HEAD").stdout
    assert "131,072" in text
    assert "state blocks" in text
    markdown = kvlint(tmp_path, "diff", "HEAD~1", "HEAD", "--format", "markdown").stdout
    assert "state blocks" in markdown

    checked = json.loads(kvlint(tmp_path, "check", "--format", "json").stdout)
    found = [each for each in checked["findings"] if each["rule"] == "state-blocks-below-width"]
    assert [(each["severity"], each["values"]["state_blocks"]) for each in found] == [("error", 95)]
