"""TOML values are those of the library, and every one knows its place."""

from __future__ import annotations

import datetime
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.formats.document import Document
from kvlint.formats.toml import parse
from kvlint.source import Source
from kvlint.tree import List, Map, Node, Scalar

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

FILE = '''# kvlint.toml
select = ["a", 'b',  # kvlint: why
  "c"]
title = """\\
   one \\
   two
three"""
[[hardware]]   # first
match = "mac/**"
memory = "128\\u0047iB"
[[hardware]]
match = 'k8s/**'
count = 1_000
[hardware.more]
x.y."z w" = 0.10
[coefficients]
holdback = {value = 0.10, reason = "r"}
until = 2027-01-31
'''


def read(text: str) -> Document:
    return parse(Source("f.toml", text))


def tree(text: str) -> Map:
    document = read(text)
    assert document.problem is None, document.problem
    assert isinstance(document.node, Map)
    return document.node


def agrees(node: Node, value: Any) -> bool:
    if isinstance(value, dict):
        return (
            isinstance(node, Map)
            and {e.key.value for e in node.entries} == set(value)
            and all(agrees(e.value, value[e.key.value]) for e in node)
        )
    if isinstance(value, list):
        return isinstance(node, List) and len(node.items) == len(value) and all(map(agrees, node.items, value))
    assert isinstance(node, Scalar)
    if isinstance(value, str):
        return node.quoted and node.value == value
    if isinstance(value, datetime.date | datetime.time):
        return node.tag == "str" and not node.quoted
    return node.tag == type(value).__name__ and str(tomllib.loads(f"x = {node.value}")["x"]) == str(value)


@pytest.mark.parametrize("text", [FILE, FILE.replace("\n", "\r\n")])
def test_values_and_places(text: str) -> None:
    node = tree(text)
    assert agrees(node, tomllib.loads(text))
    assert node.text("hardware", 1, "count").span.text == "1_000"  # type: ignore[union-attr]
    assert node.text("title").slice(4, 7).span.text == "two"  # type: ignore[union-attr]
    memory = node.text("hardware", 0, "memory")
    assert memory is not None
    assert (memory.value, memory.span.text) == ("128GiB", "128\\u0047iB")
    assert node.entry("hardware").key.span.line == 8  # type: ignore[union-attr]
    assert node.map("hardware", 1).span.text.startswith("[[hardware]]")  # type: ignore[union-attr]
    assert node.map("hardware", 1).entry("count").key.span.text == "count"  # type: ignore[union-attr]
    assert node.map("coefficients", "holdback").span.text == '{value = 0.10, reason = "r"}'  # type: ignore[union-attr]
    assert node.map("hardware", 1, "more").text("x", "y", "z w").span.text == "0.10"  # type: ignore[union-attr]
    comments = read(text).comments
    assert [(c.text, c.own_line, c.line) for c in comments] == [("# kvlint: why", False, 2)]


@pytest.mark.parametrize(
    ("text", "place"),
    [("a = 1\nb = [1,\nc = 2\n", 3), ("a = 1\na = 2\n", 2), ("a = \r\n", 1), ("x = 'é\n", 1), ("[a\n", 1)],
)
def test_what_is_invalid_says_where(text: str, place: int) -> None:
    document = read(text)
    assert document.node is None
    assert document.problem is not None
    assert document.problem.span.line == place
    assert "(at" not in document.problem.message


DEEP = [
    "a = " + "[" * 400 + "]" * 400,
    "a = " + "[" * 50_000,
    ".".join("a" * 3000) + " = 1",
    "[" + ".".join("a" * 3000) + "]",
]
DEEP += ["a = " + "{b.c.d.e = " * 150 + "1" + "}" * 150]


@pytest.mark.parametrize("text", DEEP)
def test_depth_is_bounded(text: str) -> None:
    assert read(text).problem is not None


LEAVES = [
    "1",
    "-0x1F",
    "1e3",
    "inf",
    "true",
    "'x'",
    '"\\t\\"\\U0001F600"',
    "'''\na\n'b''''",
    '"""\n  \\\n x\\\\ "" """',
]
LEAVES += ["1979-05-27T07:32:00Z", "07:32:00"]


def array(values: list[str]) -> str:
    return "[" + ",\n ".join(values) + " # c\n]"


def inline(values: list[str]) -> str:
    return "{" + ", ".join(f"k{i}.x = {value}" for i, value in enumerate(values)) + "}"


VALUES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(array), st.lists(inner, max_size=3).map(inline)),
    max_leaves=6,
)
LINES = st.lists(st.one_of(
    VALUES.map(lambda v: f"a = {v}"), VALUES.map(lambda v: f"b.'c d' = {v}"), VALUES.map(lambda v: f'"k" = {v}'),
    st.sampled_from(["[t]", "[[u]]", "[u.v]", "[t.x.y]", "# kvlint: x", "", "[w.x]", "[w]"])
), max_size=8)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(LINES)
def test_agrees_with_the_library(lines: list[str]) -> None:
    text = "\n".join(lines)
    document = read(text)
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assert document.problem is not None
        return
    assert document.node is not None, document.problem
    assert agrees(document.node, value)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="[]{}=\"'#.\\a1 \r\n,-", max_size=40) | st.text(max_size=30))
def test_never_raises(text: str) -> None:
    document = read(text)
    assert (document.node is None) == (document.problem is not None)
