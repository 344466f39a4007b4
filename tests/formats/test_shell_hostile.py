"""Whatever the text, reading ends soon, raises nothing, and keeps its places true."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.formats.shell import Script, commands, compose_interpolate, kubelet_expand, split
from kvlint.source import HOLE, Source, Text

QUOTES = ["'", '"', "`", "\\", "$'", "#", " ", HOLE, "\U0001f600", "\n", "\r\n"]
EXPANSIONS = [
    "$",
    "{",
    "}",
    "$A",
    "${A",
    "${A:-",
    "${A[@]}",
    "${A%",
    "${A/",
    "$(",
    "$((",
    "((",
    "))",
    "(",
    ")",
    '"$@"',
    "${{",
    "[",
    "=",
    ":",
    "-",
    "+",
    "!",
    "*",
    "1",
    "\\x41",
]
COMMANDS = [
    "a",
    "A=",
    "A+=",
    "A=(",
    "A=$A$A;",
    "|",
    "||",
    "&&",
    "&",
    ";",
    ";;",
    "<",
    ">",
    "<(",
    "2>",
    "&>",
    "[[",
    "]]",
    "IFS=,",
]
KEYWORDS = [
    "if",
    "then",
    "fi",
    "do",
    "done",
    "case",
    "esac",
    "in",
    "for",
    "while",
    "eval",
    "exec",
    "shift",
    "export",
    "local",
    "coproc",
    "break",
    "exit",
]
LINES = ["f(){ ", "f\n", "<<EOF\n", "EOF\n", "<<-E\n", "E\n", "sh -c ", "set -- ", "unset A\n", "source x\n"]
TOKENS = [*QUOTES, *EXPANSIONS, *COMMANDS, *(f"{word} " for word in KEYWORDS), *LINES]
SCRIPTS = st.lists(st.sampled_from(TOKENS), max_size=60).map("".join)


def whole(script: str) -> Text:
    return Text.of(Source("x", script), 0, len(script))


def texts(script: Script) -> Iterator[Text]:
    for command in script.commands:
        yield from command.words
        yield from command.env.values()
    for document in script.heredocs:
        yield document.body
    for comment in script.comments:
        yield comment.text


@settings(max_examples=300, deadline=None)
@given(SCRIPTS)
def test_every_character_stands_where_it_says(script: str) -> None:
    for text in texts(commands(whole(script))):
        for piece in text.pieces:
            assert piece.at + piece.length <= len(text.value)
            if piece.literal:
                assert piece.span.text == text.value[piece.at : piece.at + piece.length]
        assert all(text.value[hole.at] == HOLE for hole in text.holes)
        if HOLE not in script:
            assert text.value.count(HOLE) == len(text.holes)


@settings(max_examples=200, deadline=None)
@given(st.one_of(SCRIPTS, st.text(max_size=200)))
def test_strings_without_a_shell(value: str) -> None:
    text = whole(value)
    env = {"A": whole("a b")}
    for word in [*split(text), *split(text, comment_lines=True)]:
        assert all(not p.literal or p.span.text == word.value[p.at : p.at + p.length] for p in word.pieces)
    compose_interpolate(text, env)
    kubelet_expand(text, env)


LONG = {
    "doubling": "A=x\n" + "A=$A$A\n" * 60 + "show $A",
    "doubling by names": "A0=x\n" + "".join(f'A{i + 1}="$A{i}$A{i}"\n' for i in range(60)) + "show $A60",
    "calls that double": "".join(f"f{i}() {{ f{i + 1}; f{i + 1}; }}\n" for i in range(40)) + "f0",
    "eval of itself": 'A=\'eval "$A"; eval "$A"\'\neval "$A"',
    "shells of itself": 'A=\'sh -c "$A"; sh -c "$A"\'\nexport A\nsh -c "$A"',
    "defaults": "${a:-" * 3000,
    "closed defaults": "x " + "${a:-" * 25 + "}" * 25,
    "arithmetic": "$((" * 3000,
    "arithmetic and quotes": '$(("$(("$(("' * 300,
    "parentheses": "(" * 5000,
    "substitutions": "$(" * 5000,
    "documents": "cat <<A <<B\n" * 1000,
    "subscripts": "${a[" * 5000,
    "words": "vllm " + "--flag value " * 3000,
    "hops": "".join(f"A{i + 1}=$A{i}\n" for i in range(1000)) + "show $A1000",
    "an array that grows": "".join(f"A+=(x{i})\n" for i in range(1000)) + 'show "${A[@]}"\n' * 50,
    "a string that grows": "A=\n" + 'A="$A x"\n' * 1000 + "show $A",
    "quotes": "'" * 5001,
    "loops": "for i in a; do A=1; " * 25 + "done; " * 25,
}


@pytest.mark.parametrize("name", LONG)
def test_hostile_texts_end_soon(name: str) -> None:
    start = time.process_time()
    script = commands(whole(LONG[name]))
    assert time.process_time() - start < 10
    assert sum(len(text.value) for text in texts(script)) < 20 * len(LONG[name]) + (1 << 20)


def test_time_grows_with_the_text() -> None:
    def seconds(lines: int) -> float:
        text = whole('echo "a $B c" \\\n  --port 8000 # x\n' * lines)
        gc.disable()  # as the program does: in a test's heap each collection walks the objects of every test before it
        try:
            start = time.process_time()
            commands(text)
            return time.process_time() - start
        finally:
            gc.enable()

    seconds(50)
    assert min(seconds(1600) for _ in range(2)) < 30 * max(min(seconds(160) for _ in range(3)), 0.002)
