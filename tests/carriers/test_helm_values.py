"""Values of charts, read as the containers that the chart renders."""

from __future__ import annotations

from itertools import pairwise

from carried import found, process, processes, value, words

STACK = """\
servingEngineSpec:
  modelSpec:
    - name: llama3
      repository: vllm/vllm-openai
      tag: v0.11.0
      modelURL: meta-llama/Llama-3.1-8B-Instruct
      replicaCount: 2
      requestGPU: 4
      vllmConfig:
        maxModelLen: 4096
        enableChunkedPrefill: false
        tensorParallelSize: 4
        gpuMemoryUtilization: 0.9
        extraArgs: ["--max-num-seqs", "8"]
      shmSize: 4Gi
"""


def test_production_stack_renders_the_keys_of_vllm_config() -> None:
    read = processes({"values.yaml": STACK})
    assert list(read) == ["values.yaml#llama3/vllm"]
    (only,) = read.values()
    line = words(only)
    assert line[:5] == ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct", "--port", "8000"]
    assert line[-2:] == ["--max-num-seqs", "8"]
    pairs = dict(pairwise(line))
    assert (pairs["--max-model-len"], pairs["--tensor-parallel-size"]) == ("4096", "4")
    assert "--no-enable-chunked-prefill" in line
    assert "--no-enable-prefix-caching" in line  # the chart turns it off where vllmConfig does not turn it on
    window = next(each for each in only.line.args if each.value == "4096")
    assert window.span.text == "4096"
    assert (value(only.site.replicas), value(only.site.gpus), value(only.site.shared_memory)) == (2, 4, 4 * 2**30)
    assert only.line.image is not None
    assert only.line.image.value == "vllm/vllm-openai:v0.11.0"


def test_shared_memory_is_mounted_only_with_tensor_parallelism() -> None:
    assert process({"values.yaml": STACK.replace("        tensorParallelSize: 4\n", "")}).site.shared_memory is None


def test_a_key_beside_vllm_config_is_rendered_by_nobody() -> None:
    text = STACK.replace('        extraArgs: ["--max-num-seqs", "8"]', '      extraArgs: ["--max-num-seqs", "8"]')
    read = found({"values.yaml": text})
    (problem,) = read.problems
    assert (problem.kind, problem.span.text) == ("ineffective-flag", "extraArgs")
    assert problem.data["suggestion"] == "vllmConfig.extraArgs"
    assert "--max-num-seqs" not in words(read.processes[0][1])


MODELSERVICE = """\
modelArtifacts: {name: facebook/opt-125m, uri: 'hf://{{ .Values.modelArtifacts.name }}'}
routing: {servicePort: 8000}
decode:
  replicas: 3
  parallelism: {tensor: 2}
  containers: [{name: vllm, image: ghcr.io/llm-d/llm-d-cuda:v1, modelCommand: vllmServe, args: [--enforce-eager]}]
prefill:
  create: false
  containers: [{name: vllm, image: x, modelCommand: vllmServe}]
"""


def test_model_service_writes_the_command_with_model_port_and_parallelism() -> None:
    only = process({"values.yaml": MODELSERVICE})
    assert words(only) == [
        *("vllm", "serve", "facebook/opt-125m", "--port", "8200", "--tensor-parallel-size", "2"),
        *("--served-model-name", "facebook/opt-125m", "--enforce-eager"),
    ]
    assert (only.site.name, value(only.site.replicas)) == ("decode/vllm", 3)


def test_a_runtime_chart_joins_the_arguments_of_two_places() -> None:
    text = """\
model: {args: [--max-model-len=8192], uri: oci://x}
servingRuntime: {command: [python, -m, vllm.entrypoints.openai.api_server], args: [--model=/mnt/models], shmSize: 2Gi}
image: {image: registry.example/vllm, tag: "3"}
"""
    only = process({"values.yaml": text})
    assert words(only)[1:] == ["--model=/mnt/models", "--max-model-len=8192"]
    assert value(only.site.shared_memory) == 2 * 2**30


def test_chart_defaults_without_a_model_start_nothing() -> None:
    text = (
        "image: {repository: a/vllm-openai, tag: v1}\nmodel:\n  name:\nkvCacheDtype: auto\nmaxNumBatchedTokens: 10000\n"
    )
    assert processes({"values.yaml": text}) == {}
    named = process({"values.yaml": text.replace("  name:\n", "  name: Qwen/Qwen3-8B\n")})
    assert words(named)[:4] == ["vllm", "serve", "--model", "Qwen/Qwen3-8B"]
    assert "--max-num-batched-tokens" in words(named)


def test_an_unknown_chart_with_an_engines_image() -> None:
    text = """\
replicaCount: 2
image: {repository: vllm/vllm-openai, tag: v0.11.0}
args: [--model, Qwen/Qwen3-8B]
monitor: {image: {repository: prom/prometheus, tag: v3}, args: [--config=x]}
"""
    read = processes({"values.yaml": text})
    assert [words(each) for each in read.values()] == [["--model", "Qwen/Qwen3-8B"]]


APP = """\
controllers:
  main:
    replicas: 1
    pod: {nodeSelector: {nvidia.com/gpu.product: Tesla-T4}}
    containers:
      app:
        image: {repository: vllm/vllm-openai, tag: v0.11.0}
        args: [--model, Qwen/Qwen3-8B]
        env:
          WINDOW: "8192"
          KEY: {valueFrom: {secretKeyRef: {name: a, key: b}}}
        resources: {limits: {nvidia.com/gpu: 1}}
service:
  app: {controller: main, ports: {http: {port: 80}}}
"""
RELEASE = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: llm, namespace: ai}\nspec:\n"


def indented(text: str, by: int) -> str:
    return "".join(" " * by + line + "\n" for line in text.splitlines())


def test_app_template_in_a_release() -> None:
    read = processes({"hr.yaml": RELEASE + "  values:\n" + indented(APP, 4)})
    assert list(read) == ["hr.yaml#main/app"]
    (only,) = read.values()
    assert only.site.hosts == ("llm",)
    assert (only.site.unit, only.site.data["service_ports"]) == ("namespace ai", (80,))
    assert (only.line.env["WINDOW"].value, only.line.env["KEY"].known) == ("8192", False)
    assert [each.text.value for each in only.site.product] == ["Tesla-T4"]


def test_values_from_a_config_map_lie_below_the_releases_own() -> None:
    below = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base, namespace: ai}\ndata:\n  values.yaml: |\n"
    files = {
        "base.yaml": below + indented(APP, 4),
        "hr.yaml": RELEASE
        + "  valuesFrom: [{kind: ConfigMap, name: base}]  # vllm\n"
        + "  values: {controllers: {main: {containers: {app: {args: [--model, other]}}}}}\n",
    }
    assert words(process(files)) == ["--model", "other"]


def test_argo_holds_values_as_a_string_an_object_or_parameters() -> None:
    head = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: llm}\nspec:\n"
    head += "  destination: {namespace: ai}\n  source:\n    helm:\n"
    text = process({"app.yaml": head + "      values: |\n" + indented(STACK, 8)})
    assert text.line.args[1].span.path == "app.yaml"
    assert text.site.unit == "namespace ai"
    parameters = "      parameters: [{name: controllers.main.containers.app.image.tag, value: v0.12.0}]\n"
    made = process({"app.yaml": head + "      valuesObject:\n" + indented(APP, 8) + parameters})
    assert made.line.image is not None
    assert made.line.image.value == "vllm/vllm-openai:v0.12.0"


def test_charts_of_a_kustomization_and_of_k3s() -> None:
    kustomization = "helmCharts:\n  - name: stack\n    releaseName: llm\n    valuesInline:\n" + indented(STACK, 6)
    assert process({"kustomization.yaml": kustomization}).site.name == "llama3/vllm"
    k3s = "apiVersion: helm.cattle.io/v1\nkind: HelmChart\nmetadata: {name: llm}\nspec:\n  valuesContent: |\n"
    assert process({"chart.yaml": k3s + indented(STACK, 4)}).site.name == "llama3/vllm"


def test_kubeai_s_catalogue_of_models() -> None:
    """Each entry is a Model: charts/models/templates/models.yaml of KubeAI renders it as one."""
    text = """\
catalog:
  qwen3-8b-l4:
    enabled: true
    url: hf://Qwen/Qwen3-8B
    engine: VLLM
    args: [--max-model-len=8192]
    resourceProfile: nvidia-gpu-l4:2
  known-to-the-chart: {enabled: true}
"""
    read = processes({"values.yaml": text, "release.yaml": release_of(text)})
    assert {name: words(each)[1:3] for name, each in read.items()} == {
        "values.yaml#qwen3-8b-l4/server": ["--model=Qwen/Qwen3-8B", "--served-model-name=qwen3-8b-l4"],
        "release.yaml#qwen3-8b-l4/server": ["--model=Qwen/Qwen3-8B", "--served-model-name=qwen3-8b-l4"],
    }
    assert [value(each.site.gpus) for each in read.values()] == [2, 2]


def release_of(values: str) -> str:
    indented = "".join(f"    {line}\n" for line in values.splitlines())
    head = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: models}\nspec:\n  values:\n"
    return head + indented
