"""Files and scripts are read in time that grows with their length."""

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


def test_a_script_that_leads_nowhere_is_not_followed_for_ever() -> None:
    from kvlint.carriers.launch import MAX_FOLLOWED, MAX_FRUITLESS, Tally

    tally, script = Tally(), Source("lib.sh", "x" * 1000).span(0, 1000)
    for _ in range(MAX_FRUITLESS):
        assert tally.allows(script)
        tally.note(script, fruitless=True)
    assert not tally.allows(script)
    other = Source("run.sh", "y" * 1000).span(0, 1000)
    for _ in range(MAX_FOLLOWED // 1000 + 1):
        assert tally.allows(other)
        tally.note(other, fruitless=False)
    assert not tally.allows(other)


def test_a_script_with_many_callers_still_starts_its_engine_for_each() -> None:
    files = {f"models/m{number}.sh": f"#!/bin/sh\n../serve.sh org/model-{number}\n" for number in range(20)}
    files["serve.sh"] = '#!/bin/sh\nexec vllm serve "$1" --max-model-len 4096\n'
    from kvlint.pipeline import evaluate, memory_project

    models = {getattr(group.first.settings["model"], "value", None) for group in evaluate(memory_project(files)).groups}
    assert models == {f"org/model-{number}" for number in range(20)}
