"""Files in which a merge was left half done: what git writes between the two sides is named, whatever the format."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

YAML = """\
services:
  chat:
    image: vllm/vllm-openai:v0.11.0
<<<<<<< HEAD
    command: --model Qwen/Qwen3-8B --max-model-len 8192
=======
    command: --model Qwen/Qwen3-8B --max-model-len 16384
>>>>>>> origin/main
"""
SHELL = """\
#!/bin/sh
exec vllm serve Qwen/Qwen3-8B \\
<<<<<<< ours
  --max-model-len 8192 \\
||||||| base
  --max-model-len 4096 \\
=======
  --max-model-len 16384 \\
>>>>>>> theirs
  --port 8000
"""
UNIT = """\
[Service]
<<<<<<< HEAD
ExecStart=/usr/bin/llama-server -m /m.gguf -c 8192
=======
ExecStart=/usr/bin/llama-server -m /m.gguf -c 16384
>>>>>>> 1a2b3c4
"""


@pytest.mark.parametrize(
    ("path", "text", "line"), [("compose.yaml", YAML, 4), ("chat.sh", SHELL, 3), ("chat.service", UNIT, 2)]
)
def test_the_marker_is_named_and_nothing_else_is_said(path: str, text: str, line: int) -> None:
    report = check_files({path: text})
    (finding,) = report.findings
    assert (finding.rule, finding.severity, finding.span.line) == ("unreadable-config", "error", line)
    assert finding.text.startswith("<<<<<<< ")
    assert "merge conflict" in finding.message
    assert [(each.path, each.line) for each in report.not_understood] == [(path, line)]
    assert report.groups == []


def test_the_other_documents_of_a_file_are_read() -> None:
    whole = "apiVersion: v1\nkind: Pod\nmetadata: {name: chat}\nspec:\n  containers:\n    - name: chat\n"
    whole += "      image: vllm/vllm-openai:v0.11.0\n      args: [--model=Qwen/Qwen3-8B]\n---\n"
    report = check_files({"pods.yaml": whole + YAML})
    assert [group.id for group in report.groups] == ["pods.yaml#chat/chat"]
    assert [each.span.line for each in report.findings if each.rule == "unreadable-config"] == [13]


def test_a_line_of_equal_signs_is_no_conflict() -> None:
    text = "#!/bin/sh\necho '\n=======\n'\nexec vllm serve Qwen/Qwen3-8B --revision abc\n"
    assert [each.rule for each in check_files({"chat.sh": text}).findings if each.severity == "error"] == []


MARKED = """\
<<<<<<< SEARCH
max_tokens: 10
=======
max_tokens: 20
>>>>>>> REPLACE
"""


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("Modelfile", f'FROM llama3.2\nPARAMETER num_ctx 8192\nSYSTEM """Mark edits so:\n{MARKED}"""\n'),
        (
            "chat.sh",
            f"#!/bin/sh\ncat > prompt.txt <<'EOF'\n{MARKED}EOF\nexec vllm serve Qwen/Qwen3-8B --revision abc\n",
        ),
    ],
)
def test_a_prompt_that_shows_how_an_edit_is_marked_is_no_conflict(path: str, text: str) -> None:
    report = check_files({path: text})
    assert report.not_understood == []
    assert len(report.groups) == 1
