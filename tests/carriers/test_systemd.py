"""Units as systemd reads them: systemd.service(5), systemd.exec(5), podman-systemd.unit(5)."""

from __future__ import annotations

from pathlib import Path

import pytest
from found import argument, env, findings, line, lines, only, problems, processes

CORPUS = Path(__file__).resolve().parents[2] / "../shared/corpus/systemd"


def test_a_command_with_continuations() -> None:
    text = "[Service]\nExecStart=/opt/vllm serve m \\\n  --port 8000 \\\n# between\n  --max-model-len 4096\n"
    name, process = only({"units/chat.service": text})
    assert (name, line(process)) == (
        "units/chat.service#chat",
        "/opt/vllm serve m --port 8000 --max-model-len 4096",
    )
    assert argument(process, "--max-model-len").span.text == "4096"
    assert process.site.place.text == "/opt/vllm"


def test_variables_of_the_unit_are_put_in_and_lead_to_where_they_are_written() -> None:
    text = '[Service]\nEnvironment=WINDOW=4096 "MORE=--port 1"\nExecStart=/opt/vllm serve m --max-model-len ${WINDOW} $MORE $NO\n'
    _, process = only({"a.service": text})
    assert line(process) == "/opt/vllm serve m --max-model-len 4096 --port 1 ?"
    window = argument(process, "--max-model-len")
    assert (window.span.text, window.span.line, [use.text for use in window.via]) == ("4096", 2, ["${WINDOW}"])
    assert [opening.span.text for opening in process.line.open] == ["$NO"]


@pytest.mark.parametrize("path", ["etc/vllm.env", "deploy/vllm.env", "deploy/etc/vllm.env"])
def test_an_environment_file_is_found_by_as_much_of_its_path_as_agrees(path: str) -> None:
    unit = "[Service]\nEnvironment=WINDOW=1\nEnvironmentFile=-/etc/vllm.env\n"
    unit += "ExecStart=/opt/vllm serve m --max-model-len ${WINDOW}\n"
    _, process = only({"deploy/a.service": unit, path: "# vllm\nWINDOW=4096\n"})
    window = argument(process, "--max-model-len")
    assert (window.value, window.span.path) == ("4096", path)
    assert process.line.env_open == ()


def test_an_environment_file_that_is_not_in_view_or_not_the_only_one_leaves_the_environment_open() -> None:
    unit = "[Service]\nEnvironmentFile=/etc/vllm.env\nExecStart=/opt/vllm serve m --max-model-len ${WINDOW}\n"
    for others in ({}, {"x/vllm.env": "WINDOW=1", "y/vllm.env": "WINDOW=2"}):
        _, process = only({"a.service": unit, **others})
        assert argument(process, "--max-model-len").holes
        assert [opening.span.text for opening in process.line.env_open] == ["/etc/vllm.env"]


def test_a_drop_in_changes_its_unit() -> None:
    files = {
        "s/a.service": "[Service]\nEnvironment=WINDOW=1 KEEP=2\nExecStart=/opt/vllm serve m --max-model-len ${WINDOW}\n",
        "s/a.service.d/10-window.conf": "[Service]\nEnvironment=WINDOW=4096\n",
        "s/b.service.d/10-window.conf": "[Service]\nEnvironment=WINDOW=9\n",
    }
    name, process = only(files)
    assert name == "s/a.service#a"
    assert argument(process, "--max-model-len").span.path == "s/a.service.d/10-window.conf"
    files["s/a.service.d/20-start.conf"] = "[Service]\nExecStart=\nExecStart=/opt/vllm serve other\n"
    assert lines(files) == {"s/a.service.d/20-start.conf#a": "/opt/vllm serve other"}


def test_a_drop_in_for_the_packaged_ollama_configures_it_by_its_environment() -> None:
    name, process = only({"ollama.service.d/override.conf": '[Service]\nEnvironment="OLLAMA_NUM_PARALLEL=4"\n'})
    assert name == "ollama.service.d/override.conf#ollama"
    assert (line(process), env(process)) == ("ollama serve", {"OLLAMA_NUM_PARALLEL": "4"})
    assert process.line.env_open


def test_a_shell_that_the_unit_starts_reads_its_own_variables() -> None:
    text = (
        "[Service]\nEnvironment=A=1\n"
        "ExecStart=/bin/bash -lc 'cd /srv && exec vllm serve m --port $A --max-num-seqs $${N:-8}'\n"
    )
    _, process = only({"a.service": text})
    assert line(process) == "vllm serve m --port 1 --max-num-seqs 8"
    assert [each.name for each in process.line.assumed] == ["N"]


def test_what_systemd_does_not_expand_in_environment_is_a_problem_and_in_a_command_unknown() -> None:
    text = (
        "[Service]\nEnvironment=PATH=/opt/${ENV:-base}/bin:$PATH PLAIN=%h COST=5$\n"
        "ExecStart=/usr/bin/conda run -n ${ENV:-base} vllm serve m\n"
    )
    assert problems({"a.service": text}) == [
        ("unexpanded-variable", "${ENV:-base}"),
        ("unexpanded-variable", "$PATH"),
    ]
    assert lines({"a.service": text}) == {"a.service#a": "vllm serve m"}
    assert problems({"a.service": text.replace("vllm", "gunicorn --x vllm")}) == []


def test_a_template_is_doubted_and_its_placeholders_are_unknown() -> None:
    text = "[Service]\nEnvironment=HF_HOME=${HOME}/hf\nExecStart=@PREFIX@/bin/vllm serve {{ model }} --port __PORT__\n"
    found = findings({"a.service.in": text})
    assert [(each.kind, each.doubt is None) for each in found.problems] == [("unexpanded-variable", False)]
    ((name, process),) = found.processes
    assert (name, line(process)) == ("a.service.in#a", "?/bin/vllm serve ? --port ?")


def test_limits_and_devices_of_a_unit() -> None:
    text = "[Service]\nMemoryMax=48G\nEnvironment=CUDA_VISIBLE_DEVICES=0,1\nExecStart=/opt/vllm serve m\n"
    _, process = only({"a.service": text})
    site = process.site
    assert site.memory_limit is not None
    assert (site.memory_limit.value, site.memory_limit.origin.span.text) == (48 * 2**30, "48G")
    assert site.gpus is not None
    assert (site.gpus.value, [each.value for each in site.device_ids]) == (2, ["0", "1"])


def test_a_quadlet_container() -> None:
    text = (
        "[Container]\nImage=docker.io/vllm/vllm-openai:v0.11.0\nPublishPort=8001:8000\nShmSize=16g\n"
        "Environment=HF_HOME=/hf\nEnvironmentFile=chat.env\nPodmanArgs=--gpus 2\n"
        'Exec=--model m \\\n  --max-model-len 4096 --served-model-name "a b"\n'
    )
    name, process = only({"q/chat.container": text, "q/chat.env": "VLLM_X=1\n"})
    assert name == "q/chat.container#chat"
    assert [word.value for word in process.line.args][-1] == "a b"
    assert process.line.program is None
    assert process.line.image is not None
    assert process.line.image.span.text == "docker.io/vllm/vllm-openai:v0.11.0"
    assert env(process) == {"HF_HOME": "/hf", "VLLM_X": "1"}
    assert argument(process, "--max-model-len").span.text == "4096"
    site = process.site
    assert {host: port.value for host, port in site.published.items()} == {8001: 8000}
    assert (site.shared_memory.value, site.gpus.value) == (16 * 2**30, 2)  # type: ignore[union-attr]


def test_a_script_in_view_is_followed_with_its_arguments_and_is_no_server_of_its_own() -> None:
    files = {
        "units/a.service": "[Service]\nEnvironment=N=7\nExecStart=/srv/llm/serve.sh --port 81\n",
        "scripts/serve.sh": '#!/bin/sh\nexec vllm serve m --max-num-seqs "$N" "$@"\n',
    }
    found = processes(files)
    assert list(found) == ["units/a.service#a"]
    process = found["units/a.service#a"]
    assert line(process) == "vllm serve m --max-num-seqs 7 --port 81"
    assert process.line.program is not None
    assert process.line.program.span.path == "scripts/serve.sh"
    assert argument(process, "--port").span.path == "units/a.service"
    assert process.site.place.text == "/srv/llm/serve.sh"


def test_a_script_that_is_not_in_view_hands_a_command_on() -> None:
    _, process = only({"a.service": "[Service]\nExecStart=/srv/run.sh bash -lc 'vllm serve m --port 1'\n"})
    assert line(process) == "vllm serve m --port 1"
    assert [opening.span.text for opening in process.line.env_open] == ["/srv/run.sh"]
    assert lines({"a.service": "[Service]\nExecStart=/srv/wait.sh db:5432 vllm\n"}) == {}


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus is not here")
def test_corpus() -> None:
    unit, variables = (CORPUS / name for name in ("engineering87-unit.service", "engineering87-env.env"))
    files = {"s/llama-server.service": unit.read_text(), "s/llama-server.env": variables.read_text()}
    _, process = only(files)
    assert argument(process, "--ctx-size").value == "16384"
    assert argument(process, "--parallel").span.text == "4"
    files = {"a.service.example": (CORPUS / "justnews-vllm.service").read_text()}
    assert problems(files) == [("unexpanded-variable", "${CANONICAL_ENV:-justnews-py312}")]
    (found,) = findings(files).problems
    assert (found.span.line, found.doubt) == (14, None)
    assert argument(only(files)[1], "--dtype").span.text == "bf16"
