"""Units by systemd's own syntax: systemd.syntax(7), systemd.service(5), systemd.unit(5)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.formats import env, systemd
from kvlint.source import HOLE, Source, Text

CORPUS = Path(__file__).resolve().parents[2] / "../shared/corpus/systemd"

UNIT = """\
[Unit]
Description=x \\
# kvlint: why
; also a comment
  y
[Service]
Environment=A=1 "B=two words" 'C=%i' D=$A
ExecStart=/bin/old
ExecStart=
ExecStart=-/opt/llama-server \\
    --parallel     ${PARALLEL} \\
  # not an argument
    --ctx-size 16384 $EXTRA
no assignment
MemoryMax=48G  # no comment
[Service]
Environment=E=5
"""


def text(value: str) -> Text:
    return Text.of(Source("u", value), 0, len(value))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_settings(newline: str) -> None:
    unit = systemd.parse(Source("u.service", UNIT.replace("\n", newline)))
    assert [part.name for part in unit.sections] == ["Unit", "Service", "Service"]
    assert unit.text("Unit", "Description").value == "x    y"  # type: ignore[union-attr]
    (start,) = unit.settings("Service", "ExecStart")
    assert start.key.span.line == 10
    assert unit.text("Service", "MemoryMax").value == "48G  # no comment"  # type: ignore[union-attr]
    assert len(unit.settings("Service", "Environment")) == 2
    assert [problem.span.text for problem in unit.problems] == ["no assignment"]
    assert [comment.line for comment in unit.comments] == [3]


def test_a_command_and_its_places() -> None:
    unit = systemd.parse(Source("u.service", UNIT))
    value = unit.text("Service", "ExecStart")
    assert value is not None
    (command,) = systemd.commands(value)
    assert command.prefixes == "-"
    assert [word.value for word in command.words] == [
        "/opt/llama-server",
        "--parallel",
        HOLE,
        "--ctx-size",
        "16384",
        HOLE,
    ]
    assert [word.span.text for word in command.words][2:] == ["${PARALLEL}", "--ctx-size", "16384", "$EXTRA"]
    assert [word.holes[0].splice for word in command.words if word.holes] == [False, True]
    assert command.words[4].span.line == 13


def test_variables() -> None:
    given = {"PARALLEL": text("4"), "EXTRA": text("--a 'b c'"), "EMPTY": text("")}
    found = systemd.split(
        text("x ${PARALLEL} n=${PARALLEL}k $EXTRA ${EXTRA} $EMPTY $NO ${NO}y $$HOME a$EXTRA"), given, env_open=False
    )
    assert [word.value for word in found] == ["x", "4", "n=4k", "--a", "b c", "--a 'b c'", "y", "$HOME", "a$EXTRA"]
    assert found[1].span.text == "4"
    assert [use.text for use in found[1].via] == ["${PARALLEL}"]
    assert systemd.split(text("${X:-y}"))[0].value == ""
    assert [word.value for word in systemd.commands(text(":/x ${PARALLEL} $A"))[0].words] == ["/x", "${PARALLEL}", "$A"]


WORDS = [
    ("a  b\tc", ["a", "b", "c"]),
    ("'a b' \"c d\" e'f g'h", ["a b", "c d", "ef gh"]),
    (r"a\x20b \s\t '\n' \101 \u0041", ["a b", " \t", "\n", "A", "A"]),
    (r"\q '\'' ''", [r"\q", "'", ""]),
    ("bash -lc 'vllm serve --model \"$M\"'", ["bash", "-lc", 'vllm serve --model "$M"']),
    ("open 'quote here", ["open", "quote here"]),
]


@pytest.mark.parametrize(("line", "expected"), WORDS)
def test_words(line: str, expected: list[str]) -> None:
    assert [word.value for word in systemd.words(text(line))] == expected


def test_commands() -> None:
    found = systemd.commands(text(r"@-/bin/a argv0 b ; !!/bin/c \; 'd ;' %% %i 5%"))
    assert [(command.prefixes, [word.value for word in command.words]) for command in found] == [
        ("@-", ["/bin/a", "b"]),
        ("!!", ["/bin/c", ";", "d ;", "%", HOLE, "5%"]),
    ]
    assert systemd.commands(text("/x 'y"))[0].problem is not None
    assert systemd.commands(text("")) == []


def test_environment() -> None:
    unit = systemd.parse(Source("u.service", UNIT))
    pairs = [systemd.assignments(setting.value) for setting in unit.settings("Service", "Environment")]
    assert [[(name.value, value.value) for name, value in found] for found in pairs] == [
        [("A", "1"), ("B", "two words"), ("C", HOLE), ("D", "$A")],
        [("E", "5")],
    ]
    assert pairs[0][1][1].span.text == "two words"


ENV = """\
# kvlint: pin
export A=1   # kvlint: why
B='x # y $Z'  # no
C="two\\n\\"lines\\"
more"
 D = d e #f
E=#g
F=
G
H=a'b' \\
c
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_dotenv(newline: str) -> None:
    file = env.parse(Source(".env", ENV.replace("\n", newline)))
    assert {a.name.value: a.value.value for a in file.assignments} == {
        "A": "1", "B": "x # y $Z", "C": f'two\n"lines"{newline}more', "D": "d e", "E": "#g", "F": "", "H": "a'b' \\",
    }  # fmt: skip
    assert [(c.line, c.own_line) for c in file.comments] == [(1, True), (2, False)]
    assert file.get("B").quote == "'"  # type: ignore[union-attr]
    value = file.get("C").value  # type: ignore[union-attr]
    assert value.slice(4, 5).span.text == '\\"'
    assert file.get("D").span.text == "D = d e"  # type: ignore[union-attr]


def test_environment_files_of_systemd_and_docker() -> None:
    file = env.parse(Source("e", ENV), "systemd")
    values = {a.name.value: a.value.value for a in file.assignments}
    assert values["A"] == "1   # kvlint: why"
    assert values["C"] == 'two\\n"lines"\nmore'
    assert values["H"] == "ab c"
    assert len(file.problems) == 1
    plain = env.parse(Source("e", "A='1' # x\nB=${C}\n"), "plain")
    assert [a.value.value for a in plain.assignments] == ["'1' # x", "${C}"]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")
def test_the_corpus() -> None:
    for path in CORPUS.glob("*.service"):
        unit = systemd.parse(Source(path.name, path.read_text()))
        assert not unit.problems
        (start,) = unit.settings("Service", "ExecStart")
        assert systemd.commands(start.value)[0].problem is None
    for path in CORPUS.glob("*.env"):
        file = env.parse(Source(path.name, path.read_text()), "systemd")
        assert file.get("PARALLEL").value.value == "4"  # type: ignore[union-attr]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="[]=\\\n\r \t'\"$%{}#;aA@-:x1", max_size=50) | st.text(max_size=40))
def test_never_raises(value: str) -> None:
    source = Source("u", "[S]\nk=" + value)
    unit = systemd.parse(source)
    for part in unit.sections:
        for setting in part.settings:
            systemd.commands(setting.value)
            systemd.assignments(setting.value)
            for word in systemd.split(setting.value, {"a": setting.value}):
                assert word.span.end <= len(source.text)
    for dialect in ("dotenv", "systemd", "plain"):
        for assignment in env.parse(source, dialect).assignments:
            for piece in assignment.value.pieces:
                inner = assignment.value.value[piece.at : piece.at + piece.length]
                assert not piece.literal or piece.span.text == inner
