"""Limits and targets of the platforms in front of pods."""

from __future__ import annotations

from carried import admission, found, process, value

from kvlint.subjects import Endpoint

SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: qwen, namespace: ai}
spec:
  template:
    metadata: {labels: {app: qwen}}
    spec: {containers: [{name: vllm, command: [vllm, serve, m]}]}
"""


def test_knative_limits_requests_in_flight_of_a_pod() -> None:
    text = """\
apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: chat}
spec:
  template:
    metadata: {annotations: {autoscaling.knative.dev/target: "8", autoscaling.knative.dev/max-scale: "4"}}
    spec:
      containerConcurrency: 16
      containers: [{name: vllm, command: [vllm, serve, m]}]
"""
    limit = admission({"ksvc.yaml": text})
    assert (limit.system, value(limit.limit), limit.per, limit.excess) == ("knative", 16, "pod", "wait")
    assert (value(limit.settings["target"]), value(limit.settings["max_replicas"])) == (8, 4)
    assert admission({"ksvc.yaml": text.replace("containerConcurrency: 16", "containerConcurrency: 0")}).limit is None
    assert process({"ksvc.yaml": text}).site.name == "chat/vllm"


def test_keda_scales_the_server_of_the_workload_that_it_names() -> None:
    text = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: scale, namespace: ai}
spec:
  scaleTargetRef: {name: qwen}
  minReplicaCount: 1
  triggers:
    - type: prometheus
      metadata: {query: "sum(num_requests_waiting)", threshold: "20"}
    - type: prometheus
      metadata: {query: "avg(gpu_utilization)", threshold: "80"}
"""
    read = found({"server.yaml": SERVER, "scale.yaml": text})
    (target,) = read.admissions
    assert (target.limit, value(target.settings["target"]), target.place.text) == (None, 20, "20")
    assert target.target is read.processes[0][1]


def test_istio_counts_requests_to_a_host() -> None:
    text = """\
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: llm, namespace: ai}
spec:
  host: llm.ai.svc.cluster.local
  trafficPolicy: {connectionPool: {http: {http2MaxRequests: 64, http1MaxPendingRequests: 10}}}
"""
    (limit,) = found({"server.yaml": SERVER, "rule.yaml": text}).admissions
    assert (value(limit.limit), limit.per, limit.excess, value(limit.settings["pending"])) == (
        64,
        "client",
        "reject",
        10,
    )
    assert isinstance(limit.target, Endpoint)
    assert limit.target.host == "llm.ai.svc.cluster.local"


def test_envoy_gateway_has_a_limit_even_where_none_is_written() -> None:
    text = """\
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: llm, namespace: ai}
spec:
  targetRefs: [{kind: HTTPRoute, name: chat}]
  circuitBreaker: {maxParallelRequests: 32}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: chat, namespace: ai}
spec: {rules: [{backendRefs: [{name: llm, port: 80}]}]}
"""
    (limit,) = found({"server.yaml": SERVER, "policy.yaml": text}).admissions
    assert (value(limit.limit), limit.per) == (32, "backend")
    assert isinstance(limit.target, Endpoint)
    assert (limit.target.host, limit.target.port) == ("llm", 80)
    default = text.replace("{maxParallelRequests: 32}", "{maxConnections: 10}")
    (limit,) = found({"server.yaml": SERVER, "policy.yaml": default}).admissions
    assert value(limit.limit) == 1024


def test_traefik_counts_by_the_route_unless_a_source_is_set() -> None:
    text = """\
apiVersion: traefik.io/v1alpha1
kind: Middleware
metadata: {name: llm}
spec: {inFlightReq: {amount: 12}}
"""
    (limit,) = found({"server.yaml": SERVER, "middleware.yaml": text}).admissions
    assert (value(limit.limit), limit.per, limit.excess) == (12, "requestHost", "reject")
    by_client = text.replace("amount: 12", "amount: 12, sourceCriterion: {ipStrategy: {depth: 1}}")
    (limit,) = found({"server.yaml": SERVER, "middleware.yaml": by_client}).admissions
    assert limit.per == "ipStrategy"


def test_autoscalers_that_measure_use_alone() -> None:
    text = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: qwen, namespace: ai}
spec:
  scaleTargetRef: {kind: Deployment, name: qwen}
  metrics: [{type: Resource, resource: {name: cpu}}]
"""
    read = found({"server.yaml": SERVER, "hpa.yaml": text})
    (scaler,) = read.admissions
    assert (scaler.system, scaler.limit, value(scaler.settings["utilization"])) == ("hpa", None, "cpu")
    assert scaler.target is read.processes[0][1]
    both = text.replace("[{type: Resource", "[{type: Pods, pods: {metric: {name: running}}}, {type: Resource")
    assert found({"server.yaml": SERVER, "hpa.yaml": both}).admissions == []


def test_what_keeps_conversations_with_a_replica() -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: llm, namespace: ai}\nspec: {selector: {app: qwen}%s}\n"
    pool = "apiVersion: x.k8s.io/v1\nkind: InferencePool\nmetadata: {name: p, namespace: ai}\nspec: {selector: {app: qwen}}\n"

    def spread(files: dict[str, str]) -> object:
        return process({"server.yaml": SERVER, **files}).site.data["spread"]

    assert spread({}) is False  # nothing spreads
    assert spread({"service.yaml": service % ""}) is True
    assert spread({"service.yaml": service % ", sessionAffinity: ClientIP"}) is False
    assert spread({"service.yaml": service % "", "pool.yaml": pool}) is False
