"""Containers of a chart whose command stands inside `{{ if }} … {{ else }} … {{ end }}`."""

from __future__ import annotations

import time

import pytest
from found import argument, findings, line, lines, processes

from kvlint.pipeline import check_files

POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: qwen}
spec:
  template:
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
"""
KEYS = """\
          {{- if .Values.big }}
          command: ["vllm", "serve"]
          args: ["Qwen/Qwen3-8B", "--max-model-len", "65536"]
          {{- else }}
          command: ["vllm", "serve"]
          args: ["Qwen/Qwen3-8B", "--max-model-len", "{{ .Values.window }}"]
          {{- end }}
"""
ITEMS = """\
          args:
            {{- if eq .Values.size "big" }}
            - --model=a
            {{- else if .Values.small }}
            - --model=b
            {{- else }}
            - --model=c
            {{- if .Values.seed }}
            - --seed=1
            {{- end }}
            {{- end }}
            - --port=1
"""
SCRIPT = """\
          command: [sh, -c]
          args:
            - |
              {{- if .Values.big }}
              vllm serve a --port 1
              {{- else }}
              vllm serve b \\
                {{- if .Values.x }}
                --seed 2 \\
                {{- else }}
                --seed 3 \\
                {{- end }}
                --port 2
              {{- end }}
"""
FOLDED = """\
          command: [sh, -c]
          args:
            - >-
              vllm serve a
              {{- if .Values.big }}
              --seed 1
              {{- else }}
              --seed 2
              {{- end }}
              --port 2
"""
OPTIONAL = """\
          args:
            - --model=a
            {{- if .Values.window }}
            - --max-model-len={{ .Values.window }}
            {{- end }}
"""
ELSEWHERE = """\
          args: [--model=a]
          {{- if .Values.probe }}
          livenessProbe: {}
          {{- else }}
          tty: true
          {{- end }}
"""
HALF = """\
          {{- if .Values.args }}
          args: {{ toYaml .Values.args | nindent 12 }}
          {{- else }}
          args: [--model=a, --seed=1]
          {{- end }}
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (KEYS, ["vllm serve Qwen/Qwen3-8B --max-model-len 65536", "vllm serve Qwen/Qwen3-8B --max-model-len ?"]),
        (ITEMS, [f"[vllm/vllm-openai:v0.11.0] --model={name} --port=1" for name in "abc"]),
        (FOLDED, ["vllm serve a --seed 1 --port 2", "vllm serve a --seed 2 --port 2"]),
        (OPTIONAL, ["[vllm/vllm-openai:v0.11.0] --model=a"]),
        (ELSEWHERE, ["[vllm/vllm-openai:v0.11.0] --model=a"]),
        (HALF, ["[vllm/vllm-openai:v0.11.0] --model=a --seed=1"]),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_each_branch_is_read(text: str, wanted: list[str], newline: str) -> None:
    assert list(lines({"templates/d.yaml": (POD + text).replace("\n", newline)}).values()) == wanted


def test_places_and_what_is_open() -> None:
    found = processes({"templates/d.yaml": POD + KEYS})
    assert list(found) == ["templates/d.yaml#qwen/vllm", "templates/d.yaml#qwen/vllm~2"]
    for process, row, window in zip(found.values(), (12, 15), ("65536", "{{ .Values.window }}"), strict=True):
        place = argument(process, "--max-model-len").span
        assert (place.text, place.line) == (window, row)
        assert process.line.open[-1].index == len(process.line.args)
    optional = next(iter(processes({"templates/d.yaml": POD + OPTIONAL}).values()))
    assert optional.line.open


def test_a_script_inside_of_branches() -> None:
    found = [line(each) for each in processes({"templates/d.yaml": POD + SCRIPT}).values()]
    assert found == ["vllm serve a --port 1", "vllm serve b ? --port 2"]


def test_a_branch_is_doubt() -> None:
    report = check_files({"templates/d.yaml": POD + KEYS})
    # 65,536 against the model's 40,960 positions
    assert [(each.rule, each.severity) for each in report.findings if each.rule == "window-beyond-model"] == [
        ("window-beyond-model", "warning")
    ]


def test_branches_of_jinja() -> None:
    text = POD + ITEMS.replace("{{- else if", "{{- elif").replace("{{-", "{%-").replace(" }}", " %}")
    text = text.replace("end %}", "endif %}")
    assert [line(each) for each in processes({"d.yaml.j2": text}).values()] == [
        f"[vllm/vllm-openai:v0.11.0] --model={name} --port=1" for name in "abc"
    ]


def test_hostile() -> None:
    start = time.process_time()
    parts = ("{{- if .a }}", "- --model=a", "{{- else }}", "- --model=b", "{{- end }}")
    one = "".join(f"            {part}\n" for part in parts)
    for body in (
        one * 300,
        "            {{- if .a }}\n" * 300 + "            - --model=a\n" + "            {{- end }}\n" * 300,
        "            {{- if .a }}\n"
        + "            {{- else if .b }}\n            - --model=a\n" * 300
        + "            {{- end }}\n",
        "            {{- if .a }}\n            - [\n            {{- else }}\n            - --model=a\n            {{- end }}\n",
        "            {{- else }}\n            {{- end }}\n            - --model=a\n            {{- if .a }}\n",
    ):
        findings({"templates/d.yaml": POD + "          args:\n" + body})
    assert time.process_time() - start < 20
