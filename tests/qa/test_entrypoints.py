"""What an image's own entrypoint makes of the arguments that it is given."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

TGI = "ghcr.io/huggingface/text-generation-inference:3.3.4"
COMPOSE = "services:\n  chat:\n    image: {}\n    command: {}\n"
POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: chat}}
spec:
  containers:
    - name: main
      image: {}
      args: {}
"""


def errors(files: dict[str, str]) -> list[tuple[str, str]]:
    found = check_files(files)
    assert len(found.groups) == 1
    return [(each.rule, each.text) for each in found.findings if each.severity == "error"]


@pytest.mark.parametrize(
    ("image", "words", "again"),
    [
        ("ollama/ollama:0.11.4", ["ollama", "serve"], "ollama"),
        ("ollama/ollama", ["/bin/ollama", "serve"], "/bin/ollama"),
        ("ollama/ollama:0.11.4", ["serve"], None),
        (TGI, ["text-generation-launcher", "--model-id", "Qwen/Qwen3-8B"], "text-generation-launcher"),
        (TGI, ["--model-id", "Qwen/Qwen3-8B"], None),
    ],
)
def test_the_command_that_the_image_runs_already(image: str, words: list[str], again: str | None) -> None:
    """`/bin/ollama ollama serve` is an unknown command, and the launcher takes no words of its own."""
    expected = [("repeated-command", again)] if again else []
    assert errors({"compose.yaml": COMPOSE.format(image, " ".join(words))}) == expected
    assert errors({"pod.yaml": POD.format(image, str(words).replace("'", '"'))}) == expected


def test_an_entrypoint_of_ones_own_names_the_command() -> None:
    assert errors({"compose.yaml": COMPOSE.format("ollama/ollama", "serve") + "    entrypoint: [ollama]\n"}) == []


@pytest.mark.parametrize(
    ("command", "spoken"),
    [
        ('CMD ["--model", "$MODEL"]', True),
        ('ENTRYPOINT ["vllm", "serve", "${MODEL}"]', True),
        ("ENTRYPOINT vllm serve $MODEL", False),
        ('ENTRYPOINT ["sh", "-c", "vllm serve $MODEL"]', False),
        ('CMD ["--model", "Qwen/Qwen3-8B"]', False),
    ],
)
def test_a_dockerfile_expands_no_variable_of_a_list(command: str, spoken: bool) -> None:
    """The exec form is run without a shell: `$MODEL` is handed over as it is written."""
    text = f"FROM vllm/vllm-openai:v0.22.1\nENV MODEL=Qwen/Qwen3-8B\n{command}\n"
    found = check_files({"Dockerfile": text}).findings
    told = [each.severity for each in found if each.rule == "unexpanded-variable"]
    assert told == (["warning"] if spoken else [])
