"""Every character of a YAML value knows its place, and every value is what PyYAML says it is."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml as pyyaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.formats.document import Document
from kvlint.formats.yaml import comments, documents, events
from kvlint.source import Source, Span, Text
from kvlint.tree import List, Map, Node, Opaque, Scalar, rescalar, walk

CORPUS = Path(__file__).resolve().parents[2] / "../shared/corpus"


def read(text: str) -> list[Document]:
    return list(documents(Source("f.yaml", text)))


def root(text: str) -> Node:
    (document,) = read(text)
    assert document.problem is None, document.problem
    assert document.node is not None
    return document.node


def tree(text: str) -> Map:
    node = root(text)
    assert isinstance(node, Map)
    return node


def word(text: Text, found: str) -> Span:
    at = text.value.index(found)
    return text.slice(at, at + len(found)).span


def pieces(span: Span) -> list[str]:
    return [span.source.text[a:b] for a, b in span.pieces]


SHELL = [
    ("args: vllm serve --max-num-seqs 64 --x\n", ["--max-num-seqs 64"]),
    ("args: 'vllm serve --max-num-seqs 64'\n", ["--max-num-seqs 64"]),
    ('args: "vllm serve --max-num-seqs 64"\n', ["--max-num-seqs 64"]),
    ("args: |\n  vllm serve x \\\n    --max-num-seqs 64\n", ["--max-num-seqs 64"]),
    ("args: |2-\n    vllm serve x \\\n    --max-num-seqs 64\n", ["--max-num-seqs 64"]),
    ("args: |+ # comment\n\n  vllm\n\n  --max-num-seqs 64\n\n\n", ["--max-num-seqs 64"]),
    ("args: >-\n  vllm serve\n  --max-num-seqs\n  64\n", ["--max-num-seqs\n", "64"]),
    ("args: >\n  vllm serve\n\n\n  --max-num-seqs 64\n    more\n  x\n", ["--max-num-seqs 64"]),
    ("args: vllm serve\n  --max-num-seqs\n  64\n", ["--max-num-seqs\n", "64"]),
    ("args: 'it''s   \n\n\n    --max-num-seqs   \n  64'\n", ["--max-num-seqs", "\n", "64"]),
    ('args: "vllm \\\n   --max-num-seqs \\\n   64"\n', ["--max-num-seqs ", "64"]),
    ('args: "a\\tb\\x20\\u0041\\U0001F600 --max-num-seqs 64"\n', ["--max-num-seqs 64"]),
    ('args: "\\"--max-num\\x2dseqs\\u002064"\n', ["--max-num\\x2dseqs\\u002064"]),
    ("args: [sh, -c, '--max-num-seqs 64']\n", ["--max-num-seqs 64"]),
    ("args: &a !!str --max-num-seqs 64\n", ["--max-num-seqs 64"]),
    ("args: &a\n  # why\n  --max-num-seqs 64\n", ["--max-num-seqs 64"]),
    ("\U0001f600: 1\nargs: \U0001f600 --max-num-seqs 64\n", ["--max-num-seqs 64"]),
    ("args: >\n\n   x\n\n     deep\n\n   --max-num-seqs 64\n", ["--max-num-seqs 64"]),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("text", "expected"), SHELL)
def test_exactly_the_words_characters_are_underlined(text: str, expected: list[str], newline: str) -> None:
    node = next(
        node for node in walk(root(text.replace("\n", newline))) if isinstance(node, Scalar) and "--max" in node.value
    )
    assert pieces(word(node.text, "--max-num-seqs 64")) == [piece.replace("\n", newline) for piece in expected]
    assert pieces(word(node.text, "64"))[0] in ("64", expected[0])


def test_an_escape_has_no_inner_positions() -> None:
    text = tree('a: "x\\u0041y"').text("a")
    assert text is not None
    assert text.value == "xAy"
    assert text.slice(1, 2).span.text == "\\u0041"


def test_spans_of_tokens() -> None:
    node = tree("a: &x !!str 'b'\nc: |\n  d\n\n\ne: [f, {g: h}]\ni:\n  j: k\n  # tail\nl: m\n")
    assert [entry.value.span.text for entry in node] == ["'b'", "|\n  d", "[f, {g: h}]", "j: k", "m"]
    assert [entry.key.span.text for entry in node] == ["a", "c", "e", "i", "l"]


TAGS = {
    "1_000": "int", "0x1F": "int", "017": "int", "1:30": "int", "-5": "int", "1.5": "float",
    ".inf": "float", "1e3": "str", "1.0e+3": "float",
    "yes": "bool", "Off": "bool", "on": "bool", "y": "str", "true": "bool", "null": "null", "~": "null", "": "null",
    "0.30": "float",
    "'1'": "str", '"yes"': "str", "!!int '5'": "int", "!!str 5": "str", "! 5": "str", "2024-01-01": "str",
    "=": "str", "8192": "int",
}  # fmt: skip


@pytest.mark.parametrize(("text", "tag"), TAGS.items())
def test_tags_are_those_of_yaml_1_1_and_values_keep_their_spelling(text: str, tag: str) -> None:
    scalar = tree(f"a: {text}").scalar("a")
    assert scalar is not None
    assert scalar.tag == tag
    assert scalar.value == text.split(" ")[-1].strip("'\"")
    assert scalar.quoted == text.endswith(("'", '"'))


def test_an_alias_underlines_its_use_and_keeps_where_it_is_written() -> None:
    node = tree("port: &p 8000\nargs: [--port, *p]\nmore: &m {a: {b: [c]}}\nagain: *m\n")
    text = node.list("args").items[1].text  # type: ignore[union-attr]
    assert (text.value, text.span.text, [use.text for use in text.via]) == ("8000", "8000", ["*p"])
    deep = node.text("again", "a", "b", 0)
    assert deep is not None
    assert [use.text for use in deep.via] == ["*m"]
    assert node.text("more", "a", "b", 0).via == ()  # type: ignore[union-attr]


def test_aliases_through_aliases_are_outermost_first() -> None:
    text = tree("a: &a x\nb: &b [*a]\nc: *b\n").text("c", 0)
    assert text is not None
    assert [use.text for use in text.via] == ["*b", "*a"]


def test_merge_keys() -> None:
    node = tree("a: &a {x: 1, y: 1, z: 1}\nb: &b {y: 2, w: 2}\nc:\n  <<: [*a, *b]\n  z: 3\n  '<<': text\n")
    merged = node.map("c")
    assert merged is not None
    assert {entry.key.value: entry.value.value for entry in merged} == {
        "x": "1",
        "y": "1",
        "w": "2",
        "z": "3",
        "<<": "text",
    }  # type: ignore[union-attr]
    assert merged.duplicates == ()
    assert [use.text for use in merged.text("w").via] == ["*b"]  # type: ignore[union-attr]
    assert merged.text("z").via == ()  # type: ignore[union-attr]
    loaded = pyyaml.safe_load("a: &a {x: 1}\nb: &b {x: 2}\nc: {<<: *a, <<: *b}\n")
    twice = tree("a: &a {x: 1}\nb: &b {x: 2}\nc: {<<: *a, <<: *b}\n").string("c", "x")
    assert twice == str(loaded["c"]["x"])


def test_the_last_of_duplicate_keys_wins_and_the_lost_one_is_told() -> None:
    node = tree("a: 1\nb: 2\na: 3\n")
    assert node.string("a") == "3"
    assert len(node.entries) == 3
    assert [key.span.line for key in node.duplicates] == [1]


def test_keys_that_are_no_strings_survive() -> None:
    node = tree("? {a: 1}\n: x\n? [b, c]\n: y\n8080: z\nhf: {{TOKEN}}\n")
    assert [entry.key.value for entry in node] == ["{a: 1}", "[b, c]", "8080", "hf"]


def test_own_tags_hide_the_value_and_compose_words_do_not() -> None:
    node = tree("a: !vault |\n  x\nb: [!reference [c, d], e]\nf: !override [g]\nh: !reset null\n")
    assert isinstance(node.get("a"), Opaque)
    assert isinstance(node.get("b", 0), Opaque)
    assert node.string("f", 0) == "g"
    assert node.scalar("h") is not None


def test_a_broken_document_hides_no_neighbour() -> None:
    found = read(
        "a: 1\n---\nb: [\n---\nc: 3\n...\n# only a comment\n---\nx:\n y: 1\n  z: 2\n---\nd: |\n  --- no marker\n  x\n---\n"
    )
    assert [document.problem is None for document in found] == [True, False, True, False, True, True]
    assert found[2].node.string("c") == "3"  # type: ignore[union-attr]
    assert found[4].node.string("d") == "--- no marker\nx\n"  # type: ignore[union-attr]
    assert found[5].node is None
    assert found[3].problem.span.line == 11  # type: ignore[union-attr]


def test_a_marker_ends_even_a_block_scalar() -> None:
    found = read("a: |\n  x\n---\nb: 1\n")
    assert [document.node.string(key) for document, key in zip(found, "ab", strict=True)] == ["x\n", "1"]  # type: ignore[union-attr]


def test_spans_after_the_first_document_count_from_the_file() -> None:
    found = read("# license\n%YAML 1.2\n---\na: b\n---\nc: 'd'\n")
    assert [next(iter(document.node)).value.span.text for document in found] == ["b", "'d'"]  # type: ignore[union-attr,arg-type]


def test_a_byte_order_mark_inside_a_stream() -> None:
    found = read("a: 1\n\ufeff---\nb: 2\n---\n\ufeffc: 3\n")
    assert [document.problem for document in found[:2]] == [None, None]
    assert found[1].node.string("b") == "2"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "place"),
    [("a: 1\nb: x\0y\n", "\0"), ("a: \x07\n", "\x07"), ("a: *nowhere\n", "*nowhere"), ("a: \ud800\n", "\ud800"), ("a: 'x\n", "")],
)  # fmt: skip
def test_what_cannot_be_read_says_where(text: str, place: str) -> None:
    (document,) = read(text)
    assert document.node is None
    assert document.problem is not None
    assert document.problem.message
    assert document.problem.span.text == place


@pytest.mark.parametrize(
    "text", ["[" * 10_000, "{a: " * 10_000, "- " * 10_000, "a:\n" + "".join(" " * i + "- \n" for i in range(1, 900))]
)
def test_depth_is_bounded(text: str) -> None:
    (document,) = read(text)
    assert document.problem is not None


def test_a_cycle_ends() -> None:
    node = tree("a: &a\n  b: *a\n  c: 1\n")
    assert isinstance(node.get("a", "b"), Opaque)
    assert node.string("a", "c") == "1"


def test_alias_bombs_end() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    nodes = list(walk(root("\n".join(lines))))
    assert 1_000 < len(nodes) < 300_000
    assert any(isinstance(node, Opaque) for node in nodes)
    chain = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 5_000)]
    assert sum(1 for _ in walk(root("\n".join(chain)))) < 3_000_000


def test_deep_anchors_do_not_exhaust_the_stack() -> None:
    chain = ["a0: &a0 {k: x}"] + [f"a{i}: &a{i} {{<<: *a{i - 1}}}" for i in range(1, 1_000)]
    for node in walk(root("\n".join(chain))):
        assert node is not None


def test_comments() -> None:
    text = (
        "# kvlint: ignore[a] first\n---\na: 'x # kvlint: no'  # kvlint: yes\nb: |  # kvlint: header\n  # kvlint: text\n"
        '# kvlint: after\nc: x#kvlint:no\nd:\n  - # kvlint: item\n    e\n"# kvlint: key": 1\n'
    )
    found = comments(Source("f", text))
    assert [(c.text, c.own_line) for c in found] == [
        ("# kvlint: ignore[a] first", True),
        ("# kvlint: yes", False),
        ("# kvlint: header", False),
        ("# kvlint: after", True),
        ("# kvlint: item", True),
    ]
    assert [c.line for c in found] == [1, 3, 4, 6, 9]
    assert comments(Source("f", "a: 1 # x\n")) == []


def same(node: Node, other: pyyaml.Node, text: str) -> None:
    """The tree has the shape, values and places of PyYAML's own."""
    if isinstance(other, pyyaml.ScalarNode):
        if isinstance(node, Scalar):
            assert node.value == other.value
            assert node.span.text.strip() in text[other.start_mark.index : other.end_mark.index]
            if other.value:
                assert all(p.length for p in node.text.pieces)
                for p in node.text.pieces:
                    if p.literal:
                        assert p.span.text == node.value[p.at : p.at + p.length]
        return
    if isinstance(other, pyyaml.SequenceNode) and isinstance(node, List):
        assert len(node.items) == len(other.value)
        for item, theirs in zip(node.items, other.value, strict=True):
            same(item, theirs, text)
    if isinstance(other, pyyaml.MappingNode) and isinstance(node, Map):
        if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in other.value):
            return
        assert len(node.entries) == len(other.value)
        for entry, (_, value) in zip(node.entries, other.value, strict=True):
            same(entry.value, value, text)


def compare(text: str) -> None:
    text = text.lstrip("\ufeff")  # a Source has none, and PyYAML does not count it
    try:
        theirs = [
            node for node in pyyaml.compose_all(text, pyyaml.CSafeLoader) if node.start_mark.index < node.end_mark.index
        ]
    except (pyyaml.YAMLError, UnicodeEncodeError):
        return
    ours = [document for document in read(text) if document.node is not None]
    for document, other in zip(ours, theirs, strict="%" not in text):
        assert document.node is not None
        same(document.node, other, text)


LINES = st.lists(st.sampled_from(
    ["a: b", "a: &x b", "c: *x", "- |", "- >-", "  x", "    y ", "", "  # z", "k: 'it''s", "  more'",
     'q: "a\\', '  b\\t\\x41 "', "---", "...",
     "f: [a,", "]", "%YAML 1.1",
     "z: {a: b, <<: *x}", "\tt: 1", "? k", ": v", "s: |2+", "   e", "-", "p: a",
     "   b  c", "\ufeff", "!!int 5", "t: !x [1]", "\U0001f600: \u2028", "{{ .x }}: y"]
), max_size=12)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.one_of(LINES.map("\n".join), LINES.map("\r\n".join), st.text(max_size=60)))
def test_any_text_gives_documents_and_pyyamls_values(text: str) -> None:
    compare(text)
    for document in (*read(text), *documents(Source("f", text), templated=True)):
        assert 0 <= document.span.start <= document.span.end <= len(text)
        for node in walk(document.node) if document.node is not None else ():
            assert 0 <= node.span.start <= node.span.end <= len(text)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")
def test_the_corpus_reads_as_pyyaml_reads_it() -> None:
    paths = [*CORPUS.rglob("*.yaml"), *CORPUS.rglob("*.yml")]
    assert paths
    for path in paths:
        text = path.read_text(encoding="utf-8-sig")
        compare(text)
        for document in (*read(text), *documents(Source("f", text), templated=True)):
            for node in walk(document.node) if document.node is not None else ():
                if isinstance(node, Scalar) and node.value:
                    assert node.text.pieces


def test_a_large_document_takes_linear_time() -> None:
    text = "".join(f"- name: n{i}\n  args: ['--x', {i}]\n" for i in range(20_000))
    start = time.process_time()
    (document,) = read(text)
    assert sum(1 for _ in walk(document.node)) == 100_001  # type: ignore[arg-type]
    assert time.process_time() - start < 15


def test_a_changed_copy_is_a_plain_node() -> None:
    node = tree("a: 1\nb: [2]\n")
    scalar = node.scalar("a")
    assert scalar is not None
    other = rescalar(scalar, Text.at("2", scalar.span))
    assert (type(other), other.value, other.span, scalar.value) == (Scalar, "2", scalar.span, "1")
    assert replace(node, open=(Opaque(node.span, "x"),)).string("a") == "1"
    assert replace(node.list("b"), items=()).items == ()  # type: ignore[type-var]


@pytest.mark.parametrize(("text", "expected"), SHELL)
def test_the_slow_parser_does_as_well(text: str, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_LOADER", pyyaml.SafeLoader)
    node = next(node for node in walk(root(text)) if isinstance(node, Scalar) and "--max" in node.value)
    assert pieces(word(node.text, "--max-num-seqs 64")) == expected
