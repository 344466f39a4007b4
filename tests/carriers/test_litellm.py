"""LiteLLM: limits, promises and addresses of a proxy's deployments, and the keys that nothing reads."""

from __future__ import annotations

import pytest
from carried import admission, found, value

from kvlint.pipeline import evaluate, memory_project
from kvlint.subjects import Endpoint


def config(params: str, more: str = "", entry: str = "") -> str:
    return (
        "model_list:\n  - model_name: chat\n    litellm_params:\n      model: openai/qwen\n"
        f"      api_base: http://llm:8000/v1\n{params}{entry}{more}"
    )


@pytest.mark.parametrize(
    ("params", "more", "limit"),
    [
        ("      max_parallel_requests: 4\n      rpm: 600\n", "", 4),
        ("      rpm: 600\n      tpm: 100000\n", "", 600),
        ("      tpm: 100000\n", "", 600),  # int(100000 / 1000 x 6)
        ("      tpm: 10\n", "", 1),  # at least one
        ("", "router_settings: {default_max_parallel_requests: 7}\n", 7),
        ("      rpm: 20\n", "router_settings: {default_max_parallel_requests: 7}\n", 20),
    ],
)
def test_a_rate_becomes_a_limit(params: str, more: str, limit: int) -> None:
    """litellm/utils.py#L6350-6390 of 1.110.2: the first of the four that is set."""
    found_ = admission({"litellm.yaml": config(params, more)})
    assert (value(found_.limit), found_.per, found_.excess) == (limit, "deployment", "reject")


def test_no_limit_where_none_is_set() -> None:
    assert admission({"litellm.yaml": config("")}).limit is None


def test_promises_are_enforced_by_pre_call_checks_only() -> None:
    info = "    model_info: {max_input_tokens: 30000, max_output_tokens: 2000}\n"
    claimed = admission({"litellm.yaml": config("", entry=info)})
    assert [(each.kind, each.tokens.value, each.enforced) for each in claimed.promises] == [
        ("input", 30000, False),
        ("output", 2000, False),
        ("total", 32000, False),
    ]
    checked = admission(
        {"litellm.yaml": config("", entry=info, more="router_settings: {enable_pre_call_checks: true}\n")}
    )
    assert [each.enforced for each in checked.promises] == [True, False, True]


def test_addresses_and_the_names_asked_for_there() -> None:
    target = admission({"litellm.yaml": config("")}).target
    assert isinstance(target, Endpoint)
    assert (target.host, target.port, target.names) == ("llm", 8000, ("qwen",))
    assert target.span.text == "http://llm:8000/v1"
    unseen = config("").replace("http://llm:8000/v1", "os.environ/API_BASE")
    hidden = admission({"litellm.yaml": unseen})
    assert hidden.target is None
    assert "api_base" in hidden.settings
    for odd in ("http://[::1", "http://h:99999/", "http:///v1", "${BASE}/v1"):
        assert admission({"litellm.yaml": config("").replace("http://llm:8000/v1", f"'{odd}'")}).target is None


def test_fallbacks_of_either_place() -> None:
    more = "litellm_settings:\n  fallbacks: [{chat: [mini]}]\nrouter_settings:\n  context_window_fallbacks: [{chat: [long]}]\n"
    settings = admission({"litellm.yaml": config("", more)}).settings
    assert (value(settings["fallbacks"]), value(settings["context_window_fallbacks"])) == (("mini",), ("long",))


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        (config("      context_window: 65536\n"), "context_window", "model_info.max_input_tokens"),
        (config("      max_parallel_request: 4\n"), "max_parallel_request", "max_parallel_requests"),
        (
            config("", entry="    max_parallel_requests: 4\n"),
            "max_parallel_requests",
            "litellm_params.max_parallel_requests",
        ),
        (
            config("", more="router_settings: {max_parallel_requests: 4}\n"),
            "max_parallel_requests",
            "litellm_params.max_parallel_requests",
        ),
    ],
)
def test_keys_that_read_like_a_limit_where_nothing_reads_them(text: str, key: str, meant: str) -> None:
    (problem,) = found({"litellm.yaml": text}).problems
    assert (problem.kind, problem.span.text, problem.data["suggestion"]) == ("admission-ineffective", key, meant)


def test_keys_that_are_read_or_handed_on_on_purpose() -> None:
    params = "      max_tokens: 100\n      num_ctx: 8192\n      timeout: 60\n      parallel_tool_calls: true\n"
    params += "      extra_body: {max_concurrency: 4}\n"
    more = "general_settings: {max_parallel_requests: 10, global_max_parallel_requests: 50}\n"
    read = found({"litellm.yaml": config(params, more)})
    assert read.problems == []
    (limit,) = read.admissions
    assert (value(limit.settings["key_limit"]), value(limit.settings["process_limit"])) == (10, 50)


def test_an_operators_model_reaches_the_server_behind_its_service() -> None:
    model = """\
apiVersion: litellm.home-operations.com/v1alpha1
kind: LiteLLMModel
metadata: {name: qwen}
spec:
  modelName: qwen
  params: {model: openai/qwen, apiBase: "http://llm.ai.svc.cluster.local:80/v1"}
  info: {maxInputTokens: 6000, maxOutputTokens: 2000}
"""
    server = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: qwen}
spec:
  template:
    metadata: {labels: {app: qwen}}
    spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.11.0", args: [--model, a/b], ports: [{containerPort: 8000}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: llm}
spec: {selector: {app: qwen}, ports: [{port: 80, targetPort: 8000}]}
"""
    evaluation = evaluate(memory_project({"model.yaml": model, "server.yaml": server}))
    (link,) = evaluation.chain.links
    assert link.group.id == "server.yaml#qwen/vllm"
    assert [each.tokens.value for each in link.front.promises] == [6000, 2000, 8000]
