"""Ray Serve LLM: engine arguments as keys, in a string of a RayService or in a file of its own."""

from __future__ import annotations

from carried import found, value, words

SERVE = """\
applications:
  - name: llms
    import_path: ray.serve.llm:build_openai_app
    args:
      llm_configs:
        - model_loading_config: {model_id: chat, model_source: Qwen/Qwen3-8B}
          accelerator_type: L4
          engine_kwargs:
            max_model_len: 8192
            enable_prefix_caching: false
            trust_remote_code: true
            enforce_eager: false
            gpu_memory_utilization: 0.75
            compilation_config: {level: 3}
            tokenizer: null
          deployment_config:
            max_ongoing_requests: 64
            autoscaling_config: {min_replicas: 2, target_ongoing_requests: 32}
"""
SERVICE = (
    "apiVersion: ray.io/v1\nkind: RayService\nmetadata: {name: llm, namespace: ai}\nspec:\n  serveConfigV2: |\n"
    + "".join("    " + line + "\n" for line in SERVE.splitlines())
    + """\
  rayClusterConfig:
    workerGroupSpecs:
      - groupName: gpu
        template:
          spec:
            nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}
            containers:
              - name: worker
                image: rayproject/ray-llm:2.52.0
                env: [{name: VLLM_USE_V1, value: "1"}]
"""
)


def test_engine_arguments_are_the_flags_of_their_fields() -> None:
    read = found({"serve.yaml": SERVE})
    ((name, only),) = read.processes
    assert name == "serve.yaml#chat"
    assert words(only) == [
        *("vllm", "serve", "Qwen/Qwen3-8B", "--served-model-name", "chat", "--max-model-len", "8192"),
        *("--no-enable-prefix-caching", "--trust-remote-code", "--gpu-memory-utilization", "0.75"),
        *("--compilation-config", '{"level": 3}'),
    ]
    flag = only.line.args[4]
    assert (flag.span.text, only.line.args[5].span.text) == ("max_model_len", "8192")
    assert [each.text.value for each in only.site.product] == ["L4"]


def test_the_deployment_has_a_limit_and_a_target_for_each_replica() -> None:
    read = found({"serve.yaml": SERVE})
    (limit,) = read.admissions
    assert (value(limit.limit), limit.per, value(limit.settings["target"])) == (64, "replica", 32)
    assert limit.target is read.processes[0][1]
    assert value(read.processes[0][1].site.replicas) == 2


def test_a_ray_service_has_them_in_a_string_and_its_workers_give_image_and_devices() -> None:
    ((name, only),) = found({"rs.yaml": SERVICE}).processes
    assert name == "rs.yaml#chat"
    assert only.line.args[5].span.text == "8192"
    assert only.line.args[5].span.line == 14  # five lines of head, then the ninth of the string
    assert only.line.env["VLLM_USE_V1"].value == "1"
    assert only.line.image is not None
    assert only.line.image.value == "rayproject/ray-llm:2.52.0"
    assert "cloud.google.com/gke-accelerator" in [each.key for each in only.site.product]
    assert only.site.hosts == ("llm-serve-svc",)


def test_an_application_of_the_users_own_python_starts_nothing_that_is_known() -> None:
    text = SERVE.replace("llm_configs", "others").replace("engine_kwargs", "# engine_kwargs\n          kwargs")
    assert found({"serve.yaml": text}).processes == []
