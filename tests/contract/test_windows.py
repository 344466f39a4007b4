"""The window of servers that have none of their own: declared, promised, or open."""

from __future__ import annotations

from typing import Any

import pytest
from contract_inputs import CHAT, MAC, MLX_MODEL, chat

PROXY = """\
model_list:
  - model_name: chat
    litellm_params: {model: openai/chat, api_base: "http://localhost:8080/v1"}
    model_info: {max_input_tokens: 32000, max_output_tokens: 8000}
"""
CHECKED = PROXY + "router_settings: {enable_pre_call_checks: true}\n"
SWAP = f"""\
models:
  chat:
    cmd: uvx --from mlx-lm==0.31.3 mlx_lm.server --model {MLX_MODEL} --port ${{PORT}}
    capabilities: {{context: 65536}}
"""


def window(project: Any) -> Any:
    return project.server()["settings"]["window"]


def test_the_owner_says_it(project: Any) -> None:
    table = '[[workload]]\nmatch = "**"\nwindow = 30000\nstreams = 3\n'
    project.write({"chat.sh": CHAT, "litellm.yaml": CHECKED, "kvlint.toml": MAC + table})
    assert (window(project)["value"], window(project)["origin"]["path"]) == (30000, "kvlint.toml")
    assert project.server()["settings"]["streams"]["value"] == 3
    project.write({"chat.sh": chat("window=20000"), "kvlint.toml": MAC})
    assert (window(project)["value"], window(project)["origin"]["line"]) == (20000, 2)


def test_a_proxy_that_counts_enforces_its_limits(project: Any) -> None:
    """32,000 + 8,000 tokens: one slot of 3.662 GiB, live and stored, beside 16 GiB in 21.6: an error where it is enforced."""
    project.write({"chat.sh": CHAT, "litellm.yaml": CHECKED, "kvlint.toml": MAC})
    assert window(project)["value"] == 40000
    (finding,) = project.findings("cold-prompt-cache")
    assert finding["severity"] == "error"


def test_a_claim_lowers_a_rule_by_one_step(project: Any) -> None:
    project.write({"chat.sh": CHAT, "litellm.yaml": PROXY, "kvlint.toml": MAC})
    assert window(project)["value"] == 40000
    severities = {each["rule"]: each["severity"] for each in project.findings()}
    assert severities["cold-prompt-cache"] == "warning"
    assert severities["unbounded-prompt-cache"] == "note"
    assert "window-unbounded" not in severities


def test_along_a_path_what_is_enforced_and_over_paths_the_largest(project: Any) -> None:
    project.write({"swap.yaml": SWAP, "kvlint.toml": MAC})
    assert window(project)["value"] == 65536
    project.write({"litellm.yaml": CHECKED})
    assert window(project)["value"] == 40000
    project.write({"litellm.yaml": PROXY})
    assert window(project)["value"] == 65536  # both only claim: the one that is nearest to the server
    wider = PROXY.replace("32000", "50000").replace("model_name: chat", "model_name: long")
    project.write({"litellm.yaml": wider + CHECKED.removeprefix("model_list:\n")})
    assert window(project)["value"] == 58000


def test_nobody_says_it(project: Any) -> None:
    project.write({"chat.sh": CHAT, "kvlint.toml": MAC})
    assert window(project)["value"] == {"low": 8192, "nominal": 8192, "high": 40960}
    assert [each["rule"] for each in project.findings("window-unbounded")] == ["window-unbounded"]


SERVER = f"uvx --from mlx-lm==0.31.3 mlx_lm.server --model {MLX_MODEL}"
BATCHED = f"uvx --from vllm-mlx==0.6.0 vllm-mlx serve {MLX_MODEL} --continuous-batching"


@pytest.mark.parametrize(
    "command",
    [
        f"{SERVER} --max-tokens 4096",
        f"{BATCHED} --max-tokens 4096 --max-request-tokens 4096",
        f"{BATCHED} --max-kv-size 4096",
    ],
)
def test_limits_of_an_answer_or_of_a_cache_are_no_window(project: Any, command: str) -> None:
    project.write({"chat.sh": command + "\n"})
    assert window(project)["value"] == {"low": 8192, "nominal": 8192, "high": 40960}
    assert project.server()["settings"]["window_kind"]["value"] in ("none", "rotate")


def test_streams_are_one_where_nobody_declares_them(project: Any) -> None:
    project.write({"chat.sh": chat(arguments=" --decode-concurrency 16"), "kvlint.toml": MAC})
    assert project.server()["settings"]["streams"] == {
        "value": 1,
        "origin": {"kind": "assumed", "why": "no streams are declared"},
    }
    assert project.server()["settings"]["batch_width"]["value"] == 16


def test_documents_that_are_read_once_need_no_warm_slot(project: Any) -> None:
    project.write({"chat.sh": chat("window=40000 streams=2"), "kvlint.toml": MAC})
    assert {"cold-prompt-cache", "unbounded-prompt-cache"} <= {each["rule"] for each in project.findings()}
    project.write({"kvlint.toml": MAC + '[[workload]]\nmatch = "**"\nreuse = "none"\n'})
    assert [each["rule"] for each in project.findings("prompt-cache")] == []
