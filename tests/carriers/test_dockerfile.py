"""What an image starts: the Dockerfile reference, ENTRYPOINT and CMD."""

from __future__ import annotations

from found import argument, env, line, lines, only, processes


def test_entrypoint_and_command_make_one_line() -> None:
    text = (
        'FROM python:3.12\nRUN pip install "vllm==0.11.0" && true\nENV HF_HOME=/hf\nEXPOSE 8000/tcp\n'
        'ENTRYPOINT ["vllm", "serve"]\nCMD ["m", \\\n  "--max-model-len", "4096"]\n'
    )
    name, process = only({"chat/Dockerfile": text})
    assert (name, line(process)) == ("chat/Dockerfile#chat", "vllm serve m --max-model-len 4096")
    assert env(process) == {"HF_HOME": "/hf"}
    assert argument(process, "--max-model-len").span.text == "4096"
    assert [(pin.distribution, pin.version.value) for pin in process.line.pins] == [("vllm", "0.11.0")]
    assert [port.value for port in process.site.ports.values()] == [8000]
    assert process.site.place.text == "vllm"


def test_an_entrypoint_alone_is_open_at_its_end() -> None:
    _, process = only(
        {"Dockerfile.vllm": 'FROM x\nENTRYPOINT ["python3", "-m", "vllm.entrypoints.openai.api_server"]\n'}
    )
    assert line(process) == "vllm.entrypoints.openai.api_server"
    assert process.site.name == "vllm"
    assert [opening.index for opening in process.line.open] == [0]


def test_a_command_for_the_entrypoint_of_the_base_image() -> None:
    text = 'ARG TAG=v0.11.0\nFROM vllm/vllm-openai:${TAG}\nCMD ["--model", "m"]\n'
    _, process = only({"Dockerfile": text})
    assert line(process) == "[vllm/vllm-openai:v0.11.0] --model m"
    assert [each.name for each in process.line.assumed] == ["TAG"]


def test_a_shell_form_is_read_by_a_shell_with_the_image_s_environment() -> None:
    text = "FROM x\nARG N=8\nENV MODEL=m WIDTH=$N\n"
    text += 'ENTRYPOINT exec vllm serve "$MODEL" --max-num-seqs ${WIDTH}\nCMD ["--port", "1"]\n'
    _, process = only({"Dockerfile": text})
    assert line(process) == "vllm serve m --max-num-seqs 8"
    assert argument(process, "--max-num-seqs").span.text == "8"


def test_stages_inherit_and_only_those_that_end_something_are_servers() -> None:
    text = (
        'FROM x AS base\nENV A=1\nENTRYPOINT ["vllm", "serve"]\nCMD ["old"]\nFROM base AS one\nCMD ["one"]\n'
        'FROM base AS two\nENTRYPOINT ["vllm", "serve", "two"]\nFROM base\nCMD ["three", "--port", "1"]\n'
    )
    found = processes({"d/Dockerfile": text})
    assert {identity: line(process) for identity, process in found.items()} == {
        "d/Dockerfile#one": "vllm serve one",
        "d/Dockerfile#two": "vllm serve two",
        "d/Dockerfile#d": "vllm serve three --port 1",
    }
    assert env(found["d/Dockerfile#d"]) == {"A": "1"}


def test_a_script_of_the_repository_is_followed() -> None:
    files = {
        "Dockerfile": 'FROM x\nCOPY start.sh /usr/local/bin/\nENTRYPOINT ["/usr/local/bin/start.sh"]\nCMD ["--port", "1"]\n',
        "start.sh": '#!/bin/sh\nexec vllm serve m "$@"\n',
    }
    assert list(lines(files).values()) == ["vllm serve m --port 1"]


def test_an_image_that_starts_nothing_of_ours() -> None:
    assert lines({"Dockerfile": "FROM x\nRUN pip install vllm\nCMD python app.py\n"}) == {}


def test_what_an_image_is_for_is_no_format() -> None:
    text = 'FROM vllm/vllm-openai:v0.11.0\nENTRYPOINT ["vllm", "serve"]\nCMD ["m"]\n'
    for name in ("Dockerfile.nix", "Containerfile.service", "Dockerfile.job"):
        assert line(only({f"chat/{name}": text})[1]) == "vllm serve m"
