"""Scripts that a template makes."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.formats.shell import commands
from kvlint.formats.shell.filled import filled
from kvlint.pipeline import check_files
from kvlint.source import HOLE, Source, Text

JINJA = """\
{% extends "base.sh" %}
#!/bin/bash
{# vllm serve old #}
export MODEL={{ vllm_model }}
N=1
{% if big %}
N=2
vllm serve "$MODEL" --port {{ port }}
{%- elif small %}
vllm serve b
{% else %}
vllm serve c
{% endif %}
vllm serve d --max-num-seqs $N {% if tp %}--tensor-parallel-size {{ tp }}{% endif %} \\
  {% if window %}
  --max-model-len {{ window }} \\
  {% endif %}
  --seed 1
{% for each in models %}
vllm serve {{ each }}
{% endfor %}
docker inspect --format '{{.State.Health}}' x
n=${#MODEL}
awk '{print $1}' | awk '{{print $2}}'
"""


def text(value: str) -> Text:
    return Text.of(Source("a.sh", value), 0, len(value))


def lines(value: str) -> list[str]:
    found = commands(filled(text(value))).commands
    return [" ".join(word.value.replace(HOLE, "?") for word in each.words) for each in found]


def test_a_template_of_jinja() -> None:
    assert [line for line in lines(JINJA) if line.startswith("vllm")] == [
        "vllm serve ? --port ?",
        "vllm serve b",
        "vllm serve c",
        "vllm serve d --max-num-seqs ? ? ? --seed 1",
        "vllm serve ?",
    ]


def test_a_template_of_go() -> None:
    found = lines(
        "{{- if .Values.a }}\nvllm serve a --port {{ .Values.port }}\n{{- else }}\nvllm serve b\n{{- end }}\n"
    )
    assert [line for line in found if line.startswith("vllm")] == ["vllm serve a --port ?", "vllm serve b"]


def test_what_stands_written_keeps_its_place() -> None:
    made = filled(text("A={{ x }}\nvllm serve --seed 1\n"))
    at = made.value.index("1")
    assert made.slice(at, at + 1).span.start == 28
    assert [hole.span.text for hole in made.holes] == ["{{ x }}"]


def test_what_is_no_template_stays() -> None:
    for value in ('vllm serve \'{"a": {"b": {}}}\'', "echo ${#x} {{a,b},c}", "x='{{'", "awk '{{print}}'", "{%", "{{ x"):
        made = filled(text(value))
        assert made.value == value or made.holes


def test_no_error_is_told_of_what_a_template_fills_in() -> None:
    flags = "--max-model-len {{ LEN }} {% if TP %}-tp {{ TP }}{% endif %} --port {{ PORT }}"
    script = f"#!/bin/sh\nexec vllm serve {{{{ MODEL }}}} {flags}\n"
    for name in ("a.sh.j2", "a.sh", "run.sh.tpl"):
        report = check_files({name: script})
        assert report.internal == []
        assert [each for each in report.findings if each.severity == "error"] == []
        assert report.summary["servers"] == 1


@given(st.text("{}%#- \n\\aif.$'\"", max_size=60))
def test_any_text(value: str) -> None:
    made = filled(text(value))
    commands(made)
    assert sum(piece.length for piece in made.pieces) == len(made.value)


def test_hostile() -> None:
    start = time.process_time()
    for value in (
        "{{" * 50_000,
        "{%" * 50_000,
        "{# " * 50_000,
        "{{ a " * 20_000,
        "{% if a %}\n" * 5_000,
        "{% if a %}x{% endif %}" * 5_000,
    ):
        commands(filled(text(value)))
    assert time.process_time() - start < 20


SERVES = "vllm serve {{ model }} --max-model-len {{ window }} {% if tp %}--tensor-parallel-size {{ tp }}{% endif %}"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("supervisord.conf.j2", f'[program:a]\nenvironment=N="{{{{ n }}}}"\ncommand={SERVES}\n'),
        ("a.service", f"[Service]\nExecStart={SERVES}\n"),
        ("a.service.j2", f"[Service]\nExecStart={SERVES}\n"),
        ("Procfile.j2", f"a: {SERVES}\n"),
        ("Makefile.j2", f"a:\n\t{SERVES}\n"),
        ("justfile.j2", f"a:\n    {SERVES}\n"),
        ("Dockerfile.j2", 'FROM vllm/vllm-openai:v0.11.0\nCMD ["--model", "m", "--max-model-len", "{{ window }}"]\n'),
        ("models.ini.j2", "[m]\nmodel = a.gguf\nctx-size = {{ window }}\n"),
        ("a.sh.tpl", "vllm serve {model} --tensor-parallel-size {tp} --port={port} {eager}\n"),
        ("a.sh.in", "vllm serve @MODEL@ --max-model-len @WINDOW@ --port __PORT__\n"),
    ],
)
def test_templates_of_other_kinds(name: str, written: str) -> None:
    report = check_files({name: written})
    assert (report.summary["servers"], report.internal) == (1, [])
    assert [each for each in report.findings if each.severity == "error"] == []


def test_single_braces_are_filled_in_only_where_the_ending_says_so() -> None:
    def errors(name: str, text: str) -> list[str]:
        return [each.rule for each in check_files({name: text}).findings if each.severity == "error"]

    compose = "services:\n  a:\n    image: vllm/vllm-openai\n    command: --model m --tensor-parallel-size {tp}\n"
    assert errors("compose.yaml", compose) == ["malformed-value"]
    assert errors("compose.yaml.tmpl", compose) == []
    assert errors("a.sh", "vllm serve m --tensor-parallel-size {tp}\n") == ["malformed-value"]


def test_a_variables_file_that_is_a_template() -> None:
    compose = (
        "services:\n  a:\n    image: vllm/vllm-openai:v0.11.0\n    command: --model ${MODEL} --max-model-len ${LEN}\n"
    )
    report = check_files({"compose.yaml": compose, ".env": "MODEL={{ model }}\nLEN={{ window }}\n"})
    assert [each for each in report.findings if each.severity == "error"] == []
