"""nginx, HAProxy and Caddy before servers: limits, what they count by, and whom they reach."""

from __future__ import annotations

from carried import found, value

from kvlint.links import admitted_to
from kvlint.pipeline import evaluate, memory_project
from kvlint.subjects import Admission, Endpoint

SERVER = "#!/bin/sh\nexec vllm serve Qwen/Qwen3-8B --max-num-seqs 16 --port 8000\n"
NGINX = """\
worker_processes 4;
events {}
http {
  limit_conn_zone $server_name zone=all:1m;
  limit_conn_zone $binary_remote_addr zone=each:1m;
  upstream llm { server 127.0.0.1:8000 max_conns=8; server 127.0.0.1:8001 down; }
  server {
    listen 8080;
    server_name llm.example.com;
    limit_conn all 24;
    location /v1/ { proxy_pass http://llm; }
    location /each/ { limit_conn each 4; proxy_pass http://127.0.0.1:8000; }
    location /all/ { proxy_pass http://127.0.0.1:8000/v1; }
    location /vary/ { proxy_pass http://$backend; }
  }
}
"""


def fronts(files: dict[str, str]) -> dict[str, Admission]:
    return {each.name: each for each in found(files).admissions}


def test_nginx_limits_and_what_they_count_by() -> None:
    read = fronts({"nginx.conf": NGINX})
    rows = {name.rpartition(" ")[2]: (value(each.limit), each.per) for name, each in read.items()}
    assert rows == {"/v1/": (8, "pod"), "/each/": (4, "address"), "/all/": (24, "server"), "/vary/": (24, "server")}
    assert read["llm.example.com /v1/"].place.text == "8"
    assert value(read["llm.example.com /v1/"].settings["port"]) == 8080
    assert isinstance(read["llm.example.com /all/"].target, Endpoint)
    assert read["llm.example.com /vary/"].target is None


def test_each_worker_counts_for_itself_unless_the_upstream_has_a_zone() -> None:
    """8 in each of four workers: 32."""
    one = NGINX.replace("location /each", "#location /each").replace("location /all", "#location /all")
    for text, total in ((one, 32), (one.replace("llm {", "llm { zone llm 64k;"), 8)):
        evaluation = evaluate(memory_project({"nginx.conf": text, "chat.sh": SERVER}))
        assert value(admitted_to(evaluation.chain.links)) == total


def test_a_limit_by_the_caller_bounds_no_total() -> None:
    text = NGINX.replace("location /v1/", "#location /v1/").replace("location /all", "#location /all")
    evaluation = evaluate(memory_project({"nginx.conf": text, "chat.sh": SERVER}))
    assert [link.front.per for link in evaluation.chain.links] == ["address"]
    assert admitted_to(evaluation.chain.links) is None


def test_a_total_is_shared_by_the_servers_of_an_upstream() -> None:
    text = NGINX.replace(" max_conns=8", "").replace(" down", "")
    read = fronts({"nginx.conf": text})
    assert value(read["llm.example.com /v1/ 127.0.0.1:8000"].limit) == 12


def test_fragments_and_files_of_other_services() -> None:
    fragment = (
        "upstream llm { server vllm:8000 max_conns=8; }\nserver { listen 80; location / { proxy_pass http://llm; } }\n"
    )
    (front,) = found({"conf.d/llm.conf": fragment}).admissions
    assert value(front.settings["copies"]).__class__.__name__ == "Unknown"
    evaluation = evaluate(memory_project({"conf.d/llm.conf": fragment}))
    assert evaluation.findings.admissions == []  # nothing of ours is behind it


def test_haproxy_counts_requests_of_a_server_and_queues_the_rest() -> None:
    text = """\
defaults
  mode http
  default-server maxconn 32
frontend in
  bind *:9000
  default_backend llm
backend llm
  server one 127.0.0.1:8000 maxconn 12 maxqueue 40 check
  server-template vllm- 3 vllm.svc:8000
"""
    read = fronts({"haproxy.cfg": text, "chat.sh": SERVER})
    one, many = read["llm/one"], read["llm/vllm-"]
    assert (value(one.limit), one.per, one.excess, value(one.settings["queue"])) == (12, "pod", "wait", 40)
    assert value(one.settings["port"]) == 9000
    assert isinstance(many.target, Endpoint)
    assert (value(many.limit), many.target.host, many.target.port) == (32, "vllm.svc", 8000)
    evaluation = evaluate(memory_project({"haproxy.cfg": text, "chat.sh": SERVER}))
    assert [link.front.name for link in evaluation.chain.links] == ["llm/one"]


def test_caddy_takes_a_busy_upstream_for_down() -> None:
    block = "reverse_proxy /v1/* localhost:8000 {\n\t\tunhealthy_request_count 6\n\t}"
    text = f"llm.example.com:8443 {{\n\thandle /v1/* {{\n\t{block}\n\t}}\n}}\n"
    evaluation = evaluate(memory_project({"Caddyfile": text, "chat.sh": SERVER}))
    ((front,),) = [link.hops for link in evaluation.chain.links]
    assert (front.system, value(front.limit), front.per, front.place.text) == ("caddy", 6, "pod", "6")


def test_a_gateway_before_a_gateway() -> None:
    lite = "model_list:\n  - model_name: x\n    litellm_params: {model: openai/qwen, api_base: 'http://localhost:8080/v1'}\n"
    text = (
        NGINX.replace("location /each", "#location /each")
        .replace("location /all", "#location /all")
        .replace("location /vary", "#")
    )
    evaluation = evaluate(memory_project({"nginx.conf": text, "litellm.yaml": lite, "chat.sh": SERVER}))
    chains = {tuple(hop.system for hop in link.hops) for link in evaluation.chain.links}
    assert chains == {("nginx",), ("litellm", "nginx")}


def test_a_proxy_s_file_in_a_config_map() -> None:
    manifest = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: front, namespace: ai}
data:
  default.conf: |
    limit_conn_zone $server_name zone=all:1m;
    server {
      listen 80;
      limit_conn all 24;
      location / { proxy_pass http://llm:8000; }
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: qwen, namespace: ai}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: qwen}}
    spec: {containers: [{name: vllm, image: "vllm/vllm-openai:v0.13.0", args: [--model=Qwen/Qwen3-8B]}]}
---
apiVersion: v1
kind: Service
metadata: {name: llm, namespace: ai}
spec: {selector: {app: qwen}, ports: [{port: 8000}]}
"""
    evaluation = evaluate(memory_project({"all.yaml": manifest}))
    (link,) = evaluation.chain.links
    assert (link.front.system, link.front.place.text, value(admitted_to([link]))) == ("nginx", "24", 12)
