"""Numbers and hostile text in messages."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.facts import Assumed, Fact, Range, Unknown
from kvlint.ruleset import messages
from kvlint.ruleset.conditions import ConditionError
from kvlint.ruleset.messages import clean, show, within
from kvlint.ruleset.truth import Compared
from kvlint.source import HOLE

GIB = 2**30
UNITS = {"slot": "bytes", "left": "bytes", "window": "tokens", "warm": "ratio", "streams": "count", "name": "text"}


def render(template: str, compared: tuple[Compared, ...] = (), **values: Any) -> str:
    facts = {
        name: value if isinstance(value, Unknown) else Fact(value, Assumed("a test")) for name, value in values.items()
    }
    return messages.compile(template, UNITS).render(facts.get, compared)


@pytest.mark.parametrize(
    ("value", "unit", "form", "text"),
    [
        (13_107_200_000, "bytes", "", "12.207 GiB"),  # 200,000 tokens of 64 KiB
        (13_107_200_000, "bytes", "GB", "13.107 GB"),
        (1_917_635_788, "bytes", "", "1.786 GiB"),
        (48 * GIB, "bytes", "", "48 GiB"),
        (48 * GIB + GIB // 2, "bytes", "", "48.5 GiB"),
        (-1_917_635_788, "bytes", "", "-1.786 GiB"),
        (65_536, "bytes", "", "64 KiB"),
        (500, "bytes", "", "500 bytes"),
        (2_000_000, "bytes", "bytes", "2,000,000 bytes"),
        (131_072, "tokens", "", "131,072"),
        (Fraction(9, 10), "fraction", "", "0.9"),
        (Fraction(9, 10), "fraction", "percent", "90%"),
        (0.9, "fraction", "percent", "90%"),
        (Fraction(875, 1000), "fraction", "percent", "87.5%"),
        (Fraction(999_999_9, 10_000_000), "fraction", "percent", "99.99999%"),
        (Fraction(1, 3), "ratio", "", "0.333"),
        (Fraction(51, 40), "ratio", "", "1.275"),
        (1, "count", "stream|streams", "1 stream"),
        (2, "count", "stream|streams", "2 streams"),
        (Range(8192, 32768, 262144), "tokens", "", "between 8,192 and 262,144"),
        (Range(5, 5, 5), "count", "", "5"),
        (True, "bool", "", "on"),
        (("a", "b\n"), "list", "", "a, b\\n"),
        ((), "list", "", "none"),
        (None, "tokens", "", "unset"),
        (Unknown("a", "b", "c"), "tokens", "", "unknown"),
    ],
)
def test_show(value: Any, unit: str, form: str, text: str) -> None:
    assert show(value, unit, form) == text


def test_rounding_never_reaches_a_threshold() -> None:
    # 48 GiB less a tenth, 17 GiB of weights and two streams; 143,086 tokens is the largest window with one warm slot.
    # At 143,087: 46,385,646,796 - 18,253,611,008 - 18,754,699,264 = 9,377,336,524 for slots of 9,377,349,632 bytes: 0.9999986.
    warm = Fraction(9_377_336_524, 9_377_349_632)
    assert show(warm, "ratio") == "0.999999"
    assert render("{slot} against {left}", slot=12 * GIB + 1, left=12 * GIB) == "12.000000001 GiB against 12 GiB"
    assert render("{slot} against {left}", slot=12 * GIB, left=12 * GIB) == "12 GiB against 12 GiB"
    limit = Compared(12 * GIB + 1, "<=", 12 * GIB)
    assert render("{slot} is too much", (limit,), slot=12 * GIB + 1) == "12.000000001 GiB is too much"


@given(st.fractions(0, 10, max_denominator=10**9), st.fractions(0, 10, max_denominator=10**9))
def test_numbers_that_differ_print_differently(a: Fraction, b: Fraction) -> None:
    texts = [render("{warm}", (Compared(a, "<", b),), warm=number) for number in (a, b)]
    assert (texts[0] == texts[1]) == (a == b)
    assert (Fraction(texts[0]) < Fraction(texts[1])) == (a < b)
    assert abs(Fraction(texts[0]) - a) <= Fraction(1, 2000)


def test_templates() -> None:
    told = render("a {window} token conversation caches {slot}", window=200_000, slot=13_107_200_000)
    assert told == "a 200,000 token conversation caches 12.207 GiB"
    assert render("{slot - left} more", slot=13_107_200_000, left=12 * GIB) == "212 MiB more"  # 12,500 MiB - 12,288 MiB
    assert render("{window.origin}", window=1) == "assumed"
    assert render("{window} and {streams:stream|streams}", window=1) == "1 and unset"
    assert render("`{name}`", name="\x1b[31m\u202egpj.exe") == "`\\x1b[31m\\u202egpj.exe`"


@pytest.mark.parametrize(
    "template", ["{windw}", "{window:parsec}", "{window", "window}", "{}", "{1 + 1}", "{f(window)}"]
)
def test_a_template_that_is_not_understood_is_an_error(template: str) -> None:
    with pytest.raises(ConditionError):
        messages.compile(template, UNITS)


def test_less_than_nothing_is_no_estimate() -> None:
    assert render("the pool is {slot}", slot=Range(-2 * GIB, GIB, 5 * GIB)) == "the pool is at most 5 GiB"
    assert render("the pool is {slot}", slot=Range(GIB, 2 * GIB, 5 * GIB)) == "the pool is between 1 GiB and 5 GiB"


def test_within() -> None:
    assert within((Compared(1, "<", 2), Compared(Range(90, 104, 120), "<=", 100))) == "within 4% of the limit"
    assert within((Compared(Range(90, 100, 120), "<", Range(1, 3, 500)),)) == "by a rough estimate"
    assert within((Compared(Range(-1, 0, 1), "<", 0),)) == "at the limit"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("--max-model-len", "--max-model-len"),
        ("größe 模型", "größe 模型"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b]8;;http://x\x07", "\\x1b]8;;http://x\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202eabc\u2066\u200f", "\\u202eabc\\u2066\\u200f"),
        ("zero\u200bwidth\ufeff\u00a0", "zero\\u200bwidth\\ufeff\\xa0"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
        (f"a{HOLE}b", "a...b"),
        ("x" * 300, "x" * 200 + "..."),
    ],
)
def test_clean(text: str, safe: str) -> None:
    assert clean(text) == safe
    assert clean(text).isprintable()
