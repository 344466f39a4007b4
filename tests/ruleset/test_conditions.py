"""Conditions: what is understood, what three truth values make of it, and which facts decide."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.facts import Assumed, Default, Fact, Range, Unknown
from kvlint.ruleset import conditions
from kvlint.ruleset.conditions import ConditionError
from kvlint.ruleset.truth import Compared, Verdict

HERE = Assumed("a test")
MEMORY = Unknown("hardware.memory", "no device is named", "name a device")
MODEL = Unknown("model", "no model is named", "name a model")
NAMES = frozenset({"a", "b", "c", "yes", "no", "text", "absent", "unknown", "other", "wide", "flag.server.window"})
VALUES: dict[str, Any] = {
    "a": Fact(2, HERE),
    "b": Fact(3, HERE),
    "c": Fact(5, Default("vllm", ("0.11.0",), "--c")),
    "yes": Fact(True, HERE),
    "no": Fact(False, HERE),
    "text": Fact("fp8", HERE),
    "unknown": MEMORY,
    "other": MODEL,
    "wide": Fact(Range(1, 4, 10), HERE),
    "flag.server.window": Fact(4096, HERE),
}


def judge(expression: str) -> Verdict:
    return conditions.compile(expression, NAMES)(VALUES.get)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("a < b", True),
        ("a >= b", False),
        ("a < b < c", True),
        ("a < c < b", False),
        ("not a < b < c", False),
        ("a + b == c", True),
        ("c - b == a and a * b == 6 and c // a == 2", True),
        ("-a < 0", True),
        ("a * 1.5 == b", True),
        ("0.1 + 0.2 == 0.3", True),  # decimals are exact
        ("text == 'fp8'", True),
        ("text in ('fp8', 'fp8_e4m3')", True),
        ("text not in ('fp8', 'fp8_e4m3')", False),
        ("text == 8", False),
        ("text != 8", True),
        ("yes", True),
        ("not yes", False),
        ("yes == 1", False),  # a truth value is no number
        ("flag.server.window == 4096", True),
        ("c.origin == 'default'", True),
        ("absent is None", True),
        ("absent is not None", False),
        ("a is None", False),
        ("a is not None and a == 2", True),
        ("unknown is None", None),
        ("unknown == 1", None),
        ("no and unknown == 1", False),
        ("unknown == 1 and no", False),
        ("unknown == 1 or yes", True),
        ("not (unknown == 1 and no)", True),
        ("absent == 1", None),
        ("absent == 1 and no", False),
        ("absent == 1 or yes", True),
        ("wide >= 1", True),
        ("wide > 10", False),
        ("wide <= 5", None),
        ("wide == 11", False),
        ("wide in (11, 12)", False),
        ("wide * 2 <= 20", True),
        ("wide - wide <= 9", True),  # as if independent: between -9 and 9
        ("-wide >= -10", True),
        ("20 // wide >= 2", True),
    ],
)
def test_what_is_certain(expression: str, value: bool | None) -> None:
    assert judge(expression).value is value


def test_a_range_that_straddles_the_limit_is_judged_at_its_nominal_value() -> None:
    broken = judge("wide <= 3")
    assert (broken.value, broken.nominal, broken.straddles) == (None, False, True)
    assert broken.compared == (Compared(Range(1, 4, 10), "<=", 3),)
    kept = judge("wide <= 5")
    assert (kept.value, kept.nominal, kept.straddles) == (None, True, True)


def test_what_is_unknown_says_what_would_supply_it() -> None:
    assert judge("a < unknown").unknown == (MEMORY,)
    assert judge("yes and unknown == 1 and other == 1").unknown == (MEMORY, MODEL)
    assert judge("yes and unknown == 1 and unknown == 2").unknown == (MEMORY,)
    assert judge("no and unknown == 1").unknown == ()
    assert judge("wide <= 3 and unknown == 1").nominal is False
    assert judge("wide <= 5 and unknown == 1").nominal is None


def test_what_is_absent_does_not_apply() -> None:
    assert not judge("absent < 1").applies
    assert not judge("absent < 1 and yes").applies
    assert not judge("absent < unknown").applies
    assert not judge("absent").applies
    # `or`: it can no longer be false, so nothing needs to be supplied
    assert judge("absent < 1 or unknown == 1").unknown == ()
    # `and`: the unknown part may still be false
    assert judge("absent < 1 and unknown == 1").unknown == (MEMORY,)
    assert judge("not (absent < 1 and unknown == 1)").unknown == ()


def test_the_facts_that_decided() -> None:
    assert judge("a < b").facts == (VALUES["a"], VALUES["b"])
    assert judge("a > b and c == 5").facts == (VALUES["a"], VALUES["b"])
    assert judge("a < b and c == 4").facts == (VALUES["c"],)
    assert judge("a < b and c == 5").facts == (VALUES["a"], VALUES["b"], VALUES["c"])
    assert judge("a > b or c == 4").facts == (VALUES["a"], VALUES["b"], VALUES["c"])
    assert judge("a + b < 4 or text == 'x'").facts == (VALUES["a"], VALUES["b"], VALUES["text"])
    assert judge("a == 2 or a == 3").facts == (VALUES["a"],)
    assert judge("c.origin == 'written'").facts == (VALUES["c"],)


def test_what_makes_no_sense_is_unknown_and_never_a_crash() -> None:
    for expression in ("text < 3", "yes < 3", "text + 1 == 2", "a", "1 // (a - 2) == 0", "6 // (wide - 2) > 1"):
        verdict = judge(expression)
        assert verdict.value is None, expression
        assert verdict.unknown, expression
    assert conditions.compile("a < 1", NAMES)({"a": Fact(float("nan"), HERE)}.get).unknown


@pytest.mark.parametrize(
    ("expression", "message", "column"),
    [
        ("a < wdie", "unknown name `wdie`; did you mean `wide`?", 5),
        ("a < b and flag.server.windw == 1", "did you mean `flag.server.window`?", 11),
        ("nothing.origin == 'x'", "unknown name `nothing.origin`", 1),
        ("len(a) < 3", "not a name", 1),
        ("a < [1][0]", "not a name", 5),
        ("a if b else c", "not a condition", 1),
        ("(lambda: a)()", "not a condition", 1),
        ("a / b < 1", "only + - * // are understood", 1),
        ("a ** 9 < 1", "only + - * // are understood", 1),
        ("a == None", "`is None` asks for presence", 6),
        ("a is b", "`is` compares only with None", 6),
        ("text in wide", "`in` needs a tuple of constants", 9),
        ("text in ()", "`in` needs a tuple of constants", 9),
        ("text in (a, 'b')", "can stand here", 10),
        ("a + b", "not a condition", 1),
        ("__import__('os')", "not a condition", 1),
        ("a.__class__ == 1", "unknown name", 1),
        ("a == b'x'", "can stand here", 6),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_place(expression: str, message: str, column: int) -> None:
    with pytest.raises(ConditionError) as caught:
        conditions.compile(expression, NAMES)
    assert message in caught.value.message
    assert caught.value.column == column


@pytest.mark.parametrize("expression", ["", "a <", "a < b; c", "a = 1", "a < b)"])
def test_what_is_no_expression_is_an_error(expression: str) -> None:
    with pytest.raises(ConditionError):
        conditions.compile(expression, NAMES)


def test_names_are_known_without_evaluating() -> None:
    assert conditions.compile("a < b and c.origin == 'default' and a == 2", NAMES).names == ("a", "b", "c")


def test_later_parts_are_not_looked_up_once_decided() -> None:
    asked: list[str] = []

    def lookup(name: str) -> Fact[Any]:
        asked.append(name)
        found = VALUES[name]
        assert isinstance(found, Fact)
        return found

    assert conditions.compile("text == 'q8_0' and a < b", NAMES)(lookup).value is False
    assert asked == ["text"]


numbers = st.integers(-20, 20)
ranges = st.tuples(numbers, numbers, numbers).map(lambda ends: Range(*sorted(ends)))
expressions = st.recursive(
    st.sampled_from(
        ["x < y", "x <= 3", "x + y > 1", "x * y >= 2", "x - y == 0", "x // 4 != y", "x in (1, 2)", "z < 0"]
    ),
    lambda inner: st.one_of(
        inner.map(lambda text: f"not ({text})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}) and ({pair[1]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}) or ({pair[1]})"),
    ),
    max_leaves=5,
)


@given(expressions, ranges, ranges, st.data())
def test_a_certain_verdict_is_true_of_every_value_in_the_ranges(
    expression: str, x: Range, y: Range, data: st.DataObject
) -> None:
    """The oracle is Python itself, on numbers drawn from the ranges."""
    condition = conditions.compile(expression, frozenset("xyz"))
    found: dict[str, Any] = {"x": Fact(x, HERE), "y": Fact(y, HERE), "z": MEMORY}
    verdict = condition(found.get)
    drawn = {
        "x": data.draw(st.fractions(x.low, x.high, max_denominator=6)),
        "y": data.draw(st.fractions(y.low, y.high, max_denominator=6)),
        "z": data.draw(st.sampled_from([Fraction(-1), Fraction(1)])),
    }
    truth = eval(expression, {}, dict(drawn))  # a test's own text, on numbers
    assert verdict.value in (None, truth)
    at_nominal = {"x": x.nominal, "y": y.nominal, "z": drawn["z"]}
    assert verdict.nominal in (None, eval(expression, {}, at_nominal))
