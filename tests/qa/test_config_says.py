"""What kvlint.toml and the command line say of rules, and sets that compare nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvlint.config import Config, load
from kvlint.source import Source
from kvlint.suppress import selected

# mlx-lm has `--kv-bits` since 0.32.0 (mlx-lm-server.md)
SCRIPT = "#!/bin/sh\nexec uvx --from mlx-lm==0.31.3 mlx_lm.server --model mlx-community/Qwen3-8B-4bit --kv-bits 8\n"


def config(text: str) -> Config:
    return load(Source("kvlint.toml", text))


def found(folder: Path, text: str) -> list[str]:
    import kvlint

    (folder / "run.sh").write_text(SCRIPT)
    (folder / "kvlint.toml").write_text(text)
    return sorted(finding.rule for finding in kvlint.check([folder]).findings)


@pytest.mark.parametrize("name", ["unknown-flag", "flags", "all"])
def test_a_theme_is_ignored_in_a_file_as_its_rules_are(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, f'[[per_file_ignore]]\nmatch = "*.sh"\nrules = ["{name}"]\n') == []


def test_another_theme_is_not(tmp_path: Path) -> None:
    assert found(tmp_path, '[[per_file_ignore]]\nmatch = "*.sh"\nrules = ["window"]\n') == ["unknown-flag"]


@pytest.mark.parametrize("at", ["run.sh#run:--kv-bits", "run.sh#run:--kv_bits", "run.sh"])
def test_a_flag_that_the_engine_does_not_know_has_an_address(tmp_path: Path, at: str) -> None:
    assert found(tmp_path, f'[[ignore]]\nrule = "unknown-flag"\nat = "{at}"\nreason = "a fork"\n') == []


def test_another_flag_of_the_line_is_not_meant(tmp_path: Path) -> None:
    table = '[[ignore]]\nrule = "unknown-flag"\nat = "run.sh#run:--model"\nreason = "a fork"\n'
    assert found(tmp_path, table) == ["unknown-flag", "unused-suppression"]


@pytest.mark.parametrize("table", ['name = "x"', 'equal = ["run.sh#run:--model"]', "at_most = []"])
def test_a_set_that_compares_nothing(tmp_path: Path, table: str) -> None:
    assert found(tmp_path, f"[[parity]]\n{table}\n") == ["misplaced-directive", "unknown-flag"]


@pytest.mark.parametrize(
    ("text", "select", "ignore", "runs"),
    [
        ('ignore = ["unknown-flag"]', (), (), False),
        ('ignore = ["unknown-flag"]', ("unknown-flag",), (), True),
        ('ignore = ["flags"]', ("unknown-flag",), (), True),
        ('ignore = ["flags"]', ("flags",), (), True),
        ('ignore = ["unknown-flag"]', ("flags",), (), False),
        ('ignore = ["unknown-flag"]', ("all",), (), False),
        ("", ("unknown-flag",), ("flags",), False),
        ('[severity]\nunknown-flag = "off"', ("unknown-flag",), (), False),
        ('select = ["window"]', ("unknown-flag",), (), True),
    ],
)
def test_the_command_line_before_the_file(
    text: str, select: tuple[str, ...], ignore: tuple[str, ...], runs: bool
) -> None:
    assert ("unknown-flag" in [rule.name for rule in selected(config(text), select, ignore)]) is runs
