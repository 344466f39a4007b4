"""`show --format json`: settings with their origin, derived values with their inputs, what is unknown."""

from __future__ import annotations

from typing import Any

from contract_inputs import CHAT, MAC, MLX_MODEL, chat, deployment

from kvlint.coefficients import bundled
from kvlint.sizing.server import DERIVED
from kvlint.subjects import SETTINGS

A100 = "NVIDIA-A100-SXM4-80GB"
SWAP = f"""\
models:
  chat:
    cmd: mlx_lm.server --model {MLX_MODEL} --port ${{PORT}}
    concurrencyLimit: 4
"""


def test_a_server(project: Any) -> None:
    project.write({"k8s/q.yaml": deployment(device=A100)})
    document = project.show()
    assert (list(document), document["version"]) == (["version", "servers", "admissions"], 1)
    (server,) = document["servers"]
    assert list(server) == [
        *("id", "engine", "engine_versions", "path", "line", "model", "names", "settings", "sizing", "unknown")
    ]
    assert [server[key] for key in ("id", "engine", "path", "model")] == [
        *("k8s/q.yaml#qwen/vllm", "vllm", "k8s/q.yaml", "Qwen/Qwen3-32B")
    ]
    assert (server["engine_versions"], server["names"]) == (["0.11.0"], ["Qwen/Qwen3-32B"])
    assert set(server["settings"]) <= set(SETTINGS)
    window = server["settings"]["window"]
    assert window == {"value": 32768, "origin": {"kind": "written", "path": "k8s/q.yaml", "line": 13, "column": 58}}
    assert server["settings"]["kv_dtype"]["value"] == "bfloat16"
    assert server["settings"]["tensor_parallel"]["origin"]["kind"] == "default"
    assert server["sizing"]["kv_bytes_per_token"]["value"] == 262_144
    assert server["sizing"]["slot_bytes"]["value"] == 32768 * 262_144


def test_inputs_are_settings_derived_values_or_coefficients(project: Any) -> None:
    project.write({"k8s/q.yaml": deployment(device=A100), "mac/chat.sh": chat("window=32768"), "kvlint.toml": MAC})
    for server in project.show()["servers"]:
        for name, value in server["sizing"].items():
            assert {"value", "unit", "formula", "inputs"} <= set(value), name
            assert set(value["inputs"]) <= {*SETTINGS, *DERIVED, *bundled()}, name
    assert "holdback" in server["sizing"]["usable_bytes"]["inputs"]
    project.write({"kvlint.toml": MAC + '[coefficients]\nholdback = {value = 0, reason = "none"}\n'})
    usable = project.show()["servers"][-1]["sizing"]["usable_bytes"]
    assert (usable["value"], "holdback" in usable["inputs"]) == (24 * 2**30, True)


def test_a_range_has_two_ends_and_an_exact_size_none(project: Any) -> None:
    """The 79.15 GiB that a driver leaves of an A100 are an estimate; what the owner states is a number."""
    project.write({"q.yaml": deployment(device=A100)})
    assert set(project.server()["sizing"]["budget_bytes"]["value"]) == {"low", "nominal", "high"}
    project.write({"kvlint.toml": '[[hardware]]\nmatch = "**"\nmemory = "80GiB"\n'})
    sizing = project.server()["sizing"]
    assert sizing["budget_bytes"]["value"] == 80 * 2**30
    assert sizing["usable_bytes"]["value"] == 72 * 2**30
    assert set(sizing["pool_bytes"]["value"]) == {"low", "nominal", "high"}


def test_worlds_where_releases_differ(project: Any) -> None:
    """The server batches since 0.28.4: 1 sequence before, 32 after."""
    width = project.write({"chat.sh": CHAT}).server()["settings"]["batch_width"]
    assert [each["value"] for each in width["worlds"]] == [1, 32]
    assert all(set(each) == {"versions", "value", "origin"} for each in width["worlds"])
    assert "0.28.3" in width["worlds"][0]["versions"]
    only = project.server()["settings"]["kv_group_size"]  # a flag since 0.32.0
    assert [each["versions"][0] for each in only["worlds"]] == ["0.32.0"]


def test_what_is_unknown_says_what_would_supply_it(project: Any) -> None:
    server = project.write({"q.yaml": deployment()}).server()
    assert "pool_bytes" not in server["sizing"]
    assert "[[hardware]]" in server["unknown"]["hardware.budget"]
    assert project.write({"kvlint.toml": MAC, "q.yaml": "a: 1\n", "chat.sh": CHAT}).server()["unknown"].keys() == {
        "model.dtype"
    }


def test_an_admission(project: Any) -> None:
    (front,) = project.write({"swap.yaml": SWAP}).show()["admissions"]
    assert list(front) == ["id", "system", "path", "line", "limit", "origin", "per", "servers"]
    assert (front["system"], front["limit"], front["per"], front["servers"]) == (
        *("llama-swap", 4, "model", ["swap.yaml#chat"]),
    )
    assert front["origin"]["kind"] == "written"
    project.write({"swap.yaml": SWAP.replace("    concurrencyLimit: 4\n", "")})
    (front,) = project.show()["admissions"]
    assert (front["limit"], front["origin"]["kind"]) == (10, "default")
