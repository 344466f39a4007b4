"""What servers are called after: a script's stem, a job's file."""

from __future__ import annotations

import pytest

from kvlint.pipeline import evaluate, memory_project

SERVE = "#!/bin/sh\nexec uvx --from vllm==0.22.1 vllm serve Qwen/Qwen3-8B\n"
JOB = (
    "type: service\nimage: vllm/vllm-openai:v0.22.1\ncommands:\n  - vllm serve Qwen/Qwen3-8B\nresources: {gpu: 80GB}\n"
)


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("serve.sh", SERVE, "serve"),
        ("bin/serve-qwen2.5-7b.sh", SERVE, "serve-qwen2.5-7b"),
        ("serve.sh.j2", SERVE, "serve"),
        ("bin/serve", SERVE, "serve"),
        ("qwen.dstack.yml", JOB, "qwen"),
        (".dstack.yml", JOB, "dstack"),
    ],
)
def test_a_server_is_called_after_its_file(path: str, text: str, name: str) -> None:
    assert [group.id for group in evaluate(memory_project({path: text})).groups] == [f"{path}#{name}"]
