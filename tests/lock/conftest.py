"""A directory with files, the real command line in it, and a hub that answers from memory."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvlint.cli import main
from kvlint.models import hub

# Qwen3-8B's shape: 36 layers x 8 KV heads x 128 x K and V x 2 bytes = 147,456 bytes a token.
DENSE: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "head_dim": 128,
    "hidden_size": 4096,
    "max_position_embeddings": 40960,
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "sliding_window": None,
    "torch_dtype": "bfloat16",
    "vocab_size": 151936,
    "bos_token_id": 151643,
}
FIRST, SECOND = "a" * 40, "b" * 40


@dataclass
class Hub:
    """Repositories: by name, their commit, files, sizes and count.  `error` is raised at every question."""

    folder: Path
    repositories: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: Exception | None = None
    asked: list[str] = field(default_factory=list)

    def add(self, name: str, commit: str = FIRST, total: int | None = None, **files: Any) -> None:
        texts = {key.replace("__", "."): value for key, value in files.items()}
        self.repositories[name] = {"commit": commit, "files": texts, "total": total, "sizes": {}}

    def model_info(self, name: str, *, revision: str | None, files_metadata: bool, timeout: float) -> Any:
        found = self._found(name)
        sizes = [SimpleNamespace(rfilename=file, size=size) for file, size in found["sizes"].items()]
        total = found["total"]
        safetensors = SimpleNamespace(total=total) if total is not None else None
        return SimpleNamespace(sha=found["commit"], siblings=sizes, safetensors=safetensors)

    def hf_hub_download(self, name: str, file: str, *, revision: str | None) -> str:
        from huggingface_hub.errors import EntryNotFoundError

        found = self._found(name)
        if file not in found["files"]:
            raise EntryNotFoundError(file)
        path = self.folder / found["commit"] / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found["files"][file]))
        return str(path)

    def _found(self, name: str) -> dict[str, Any]:
        self.asked.append(name)
        if self.error is not None:
            raise self.error
        if name not in self.repositories:
            from huggingface_hub.errors import RepositoryNotFoundError

            raise RepositoryNotFoundError.__new__(RepositoryNotFoundError)
        return self.repositories[name]


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Folder:
    root: Path
    hub: Hub
    _capture: Any
    _patch: Any

    def write(self, files: dict[str, Any]) -> None:
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes((content if isinstance(content, str) else json.dumps(content)).encode())

    @property
    def lock(self) -> Any:
        return json.loads((self.root / "kvlint.lock").read_text())

    def kvlint(self, *arguments: str) -> Result:
        self._patch.chdir(self.root)
        self._patch.setattr(sys, "argv", ["kvlint", *arguments])
        self._capture.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        captured = self._capture.readouterr()
        return Result(int(stop.value.code or 0), captured.out, captured.err)

    def drift(self) -> list[Any]:
        found = json.loads(self.kvlint("check", "--format", "json", "--select", "lock-drift").out)["findings"]
        return [(each["severity"], each["path"], each["line"], each["message"]) for each in found]

    def server(self) -> Any:
        (found,) = json.loads(self.kvlint("show", "--format", "json").out)["servers"]
        return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Folder:
    pytest.importorskip("huggingface_hub")
    fake = Hub(tmp_path / "cache")
    real = hub.Hub
    monkeypatch.setattr(hub, "Hub", lambda: real(fake))
    found = Folder(tmp_path / "project", fake, capsys, monkeypatch)
    found.root.mkdir()
    (found.root / "kvlint.toml").write_text("")
    return found
