"""Akash's deployments: what a service starts, and what its profile gives it."""

from __future__ import annotations

from carried import process, processes, value, words

SDL = """\
version: "2.0"
services:
  llm:
    image: vllm/vllm-openai:v0.11.0
    command: [bash, -c]
    args:
      - |
        vllm serve $MODEL --tensor-parallel-size 2
    env: [MODEL=Qwen/Qwen3-8B, HF_TOKEN]
    expose: [{port: 8000, as: 80, to: [{global: true}]}]
    params: {storage: {shm: {mount: /dev/shm}}}
profiles:
  compute:
    big:
      resources:
        memory: {size: 64Gi}
        storage: [{size: 100Gi}, {name: shm, size: 8Gi, attributes: {class: ram}}]
        gpu: {units: 2, attributes: {vendor: {nvidia: [{model: h100}]}}}
  placement: {west: {pricing: {big: {denom: uakt, amount: 1}}}}
deployment: {llm: {west: {profile: big, count: 3}}}
"""


def test_a_command_takes_the_place_of_the_entrypoint() -> None:
    only = process({"deploy.yaml": SDL})
    assert words(only) == ["vllm", "serve", "Qwen/Qwen3-8B", "--tensor-parallel-size", "2"]
    assert not only.line.env["HF_TOKEN"].known


def test_arguments_alone_go_to_the_image() -> None:
    text = SDL.replace("    command: [bash, -c]\n", "")
    text = text.replace("- |\n        vllm serve $MODEL --tensor-parallel-size 2", "- --model=Qwen/Qwen3-8B")
    assert words(process({"deploy.yml": text})) == ["--model=Qwen/Qwen3-8B"]


def test_the_profile_of_a_deployment_says_what_a_replica_has() -> None:
    site = process({"deploy.yaml": SDL}).site
    assert (value(site.gpus), value(site.replicas), value(site.shared_memory)) == (2, 3, 8 * 2**30)
    assert (value(site.memory_limit), [each.text.value for each in site.product]) == (64 * 2**30, ["h100"])
    assert {host: value(port) for host, port in site.published.items()} == {80: 8000}


def test_several_models_that_are_asked_for_name_no_device() -> None:
    site = process({"deploy.yaml": SDL.replace("{model: h100}", "{model: h100}, {model: a100}")}).site
    assert site.product == ()


def test_it_is_no_compose_file() -> None:
    assert [each.site.carrier for each in processes({"compose.yaml": SDL}).values()] == ["akash"]
