from __future__ import annotations

import shlex

import pytest

from kvlint.formats.shell import compose_interpolate, kubelet_expand, split
from kvlint.source import HOLE, Source, Text


def text(value: str, path: str = "compose.yaml") -> Text:
    return Text.of(Source(path, value), 0, len(value))


def runs(word: Text) -> list[str]:
    return [word.span.source.text[a:b] for a, b in word.span.pieces]


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve --port 8000",
        "a 'b c' \"d e\" f\\ g",
        '--json \'{"a": [1, 2]}\' --x="y z"w',
        '"a\\"b" "c\\d" \\\\ \'\' ""',
        "a\n  b\\\n c\td",
        "$VAR && x > y; #z",
    ],
)
def test_words_are_those_of_posix_splitting(command: str) -> None:
    expected = shlex.split(command.replace("\\\n", ""), comments=False)
    assert [word.value for word in split(text(command))] == expected


def test_words_stand_where_they_are_written() -> None:
    found = split(text('llama-server -m \'a b\'c "" --x=\\"y'))
    assert [runs(word) for word in found] == [["llama-server"], ["-m"], ["a b", "c"], ['""'], ["--x=", '"y']]
    assert found[2].span.column == 18


def test_lines_of_llama_swap() -> None:
    command = "# a comment\nllama-server \\\n  --port 1 \\  \r\n  # -c 1\n  -c 2 # 3\n"
    found = split(text(command), comment_lines=True)
    assert [word.value for word in found] == ["llama-server", "--port", "1", "-c", "2", "#", "3"]
    assert (found[4].span.line, found[4].span.column) == (5, 6)


def test_a_quote_that_is_not_closed_reaches_to_the_end() -> None:
    assert [word.value for word in split(text("a 'b c"))] == ["a", "b c"]
    assert [word.value for word in split(text('a "b c'))] == ["a", "b c"]


def test_holes_come_apart_only_outside_quotes() -> None:
    source = Source("x", "a ${X} '${X}'")
    parts = [
        Text.of(source, 0, 2),
        Text.unknown(source.span(2, 6), "unset"),
        Text.of(source, 6, 8),
        Text.unknown(source.span(8, 12), "unset"),
        Text.of(source, 12, 13),
    ]
    _, open_word, quoted = split(Text.join(parts))
    assert (open_word.value, open_word.holes[0].splice) == (HOLE, True)
    assert (quoted.value, quoted.holes[0].splice) == (HOLE, False)


ENV = {"SET": text("value", ".env"), "EMPTY": text("", ".env")}


@pytest.mark.parametrize(
    ("written", "value", "assumed"),
    [
        ("plain", "plain", []),
        ("$SET-${SET}", "value-value", []),
        ("$$SET and $${SET}", "$SET and ${SET}", []),
        ("${X:-d}", "d", ["X"]),
        ("${X-d}", "d", ["X"]),
        ("${SET:-d}", "value", []),
        ("${EMPTY:-d}", "d", []),
        ("${EMPTY-d}", "", []),
        ("${A:-${B:-8013}}", "8013", ["B", "A"]),
        ("${A:-${SET}}/x", "value/x", ["A"]),
        ("${SET:-${B:-8013}}", "value", []),
        ("${SET:+--flag ${SET}}", "--flag value", []),
        ("${EMPTY:+--flag}", "", []),
        ("${SET:?must}", "value", []),
        ("${X}", HOLE, []),
        ("${X:-}", HOLE, []),
        ("${X:?must be set}", HOLE, []),
        ("${X:+--flag ${SET}}", HOLE, []),
        ("100$ $1 ${", "100$ $1 ${", []),
        ('{"n":${N:-5}}', '{"n":5}', ["N"]),
    ],
)
def test_compose_variables(written: str, value: str, assumed: list[str]) -> None:
    found = compose_interpolate(text(written), ENV)
    assert found.text.value == value
    assert [one.name for one in found.assumed] == assumed


def test_places_of_compose_variables() -> None:
    found = compose_interpolate(text("--len=${X:-4096} $SET"), ENV)
    first, second = split(found.text)
    assert runs(first) == ["--len=", "4096"]
    assert found.assumed[0].default.text == "4096"
    assert (second.span.path, [use.text for use in second.via]) == (".env", ["$SET"])
    (hole,) = compose_interpolate(text("a ${MODEL}"), {}).text.holes
    assert (hole.span.text, hole.supply) == ("${MODEL}", "the value of MODEL")


def test_a_doubled_dollar_stands_at_its_second() -> None:
    found = compose_interpolate(text("exec $${X}"), {}).text
    assert found.value == "exec ${X}"
    assert found.slice(5).span.column == 7


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("--len=$(SET)", "--len=value"),
        ("$(NONE) $(SET)", "$(NONE) value"),
        ("$$(SET)", "$(SET)"),
        ("$$$(SET)", "$value"),
        ("${SET} $SET $( $(SET", "${SET} $SET $( $(SET"),
        ("$(EMPTY)", ""),
    ],
)
def test_kubelet_expansion(written: str, value: str) -> None:
    assert kubelet_expand(text(written), ENV).value == value


def test_places_of_kubelet_expansion() -> None:
    found = kubelet_expand(text("--len=$(SET)"), ENV)
    assert [piece.span.path for piece in found.pieces] == ["compose.yaml", ".env"]
    assert [use.text for use in found.via] == ["$(SET)"]
