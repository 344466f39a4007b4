"""Services that compose builds: the Dockerfile's entrypoint, command and variables, under those of the service."""

from __future__ import annotations

import pytest
from carried import found, words

from kvlint.pipeline import check_files

ENGINE = """\
ARG RELEASE=v0.10.0
FROM vllm/vllm-openai:${RELEASE} AS engine
ENV VLLM_LOGGING_LEVEL=INFO
EXPOSE 9000
"""


def served(dockerfile: str, service: str) -> list[tuple[str, list[str]]]:
    files = {"deploy/compose.yaml": f"services:\n  chat:\n{service}", "deploy/engine/Dockerfile": dockerfile}
    return [(identity, words(process)) for identity, process in found(files).processes]


@pytest.mark.parametrize(
    ("instructions", "keys", "expected"),
    [
        ('ENTRYPOINT ["vllm", "serve"]', "command: a/b --max-model-len 4096", "vllm serve a/b --max-model-len 4096"),
        ('ENTRYPOINT ["vllm", "serve"]\nCMD ["a/b"]', "restart: always", "vllm serve a/b"),
        ('ENTRYPOINT ["vllm", "serve"]\nCMD ["a/b"]', "command: [c/d]", "vllm serve c/d"),
        ('CMD ["--model", "a/b"]', "restart: always", "--model a/b"),
        ('CMD ["--model", "a/b"]', "command: --model c/d", "--model c/d"),
        ('ENTRYPOINT ["vllm", "serve"]\nCMD ["a/b"]', "entrypoint: vllm serve e/f", "vllm serve e/f"),
        ("ENTRYPOINT vllm serve a/b", "command: c/d", "vllm serve a/b"),
    ],
)
def test_the_service_s_words_behind_those_of_the_image(instructions: str, keys: str, expected: str) -> None:
    service = f"    build: ./engine\n    {keys}\n"
    assert served(ENGINE + instructions + "\n", service) == [("deploy/compose.yaml#chat", expected.split())]


def test_stage_arguments_and_variables() -> None:
    service = """\
    build:
      context: ..
      dockerfile: deploy/engine/Dockerfile
      target: engine
      args: {RELEASE: v0.11.0}
    environment: {VLLM_LOGGING_LEVEL: DEBUG}
    command: --model Qwen/Qwen3-8B --revision abc --max-model-len 8192
"""
    text = ENGINE + 'FROM engine AS tests\nENTRYPOINT ["pytest"]\n'
    files = {"deploy/compose.yaml": f"services:\n  chat:\n{service}", "deploy/engine/Dockerfile": text}
    report = check_files(files)
    (group,) = report.groups
    assert group.id == "deploy/compose.yaml#chat"
    assert group.first.releases == ("0.11.0",)
    assert group.first.process.line.env["VLLM_LOGGING_LEVEL"].value == "DEBUG"
    assert list(group.first.site.ports) == ["9000"]


def test_an_image_whose_dockerfile_is_not_in_view() -> None:
    text = "services:\n  chat:\n    build: https://example.org/engine.git\n    command: vllm serve a/b\n"
    ((identity, process),) = found({"compose.yaml": text}).processes
    assert (identity, words(process)) == ("compose.yaml#chat", ["vllm", "serve", "a/b"])


def test_an_entrypoint_that_runs_what_it_is_given() -> None:
    """What the image's own program does with a command is not known; a command that names an engine starts it."""
    dockerfile = 'FROM python:3.12\nRUN pip install vllm==0.11.0\nCOPY run /run\nENTRYPOINT ["/run"]\n'
    service = "    build: engine\n    command: vllm serve a/b\n"
    assert [identity for identity, _ in served(dockerfile, service)] == ["deploy/compose.yaml#chat"]


def test_a_service_that_only_builds_an_image_says_nothing_of_its_arguments() -> None:
    text = "services:\n  chat:\n    build: ./engine\n    profiles: [build]\n"
    files = {"deploy/compose.yaml": text, "deploy/engine/Dockerfile": ENGINE + 'ENTRYPOINT ["vllm", "serve"]\n'}
    ((_, process),) = found(files).processes
    assert [opening.index for opening in process.line.open] == [1]
