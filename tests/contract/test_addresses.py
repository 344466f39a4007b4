"""Values that must agree: every form of address, bounds, and literals where no comment can stand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from contract_inputs import deployment

FILES = {
    "k8s/q.yaml": deployment(args='[--model=Qwen/Qwen3-32B, --max_model_len=32768, --max-num-seqs, "16"]')
    + '---\nkind: ConfigMap\ndata: {nvidia.com/gpu: "32768", "a:b": "32768"}\n',
    "app.env": "WINDOW=32768\nFEWER='16'\nPOOL=8GiB\n",
    "run.sh": "#!/bin/sh\nWINDOW=32768\n",
    "app.plist": '<?xml version="1.0"?><plist version="1.0"><dict><key>Env</key><dict><key>W</key><string>32768</string>'
    "<key>KV</key><integer>262144</integer></dict></dict></plist>",
    "app.nix": '{ a.window = 32768; list = [ { name = "q"; w = 32768; } ]; }\n',
    "app.toml": "[t]\nwindow = 32_768\n",
    "app.json": '{"a": [{"window": 1}, {"window": 32768}]}\n',
    "app.service": "[Service]\nEnvironment=WINDOW=32768 X=1\nExecStart=/bin/true\n",
    "litellm.yaml": "model_list:\n- {model_name: o, model_info: {w: 5}}\n- {model_name: q, model_info: {w: 32768}}\n",
}
SAME = (
    "k8s/q.yaml#qwen/vllm:window",
    "k8s/q.yaml#qwen:window",
    "k8s/q.yaml#vllm:window",
    "k8s/q.yaml#vllm:--max-model-len",
    'k8s/q.yaml#data["nvidia.com/gpu"]',
    "k8s/q.yaml#data.a:b",
    "app.env#WINDOW",
    "run.sh#WINDOW",
    "app.plist#Env.W",
    "app.nix#a.window",
    "app.nix#list[name=q].w",
    "app.toml#t.window",
    "app.json#a[1].window",
    "app.service#WINDOW",
    "litellm.yaml#model_list[model_name=q].model_info.w",
)


def judged(project: Any, relation: str, *members: str) -> Any:
    table = f'[[parity]]\nname = "the window"\n{relation} = {json.dumps(list(members))}\n'
    return project.write({**FILES, "kvlint.toml": table}).check("--select", "values-disagree")


@pytest.mark.parametrize("address", SAME)
def test_every_form_of_address(project: Any, address: str) -> None:
    same = judged(project, "equal", "app.env#WINDOW", address)
    assert (same["findings"], same["unchecked"]) == ([], [])
    (finding,) = judged(project, "equal", "app.env#FEWER", address)["findings"]
    assert (finding["severity"], finding["path"], finding["line"]) == ("error", "app.env", 2)
    assert address in finding["message"]
    assert [each["path"] for each in finding["related"] if each["role"] == "counterpart"] == [address.partition("#")[0]]


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("app.env#NOPE", "nothing at NOPE in app.env"),
        ("k8s/q.yaml#nope:window", "no single server nope"),
        ("k8s/q.yaml#vllm:windw", "windw is no setting"),
        ("k8s/q.yaml#vllm:--seed", "--seed is not given"),
        ("app.env", "an address is file#place"),
    ],
)
def test_an_address_that_leads_nowhere_is_told(project: Any, address: str, told: str) -> None:
    found = judged(project, "equal", "app.env#WINDOW", address)
    assert found["findings"] == []
    assert told in found["unchecked"][0]["supply"]


def test_bounds_and_units(project: Any) -> None:
    assert (
        judged(project, "at_most", "app.env#FEWER", "k8s/q.yaml#vllm:batch_width", "app.env#WINDOW")["findings"] == []
    )
    (finding,) = judged(project, "at_most", "app.env#WINDOW", "app.env#FEWER")["findings"]
    assert (finding["rule"], finding["severity"]) == ("values-disagree", "error")
    assert judged(project, "equal", "app.env#POOL", "k8s/q.yaml#vllm:request_kv_bytes")["findings"] == []


@pytest.mark.parametrize("server", ["qwen/vllm", "vllm", "qwen", "k8s/q.yaml#qwen/vllm"])
def test_a_literal_in_a_format_without_comments(project: Any, server: str) -> None:
    table = f'[[derived]]\nat = "app.plist#Env.KV"\nis = "kv_bytes_per_token of {server}"\n'
    assert project.write({**FILES, "kvlint.toml": table}).findings("derived-drift") == []
    (finding,) = project.write({"kvlint.toml": table.replace("kv_bytes_per_token", "window")}).findings("derived-drift")
    assert (finding["severity"], finding["path"]) == ("error", "app.plist")
    assert [edit["text"] for edit in finding["fix"]["edits"]] == ["32768"]
