"""Values of the YAML that `--config` names, as they are said and not as they are written; and TGI's refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kvlint
from kvlint.cli.show import command


def shown(folder: Path) -> dict[str, Any]:
    result = CliRunner().invoke(command, ["--isolated", "--format", "json", str(folder)])
    return json.loads(result.output)["servers"][0]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("served-model-name:\n  - chat\n  - 'chat large'\n", ["chat", "chat large"]),
        ('served_model_name: [chat, "large"]\n', ["chat", "large"]),
        ('served-model-name: "chat"\n', ["chat"]),
    ],
)
def test_names_from_a_file(tmp_path: Path, text: str, names: list[str]) -> None:
    (tmp_path / "serve.yaml").write_text(text)
    (tmp_path / "run.sh").write_text(
        "#!/bin/sh\nuvx --from vllm==0.20.2 vllm serve Qwen/Qwen3-8B --config serve.yaml\n"
    )
    assert shown(tmp_path)["names"] == names


def test_quoted_scalars_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "serve.yaml").write_text("model: \"Qwen/Qwen3-8B\"\nkv-cache-dtype: 'fp8'\nmax-model-len: '8192'\n")
    (tmp_path / "run.sh").write_text("#!/bin/sh\nuvx --from vllm==0.20.2 vllm serve --config serve.yaml\n")
    server = shown(tmp_path)
    settings = {name: server["settings"][name]["value"] for name in ("model", "kv_dtype", "window")}
    assert settings == {"model": "Qwen/Qwen3-8B", "kv_dtype": "fp8", "window": 8192}
    origin = server["settings"]["window"]["origin"]
    assert (origin["path"].rpartition("/")[2], origin["line"]) == ("serve.yaml", 3)


def tgi(folder: Path, *words: str) -> list[tuple[str, str]]:
    image = "ghcr.io/huggingface/text-generation-inference:3.3.7"
    command = json.dumps(["--model-id", "Qwen/Qwen3-8B", *words])
    (folder / "compose.yaml").write_text(f"services:\n  tgi:\n    image: {image}\n    command: {command}\n")
    return [(f.rule, f.message) for f in kvlint.check([folder]).findings if f.severity in ("error", "warning")]


# tgi.md, "Refused": no number of shards comes into it
@pytest.mark.parametrize(
    "words",
    [
        ("--max-input-tokens", "4096", "--max-total-tokens", "4096"),
        ("--max-total-tokens", "4096", "--max-batch-total-tokens", "2048"),
    ],
)
def test_limits_are_compared_where_the_shards_are_not_known(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert [rule for rule, _ in tgi(tmp_path, *words)] == ["engine-refuses-settings"]


def test_limits_that_fit(tmp_path: Path) -> None:
    assert tgi(tmp_path, "--max-input-tokens", "4095", "--max-total-tokens", "4096") == []


def test_clap_takes_no_option_twice_and_no_negative_number(tmp_path: Path) -> None:
    ((rule, said),) = tgi(tmp_path, "--max-total-tokens", "4096", "--max-total-tokens", "8192")
    assert (rule, "it is given twice" in said) == ("malformed-value", True)
    ((rule, said),) = tgi(tmp_path, "--max-total-tokens", "-5")
    assert (rule, "does not start with `-5`" in said) == ("malformed-value", True)
