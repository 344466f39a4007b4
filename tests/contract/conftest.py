"""A directory of files and the command line in it, as a program that reads its output would see it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kvlint.cli import main


@dataclass(frozen=True, slots=True)
class Result:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Project:
    """`root` is the top of a repository, so that no configuration above it is found."""

    root: Path
    _capture: Any
    _patch: Any

    def write(self, files: dict[str, str]) -> Project:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        return self

    def run(self, *arguments: str, at: str = ".") -> Result:
        self._patch.chdir(self.root / at)
        self._patch.setattr(sys, "argv", ["kvlint", *arguments])
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capture.readouterr()
        return Result(int(ended.value.code or 0), out, err)

    def check(self, *arguments: str, at: str = ".") -> Any:
        return self.run("check", "--format", "json", *arguments, at=at).json

    def findings(self, *rules: str) -> list[Any]:
        """The findings of some rules, or all of them."""
        found = self.check(*(("--select", ",".join(rules)) if rules else ()))["findings"]
        return list(found)

    def show(self, *arguments: str) -> Any:
        return self.run("show", "--format", "json", *arguments).json

    def server(self) -> Any:
        (server,) = self.show()["servers"]
        return server


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / ".git").mkdir()
    return Project(tmp_path, capsys, monkeypatch)
