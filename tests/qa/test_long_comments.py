"""Files that are mostly comments are read in time that grows with their length."""

from __future__ import annotations

import time

from kvlint.formats import yaml
from kvlint.pipeline import check_files
from kvlint.source import Source

COMMENTS = "".join(f"# line {number} # with marks # {'#' * (number % 7)} in it\n" for number in range(400))


def test_a_long_comment_with_marks_in_it() -> None:
    text = COMMENTS + "services:\n  a: {image: vllm/vllm-openai}\n"
    start = time.perf_counter()
    documents = list(yaml.documents(Source("compose.yaml", text), templated=False))
    assert time.perf_counter() - start < 1
    assert [document.problem for document in documents] == [None]


def test_a_stream_of_nothing_but_comments_is_empty() -> None:
    assert check_files({"a.yaml": "---\n" + COMMENTS + "# vllm"}).not_understood == []
    assert check_files({"a.yaml": "# vllm # x\n...\n"}).not_understood == []
