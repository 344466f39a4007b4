"""Kubernetes objects: pods, what the kubelet does to their words, and what stands beside them."""

from __future__ import annotations

import pytest
from carried import found, process, processes, value, words

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: qwen, namespace: ai}
spec:
  replicas: 2
  selector: {matchLabels: {app: qwen}}
  template:
    metadata: {labels: {app: qwen}}
    spec:
      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
          args: [--model, Qwen/Qwen3-8B, "--max-model-len=$(MAX_MODEL_LEN)"]
          env:
            - {name: MAX_MODEL_LEN, valueFrom: {configMapKeyRef: {name: limits, key: window}}}
          ports: [{containerPort: 8000, name: http}]
          resources: {limits: {nvidia.com/gpu: "1", memory: 16Gi}}
"""
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: limits, namespace: ai}
data: {window: "8192"}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: chat, namespace: ai}
spec:
  selector: {app: qwen}
  ports: [{port: 80, targetPort: http}, {port: 9090, targetPort: 9090}]
"""


def test_a_config_map_of_another_file_fills_the_argument() -> None:
    only = process({"k8s/qwen.yaml": DEPLOYMENT, "k8s/limits.yaml": CONFIG_MAP})
    window = only.line.args[2]
    assert window.value == "--max-model-len=8192"
    assert {piece.span.path for piece in window.pieces} == {"k8s/qwen.yaml", "k8s/limits.yaml"}
    assert only.site.name == "qwen/vllm"
    assert (value(only.site.replicas), value(only.site.gpus), value(only.site.memory_limit)) == (2, 1, 16 * 2**30)
    assert [(each.key, each.text.value) for each in only.site.product] == [
        ("cloud.google.com/gke-accelerator", "nvidia-l4")
    ]


def test_a_config_map_of_another_namespace_does_not() -> None:
    other = CONFIG_MAP.replace("namespace: ai", "namespace: web")
    only = process({"k8s/qwen.yaml": DEPLOYMENT, "k8s/limits.yaml": other})
    assert not only.line.args[2].known


def test_a_service_in_a_file_without_an_engine_names_the_host_and_its_port() -> None:
    only = process({"k8s/qwen.yaml": DEPLOYMENT, "k8s/service.yaml": SERVICE})
    assert only.site.hosts == ("chat",)
    assert only.site.data["service_ports"] == (80,)  # 9090 leads to no port of this container


def test_envsubst_placeholders_are_unknown_and_shell_variables_are_not_touched() -> None:
    text = DEPLOYMENT.replace("Qwen/Qwen3-8B", "'${MODEL}'").replace("replicas: 2", "replicas: ${REPLICAS}")
    only = process({"qwen.yaml": text})
    assert not only.line.args[1].known
    assert value(only.site.replicas).missing == "replicas"  # type: ignore[attr-defined]
    script = DEPLOYMENT.replace(
        'args: [--model, Qwen/Qwen3-8B, "--max-model-len=$(MAX_MODEL_LEN)"]',
        'command: [sh, -c, "W=4096; exec vllm serve Qwen/Qwen3-8B --max-model-len ${W}"]',
    )
    assert words(process({"qwen.yaml": script}))[-1] == "4096"


def test_a_leader_worker_set_has_the_devices_of_its_group_and_its_variables() -> None:
    text = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: llama}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 2
    leaderTemplate:
      spec:
        containers:
          - name: leader
            image: vllm/vllm-openai:v0.8.5
            command: [sh, -c, "python3 -m vllm.entrypoints.openai.api_server --model m
              --tensor-parallel-size 8 --pipeline-parallel-size $(LWS_GROUP_SIZE)"]
            resources: {limits: {nvidia.com/gpu: "8"}}
"""
    only = process({"lws.yaml": text})
    assert value(only.site.gpus) == 16  # 8 a pod x 2 pods
    assert words(only)[-1] == "2"


def test_a_service_called_vllm_collides_where_links_are_on() -> None:
    service = SERVICE.replace("name: chat", "name: vllm")
    (problem,) = found({"a.yaml": DEPLOYMENT, "b.yaml": service}).problems
    assert (problem.kind, problem.span.path, problem.span.text) == ("service-link-collision", "b.yaml", "vllm")
    assert problem.data["variable"] == "VLLM_PORT"


def test_no_collision_with_links_off_a_headless_service_or_another_namespace() -> None:
    service = SERVICE.replace("name: chat", "name: vllm")
    off = DEPLOYMENT.replace("      containers:", "      enableServiceLinks: false\n      containers:")
    own = DEPLOYMENT.replace("          env:", '          env:\n            - {name: VLLM_PORT, value: "8000"}')
    headless = service.replace("  selector", "  clusterIP: None\n  selector")
    elsewhere = service.replace("namespace: ai", "namespace: web")
    pairs = [(off, service), (own, service), (DEPLOYMENT, headless), (DEPLOYMENT, elsewhere), (DEPLOYMENT, SERVICE)]
    for one, other in pairs:
        assert found({"a.yaml": one, "b.yaml": other}).problems == []


def test_an_unknown_image_is_known_by_two_flags_that_only_one_engine_has() -> None:
    mine = DEPLOYMENT.replace("vllm/vllm-openai:v0.11.0", "registry.example/llm:7")
    telling = mine.replace("--model, Qwen/Qwen3-8B", "--model, m, --max-num-seqs=4, --gpu-memory-utilization=0.5")
    assert words(process({"a.yaml": telling}))[:3] == ["vllm", "serve", "--model"]
    vague = mine.replace("[--model, Qwen/Qwen3-8B,", "[--model, Qwen/Qwen3-8B, --port=1, #").replace(
        '"--max-model-len=$(MAX_MODEL_LEN)"]', "\n            ]"
    )
    assert processes({"a.yaml": "# vllm\n" + vague}) == {}


def test_a_build_in_another_registry_is_known_by_its_name() -> None:
    text = DEPLOYMENT.replace("vllm/vllm-openai:v0.11.0", "mirror.example/hub/vllm-openai:v0.11.2")
    assert words(process({"a.yaml": text}))[:2] == ["vllm", "serve"]


def test_duplicate_keys_empty_documents_and_lists_of_objects() -> None:
    twice = DEPLOYMENT.replace("  replicas: 2", "  replicas: 2\n  replicas: 3")
    listed = "apiVersion: v1\nkind: List\nitems:\n" + "\n".join(
        ("- " if number == 0 else "  ") + line for number, line in enumerate(DEPLOYMENT.splitlines())
    )
    assert value(process({"a.yaml": twice + "---\n"}).site.replicas) == 3
    assert list(processes({"a.yaml": listed})) == ["a.yaml#qwen/vllm"]


def test_roles_of_a_custom_resource_have_their_own_replicas_and_labels() -> None:
    text = """\
apiVersion: orchestration.aibrix.ai/v1alpha1
kind: StormService
metadata: {name: pool}
spec:
  replicas: 1
  template:
    spec:
      roles:
        - name: prefill
          replicas: 4
          template:
            metadata: {labels: {role: p}}
            spec: {containers: [{name: main, command: [vllm, serve, a]}]}
        - name: decode
          replicas: 3
          template:
            spec: {containers: [{name: main, command: [vllm, serve, a]}]}
"""
    read = processes({"pool.yaml": text})
    assert {name: value(each.site.replicas) for name, each in read.items()} == {
        "pool.yaml#pool/prefill/main": 4,
        "pool.yaml#pool/decode/main": 3,
    }
    assert read["pool.yaml#pool/prefill/main"].site.labels == {"role": "p"}


def test_a_script_of_a_mounted_config_map() -> None:
    text = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: scripts}
data:
  serve.sh: |
    exec vllm serve Qwen/Qwen3-8B --max-model-len "$WINDOW"
---
apiVersion: v1
kind: Pod
metadata: {name: qwen}
spec:
  volumes: [{name: s, configMap: {name: scripts}}]
  containers:
    - name: vllm
      image: mine
      command: [bash, /scripts/serve.sh]
      env: [{name: WINDOW, value: "4096"}]
"""
    only = process({"pod.yaml": text})
    assert words(only) == ["vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", "4096"]
    assert (only.site.name, only.line.args[1].span.line) == ("qwen/vllm", 6)


@pytest.mark.parametrize(
    ("pod", "data", "found"),
    [
        ("", "namespace: default", True),  # kubectl's own, where nothing else is said
        ("namespace: default", "", True),
        ("namespace: serving", "", True),  # applied with `-n serving`, or the pod does not start
        ("", "namespace: serving", True),
        ("namespace: serving", "namespace: other", False),
    ],
)
def test_a_config_map_whose_namespace_is_not_written(pod: str, data: str, found: bool) -> None:
    text = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: chat, {pod}}}
spec:
  template:
    spec:
      containers:
        - {{name: m, image: corp/serving, command: [sh, -c, cd /work && ./serve.sh]}}
      volumes: [{{name: scripts, configMap: {{name: scripts}}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: scripts, {data}}}
data: {{serve.sh: exec vllm serve a/b --max-model-len 4096}}
"""
    assert [" ".join(words(each)) for each in processes({"a.yaml": text}).values()] == [
        "vllm serve a/b --max-model-len 4096"
    ] * found


def test_a_field_of_the_pod_is_one_word_in_a_shell() -> None:
    """An address has no blank: unquoted too it is what `--host` takes, and nothing may follow that was not written."""
    text = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - name: m
      image: vllm/vllm-openai:v0.11.0
      command: [sh, -c, vllm serve a/b --host $ADDRESS --max-model-len 4096]
      env: [{name: ADDRESS, valueFrom: {%s}}]
"""
    fields = {"fieldRef: {fieldPath: status.podIP}": 0, "secretKeyRef: {name: a, key: b}": 1}
    for source, unseen in fields.items():
        assert len(process({"a.yaml": text % source}).line.open) == unseen
