"""Where a proxy listens is said by what starts it with its file: a unit, an agent, a script."""

from __future__ import annotations

import pytest

from tests.carriers.found import findings

SWAP = "models:\n  code: {concurrencyLimit: 4, cmd: 'llama-server --port ${PORT} -m /m/a.gguf -np 4'}\n"
PLIST = "<plist version='1.0'><dict><key>ProgramArguments</key><array>{}</array></dict></plist>"


def port(starter: dict[str, str], text: str = SWAP, name: str = "swap.yaml") -> int:
    (found,) = findings({f"host/{name}": text, **starter}).admissions
    value = found.settings["port"].value  # type: ignore[union-attr]
    assert isinstance(value, int)
    return value


def agent(*words: str) -> str:
    return PLIST.format("\n".join(f"<string>{word}</string>" for word in words))


@pytest.mark.parametrize(
    ("starter", "expected"),
    [
        (
            {"host/swap.service": "[Service]\nExecStart=/usr/bin/llama-swap -config /etc/swap.yaml -listen :9292\n"},
            9292,
        ),
        (
            {"swap.plist": agent("/opt/bin/llama-swap", "--config", "/etc/swap.yaml", "--listen", "127.0.0.1:9292")},
            9292,
        ),
        ({"run.sh": "#!/bin/sh\nexec llama-swap \\\n  --listen=0.0.0.0:9292 \\\n  --config ./swap.yaml\n"}, 9292),
        ({"run.sh": "#!/bin/sh\nexec llama-swap --config swap.yaml\n"}, 8080),
        ({"run.sh": "#!/bin/sh\nllama-swap --config other-swap.yaml --listen :9292\n"}, 8080),
        ({"run.sh": "#!/bin/sh\n# llama-swap reads swap.yaml\nother --listen :9292 swap.yaml\n"}, 8080),
        (
            {
                "a.sh": "#!/bin/sh\nllama-swap --config swap.yaml --listen :9292\n",
                "b.sh": "#!/bin/sh\nllama-swap --config swap.yaml --listen :9393\n",
            },
            8080,
        ),
    ],
)
def test_llama_swap(starter: dict[str, str], expected: int) -> None:
    assert port(starter) == expected


def test_litellm() -> None:
    text = "model_list:\n  - model_name: a\n    litellm_params: {model: openai/a, api_base: 'http://x/v1'}\n"
    unit = {"host/proxy.service": "[Service]\nExecStart=/usr/bin/litellm --config /etc/proxy.yaml --port 4100\n"}
    assert port(unit, text, "proxy.yaml") == 4100
    assert port({}, text, "proxy.yaml") == 4000
