"""The file itself: the same bytes for the same facts, and nothing believed that is not of its form."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from kvlint.facts import Range
from kvlint.files import Memory
from kvlint.lock import NAME, Figure, Measurement, Row, digest, read, render

ROWS = (
    Row("b/two", revision="2" * 40, config={"model_type": "llama", "layer_types": ["a", "b"], "head_dim": None}),
    Row("A/one", "main", "1" * 40, parameters=7, weights_bytes=14),
    Row("./own", path="own/config.json", sha256=digest(b"{}")),
)
MEASURED = (
    Measurement("z.sh#z", "z.log", {"window": Figure(8192, 3)}, {"model": "A/one", "enforce_eager": True}),
    Measurement("a.sh#a", "a.log", {"available_kv": Figure(Range(1, 2, 3), 9)}, {}),
)


def lock(text: str) -> Any:
    return read(Memory({NAME: text.encode()}))


def test_what_is_written_is_read() -> None:
    text = render(ROWS, MEASURED)
    found = lock(text)
    assert found.broken is None
    assert sorted(found.rows, key=lambda row: row.id) == sorted(ROWS, key=lambda row: row.id)
    assert found.measured("z.sh#z") == MEASURED[0]
    assert found.measured("a.sh#a").facts()["available_kv"].value == Range(1, 2, 3)
    assert render(reversed(found.rows), reversed(found.measurements)) == text


def test_one_fact_a_line() -> None:
    lines = render(ROWS, MEASURED).splitlines()
    facts = ('"layer_types": ["a", "b"],', '"head_dim": null,', '"weights_bytes": 14', '"enforce_eager": true,')
    for line in (*facts, '"window": {"line": 3, "value": 8192}'):
        assert line in [each.strip() for each in lines]
    assert lines[1] == '  "//": "written by kvlint lock; run it again rather than edit this file",'


def test_line_ends_do_not_matter() -> None:
    assert digest(b'{\r\n"a": 1\r\n}') == digest(b'{\n"a": 1\n}') != digest(b'{"a": 1}')


def test_no_lock() -> None:
    assert read(Memory({})) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 2}',
        '{"version": 1, "models": {}}',
        '{"version": 1, "models": ["a/b"]}',
        '{"version": 1, "models": [{"revision": "x"}]}',
        '{"version": 1, "models": [{"id": "a/b", "config": []}]}',
        '{"version": 1, "models": [{"id": "a/b", "parameters": true}]}',
        '{"version": 1, "models": [{"id": "a/b", "weights_bytes": 1e9}]}',
        '{"version": 1, "receipts": [{"server": "a", "log": "b", "figures": {"window": 5}}]}',
        '{"version": 1, "receipts": [{"server": "a", "log": "b", "figures": {"window": {"value": 5}}}]}',
        "<<<<<<< ours",
        "[" * 100_000,
        "\0",
    ],
)
def test_what_is_not_of_its_form_is_not_used(text: str) -> None:
    found = lock(text)
    assert found.broken
    assert (found.rows, found.measurements) == ((), ())


def test_a_lock_that_is_no_text() -> None:
    assert read(Memory({NAME: b"\xff\xfe\xff"})).broken  # type: ignore[union-attr]


def test_a_configuration_of_the_lock_is_read_as_carefully_as_any() -> None:
    from kvlint.pipeline import check_files

    serve = "#!/bin/sh\nexec uvx --from vllm==0.13.0 vllm serve a/b\n"
    for config in ({}, {"model_type": 5}, {"model_type": "llama", "num_hidden_layers": -1}, {"text_config": [1]}):
        text = json.dumps({"version": 1, "models": [{"id": "a/b", "config": config}]})
        report = check_files({"serve.sh": serve, NAME: text})
        assert report.internal == []


def test_check_imports_nothing_of_the_hub() -> None:
    code = """
import sys
from kvlint.pipeline import check_files
lock = '{"version": 1, "models": [{"id": "a/b"}]}'
check_files({"serve.sh": "#!/bin/sh\\nexec vllm serve a/b\\n", "kvlint.lock": lock})
print([name for name in sys.modules if name.startswith(("huggingface_hub", "kvlint.models.hub", "kvlint.lock_write"))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
