"""Property lists: values as Python's own reader has them, each with its place."""

from __future__ import annotations

import plistlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.formats.document import Document
from kvlint.formats.plist import parse
from kvlint.source import Source
from kvlint.tree import List, Map, Node, Scalar

FILE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key> <string>com.example.chat</string>
  <!-- kvlint: pin measured -->
  <key>ProgramArguments</key>
  <array>
    <string>mlx_lm.server</string>
    <string>--prompt&#45;cache-bytes</string> <!-- kvlint: why -->
    <string>a &lt;b&gt; &amp; <![CDATA[<c>]]></string>
    <string></string><string/>
  </array>
  <key>RunAtLoad</key><true/>
  <key>Nice</key><integer> 5 </integer>
  <key>EnvironmentVariables</key>
  <dict><key>KV_BYTES</key><string>65536</string></dict>
</dict>
</plist>
"""


def read(text: str) -> Document:
    return parse(Source("a.plist", text))


def plain(node: Node | None) -> Any:
    if isinstance(node, Map):
        return {entry.key.value: plain(entry.value) for entry in node}
    if isinstance(node, List):
        return [plain(item) for item in node]
    assert isinstance(node, Scalar)
    return {"int": int, "float": float, "bool": lambda value: value == "true"}.get(node.tag, str)(node.value)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_values_and_places(newline: str) -> None:
    text = FILE.replace("\n", newline)
    document = read(text)
    assert document.problem is None
    assert plain(document.node) == plistlib.loads(text.encode())
    node = document.node
    assert isinstance(node, Map)
    assert node.text("EnvironmentVariables", "KV_BYTES").span.text == "65536"  # type: ignore[union-attr]
    flag = node.text("ProgramArguments", 1)
    assert flag is not None
    assert flag.span.text == "--prompt&#45;cache-bytes"
    assert flag.slice(2, 8).span.text == "prompt"
    assert node.text("Nice").span.text == "5"  # type: ignore[union-attr]
    assert [(c.line, c.own_line) for c in document.comments] == [(6, True), (10, False)]


BROKEN = [
    ("bplist00\0", "binary"), ("<plist><dict><key>a</key></dict></plist>", "no value"),
    ("<dict><string>a</string></dict>", "<key>"),
    ('<!DOCTYPE x [<!ENTITY a "b">]><string>&a;</string>', "declarations"), ("<string>&lol;</string>", "not known"),
    ("<string>&</string>", "amp"),
    ("<dict>", "never closed"), ("<string>x", "never closed"), ("<array></dict>", "belongs"),
    ("<!-- x", "does not end"), ("x", "text where"), ("<b/>", "no value"),
    ("<array>" * 5000, "deeper"), ("</array>", "closes nothing"), ("<string><true/></string>", "a tag inside"),
    ("<dict><key>a</key><key>b</key></dict>", "no value"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_what_cannot_be_read_says_why(text: str, message: str) -> None:
    document = read(text)
    assert document.node is None
    assert document.problem is not None
    assert message in document.problem.message


TEXTS = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x1F600, exclude_categories=("Cs", "Cn", "Co")))


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(
        TEXTS, st.recursive(TEXTS | st.integers(-(2**63), 2**64 - 1) | st.booleans(), st.lists, max_leaves=6)
    )
)
def test_agrees_with_the_library(value: dict[str, Any]) -> None:
    document = read(plistlib.dumps(value).decode())
    assert document.problem is None, document.problem
    assert plain(document.node) == value


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "<dict>",
                "</dict>",
                "<key>",
                "</key>",
                "<array>",
                "</array>",
                "<string>",
                "</string>",
                "a",
                "&lt;",
                "<",
                "<!--",
                "-->",
                "<true/>",
                "\r",
            ]
        )
    ).map("".join)
    | st.text()
)
def test_never_raises(text: str) -> None:
    read(text)
