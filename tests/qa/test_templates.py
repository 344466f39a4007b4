"""Files of which a part is filled in, or read, elsewhere."""

from __future__ import annotations

from kvlint.pipeline import check_files

BASES = """models:
  qwen:
    cmd: |
      ${vllm_base}
      --model /models/qwen --host ${host} --port ${PORT}
"""
WHOLE = "healthCheckTimeout: 60\n" + BASES
CHART = """apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
        - image: vllm/vllm-openai:v0.11.0
          name: ''
          {{- with .Values.resources }}
            resources:
              {{- toYaml . | nindent 14 }}
          {{- end }}
"""


def found(name: str, text: str) -> set[tuple[str, str]]:
    return {(each.severity, each.rule) for each in check_files({name: text}).findings}


def test_models_whose_programs_are_macros_are_one_file_of_several() -> None:
    assert found("models/qwen.yaml", BASES) == set()
    assert ("error", "unknown-macro") in found("config.yaml", WHOLE)


def test_a_template_that_cannot_be_read_is_no_error() -> None:
    assert found("templates/deployment.yaml", CHART) == {("warning", "unreadable-config")}


def test_a_template_of_any_kind_that_cannot_be_read_is_no_error() -> None:
    pod = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n{extra}\n    - image: vllm/vllm-openai:v0.11.0\n"
    for ending, severity in ((".tpl", "warning"), (".in", "warning"), ("", "error"), (".example", "error")):
        assert (severity, "unreadable-config") in found(f"pod.yaml{ending}", pod)


def test_a_number_with_nothing_behind_its_point_is_whole() -> None:
    line = "#!/bin/sh\nllama-server -m a.gguf -c 4096 --top-k {}\n"
    assert "suffix-not-understood" not in {rule for _, rule in found("a.sh", line.format("0.0"))}
    assert "suffix-not-understood" in {rule for _, rule in found("a.sh", line.format("4k"))}


def test_braces_that_something_fills_in_may_be_read_afterwards() -> None:
    container = "    - image: vllm/vllm-openai:v0.11.0\n      args: [--max-model-len=LENGTH]\n"
    text = f"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n{container}"
    for length, severity in (("${LENGTH}", "warning"), ("{LENGTH}", "error")):
        found = check_files({"pod.yaml": text.replace("LENGTH", length)}).findings
        assert [(each.rule, each.severity) for each in found if each.rule == "unreadable-config"] == [
            ("unreadable-config", severity)
        ]
