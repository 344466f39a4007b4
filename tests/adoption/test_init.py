"""`kvlint init`: a file that is valid as it is and with everything in it taken into use."""

from __future__ import annotations

import re
from typing import Any

import pytest
from repository import CHAT, CONFIG, MODEL

from kvlint.config import load
from kvlint.source import Source

OPEN = "#!/bin/sh\nexec uvx mlx_lm.server --model acme/private-7b\n"
SERVE = "#!/bin/sh\nexec uvx --from vllm==0.11.0 vllm serve Qwen/Qwen3-8B --max-model-len 16384\n"
FULL = '[[hardware]]\nmatch = "**"\navailable_kv = "8GiB"\ndevice = "nvidia-l40s"\n'


def used(text: str) -> str:
    return re.sub(r"(?m)^#(?=\S)", "", text)


def test_it_asks_for_what_the_files_leave_open(repo: Any) -> None:
    repo.commit({"chat.sh": CHAT, "serve.sh": SERVE, 'od"d #1/open.sh': OPEN})
    result = repo.kvlint("init")
    assert result.status == 0
    assert "3 servers" in result.out
    text = repo.read("kvlint.toml")
    bare, whole = load(Source("kvlint.toml", text)), load(Source("kvlint.toml", used(text)))
    assert bare.tables == {}
    hardware = whole.matching("hardware", "chat.sh#chat")
    assert "budget" in hardware
    assert "memory" in whole.matching("hardware", "serve.sh#serve")
    assert {"window", "streams"} <= whole.matching("workload", 'od"d #1/open.sh#open').keys()
    assert {table.get("id") for table in whole.all("model")} >= {"acme/private-7b", MODEL}
    assert "window" not in whole.matching("workload", "serve.sh#serve")


def test_a_version_is_asked_for_where_releases_differ(repo: Any) -> None:
    repo.commit({"a.sh": SERVE.replace("==0.11.0", ""), "b.sh": SERVE})
    repo.kvlint("init")
    whole = load(Source("kvlint.toml", used(repo.read("kvlint.toml"))))
    assert "version" in whole.matching("engine", "a.sh#a")
    assert "version" not in whole.matching("engine", "b.sh#b")


def test_the_file_is_the_configuration_of_the_next_run(repo: Any) -> None:
    repo.commit({"chat.sh": CHAT})
    before = repo.check("--strict-facts").rules
    repo.kvlint("init")
    assert repo.check("--strict-facts").rules == before


def test_a_project_without_servers(repo: Any) -> None:
    repo.commit({"readme.yaml": "a: 1\n"})
    assert repo.kvlint("init").status == 0
    assert "No server was found" in repo.read("kvlint.toml")


@pytest.mark.parametrize("files", [{"kvlint.toml": CONFIG}, {"pyproject.toml": "[tool.kvlint]\n"}])
def test_nothing_is_overwritten(repo: Any, files: dict[str, str]) -> None:
    repo.commit({"chat.sh": CHAT, **files})
    result = repo.kvlint("init")
    assert (result.status, result.out) == (2, "")
    assert "already" in result.err
    for name, content in files.items():
        assert repo.read(name) == content


def test_where_the_file_goes(repo: Any) -> None:
    repo.commit({"mac/chat.sh": CHAT, "linux/serve.sh": SERVE})
    assert repo.kvlint("init", cwd="mac").status == 0
    assert "mac/chat.sh#chat" in repo.read("kvlint.toml")
    assert "linux/serve.sh#serve" in repo.read("kvlint.toml")
    assert repo.kvlint("init", "mac").status == 0
    assert '"chat.sh#chat"' in repo.read("mac/kvlint.toml")
    assert repo.kvlint("init", "nowhere").status == 2
    assert repo.kvlint("init", "mac/chat.sh").status == 2
