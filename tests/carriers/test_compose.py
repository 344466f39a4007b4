"""docker compose: what a service starts, with which variables and devices, and who reaches it."""

from __future__ import annotations

from carried import process, processes, value, words

COMPOSE = """\
x-common: &common {shm_size: 16gb, ipc: host}
services:
  llm:
    <<: *common
    image: vllm/vllm-openai:${TAG:-v0.11.0}
    container_name: chat
    command: >
      --model ${MODEL:-Qwen/Qwen3-8B}
      --max-model-len ${WINDOW} ${EXTRA:+--enforce-eager}
    environment: [HF_TOKEN, VLLM_LOGGING_LEVEL=INFO]
    ports: ["127.0.0.1:8001:8000"]
    deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ["0", "1"]}]}}}
"""


def test_strings_are_split_after_composes_own_interpolation() -> None:
    only = process({"compose.yaml": COMPOSE, ".env": "WINDOW=4096\n"})
    assert words(only)[:4] == ["--model", "Qwen/Qwen3-8B", "--max-model-len", "4096"]
    assert only.line.args[3].span.path == ".env"
    assert only.line.image is not None
    assert only.line.image.value == "vllm/vllm-openai:v0.11.0"
    assert not only.line.env["HF_TOKEN"].known
    assert only.line.env["VLLM_LOGGING_LEVEL"].value == "INFO"


def test_devices_ports_names_and_memory() -> None:
    site = process({"compose.yaml": COMPOSE}).site
    assert (value(site.gpus), [each.value for each in site.device_ids]) == (2, ["0", "1"])
    assert {host: value(port) for host, port in site.published.items()} == {8001: 8000}
    assert site.hosts == ("llm", "chat")
    assert (value(site.shared_memory), site.host_ipc) == (16 * 2**30, True)
    assert site.unit == "compose "
    assert site.resident_with == "compose compose.yaml"


def test_services_of_a_profile_are_not_all_resident() -> None:
    text = COMPOSE.replace("    container_name: chat\n", "    profiles: [gpu]\n")
    assert process({"compose.yaml": text}).site.resident_with is None


def test_a_build_of_ones_own_is_known_by_its_arguments() -> None:
    text = """\
services:
  llm:
    image: ${IMAGE:-mine:local}  # a build of vllm
    command: [--model, /model, --max-num-seqs, "8", --gpu-memory-utilization, "0.5"]
  web: {image: nginx, command: [--port, "80"]}
"""
    read = processes({"docker-compose.yml": text})
    assert {name: words(each)[:2] for name, each in read.items()} == {"docker-compose.yml#llm": ["vllm", "serve"]}


def test_branches_of_a_wrapper_are_one_server() -> None:
    text = """\
services:
  llm:
    image: ghcr.io/ggml-org/llama.cpp:server
    entrypoint: [bash, -c]
    command:
      - |
        if [ -z "$$DRAFT" ]; then exec /app/llama-server -m a.gguf -c 4096; fi
        ARGS=("$$@")
        exec /app/llama-server "$${ARGS[@]}"
"""
    assert [words(each)[1:3] for each in processes({"compose.yaml": text}).values()] == [["-m", "a.gguf"]]


def test_extends_a_service_of_another_file() -> None:
    base = "services:\n  base:\n    image: vllm/vllm-openai:v0.11.0\n    command: [--model, a]\n    shm_size: 1gb\n"
    text = "services:\n  llm:\n    extends: {file: base.yaml, service: base}\n    command: [--model, vllm-model]\n"
    read = processes({"compose.yaml": text, "base.yaml": base})
    llm = read["compose.yaml#llm"]
    assert words(llm) == ["--model", "vllm-model"]
    assert value(llm.site.shared_memory) == 2**30
