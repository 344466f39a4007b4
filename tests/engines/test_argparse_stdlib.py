"""Python's own argparse, given the same options: the same verdict, kind of refusal and values on random lists."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from kvlint.engines import values
from kvlint.engines.argparse import read
from kvlint.engines.options import Option, options
from kvlint.facts import Unknown
from kvlint.source import Text

KINDS = {
    "ambiguous option": {"ambiguous-flag"},
    "unrecognized": {"unknown-flag", "removed-flag", "stray-argument", "joined-argument"},
    "are required": {"missing-model", "missing-argument"},
    "expected": {"missing-value"},
    "invalid": {"malformed-value"},
    "ignored explicit": {"malformed-value"},
}
VALUES = ["3", "abc", "0.5", "-3", "-0.5", "a b", '{"a":1}', "", "auto", "true", "m", "-"]


class Refused(Exception):
    pass


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(message)


def converter(kind: str) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return values.convert(kind, text)
        except values.Malformed:
            raise ValueError(text) from None

    return convert


def declare(parser: Parser, option: Option) -> None:
    facts: dict[str, Any] = {} if option.positional else {"dest": option.dest, "required": option.required}
    if option.nargs == 0:
        facts["action"] = "store_true" if option.action == "store_true" else argparse.BooleanOptionalAction
    else:
        facts |= {"type": converter(option.type), "nargs": option.nargs, "choices": option.choices}
        facts |= {"const": option.const} if option.nargs == "?" else {}
        facts |= {"action": "append"} if option.action == "append" else {}
    parser.add_argument(*option.spellings, **facts)


def draw(rng: random.Random, spellings: list[str]) -> list[str]:
    words = []
    for _ in range(rng.randint(0, 6)):
        spelling, chance = rng.choice(spellings), rng.random()
        if chance < 0.35:
            words.append(spelling)
        elif chance < 0.45:
            words.append(spelling[: rng.randint(3, max(3, len(spelling)))])
        elif chance < 0.55:
            words.append(f"{spelling}={rng.choice(VALUES)}")
        elif chance < 0.62:
            words.append(rng.choice([f"{spelling}{rng.choice(VALUES)}", "-x", "--zz", "--zz=1"]))
        else:
            words.append(rng.choice(VALUES))
    return words


def parsed(parser: Parser, words: list[str]) -> tuple[dict[str, Any], str | None]:
    try:
        return vars(parser.parse_args(words)), None
    except Refused as refused:
        return {}, str(refused)


@pytest.mark.parametrize(
    ("engine", "release"), [("mlx-lm", "0.32.2"), ("vllm-mlx", "0.2.9"), ("vllm-mlx", "0.6.0"), ("lmdeploy", "0.16.0")]
)
def test_the_reader_agrees_with_the_standard_library(engine: str, release: str) -> None:
    table = options(engine).at(release)
    parser = Parser(add_help=False)
    for option in table.options:
        if option.action != "help":
            declare(parser, option)
    spellings = [spelling for spelling, option in table.by_spelling.items() if option.action != "help"]
    rng = random.Random(7)
    for _ in range(400):
        words = draw(rng, spellings)
        if any("--help".startswith(word.partition("=")[0]) or word.startswith("-h") for word in words):
            continue
        reading = read(engine, release, [Text(word) for word in words])
        refusals = [problem.kind for problem in reading.problems if problem.stage == "parser"]
        namespace, message = parsed(parser, words)
        if message is not None:
            wanted = next(kinds for text, kinds in KINDS.items() if text in message)
            assert refusals, (words, message)
            assert refusals[0] in wanted, (words, message)
            continue
        assert not refusals, words
        for dest, given in reading.settings.items():
            assert not isinstance(given.typed, Unknown)
            assert repr(namespace[dest]) == repr(given.typed), words
