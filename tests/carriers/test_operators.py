"""Custom resources of operators: the command line that each operator builds."""

from __future__ import annotations

from itertools import pairwise

from carried import admission, found, process, processes, value, words

from kvlint.pipeline import evaluate, memory_project

KUBEAI = """\
apiVersion: kubeai.org/v1
kind: Model
metadata: {name: llama}
spec:
  url: hf://meta-llama/Llama-3.1-8B-Instruct
  engine: VLLM
  args: [--max-num-seqs=512]
  env: {VLLM_ATTENTION_BACKEND: FLASHINFER}
  minReplicas: 1
  targetRequests: 500
  resourceProfile: nvidia-gpu-l4:8
"""


def test_kubeai_puts_model_and_name_before_the_arguments() -> None:
    only = process({"model.yaml": KUBEAI})
    assert words(only) == [
        "vllm.entrypoints.openai.api_server",
        *("--model=meta-llama/Llama-3.1-8B-Instruct", "--served-model-name=llama", "--max-num-seqs=512"),
    ]
    assert only.site.name == "llama/server"
    assert (value(only.site.gpus), value(only.site.replicas)) == (8, 1)
    assert [each.text.value for each in only.site.product] == ["nvidia-l4"]
    assert only.line.env["VLLM_ATTENTION_BACKEND"].value == "FLASHINFER"


def test_kubeais_target_is_no_limit_and_has_a_default() -> None:
    target = admission({"model.yaml": KUBEAI})
    assert (target.limit, value(target.settings["target"]), target.place.text) == (None, 500, "targetRequests")
    default = admission({"model.yaml": KUBEAI.replace("  targetRequests: 500\n", "")})
    assert value(default.settings["target"]) == 100


def test_kubeai_with_another_engine_or_a_profile_of_ones_own() -> None:
    ollama = KUBEAI.replace("VLLM\n", "OLlama\n").replace("hf://meta-llama/Llama-3.1-8B-Instruct", "ollama://gemma3")
    assert words(process({"model.yaml": ollama}))[:2] == ["ollama", "serve"]
    own = process({"model.yaml": KUBEAI.replace("nvidia-gpu-l4:8", "gaudi:2")})
    assert (own.site.product, value(own.site.gpus)) == ((), 2)
    assert processes({"model.yaml": KUBEAI.replace("engine: VLLM", "engine: Infinity")}) == {}


VLLM_RUNTIME = """\
apiVersion: production-stack.vllm.ai/v1alpha1
kind: VLLMRuntime
metadata: {name: sample}
spec:
  model: {modelURL: meta-llama/Llama-3.1-8B-Instruct, maxModelLen: 4096, maxNumSeqs: 32}
  vllmConfig: {enableChunkedPrefill: true, gpuMemoryUtilization: "0.8", port: 8000, extraArgs: [--enforce-eager]}
  deploymentConfig:
    replicas: 2
    image: {registry: docker.io, name: vllm/vllm-openai:v0.11.0}
    resources: {gpu: "1", memory: 32Gi}
"""


def test_vllm_runtime_writes_both_switches_whether_or_not_they_are_set() -> None:
    only = process({"runtime.yaml": VLLM_RUNTIME})
    line = words(only)
    assert line[:5] == ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct", "--port", "8000"]
    assert {"--enable-chunked-prefill", "--no-enable-prefix-caching"} <= set(line)
    assert line[-1] == "--enforce-eager"
    pairs = dict(pairwise(line))
    assert (pairs["--max-model-len"], pairs["--max-num-seqs"], pairs["--gpu_memory_utilization"]) == (
        "4096",
        "32",
        "0.8",
    )
    assert only.line.image is not None
    assert only.line.image.value == "docker.io/vllm/vllm-openai:v0.11.0"
    assert (value(only.site.gpus), value(only.site.memory_limit), value(only.site.replicas)) == (1, 32 * 2**30, 2)


LLMKUBE = """\
apiVersion: inference.llmkube.dev/v1alpha1
kind: Model
metadata: {name: qwen}
spec:
  source: hf://org/Qwen@abc123
  hardware: {memoryBudget: 28Gi, gpu: {count: 2, memory: 32Gi}}
---
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata: {name: qwen-vllm, namespace: ""}
spec:
  modelRef: qwen
  runtime: vllm
  parallelSlots: 6
  image: vllm/vllm-openai-rocm:nightly
  vllmConfig: {maxModelLen: 246944, kvCacheDtype: fp8_e4m3}
  extraArgs: [--served-model-name, qwen]
  endpoint: {port: 8001}
"""


def test_llmkube_takes_slots_as_the_width_and_devices_as_tensor_parallelism() -> None:
    only = process({"qwen.yaml": LLMKUBE})
    line = words(only)
    assert line[:5] == ["vllm", "serve", "org/Qwen", "--port", "8001"]
    pairs = dict(pairwise(line))
    assert (pairs["--max-num-seqs"], pairs["--tensor-parallel-size"]) == ("6", "2")
    assert (pairs["--max-model-len"], pairs["--kv-cache-dtype"], pairs["--served-model-name"]) == (
        *("246944", "fp8_e4m3"),
        "qwen",
    )
    assert only.site.data["service_links"] is False
    assert value(only.site.data["budget"]) == 28 * 2**30


def test_llmkube_leaves_the_width_to_extra_arguments() -> None:
    text = LLMKUBE.replace("[--served-model-name, qwen]", "[--max-num-seqs, '4']")
    assert words(process({"qwen.yaml": text})).count("--max-num-seqs") == 1


def test_kaito_reads_the_settings_of_its_config_map() -> None:
    text = """\
apiVersion: kaito.sh/v1beta1
kind: Workspace
metadata: {name: phi}
resource: {instanceType: Standard_NC24ads_A100_v4}
inference:
  preset: {name: phi-4}
  config: tuned
---
apiVersion: v1
kind: ConfigMap
metadata: {name: tuned}
data:
  inference_config.yaml: |
    vllm:
      max-model-len: 16384
      gpu-memory-utilization: 0.9
"""
    only = process({"kaito.yaml": text})
    line = words(only)
    assert line[2:6] == ["--model", "phi-4", "--max-model-len", "16384"]
    assert only.line.open  # the preset's own arguments
    assert value(only.site.gpus) == 1
    assert [each.text.value for each in only.site.product] == ["Standard_NC24ads_A100_v4"]


def test_resources_without_what_is_needed_are_left_out() -> None:
    bare = "apiVersion: {}\nkind: {}\nmetadata: {{name: vllm}}\nspec: {{}}\n"
    for group, kind in (
        ("kubeai.org/v1", "Model"),
        ("production-stack.vllm.ai/v1alpha1", "VLLMRuntime"),
        ("inference.llmkube.dev/v1alpha1", "InferenceService"),
        ("kaito.sh/v1beta1", "Workspace"),
        ("serving.kserve.io/v1beta1", "InferenceService"),
        ("serving.kserve.io/v1alpha2", "LLMInferenceServiceConfig"),
        ("ray.io/v1", "RayService"),
        ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
        ("argoproj.io/v1alpha1", "Application"),
        ("litellm.home-operations.com/v1alpha1", "LiteLLMModel"),
        ("keda.sh/v1alpha1", "ScaledObject"),
        ("networking.istio.io/v1", "DestinationRule"),
        ("gateway.envoyproxy.io/v1alpha1", "BackendTrafficPolicy"),
        ("traefik.io/v1alpha1", "Middleware"),
        ("serving.knative.dev/v1", "Service"),
    ):
        for text in (bare.format(group, kind), bare.format(group, kind).replace("spec: {}", "spec: [1]")):
            assert found({"a.yaml": text}).processes == []


MODEL_BOOSTER = """\
apiVersion: workload.serving.volcano.sh/v1alpha1
kind: ModelBooster
metadata: {name: qwen}
spec:
  backend:
    name: one
    type: vLLM
    modelURI: hf://Qwen/Qwen3-8B
    env: [{name: HF_HOME, value: /hf}]
    workers:
      - type: server
        image: vllm/vllm-openai:v0.11.0
        pods: 2
        config:
          max_model_len: 32768
          trust-remote-code: ""
          enforce-eager: true
        resources: {limits: {nvidia.com/gpu: "4"}}
      - type: controller
        image: x
"""


def test_model_booster_makes_a_flag_of_each_key() -> None:
    only = process({"qwen.yaml": MODEL_BOOSTER})
    assert words(only) == [
        *("vllm.entrypoints.openai.api_server", "--model", "Qwen/Qwen3-8B", "--max-model-len", "32768"),
        *("--trust-remote-code", "--enforce-eager", "true"),
    ]
    assert only.line.args[3].span.text == "32768"
    assert (value(only.site.gpus), only.line.env["HF_HOME"].value) == (8, "/hf")


def test_what_stands_behind_a_key_that_is_no_flag_is_not_the_model_of_a_booster() -> None:
    text = MODEL_BOOSTER.replace("max_model_len: 32768", "maxModelLen: 12288")
    (group,) = evaluate(memory_project({"qwen.yaml": text})).groups
    assert value(group.first.settings["model"]) == "Qwen/Qwen3-8B"


def test_model_booster_of_sglang_and_of_several_backends() -> None:
    text = MODEL_BOOSTER.replace("type: vLLM", "type: SGLang").replace("        pods: 2\n", "")
    assert words(process({"qwen.yaml": text}))[:3] == ["sglang.launch_server", "--model-path", "Qwen/Qwen3-8B"]
    text = MODEL_BOOSTER.replace("backend:\n    name", "backends:\n  - name")
    assert words(process({"qwen.yaml": text}))[1:3] == ["--model", "Qwen/Qwen3-8B"]
    assert found({"qwen.yaml": MODEL_BOOSTER.replace("type: vLLM", "type: Other")}).processes == []
