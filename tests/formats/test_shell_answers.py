"""Branches of a script of which only one is taken, because the script itself says which."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.formats.shell import commands
from kvlint.source import Source, Text


def ran(script: str, *arguments: str, env: dict[str, str] | None = None, known: bool = False) -> list[str]:
    """The commands named `run`, by what they are given."""

    def text(value: str) -> Text:
        return Text.of(Source("x", value), 0, len(value))

    read = commands(
        text(script),
        {name: text(value) for name, value in (env or {}).items()},
        positional=[text(each) for each in ("script", *arguments)] if known else "unknown",
    )
    return [" ".join(word.value for word in each.words[1:]) for each in read.commands if each.words[0].value == "run"]


IF = "if {}; then run 1; else run 2; fi"


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ('X=a; if [ "$X" = a ]; then run 1; else run 2; fi', ["1"]),
        ('X=a; if [ "$X" != a ]; then run 1; else run 2; fi', ["2"]),
        ("X=b; if [[ $X == a ]]; then run 1; elif [[ $X == b* ]]; then run 2; else run 3; fi", ["2"]),
        ("X=b; if ! [[ $X == a ]]; then run 1; fi", ["1"]),
        ('X=; if [ -z "$X" ]; then run 1; else run 2; fi', ["1"]),
        ('X=4; test "$X" -gt 3 && run 1 || run 2', ["1", "2"]),
        ('X=a; [ "$X" = b ] && run 1; run 2', ["2"]),
        ('X=a; [ "$X" = b ] || run 1', ["1"]),
        ('X=a; [ "$X" = a ] || exit 1; run 1', ["1"]),
        ('X=a; [ "$X" = b ] || exit 1; run 1', []),
        ('X=b; case "$X" in a) run 1;; b|c) run 2;; *) run 3;; esac', ["2"]),
        ("X=d; case $X in a) run 1;; b|c) run 2;; *) run 3;; esac", ["3"]),
        ("X=d; case $X in a) run 1;; esac; run 2", ["2"]),
        ("X=ab; case ${X%b} in a) run 1;; *) run 2;; esac", ["1"]),
        ("X=a; if which y; then run 1; elif [ $X = b ]; then run 2; else run 3; fi", ["1", "3"]),
        ("X=a; if which y; then run 1; elif [ $X = a ]; then run 2; else run 3; fi", ["1", "2"]),
        ('f() { case "$1" in a) run 1;; b) run 2;; esac; }; f b', ["2"]),
        # a function that only the other arm calls is no server of its own
        ('X=a; f() { run 1; }; g() { run 2; }; case "$X" in a) f;; b) g;; esac', ["1"]),
        ('X=a; if [ "$X" = a ]; then Y=1; else Y=2; fi; run $Y', ["1"]),
    ],
)
def test_one_branch_is_taken(script: str, wanted: list[str]) -> None:
    assert ran(script) == wanted


@pytest.mark.parametrize(
    "script",
    [
        'if [ "$X" = a ]; then run 1; else run 2; fi',
        'case "$1" in a) run 1;; *) run 2;; esac',
        'X=${X:-a}; if [ "$X" = a ]; then run 1; else run 2; fi',
        "X=${1:-a}; case $X in a) run 1;; *) run 2;; esac",
        ': "${X:=a}"; if [ "$X" = a ]; then run 1; else run 2; fi',
        '[ -z "$X" ] && X=a; if [ "$X" = a ]; then run 1; else run 2; fi',
        'X=${X:-4}; Y=$((X)); if [ "$Y" = 4 ]; then run 1; else run 2; fi',
        "X=$(hostname); if [ $X = a ]; then run 1; else run 2; fi",
        "for X in a b; do if [ $X = a ]; then run 1; else run 2; fi; done",
        "X=a; while read -r X; do if [ $X = a ]; then run 1; else run 2; fi; done",
        "X=a; which y && X=b; if [ $X = a ]; then run 1; else run 2; fi",
        "X=a; . ./config; if [ $X = a ]; then run 1; else run 2; fi",
        "X=a; source $HOME/x.env; case $X in a) run 1;; b) run 2;; esac",
        'X="a b"; if [ $X = a ]; then run 1; else run 2; fi',
        "X=abc; if [[ $X == a[bc]* ]]; then run 1; else run 2; fi",
        "X=abc; if [[ $X =~ a ]]; then run 1; else run 2; fi",
        "X=a; if [ $X = a -a -f y ]; then run 1; else run 2; fi",
        "X=a; if [[ $X == a && -f y ]]; then run 1; else run 2; fi",
        "X=a; case $X in a) run 1;;& *) run 2;; esac",
        "if [ yes = yes ]; then run 1; else run 2; fi",
    ],
)
def test_both_branches_may_be_taken(script: str) -> None:
    assert ran(script) == ["1", "2"]


def test_arguments_and_variables_that_are_given() -> None:
    script = 'if [ $# -lt 1 ]; then run 0; exit; fi; case "$1" in a) run 1;; b) run 2;; esac'
    assert ran(script, "b", known=True) == ["2"]
    assert ran(script, known=True) == ["0"]
    assert ran(script) == ["0", "1", "2"]
    assert ran(IF.format('[ "$X" = a ]'), env={"X": "a"}) == ["1"]


def test_what_is_set_after_a_file_was_read_is_known() -> None:
    assert ran("X=b; . ./x; X=a; " + IF.format("[ $X = a ]")) == ["1"]
    assert ran("X=a; . venv/bin/activate; " + IF.format("[ $X = a ]")) == ["1"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@given(
    st.sampled_from(["a", "b", "ab", "", "4", "a b", "-n"]),
    st.sampled_from(
        [
            *('[ "$X" = a ]', '[ "$X" != "ab" ]', '[ -z "$X" ]', '! [ -n "$X" ]', '[ "$X" -gt 3 ]', "[ $X = a ]"),
            *(
                "[[ $X == a* ]]",
                "[[ $X != *b ]]",
                '[[ $X == "a*" ]]',
                "[[ $X == * ]]",
                "[[ -z $X ]]",
                "[[ ! $X == a ]]",
            ),
            *('test "$X" = a', "[[ $X == [ab] ]]", '[ "x$X" = xa ]', '[ "${X#a}" = b ]', '[ "${X}b" = ab ]'),
        ]
    ),
)
@settings(max_examples=150, deadline=None)
def test_against_a_shell(value: str, condition: str) -> None:
    script = f"X='{value}'; " + IF.format(condition) + "; case \"$X\" in a) run 3;; *b) run 4;; ''|4) run 5;; esac"
    told = ran(script)
    done = subprocess.run(["bash", "-c", "run() { echo $1; }; " + script], capture_output=True, text=True, check=False)
    really = done.stdout.split()
    assert set(really) <= set(told)
    if "[ab]" not in condition and "-gt" not in condition and condition != "[ $X = a ]":
        assert told == really


def test_many_tests() -> None:
    start = time.process_time()
    ran("X=a\n" + "".join(f': "${{A{n}:=x}}"\n[ "$X" = a ] && run {n}\n' for n in range(5_000)))
    ran("X=a\n" + "case $X in a) " * 2_000)
    ran("X=a\n" + '[ "$X" = a ] && ' * 5_000 + "run 1")
    ran(f"X={'a' * 50_000}\n" + "case $X in *a*b) run 1;; *) run 2;; esac\n" * 2_000)
    ran("X=a\n" + "source x\n" * 5_000 + "".join(f"A{n}=1\n. y\n" for n in range(5_000)))
    assert time.process_time() - start < 20
