"""Templates: what stands written is read, what an action fills in is unknown, and offsets stay those of the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.formats import helm
from kvlint.formats.yaml import documents
from kvlint.source import HOLE, Source
from kvlint.tree import List, Map, Node, Opaque, Scalar, walk

CORPUS = Path(__file__).resolve().parents[2] / "../shared/corpus"

CHART = """\
{{- if .Values.enabled }}
{{- /* kvlint: not ours */ -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "chart.fullname" . }}
  labels:
    {{- include "chart.labels" . | nindent 4 }}
    app: "{{ .Chart.Name }}-x"
  annotations: {{ toYaml .Values.annotations | nindent 4 }}
spec:
  replicas: {{ .Values.replicas | default 1 }}
  template:
    spec:
      nodeSelector:
        {{- toYaml .Values.nodeSelector | nindent 8 }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: vllm
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
          args:
            - --max-num-seqs={{ .Values.seqs }}
            - "--model"
            - {{ .Values.model | quote }}
            {{- range .Values.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          command:
            - sh
            - -c
            - |
              vllm serve x \\
                {{- if .Values.len }}
                --max-model-len {{ .Values.len }} \\
                {{- end }}
                --gpu-memory-utilization 0.9
          env:
          {{- if .Values.a }}
            - name: A
              value: "1"
          {{- else }}
            - name: A
              value: "2"
          {{- end }}
          {{- if .Values.b }}
          tty: true
          {{- else }}
          tty: false
          {{- end }}
          stdin: true
---
kind: Service
{{- end }}
"""


def tree(text: str, index: int = 0) -> Map:
    source = Source("t.yaml", text)
    document = list(documents(source, templated=True))[index]
    assert document.problem is None, document.problem
    assert isinstance(document.node, Map)
    return document.node


def container(text: str = CHART) -> Map:
    found = tree(text).map("spec", "template", "spec", "containers", 0)
    assert found is not None
    return found


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_chart(newline: str) -> None:
    text = CHART.replace("\n", newline)
    node = tree(text)
    assert node.string("kind") == "Deployment"
    assert not node.open
    assert isinstance(node.get("metadata", "name"), Opaque)
    assert isinstance(node.get("metadata", "annotations"), Opaque)
    labels = node.map("metadata", "labels")
    assert labels is not None
    assert [opening.span.text for opening in labels.open] == ['{{- include "chart.labels" . | nindent 4 }}']
    assert labels.text("app").value == f"{HOLE}-x"  # type: ignore[union-attr]
    replicas = node.scalar("spec", "replicas")
    assert replicas is not None
    assert (replicas.value, replicas.span.text) == (HOLE, "{{ .Values.replicas | default 1 }}")
    pod = node.map("spec", "template", "spec")
    assert pod is not None
    assert isinstance(pod.get("nodeSelector"), Opaque)
    assert isinstance(pod.get("tolerations"), Opaque)
    assert pod.open
    assert not node.map("spec", "template").open  # type: ignore[union-attr]
    assert tree(text, 1).string("kind") == "Service"


def test_words_in_a_chart() -> None:
    found = container()
    image = found.text("image")
    assert image is not None
    assert image.value == f"{HOLE}:{HOLE}"
    assert [hole.span.text for hole in image.holes] == ["{{ .Values.image.repository }}", "{{ .Values.image.tag }}"]
    args = found.list("args")
    assert args is not None
    assert [item.value for item in args if isinstance(item, Scalar)] == [f"--max-num-seqs={HOLE}", "--model", HOLE]
    assert isinstance(args.items[3], Opaque)
    assert args.open
    first = args.items[0]
    assert isinstance(first, Scalar)
    assert first.text.slice(0, 14).span.text == "--max-num-seqs"
    assert first.text.slice(15).span.text == "{{ .Values.seqs }}"


def test_a_script_in_a_chart() -> None:
    script = container().text("command", 2)
    assert script is not None
    assert script.value == f"vllm serve x \\\n  {HOLE}   --gpu-memory-utilization 0.9\n"
    (hole,) = script.holes
    assert hole.splice
    assert hole.span.text.startswith("{{- if")
    assert hole.span.text.endswith("end }}")
    at = script.value.index("0.9")
    assert script.slice(at, at + 3).span.text == "0.9"


def test_branches() -> None:
    found = container()
    env = found.list("env")
    assert env is not None
    assert env.open
    assert len(env.items) == 2
    assert isinstance(found.get("tty"), Opaque)
    assert found.duplicates == ()
    assert found.string("stdin") == "true"
    assert found.open


def test_actions_left_of_a_block_scalar() -> None:
    text = (
        "data:\n  run.sh: |\n    vllm serve\n{{- if .x }}\n    --a 1\n{{- end }}\n    --b 2\n"
        "{{- if .y }}\n  other: 1\n{{- end }}\n"
    )
    data = tree(text).map("data")
    assert data is not None
    assert data.string("run.sh") is None
    script = data.text("run.sh")
    assert script is not None
    assert script.value == f"vllm serve\n{HOLE}\n--b 2\n"
    assert data.open
    assert data.string("other") == "1"


def test_a_folded_scalar() -> None:
    text = tree("a: >-\n  serve\n  {{- if .x }}\n  --a\n  {{- end }}\n  --b 2\n").text("a")
    assert text is not None
    assert text.value == f"serve {HOLE} --b 2"


def test_what_adds_to_whom() -> None:
    node = tree(
        'a:\n  b: 1\n  {{- toYaml .x | nindent 2 }}\nc:\n- 1\n{{ toYaml .y }}\nd: 2\n{{ include "e" . | indent 2 }}\n'
    )
    assert node.map("a").open  # type: ignore[union-attr]
    assert node.list("c").open or node.open  # type: ignore[union-attr]
    node = tree(
        "a:\n{{ toYaml .x | indent 2 }}\nb:\n{{- range .y }}\n  - {{ . }}\n{{- end }}\nc:\n  {{- if .z }}\n  d: 1\n  {{- end }}\n"
    )
    assert isinstance(node.get("a"), Opaque)
    assert node.list("b").open  # type: ignore[union-attr]
    assert node.map("c").open  # type: ignore[union-attr]
    assert not node.open
    node = tree('env:\n  {{- include "e" . | nindent 2 }}\n  - name: X\n{{ .key }}: 1\n')
    assert node.list("env").open  # type: ignore[union-attr]
    assert node.open


def test_values_chosen_by_a_branch_are_unknown() -> None:
    node = tree("a:\n  {{- if .x }}\n  1\n  {{- end }}\nb: {{ if .x }}1{{ else }}2{{ end }}\n")
    assert isinstance(node.get("a"), Opaque)
    assert node.text("b").value == HOLE  # type: ignore[union-attr]


def test_items_that_may_be_absent_are_unknown() -> None:
    text = (
        "c:\n  {{- if .x }}\n  - /opt/vllm\n  {{- else }}\n  - vllm\n  {{- end }}\n  - serve\n"
        "  {{- if .y }}\n  - --a\n  - {b: 1}\n  {{- end }}\n  - --c\n"
    )
    items = tree(text).list("c")
    assert items is not None
    assert [item.value if isinstance(item, Scalar) else type(item).__name__.strip("_") for item in items] == [
        "Opaque", "Opaque", "serve", "Opaque", "Map", "--c",
    ]  # fmt: skip
    assert items.open[-1].span.text.startswith("{{- if .y")
    assert items.open[-1].span.covers(items.items[4].span)
    whole = tree("c:\n  {{- if .x }}\n  - a\n  - b\n  {{- end }}\n").list("c")
    assert whole is not None
    assert [item.value for item in whole if isinstance(item, Scalar)] == ["a", "b"]
    assert whole.open


def test_jinja() -> None:
    node = tree(
        "{% set x = 1 %}\na: {{ y }}\nb:\n{% for z in q %}\n  - {{ z }}\n{% endfor %}\n{# kvlint: x #}\nc: ${#array[@]}\n"
    )
    assert node.text("a").value == HOLE  # type: ignore[union-attr]
    assert node.list("b").open  # type: ignore[union-attr]
    assert node.string("c") == "${#array[@]}"
    assert not node.open


def test_a_document_that_a_template_writes_whole() -> None:
    (document,) = documents(Source("t.yaml", '{{ include "common.deployment" . }}\n'), templated=True)
    assert isinstance(document.node, Opaque)


def test_strings_with_braces_inside_actions() -> None:
    node = tree("a: {{ printf \"}}%s\" `}}` }}\nb: '{{ \"it''s\" }}'\nc: x {{ open\n")
    assert node.text("a").value == HOLE  # type: ignore[union-attr]
    assert node.string("c") == "x {{ open"


@pytest.mark.parametrize(
    "text",
    [
        "{{" * 200_000,
        "{{ `" * 100_000 + "}}",
        "{{ if }}" * 50_000,
        "a: |\n  " + "{{ x }} " * 50_000,
        "{% {{ {# " * 50_000,
    ],
)
def test_time_is_bounded(text: str) -> None:
    for document in documents(Source("t.yaml", text), templated=True):
        for node in walk(document.node) if document.node is not None else ():
            if isinstance(node, Scalar):
                assert node.text.value is not None


PARTS = [
    "{{ .a }}",
    "{{- if .x }}",
    "{{- else }}",
    "{{ end }}",
    "{{- toYaml .y | nindent 4 }}",
    "{% if a %}",
    "{% endif %}",
    "{# c #}",
    "{{",
    "}}",
]
LINES = [
    "a: ",
    "  b: |",
    "    c ",
    "- ",
    "    ",
    "  d: 'e",
    "f'",
    "---",
    "",
    "g: {h: ",
    "}",
    'k: "',
    '"',
    "\r",
    "  - >-",
]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from([*PARTS, *LINES, "\n", "\n", "\n"]), max_size=25).map("".join))
def test_any_template(text: str) -> None:
    source = Source("t.yaml", text)
    template = helm.blank(source)
    assert len(template.text) == len(text)
    for document in documents(source, templated=True):
        for node in walk(document.node) if document.node is not None else ():
            check(node, text)


def check(node: Node, text: str) -> None:
    assert 0 <= node.span.start <= node.span.end <= len(text)
    if isinstance(node, Scalar):
        assert node.value.count(HOLE) == len(node.text.holes)
        for piece in node.text.pieces:
            if piece.literal:
                assert piece.span.text == node.value[piece.at : piece.at + piece.length]
    elif isinstance(node, Map | List):
        assert all(opening.span.end <= len(text) for opening in node.open)
