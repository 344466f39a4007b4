"""Fronts in a cluster: namespaces in addresses, several builds of one base, sidecars, variables, generated files."""

from __future__ import annotations

from textwrap import indent

import pytest

from kvlint.pipeline import check_files

SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
          args: [--model=Qwen/Qwen3-8B, --max-model-len=16384, --served-model-name=chat]
          ports: [{containerPort: 8000, name: http}]
---
apiVersion: v1
kind: Service
metadata: {name: chat}
spec:
  selector: {app: chat}
  ports: [{port: 80, targetPort: http}]
"""
PROXY = """\
model_list:
  - model_name: chat
    litellm_params: {model: openai/chat, api_base: ADDRESS}
    model_info: {max_input_tokens: 24576}
"""


def proxy(address: str) -> str:
    text = indent(PROXY.replace("ADDRESS", address), "    ")
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: proxy}}\ndata:\n  config.yaml: |\n{text}"


def within(space: str, text: str) -> str:
    return text.replace("metadata: {name:", f"metadata: {{namespace: {space}, name:")


def found(files: dict[str, str], *rules: str) -> list[tuple[str, str, str]]:
    report = check_files(files)
    return [
        (each.rule, each.severity, each.text)
        for each in report.findings
        if each.rule in (rules or ("window-mismatch", "values-disagree"))
    ]


MISMATCH = [("window-mismatch", "error", "24576")]


@pytest.mark.parametrize("host", ["chat.llm", "chat.llm.svc", "chat.llm.svc.cluster.local:80"])
def test_a_service_of_another_namespace(host: str) -> None:
    files = {"llm.yaml": within("llm", SERVER), "gateway.yaml": within("edge", proxy(f"http://{host}/v1"))}
    assert found(files) == MISMATCH


@pytest.mark.parametrize("host", ["chat", "chat.other", "chat.example.com:80"])
def test_the_same_name_in_another_namespace(host: str) -> None:
    space = "llm" if host == "chat" else "edge"
    files = {"llm.yaml": within(space, SERVER), "gateway.yaml": within("edge", proxy(f"http://{host}/v1"))}
    assert found(files) == []


def test_of_equal_names_the_one_in_the_directory() -> None:
    files = {
        "a/chat.yaml": SERVER,
        "a/proxy.yaml": proxy("http://chat/v1"),
        "b/chat.yaml": SERVER.replace("16384", "32768"),
        "b/proxy.yaml": proxy("http://chat/v1"),
    }
    assert found(files) == MISMATCH


@pytest.mark.parametrize("space", ["", "namespace: llm\n"])
def test_each_build_of_a_base_for_itself(space: str) -> None:
    def overlay(window: int) -> str:
        patch = f"{{op: replace, path: /spec/template/spec/containers/0/args/1, value: --max-model-len={window}}}"
        target = "{kind: Deployment, name: chat}"
        return f"resources: [../base]\n{space}patches:\n  - target: {target}\n    patch: |-\n      - {patch}\n"

    files = {
        "base/kustomization.yaml": "resources: [all.yaml]\n",
        "base/all.yaml": f"{SERVER}---\n{proxy('http://chat/v1')}",
        "small/kustomization.yaml": overlay(8192),
        "large/kustomization.yaml": overlay(32768),
    }
    assert found(files) == MISMATCH


SIDECAR = """\
        - name: proxy
          image: ghcr.io/berriai/litellm:v1.74.0
          args: [--config, /etc/proxy/config.yaml]
          env: [{name: CHAT_URL, value: "http://chat/v1"}]
          volumeMounts: [{name: proxy, mountPath: /etc/proxy}]
      volumes:
        - name: proxy
          configMap: {name: proxy}
---
apiVersion: v1
kind: Service
"""


@pytest.mark.parametrize(
    ("address", "finds"),
    [("http://127.0.0.1:8000/v1", MISMATCH), ("http://localhost:8001/v1", []), ("os.environ/CHAT_URL", MISMATCH)],
)
def test_a_proxy_in_the_same_pod(address: str, finds: list[tuple[str, str, str]]) -> None:
    server = SERVER.replace("---\napiVersion: v1\nkind: Service\n", SIDECAR)
    assert found({"chat.yaml": f"{server}---\n{proxy(address)}"}) == finds


def test_a_file_that_a_kustomization_puts_into_a_config_map() -> None:
    generator = "configMapGenerator:\n  - name: proxy\n    files: [config.yaml=proxy/config.yaml]\n"
    files = {
        "kustomization.yaml": f"resources: [chat.yaml]\n{generator}",
        "chat.yaml": SERVER,
        "proxy/config.yaml": PROXY.replace("ADDRESS", "http://chat/v1"),
    }
    assert found(files) == MISMATCH


def test_a_port_that_the_service_does_not_have() -> None:
    files = {"chat.yaml": f"{SERVER}---\n{proxy('http://chat:8000/v1')}"}
    assert found(files) == [("values-disagree", "error", "http://chat:8000/v1")]
    pods = SERVER.replace("  selector: {app: chat}\n  ports", "  clusterIP: None\n  selector: {app: chat}\n  ports")
    assert found({"chat.yaml": f"{pods}---\n{proxy('http://chat:8000/v1')}"}) == MISMATCH


def test_the_block_size_in_a_scheduler_s_text() -> None:
    text = """\
apiVersion: serving.kserve.io/v1alpha1
kind: LLMInferenceService
metadata: {name: chat}
spec:
  model: {uri: "hf://Qwen/Qwen3-8B", name: chat}
  template:
    containers:
      - name: main
        env: [{name: VLLM_ADDITIONAL_ARGS, value: "--block-size 32"}]
  router:
    scheduler:
      template:
        containers:
          - name: main
            args:
              - --config-text
              - |
                kind: EndpointPickerConfig
                plugins:
                  - type: precise-prefix-cache-scorer
                    parameters: {tokenProcessorConfig: {blockSize: 64}}
"""
    assert found({"chat.yaml": text}) == [("values-disagree", "warning", "64")]
    assert found({"chat.yaml": text.replace("size 32", "size 64")}) == []


def test_a_compose_service_and_a_domain_of_its_name() -> None:
    compose = """\
services:
  chat:
    image: vllm/vllm-openai:v0.11.0
    command: [--model, Qwen/Qwen3-8B, --max-model-len, "16384", --port, "443"]
  proxy:
    image: ghcr.io/berriai/litellm:v1.74.0
    volumes: ["./config.yaml:/app/config.yaml"]
"""
    for host, finds in (("http://chat:443", MISMATCH), ("https://chat.example.com", [])):
        config = PROXY.replace("ADDRESS", host).replace("openai/chat", "openai/Qwen/Qwen3-8B")
        assert found({"compose.yaml": compose, "config.yaml": config}) == finds


RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: proxy}
spec:
  values:
"""
APP = """\
    controllers: {proxy: {containers: {app: {image: {repository: ghcr.io/berriai/litellm, tag: v1.74.0}}}}}
    configMaps:
      config:
        data:
          config.yaml: |
"""


def test_a_proxy_s_file_among_a_chart_s_values_and_in_a_secret() -> None:
    config = PROXY.replace("ADDRESS", "http://chat/v1")
    chart = f"{RELEASE}    proxy_config:\n{indent(config, '      ')}"
    assert found({"chat.yaml": SERVER, "proxy.yaml": chart}) == MISMATCH
    assert found({"chat.yaml": SERVER, "proxy.yaml": RELEASE + APP + indent(config, "            ")}) == MISMATCH
    secret = proxy("http://chat/v1").replace("ConfigMap", "Secret").replace("data:", "stringData:")
    assert found({"chat.yaml": SERVER, "proxy.yaml": secret}) == MISMATCH


@pytest.mark.parametrize(
    ("name", "text"),
    [("proxy/config.yaml", PROXY), ("values.yaml", "proxy_config:\n" + indent(PROXY, "  "))],
)
@pytest.mark.parametrize(
    ("host", "severities"), [("chat", ["warning"]), ("chat.llm.svc.cluster.local", ["warning"]), ("chat.other", [])]
)
def test_a_file_that_no_object_holds_is_supposed_to_be_for_the_cluster(
    name: str, text: str, host: str, severities: list[str]
) -> None:
    files = {"k8s/chat.yaml": within("llm", SERVER), name: text.replace("ADDRESS", f"http://{host}/v1")}
    assert [each[1] for each in found(files)] == severities


def test_two_services_of_that_name_are_none() -> None:
    files = {"a/chat.yaml": SERVER, "b/chat.yaml": SERVER, "config.yaml": PROXY.replace("ADDRESS", "http://chat/v1")}
    assert found(files) == []


def test_a_service_of_that_name_in_another_tree_says_nothing_of_ports() -> None:
    files = {"a/proxy.yaml": proxy("http://chat:9000/v1"), "b/chat.yaml": SERVER}
    assert found(files) == []
    files = {"a/gateway/proxy.yaml": proxy("http://chat:9000/v1"), "a/chat.yaml": SERVER}
    assert [each[:2] for each in found(files)] == [("values-disagree", "error")]
