"""Dockerfiles by Docker's reference: forms, continuations, variables left alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.formats import dockerfile
from kvlint.source import Source

FILE = """\
# syntax=docker/dockerfile:1
ARG VERSION=v0.11.0
FROM --platform=linux/amd64 vllm/vllm-openai:${VERSION} AS base
# kvlint: pin
ENV A=1 B="two words" C=x\\ y
ENV OLD the rest  of it
RUN --mount=type=cache,target=/x pip install \\
    # why
    vllm==0.11.0 && \\

    true
RUN <<EOF
echo FROM nowhere
EOF
FROM base
ENTRYPOINT ["vllm", "serve", "--max-num-seqs\\u0020", \\
    "64"]
CMD vllm serve --max-num-seqs \\
  64
CMD ['not json']
nonsense!
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_instructions(newline: str) -> None:
    file = dockerfile.parse(Source("Dockerfile", FILE.replace("\n", newline)))
    keywords = ["ARG", "FROM", "ENV", "ENV", "RUN", "RUN", "FROM", "ENTRYPOINT", "CMD", "CMD"]
    assert [found.keyword for found in file.instructions] == keywords
    first, second = file.stages()
    assert (first.image.value, first.name, second.image.value, second.name) == (
        "vllm/vllm-openai:${VERSION}",
        "base",
        "base",
        None,
    )
    assert [problem.span.text for problem in file.problems] == ["nonsense!"]
    assert [comment.line for comment in file.comments] == [4]
    env = [pair for found in first.instructions if found.keyword == "ENV" for pair in dockerfile.pairs(found)]
    assert [(name.value, value.value if value else None) for name, value in env] == [
        ("A", "1"), ("B", "two words"), ("C", "x y"), ("OLD", "the rest  of it"),
    ]  # fmt: skip
    assert env[1][1].span.text == "two words"  # type: ignore[union-attr]
    run = first.instructions[2]
    assert run.text.value.split() == ["pip", "install", "vllm==0.11.0", "&&", "true"]
    assert [flag.value for flag in run.flags] == ["--mount=type=cache,target=/x"]
    entry = second.last("ENTRYPOINT")
    assert entry is not None
    assert [word.value for word in entry.words or ()] == ["vllm", "serve", "--max-num-seqs ", "64"]
    assert [word.span.text for word in entry.words or ()] == ["vllm", "serve", "--max-num-seqs\\u0020", "64"]
    assert entry.words[3].span.line == 17  # type: ignore[index]
    shell = second.instructions[1]
    assert shell.words is None
    at = shell.text.value.index("64")
    assert shell.text.slice(at, at + 2).span.line == 19
    assert second.instructions[2].words is None


def test_another_escape() -> None:
    file = dockerfile.parse(Source("Dockerfile", "# escape=`\nFROM a\nRUN c:\\x\\ `\n d\n"))
    assert file.instructions[1].text.value == "c:\\x\\  d"


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="FROM RUNENV[]\"'\\\n\r#=<a $-", max_size=60) | st.text(max_size=40))
def test_never_raises(text: str) -> None:
    file = dockerfile.parse(Source("Dockerfile", text))
    file.stages()
    for found in file.instructions:
        dockerfile.pairs(found)
        assert found.span.end <= len(text)
