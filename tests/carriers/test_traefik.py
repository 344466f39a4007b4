"""Traefik before servers: requests in flight of a route."""

from __future__ import annotations

import pytest
from carried import found, value

from kvlint.links import admitted_to
from kvlint.pipeline import evaluate, memory_project

DYNAMIC = """\
http:
  routers:
    llm: {rule: "Host(`llm`)", service: llm, middlewares: [busy@file, auth]}
  middlewares:
    busy: {inFlightReq: {amount: 12}}
    auth: {basicAuth: {users: []}}
  services:
    llm: {loadBalancer: {servers: [{url: "http://localhost:8000"}]}}
"""
SERVER = "#!/bin/sh\nexec vllm serve Qwen/Qwen3-8B --max-num-seqs 16 --port 8000\n"
COMPOSE = """\
services:
  vllm:
    image: vllm/vllm-openai:v0.13.0
    command: --model Qwen/Qwen3-8B
    labels:
      - traefik.http.routers.llm.rule=Host(`llm`)
      - traefik.http.routers.llm.middlewares=Busy@docker
      - traefik.http.services.llm.loadbalancer.server.port=8000
      - traefik.http.middlewares.busy.inFlightReq.amount=12
"""


def test_a_dynamic_file() -> None:
    evaluation = evaluate(memory_project({"traefik.yaml": DYNAMIC, "chat.sh": SERVER}))
    (link,) = evaluation.chain.links
    assert (link.front.system, value(link.front.limit), link.front.per) == ("traefik", 12, "requestHost")
    assert (value(admitted_to([link])), link.front.place.text) == (12, "12")


def test_a_limit_by_the_caller_and_one_of_several_servers() -> None:
    each = DYNAMIC.replace("{amount: 12}", "{amount: 12, sourceCriterion: {ipStrategy: {depth: 1}}}")
    (front,) = found({"traefik.yaml": each}).admissions
    assert front.per == "ipStrategy"
    two = DYNAMIC.replace('8000"}]', '8000"}, {url: "http://localhost:8001"}]')
    assert [value(front.limit) for front in found({"traefik.yaml": two}).admissions] == [6, 6]


@pytest.mark.parametrize(("criterion", "per"), [("", "requestHost"), ("requestHeaderName=X-User", "requestHeaderName")])
def test_labels_of_a_compose_service(criterion: str, per: str) -> None:
    text = COMPOSE
    if criterion:
        text += f"      - traefik.http.middlewares.busy.inflightreq.sourcecriterion.{criterion}\n"
    evaluation = evaluate(memory_project({"compose.yaml": text}))
    (link,) = evaluation.chain.links
    assert (link.group.id, value(link.front.limit), link.front.per) == ("compose.yaml#vllm", 12, per)
    assert admitted_to([link]) is None if criterion else value(admitted_to([link])) == 12


OBJECTS = """\
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
---
"""


def test_the_route_that_uses_a_middleware() -> None:
    text = (
        OBJECTS
        + """\
apiVersion: traefik.io/v1alpha1
kind: Middleware
metadata: {name: busy, namespace: ai}
spec: {inFlightReq: {amount: 12}}
---
apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {name: llm, namespace: ai}
spec: {routes: [{match: "Host(`llm`)", middlewares: [{name: busy}], services: [{name: llm, port: 8000}]}]}
"""
    )
    evaluation = evaluate(memory_project({"all.yaml": text}))
    assert value(admitted_to(evaluation.chain.links)) == 6  # shared by two replicas


def test_connections_of_an_ingress_are_of_each_pod() -> None:
    text = (
        OBJECTS
        + """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: llm, namespace: ai, annotations: {nginx.org/max-conns: "12"}}
spec: {rules: [{http: {paths: [{path: /, backend: {service: {name: llm, port: {number: 8000}}}}]}}]}
"""
    )
    evaluation = evaluate(memory_project({"all.yaml": text}))
    assert value(admitted_to(evaluation.chain.links)) == 12
