"""KServe: a runtime's container completed by the service that names it; LLMInferenceService with the controller's command."""

from __future__ import annotations

from carried import admission, found, process, processes, value, words

RUNTIME = """\
apiVersion: serving.kserve.io/v1alpha1
kind: ClusterServingRuntime
metadata: {name: mine}
spec:
  containers:
    - name: kserve-container
      image: vllm/vllm-openai:v0.11.0
      command: [python, -m, vllm.entrypoints.openai.api_server]
      args: ["--port=8080", "--served-model-name={{.Name}}", "--model=/mnt/models"]
      env: [{name: HF_HOME, value: /tmp}, {name: TIER, value: base}]
"""
SERVICE = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: chat
  annotations: {serving.kserve.io/deploymentMode: MODE}
spec:
  predictor:
    minReplicas: 2
    containerConcurrency: 8
    model:
      runtime: mine
      storageUri: hf://Qwen/Qwen3-8B
      args: [--max-model-len=8192]
      env: [{name: TIER, value: own}]
      resources: {limits: {nvidia.com/gpu: "2"}}
"""


def service(mode: str) -> str:
    if not mode:
        return SERVICE.replace("  annotations: {serving.kserve.io/deploymentMode: MODE}\n", "")
    return SERVICE.replace("MODE", mode)


def test_a_service_completes_its_runtime() -> None:
    read = processes({"rt/runtime.yaml": RUNTIME, "isvc.yaml": service("Serverless")})
    assert list(read) == ["rt/runtime.yaml#chat/kserve-container"]
    (only,) = read.values()
    assert words(only) == [
        *("vllm.entrypoints.openai.api_server", "--port=8080", "--served-model-name=chat"),
        *("--model=Qwen/Qwen3-8B", "--max-model-len=8192"),
    ]
    assert {name: text.value for name, text in only.line.env.items()} == {"HF_HOME": "/tmp", "TIER": "own"}
    assert (value(only.site.replicas), value(only.site.gpus)) == (2, 2)
    assert only.line.args[2].pieces[-1].span.path == "isvc.yaml"


def test_a_runtime_that_nobody_names_may_get_more_arguments() -> None:
    only = process({"runtime.yaml": RUNTIME})
    assert only.line.open
    assert not only.line.args[1].known


def test_container_concurrency_is_a_limit_in_the_knative_mode_only() -> None:
    files = {"runtime.yaml": RUNTIME}
    limit = admission({**files, "isvc.yaml": service("Serverless")})
    assert (value(limit.limit), limit.per, limit.excess) == (8, "pod", "wait")
    assert limit.target is not None
    stated = found({**files, "isvc.yaml": service("RawDeployment")})
    (problem,) = stated.problems
    assert (problem.kind, problem.span.text, problem.doubt) == ("admission-ineffective", "containerConcurrency", None)
    assert [each.limit for each in stated.admissions] == []
    (doubtful,) = found({**files, "isvc.yaml": service("")}).problems
    assert doubtful.doubt is not None


def test_knative_annotations_are_targets_and_no_limits() -> None:
    annotated = (
        service("Serverless")
        .replace("MODE", "")
        .replace("  annotations: {", '  annotations: {autoscaling.knative.dev/target: "4", ')
        .replace("    containerConcurrency: 8\n", "")
    )
    limit = admission({"runtime.yaml": RUNTIME, "isvc.yaml": annotated})
    assert limit.limit is None
    assert value(limit.settings["target"]) == 4


def test_a_runtime_that_is_not_in_view() -> None:
    known = process({"isvc.yaml": service("").replace("runtime: mine", "runtime: kserve-vllm")})
    assert words(known)[:2] == ["vllm", "serve"]
    assert known.line.open
    assert processes({"isvc.yaml": service("").replace("[--max-model-len=8192]", "[]")}) == {}


LLM = """\
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: r1}
spec:
  model: {uri: "hf://deepseek-ai/DeepSeek-R1", name: r1}
  replicas: 1
  parallelism: {data: 32, dataLocal: 8, expert: true, tensor: 1}
  template:
    containers:
      - name: main
        env: [{name: VLLM_ADDITIONAL_ARGS, value: "--max-model-len 8192 --enforce-eager"}]
        resources: {limits: {nvidia.com/gpu: "8"}}
  prefill:
    replicas: 2
    template: {containers: [{name: main, command: [vllm, serve, other]}]}
"""


def test_the_controllers_command_with_parallelism_and_additional_arguments() -> None:
    read = processes({"llm.yaml": LLM})
    main = read["llm.yaml#r1/main"]
    assert words(main) == [
        *("vllm", "serve", "deepseek-ai/DeepSeek-R1", "--served-model-name", "r1", "--port", "8000"),
        *("--tensor-parallel-size", "1", "--data-parallel-size", "32", "--data-parallel-size-local", "8"),
        *("--enable-expert-parallel", "--max-model-len", "8192", "--enforce-eager"),
    ]
    assert value(main.site.gpus) == 32  # 8 a pod, 32 / 8 pods
    assert main.line.args[-2].span.text == "8192"
    assert main.site.data["role"] == "decode"
    prefill = read["llm.yaml#r1/prefill/main"]
    assert (words(prefill), value(prefill.site.replicas)) == (["vllm", "serve", "other"], 2)


def test_a_configuration_that_a_service_names_is_merged_below_it() -> None:
    config = """\
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceServiceConfig
metadata: {name: base}
spec:
  template:
    containers: [{name: main, image: ghcr.io/llm-d/llm-d-cuda:v1, command: [vllm, serve, /mnt/models, --block-size, "64"]}]
"""
    alone = process({"config.yaml": config})
    assert alone.line.args[-1].value == "64"
    named = LLM.replace("spec:\n", "spec:\n  baseRefs: [{name: base}]\n", 1)
    read = processes({"config.yaml": config, "llm.yaml": named})
    assert {name.partition("#")[2] for name in read} == {"r1/main", "r1/prefill/main"}


def test_limits_that_nothing_reads_in_an_llm_service() -> None:
    text = LLM.replace("  replicas: 1\n", "  replicas: 1\n  containerConcurrency: 4\n")
    (problem,) = found({"llm.yaml": text}).problems
    assert problem.kind == "admission-ineffective"


def test_the_same_kind_of_another_group_is_not_kserve() -> None:
    other = service("").replace("serving.kserve.io/v1beta1", "example.org/v1")
    assert processes({"isvc.yaml": other}) == {}
