"""Escapes, the indentation rule, and where the characters of a string stand."""

from __future__ import annotations

import pytest

from kvlint.formats import nix
from kvlint.source import Source, Text
from kvlint.tree import Map, Scalar, walk


def evaluated(code: str) -> Text:
    node = nix.evaluate(Source("s.nix", code))
    assert isinstance(node, Scalar), node
    return node.text


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (r'"a\n\t\"\\\q"', 'a\n\t"\\q'),
        (r'"\${PORT} $${x} $ $$"', "${PORT} $${x} $ $$"),
        ("''${\"a\"}''", "a"),
        ("''''${PORT} ''' ''\\n $${x} '$' ''", "${PORT} '' \n $${x} '$' "),
        ("''\n    a\n      b\n    c\n  ''", "a\n  b\nc\n"),
        ("''\n    a\n\n  b''", "  a\n\nb"),
        ("''  a''", "a"),
        ("''\n\t a\n  b''", "\t a\n  b"),
        ("''\n    ${\"x\"}\n      y\n  ''", "x\n  y\n"),
        ("''\n  x\n${\"y\"}''", "  x\ny"),
        ("''''", ""),
        ("''\n''", ""),
        ('""', ""),
        ('"a\r\nb"', "a\nb"),
        ("''\r\n    a\r\n      b\r\n  ''", "a\n  b\n"),
        ("https://host/a?b=c", "https://host/a?b=c"),
    ],
)
def test_values(code: str, value: str) -> None:
    assert evaluated(code).value == value


def test_every_character_of_an_indented_string_has_its_place() -> None:
    code = "''\n    vllm serve \\\n      --port ${toString 8000} \\\n      ''${X}\n  ''"
    text = evaluated(code)
    assert text.value == "vllm serve \\\n  --port 8000 \\\n  ${X}\n"
    for piece in text.pieces:
        if piece.literal:
            assert piece.span.text == text.value[piece.at : piece.at + piece.length]
    at = text.value.index("${X}")
    assert text.slice(at, at + 1).span.text == "''$"
    assert text.slice(at + 1, at + 4).span.text == "{X}"


def test_an_escape_is_one_piece() -> None:
    text = evaluated(r'"a\nb"')
    assert [(piece.span.text, piece.literal) for piece in text.pieces] == [("a", True), ("\\n", False), ("b", True)]


def test_places_count_code_points() -> None:
    code = '{ # ☃\n  "é𝒳" = "ü${"𝒳"}!"; }'
    root = nix.evaluate(Source("s.nix", code))
    assert isinstance(root, Map)
    for node in walk(root):
        if isinstance(node, Scalar):
            assert node.text.value == "ü𝒳!"
            assert node.text.slice(2, 3).span.text == "!"
    assert root.entries[0].key.text.span.text == "é𝒳"


@pytest.mark.parametrize(
    ("code", "value", "written"),
    [
        ('builtins.substring 2 3 "abcdef"', "cde", "cde"),
        ('builtins.replaceStrings [ "b" ] [ "x" ] "abc"', "axc", None),
        ('builtins.concatStringsSep "," [ "a" "b" ]', "a,b", None),
        ('baseNameOf "/models/q.gguf"', "q.gguf", "q.gguf"),
        ('let a = "x"; in a', "x", "x"),
        ("toString 0.5", "0.500000", "0.5"),
        ("builtins.toJSON 131072", "131072", "131072"),
        ('(builtins.fromJSON "{\\"a\\": \\"bc\\"}").a', "bc", "bc"),
    ],
)
def test_functions_keep_places(code: str, value: str, written: str | None) -> None:
    text = evaluated(code)
    assert text.value == value
    assert written is None or text.span.text == written


def test_a_number_in_a_string_must_be_converted() -> None:
    text = evaluated('let n = 1; in "a ${n}"')
    assert not text.known
    assert "toString" in text.holes[0].reason
