"""JSON keeps the place of every token and refuses what no reader takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.formats.document import Document
from kvlint.formats.json import documents
from kvlint.source import Source
from kvlint.tree import List, Map, Node, Opaque, Scalar


def read(text: str) -> list[Document]:
    return list(documents(Source("f.json", text)))


def tree(text: str) -> Map:
    (document,) = read(text)
    assert document.problem is None, document.problem
    assert isinstance(document.node, Map)
    return document.node


def plain(node: Node) -> Any:
    if isinstance(node, Map):
        return {entry.key.value: plain(entry.value) for entry in node}
    if isinstance(node, List):
        return [plain(item) for item in node]
    assert isinstance(node, Scalar)
    return node.value if node.tag == "str" else json.loads(node.value)


def test_places() -> None:
    node = tree('{"args": ["serve", "--max-num-seqs\\t64"], "n": -1.5e3, "b": true}')
    text = node.text("args", 1)
    assert text is not None
    assert text.value == "--max-num-seqs\t64"
    assert text.slice(15, 17).span.text == "64"
    assert text.slice(14, 15).span.text == "\\t"
    assert node.get("args").span.text == '["serve", "--max-num-seqs\\t64"]'  # type: ignore[union-attr]
    assert [entry.key.span.text for entry in node] == ['"args"', '"n"', '"b"']
    assert [node.scalar(key).tag for key in "nb"] == ["float", "bool"]  # type: ignore[union-attr]


def test_comments_and_trailing_commas() -> None:
    text = '{ // kvlint: pin why\n /* kvlint: x */ "a": [1, 2,], // other\n}\n// kvlint: end'
    (document,) = read(text)
    assert document.problem is None
    assert plain(document.node) == {"a": [1, 2]}  # type: ignore[arg-type]
    assert [(c.text, c.own_line) for c in document.comments][:2] == [
        ("// kvlint: pin why", False),
        ("/* kvlint: x */", True),
    ]


def test_surrogates_and_duplicates() -> None:
    node = tree('{"a": "\\ud83d\\ude00\\u0041", "b": 1, "b": 2}')
    assert node.string("a") == "\U0001f600A"
    assert node.string("b") == "2"
    assert len(node.duplicates) == 1


def test_one_value_a_line() -> None:
    assert [plain(document.node) for document in read('{"a": 1}\n[2]\n3\n')] == [{"a": 1}, [2], 3]  # type: ignore[arg-type]


BROKEN = [
    ("", None),
    ('{"a": 1', "not the end"),
    ("{a: 1}", "double quotes"),
    ("[1 2]", "`,` or `]`"),
    ('"x', "does not end"),
    ('["\\q"]', "escape"),
]
BROKEN += [
    ("01", "no value"),
    ("1 2", "more stands"),
    ("/* x", "comment"),
    ("[" * 5000, "deeper"),
    ('{"a":' * 5000, "deeper"),
    ("[,]", "a value"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_what_cannot_be_read(text: str, message: str | None) -> None:
    document = read(text)[-1]
    assert document.node is None
    assert message is None or message in (document.problem.message if document.problem else "")


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    ),
    st.booleans(),
)
def test_agrees_with_the_library(value: Any, ascii_only: bool) -> None:
    (document,) = read(json.dumps(value, ensure_ascii=ascii_only, indent=1))
    assert document.problem is None
    assert plain(document.node) == value  # type: ignore[arg-type]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='{}[]",:/*\\u0a1-tf \n', max_size=40) | st.text(max_size=40))
def test_never_raises(text: str) -> None:
    read(text)


def test_a_long_series_of_numbers_is_passed_over() -> None:
    rows = [[at / 8, -at] for at in range(1500)]
    node = tree(json.dumps({"rows": rows, "limit": 7, "short": [1, 2.5]}))
    assert isinstance(node.get("rows"), Opaque)
    assert (node.scalar("limit").value, plain(node.get("short"))) == ("7", [1, 2.5])  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize("last", ['"x"', "null", "{}", "1 2"])
def test_a_series_that_holds_more_than_numbers_is_read(last: str) -> None:
    text = "[" + "1," * 3000 + last + "]"
    (document, *_) = read(text)
    try:
        json.loads(text)
    except ValueError:
        assert document.problem is not None
    else:
        assert isinstance(document.node, List)
        assert len(document.node.items) == 3001
