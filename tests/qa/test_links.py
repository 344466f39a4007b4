"""Fronts and servers whose files lie apart: which of them are linked, and what a link that is only supposed may say."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files, evaluate, memory_project

LITELLM = """model_list:
  - model_name: chat
    litellm_params: {{model: "openai/{model}", api_base: "http://{at}/v1", max_parallel_requests: 16}}
    model_info: {{max_input_tokens: 60000}}
"""
OPENCODE = (
    '{{"$schema": "https://opencode.ai/config.json", "provider": {{"local": {{"options": {{"baseURL": "http://{at}/v1"}},'
    ' "models": {{"{model}": {{"limit": {{"context": 65536, "output": 8192}}}}}}}}}}}}'
)
UNIT = (
    "[Service]\nExecStart=/opt/vllm/bin/vllm serve /models/qwen --served-model-name qwen --port {port} "
    "--max-model-len 32768 --max-num-seqs 8\n"
)
SWAP = """models:
  qwen:
    cmd: vllm serve Qwen/Qwen3-8B --port ${PORT} --max-model-len 32768
"""
COMPOSE = """services:
  {name}:
    image: vllm/vllm-openai:v0.22.1
    command: --model Qwen/Qwen3-8B --served-model-name qwen --max-model-len 32768 --max-num-seqs 8
    ports: ["9000:8000"]
"""


def served(files: dict[str, str]) -> dict[str, tuple[str, ...]]:
    return {each.name: each.servers for each in evaluate(memory_project(files)).findings.admissions}


def said(files: dict[str, str]) -> dict[str, str]:
    report = check_files(files)
    assert report.internal == []
    kept = ("width-below-admission", "window-mismatch", "proxy-bypassed")
    return {each.rule: each.severity for each in report.findings if each.rule in kept}


def litellm(at: str, model: str = "qwen") -> str:
    return LITELLM.format(at=at, model=model)


@pytest.mark.parametrize(
    ("at", "port", "model", "linked"),
    [
        ("localhost:8100", 8100, "qwen", True),
        ("host.docker.internal:8100", 8100, "qwen", True),
        ("localhost:8100", 8200, "qwen", False),
        ("localhost:8100", 8100, "other", False),
        ("10.0.0.7:8100", 8100, "qwen", False),
    ],
)
def test_port_and_name_lead_to_another_directory(at: str, port: int, model: str, linked: bool) -> None:
    files = {"gateway/litellm.yaml": litellm(at, model), "units/qwen.service": UNIT.format(port=port)}
    assert served(files)["chat"] == (("units/qwen.service#qwen",) if linked else ())


def test_a_link_that_is_supposed_makes_no_error() -> None:
    """60,000 > 32,768 and 16 > 8: in one directory the first is an error."""
    server = UNIT.format(port=8100)
    apart = {"gateway/litellm.yaml": litellm("localhost:8100"), "units/qwen.service": server}
    assert said(apart) == {"window-mismatch": "warning", "width-below-admission": "warning"}
    beside = {"litellm.yaml": litellm("localhost:8100"), "qwen.service": server}
    assert said(beside) == {"window-mismatch": "error", "width-below-admission": "warning"}


def test_of_several_the_nearest_and_of_equally_near_ones_none() -> None:
    server = UNIT.format(port=8100)
    files = {
        "a/gateway/litellm.yaml": litellm("localhost:8100"),
        "a/units/q.service": server,
        "b/units/q.service": server,
    }
    assert served(files)["chat"] == ("a/units/q.service#q",)
    files = {
        "c/litellm.yaml": files["a/gateway/litellm.yaml"],
        "a/units/q.service": server,
        "b/units/q.service": server,
    }
    assert served(files)["chat"] == ()


def test_a_client_of_a_router_in_another_directory() -> None:
    """llama-swap listens on 8080 where nothing else is said."""
    files = {"opencode/opencode.json": OPENCODE.format(at="127.0.0.1:8080", model="qwen"), "swap/config.yaml": SWAP}
    assert served(files)["qwen"] == ("swap/config.yaml#qwen",)
    assert said(files)["window-mismatch"] == "warning"
    files["opencode/opencode.json"] = OPENCODE.format(at="127.0.0.1:8080", model="other")
    assert said(files) == {}


@pytest.mark.parametrize(
    ("name", "at", "model", "linked"),
    [
        ("vllm", "vllm:8000", "qwen", True),
        ("vllm", "vllm:8000", "other", False),  # vLLM refuses other names
        ("engine", "vllm:8000", "qwen", False),
    ],
)
def test_a_file_that_nobody_mounts_is_for_the_project_whose_service_it_names(
    name: str, at: str, model: str, linked: bool
) -> None:
    files = {"litellm.yaml": litellm(at, model), "docker-compose.yaml": COMPOSE.format(name=name)}
    assert served(files)["chat"] == ((f"docker-compose.yaml#{name}",) if linked else ())


GATEWAY = """services:
  gateway: {{image: "ghcr.io/berriai/litellm:v1.80.0", command: {command}, volumes: ["./litellm.yaml:/app/config.yaml"]}}
"""


def test_an_override_says_of_a_service_what_its_base_does() -> None:
    files = {
        "compose.yaml": COMPOSE.format(name="vllm") + GATEWAY.format(command="--port 4000").partition("\n")[2],
        "compose.dev.yaml": GATEWAY.format(command="--port 4000 --debug"),
        "litellm.yaml": litellm("vllm:8000"),
    }
    assert served(files)["chat"] == ("compose.yaml#vllm",)
    assert said(files)["window-mismatch"] == "error"


NGINX = """events {{}}
http {{
  limit_conn_zone $server_name zone=all:1m;
  server {{
    listen 80;
    resolver 127.0.0.11;
    {before}
    location /v1/ {{
      limit_conn all 16;
      {set}
      proxy_pass {target};
    }}
  }}
}}
"""


@pytest.mark.parametrize(
    ("before", "set_", "target", "linked"),
    [
        ("", "set $up http://vllm:8000;", "$up", True),
        ("set $up vllm;", "", "http://$up:8000/v1/", True),
        ("set $up vllm;", "", "http://${up}:8000", True),
        ("", 'set $up "vllm:8000";', "http://$up$request_uri", True),
        ("", "", "http://vllm:8000/v1/$1$is_args$args", True),
        ("set $up a; if ($http_x) { set $up vllm; }", "", "http://$up:8000", False),
        ("", "", "http://$up:8000", False),
    ],
)
def test_an_upstream_in_a_variable_is_looked_up_anew(before: str, set_: str, target: str, linked: bool) -> None:
    service = COMPOSE.format(name="vllm") + '  web: {image: nginx, volumes: ["./nginx:/etc/nginx:ro"]}\n'
    files = {"compose.yaml": service, "nginx/nginx.conf": NGINX.format(before=before, set=set_, target=target)}
    found = evaluate(memory_project(files)).findings.admissions
    assert [each.servers for each in found] == ([("compose.yaml#vllm",)] if linked else [])
    assert ("width-below-admission" in said(files)) == linked


@pytest.mark.parametrize(
    "mount", ["./conf:/app", "./conf/:/app:ro", "${DIR:-./conf}:/app", "./conf/litellm.yaml:/app/x.yaml"]
)
def test_a_directory_that_is_mounted_holds_its_files(mount: str) -> None:
    gateway = f'  gateway: {{image: "ghcr.io/berriai/litellm:v1.80.0", volumes: ["{mount}"]}}\n'
    files = {"compose.yaml": COMPOSE.format(name="vllm") + gateway, "conf/litellm.yaml": litellm("vllm:8000")}
    assert said(files)["window-mismatch"] == "error"  # in the project, and not only supposed to be
    files["compose.yaml"] = COMPOSE.format(name="vllm") + gateway.replace(mount, ".:/app")
    assert said(files)["window-mismatch"] == "warning"


@pytest.mark.parametrize(
    ("service", "more", "linked"),
    [
        ("environment: {BASE: http://vllm:8000/v1}", "", True),
        ("env_file: gateway.env", "", True),
        ("tty: true", "environment_variables: {BASE: http://vllm:8000/v1}\n", True),
        ("tty: true", "", False),
        ("environment: [BASE]", "", False),
    ],
)
def test_an_address_in_the_environment_of_the_proxy(service: str, more: str, linked: bool) -> None:
    gateway = (
        f'  gateway: {{image: "ghcr.io/berriai/litellm:v1.80.0", {service}, volumes: ["./litellm.yaml:/app/x.yaml"]}}\n'
    )
    files = {
        "compose.yaml": COMPOSE.format(name="vllm") + gateway,
        "litellm.yaml": litellm("x").replace('"http://x/v1"', "os.environ/BASE") + more,
        "gateway.env": "BASE=http://vllm:8000/v1\n",
    }
    assert served(files)["chat"] == (("compose.yaml#vllm",) if linked else ())


def test_who_promises_is_named() -> None:
    """The client, and not the router that it calls."""
    files = {"opencode.json": OPENCODE.format(at="127.0.0.1:8080", model="qwen"), "apart/swap.yaml": SWAP}
    report = check_files(files)
    (message,) = [each.message for each in report.findings if each.rule == "window-mismatch"]
    assert message == (
        "opencode promises 65,536 tokens, but qwen refuses more than 32,768; "
        "that it calls this server is supposed, by port and name"
    )
