"""A real git repository and the real command line in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kvlint.cli import main

RULES = "cold-prompt-cache,unknown-flag,derived-drift"
MODEL = "lmstudio-community/Qwen3.8-27B-MLX-4bit"
CHAT = f"""\
#!/bin/sh
# kvlint: window=200000 streams=2
exec uvx --from mlx-lm==0.32.2 mlx_lm.server --model {MODEL}
"""
CONFIG = f"""\
[[hardware]]
match = "**"
budget = "48GiB"

[[model]]
id = "{MODEL}"
weights = "17GiB"
"""


@dataclass(frozen=True, slots=True)
class Result:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rules(self) -> list[str]:
        return [finding["rule"] for finding in self.json["findings"]]


@dataclass(frozen=True, slots=True)
class Repo:
    root: Path
    _capture: Any
    _patch: Any

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ("git", *arguments), cwd=self.root, env=clean(), capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, files: dict[str, str | bytes | None]) -> None:
        """Write files; None takes one away."""
        for name, content in files.items():
            path = self.root / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, files: dict[str, str | bytes | None], message: str = "x") -> str:
        self.write(files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def read(self, name: str) -> str:
        return (self.root / name).read_text()

    def kvlint(self, *arguments: str, cwd: str = ".") -> Result:
        self._patch.chdir(self.root / cwd)
        self._patch.setattr(sys, "argv", ["kvlint", *arguments])
        self._capture.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        captured = self._capture.readouterr()
        return Result(int(stop.value.code or 0), captured.out, captured.err)

    def check(self, *arguments: str, cwd: str = ".", select: str = RULES) -> Result:
        return self.kvlint("check", "--format", "json", "--select", select, *arguments, cwd=cwd)


def clean() -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
    who |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
    return {**environment, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Repo:
    for name in [name for name in os.environ if name.startswith(("GIT_", "GITHUB_"))]:
        monkeypatch.delenv(name)
    found = Repo(tmp_path / "project", capsys, monkeypatch)
    found.root.mkdir()
    found.git("init", "-q", "-b", "main")
    return found


@pytest.fixture
def chat(repo: Repo) -> Repo:
    """A repository whose one server breaks one rule, committed."""
    repo.commit({"chat.sh": CHAT, "kvlint.toml": CONFIG})
    return repo
