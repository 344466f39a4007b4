"""Patterns that are compiled late do what compiled ones do."""

from __future__ import annotations

import re

import pytest

from kvlint.patterns import regex


def test_a_pattern_matches_as_a_compiled_one() -> None:
    late = regex(r"(?P<key>[a-z]+)=(\d+)", re.IGNORECASE)
    match = late.fullmatch("Key=12")
    assert match is not None
    assert match["key"] == "Key"
    assert late.findall("a=1 b=2") == [("a", "1"), ("b", "2")]
    assert late.sub("x", "a=1 b") == "x b"
    assert (late.groups, late.pattern) == (2, r"(?P<key>[a-z]+)=(\d+)")


def test_bytes_are_searched_with_bytes() -> None:
    assert regex(rb"\d+").search(b"a12") is not None


def test_a_pattern_that_is_wrong_fails_when_it_is_used() -> None:
    late = regex("(")
    with pytest.raises(re.error):
        late.match("x")
