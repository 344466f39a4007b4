"""`kvlint derive`: values for other programs, in four forms that say the same."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from repository import CHAT, CONFIG

from kvlint.derive import FORMATS, number
from kvlint.formats import nix, toml
from kvlint.source import Source
from kvlint.tree import Map

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SERVE = "#!/bin/sh\nexec uvx --from vllm==0.11.0 vllm serve Qwen/Qwen3-8B --max-model-len 16384\n"
RANGED = '[[hardware]]\nmatch = "**"\ndevice = "nvidia-l40s"\n'


def test_json(chat: Any) -> None:
    (server,) = chat.kvlint("derive").json["servers"]
    assert (server["id"], server["engine"]) == ("chat.sh#chat", "mlx-lm")
    assert server["values"]["kv_bytes_per_token"] == 65536
    assert server["values"]["usable_bytes"] == 46_385_646_796
    assert server["unknown"] == {}


def test_what_is_unknown_is_no_value(repo: Any) -> None:
    repo.commit({"serve.sh": SERVE})
    (server,) = repo.kvlint("derive").json["servers"]
    assert server["values"]["kv_bytes_per_token"] == 147_456
    assert "no device is named" in server["unknown"]["pool_bytes"]
    assert "pool_bytes" not in server["values"]
    for name in ("toml", "nix", "env"):
        text = repo.kvlint("derive", "--format", name).out
        assert "unknown: " in text
        assert not [row for row in text.splitlines() if "POOL_BYTES" in row.upper() and not row.strip().startswith("#")]


def test_toml_says_the_same_as_json(repo: Any) -> None:
    repo.commit({"chat.sh": CHAT, "a b/sérve.sh": SERVE, "kvlint.toml": CONFIG + RANGED})
    servers = repo.kvlint("derive").json["servers"]
    found = tomllib.loads(repo.kvlint("derive", "--format", "toml").out)
    assert found == {each["id"]: each["values"] for each in servers}
    assert set(found["a b/sérve.sh#sérve"]["pool_bytes"]) == {"low", "nominal", "high"}


def test_nix_reads_as_an_attribute_set(repo: Any) -> None:
    repo.commit({'od"d ${x}/chat.sh': CHAT, "serve.sh": SERVE, "kvlint.toml": CONFIG + RANGED})
    text = repo.kvlint("derive", "--format", "nix").out
    found = nix.evaluate(Source("x.nix", text))
    assert isinstance(found, Map)
    assert found.string('od"d ${x}/chat.sh#chat', "kv_bytes_per_token") == "65536"
    low, high = (found.string("serve.sh#serve", "pool_bytes", end) for end in ("low", "high"))
    assert 0 < int(low or 0) < int(high or 0)


def test_an_environment_is_safe_to_source(repo: Any) -> None:
    repo.commit({"d$(touch x)/chat.sh": CHAT, "serve.sh": SERVE, "kvlint.toml": CONFIG + RANGED})
    text = repo.kvlint("derive", "--format", "env").out
    script = f"set -eu\n{text}\necho $KVLINT_CHAT_KV_BYTES_PER_TOKEN $KVLINT_SERVE_POOL_BYTES_LOW\n"
    done = subprocess.run(["sh", "-c", script], cwd=repo.root, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("65536 ")
    assert not (repo.root / "x").exists()


def test_servers_of_one_name_get_variables_of_their_own(repo: Any) -> None:
    repo.commit({"a/chat.sh": CHAT, "b/chat.sh": CHAT, "b-chat.sh": CHAT, "b/chat_sh.sh": CHAT, "kvlint.toml": CONFIG})
    text = repo.kvlint("derive", "--format", "env").out
    names = [row.partition("=")[0] for row in text.splitlines() if row.startswith("KVLINT")]
    assert len(set(names)) == len(names)
    assert "KVLINT_A_CHAT_SH_CHAT_SLOT_BYTES" in names


def test_only_what_is_in_focus(repo: Any) -> None:
    repo.commit({"a/chat.sh": CHAT, "b/chat.sh": CHAT, "kvlint.toml": CONFIG})
    assert [each["id"] for each in repo.kvlint("derive", "a").json["servers"]] == ["a/chat.sh#chat"]
    assert repo.kvlint("derive", "--format", "toml", "kvlint.toml").out == "# written by `kvlint derive`\n"


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (0.5, "0.5"), (1e-7, "0.0000001"), (-2, "-2"), (4.0, "4"), (1e22, "1" + "0" * 22)]
)
def test_numbers_have_no_exponent(value: Any, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize("name", FORMATS)
def test_an_empty_project(repo: Any, name: str) -> None:
    repo.commit({})
    result = repo.kvlint("derive", "--format", name)
    assert result.status == 0
    if name == "toml":
        assert toml.parse(Source("x.toml", result.out)).problem is None


def test_a_bad_configuration_is_two(chat: Any) -> None:
    chat.write({"kvlint.toml": "x = 1\n"})
    assert chat.kvlint("derive").status == 2
