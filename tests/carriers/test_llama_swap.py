"""llama-swap: macros, ports, limits, and keys that the loader ignores."""

from __future__ import annotations

import pytest
from carried import found, value, words

from kvlint.pipeline import evaluate, memory_project

CONFIG = """\
startPort: 9000
macros:
  base: "vllm serve"
  server: ${base} --port ${PORT}
models:
  b:
    cmd: |
      # a comment
      ${server} Qwen/Qwen3-8B \\
        --served-model-name ${MODEL_ID}
    aliases: [chat]
    concurrencyLimit: 4
    capabilities: {context: 8192}
  a:
    macros: {base: "vllm serve --enforce-eager"}
    cmd: ${server} other
    env: ["CUDA_VISIBLE_DEVICES=1"]
groups:
  both: {swap: false, members: [a, b]}
"""


def test_macros_ports_in_the_order_of_names_and_comments() -> None:
    read = dict(found({"config.yaml": CONFIG}).processes)
    assert words(read["config.yaml#b"]) == [
        *("vllm", "serve", "--port", "9001", "Qwen/Qwen3-8B", "--served-model-name", "b"),
    ]
    assert words(read["config.yaml#a"])[-3:] == ["--port", "9000", "other"]
    assert "--enforce-eager" in words(read["config.yaml#a"])  # a model's macro wins inside a global one
    assert read["config.yaml#a"].line.env["CUDA_VISIBLE_DEVICES"].value == "1"
    assert read["config.yaml#a"].site.resident_with == read["config.yaml#b"].site.resident_with is not None


def test_limits_and_promises() -> None:
    limits = {each.name: each for each in found({"config.yaml": CONFIG}).admissions}
    assert (value(limits["b"].limit), value(limits["a"].limit)) == (4, 10)  # unset is 10
    assert limits["b"].names == ("b", "chat")
    assert [(each.kind, each.tokens.value, each.enforced) for each in limits["b"].promises] == [("total", 8192, False)]
    assert limits["b"].excess == "reject"


@pytest.mark.parametrize(
    ("wrong", "meant"), [("concurrencylimit", "concurrencyLimit"), ("concurrency_limit", "concurrencyLimit")]
)
def test_a_misspelt_limit_leaves_the_default_in_force(wrong: str, meant: str) -> None:
    read = found({"config.yaml": CONFIG.replace("concurrencyLimit", wrong)})
    (problem,) = read.problems
    assert (problem.kind, problem.span.text, problem.data["suggestion"]) == ("admission-ineffective", wrong, meant)
    assert {value(each.limit) for each in read.admissions} == {10}


def test_an_unknown_macro_is_refused_and_the_environment_is_unknown() -> None:
    read = found({"config.yaml": CONFIG.replace("other", "${HOME}/m ${env.MODEL}")})
    (problem,) = read.problems
    assert (problem.kind, problem.span.text) == ("unknown-macro", "${HOME}")
    only = dict(read.processes)["config.yaml#a"]
    assert [word.known for word in only.line.args[-2:]] == [True, False]


def test_a_proxy_in_front_on_the_same_host_is_linked_through_its_port() -> None:
    proxy = "model_list:\n  - model_name: x\n    litellm_params: {model: openai/chat, api_base: 'http://localhost:8080/v1'}\n"
    evaluation = evaluate(memory_project({"config.yaml": CONFIG, "litellm.yaml": proxy}))
    chains = {tuple(hop.name for hop in link.hops): link.group.id for link in evaluation.chain.links}
    assert chains["x", "b"] == "config.yaml#b"


def test_a_command_that_is_a_script_of_the_repository() -> None:
    text = "models:\n  qwen:\n    cmd: /opt/stack/serve.sh ${PORT}\n    concurrencyLimit: 2\n"
    script = "#!/bin/sh\nexec vllm serve Qwen/Qwen3-8B --port $1\n"
    read = found({"llama-swap.yaml": text, "serve.sh": script})
    ((name, only),) = read.processes
    assert (name, words(only)) == ("llama-swap.yaml#qwen", ["vllm", "serve", "Qwen/Qwen3-8B", "--port", "5800"])
    assert read.admissions[0].target is only
