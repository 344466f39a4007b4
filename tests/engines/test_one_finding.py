"""One mistake is one finding: what the parser refused is not judged a second time."""

from __future__ import annotations

from pathlib import Path

import pytest

import kvlint


def rules(tmp_path: Path, name: str, text: str) -> list[str]:
    (tmp_path / name).write_text(text, encoding="utf-8")
    report = kvlint.check([str(tmp_path)])
    return sorted(each.rule for each in report.findings if each.severity != "note")


@pytest.mark.parametrize("release", ["0.9.2", "0.12.3"])
def test_a_policy_that_the_parser_refuses(tmp_path: Path, release: str) -> None:
    line = f"exec uvx --from lmdeploy=={release} lmdeploy serve api_server Qwen/Qwen3-8B --quant-policy 5\n"
    assert rules(tmp_path, "chat.sh", line) == ["malformed-value"]


def test_a_policy_that_only_the_engine_refuses(tmp_path: Path) -> None:
    line = "exec uvx --from lmdeploy==0.16.0 lmdeploy serve api_server Qwen/Qwen3-8B --quant-policy 5\n"
    assert rules(tmp_path, "chat.sh", line) == ["engine-refuses-settings"]


@pytest.mark.parametrize("arguments", ["--gpu-memory-utilization 0", "--gpu-memory-utilization 90", "--block-size 0"])
def test_a_share_or_a_block_that_cannot_be(tmp_path: Path, arguments: str) -> None:
    line = f"exec uvx --from vllm==0.33.0 vllm serve Qwen/Qwen3-8B --max-model-len 8192 {arguments}\n"
    (tmp_path / "kvlint.toml").write_text('[[hardware]]\nmatch = "**"\ndevice = "h100"\n', encoding="utf-8")
    assert rules(tmp_path, "chat.sh", line) == ["malformed-value"]


@pytest.mark.parametrize("tag", ["v0.6.0", "v0.10.2", "v0.19.1"])
@pytest.mark.parametrize("command", ["serve Qwen/Qwen3-8B", "vllm serve Qwen/Qwen3-8B", "serve --model Qwen/Qwen3-8B"])
def test_serve_again_in_the_image(tmp_path: Path, tag: str, command: str) -> None:
    """The entrypoint before 0.11.1 reads no positional, but the word behind `serve` was no mistake of its own."""
    text = f"services:\n  chat:\n    image: vllm/vllm-openai:{tag}\n    command: {command}\n"
    assert rules(tmp_path, "compose.yaml", text) == ["repeated-command"]
