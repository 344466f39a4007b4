from __future__ import annotations

import pytest

from kvlint.formats.shell import Script, commands
from kvlint.source import HOLE, Source, Span, Text


def read(script: str, **kwargs: object) -> Script:
    return commands(Text.of(Source("run.sh", script), 0, len(script)), **kwargs)  # type: ignore[arg-type]


def words(script: str, name: str = "vllm", **kwargs: object) -> list[Text]:
    """The words after the program's name, of the only command of that name."""
    (found,) = [c for c in read(script, **kwargs).commands if c.words[0].value.endswith(name)]
    return list(found.words[1:])


def values(script: str, **kwargs: object) -> list[str]:
    return [word.value for word in words(script, **kwargs)]


def places(text: Text) -> list[str]:
    """The runs of the file that a word's characters come from."""
    return [text.span.source.text[a:b] for a, b in text.span.pieces]


def at(span: Span) -> tuple[int, int, int, int]:
    return span.line, span.column, span.end_line, span.end_column


@pytest.mark.parametrize(
    ("script", "value", "runs"),
    [
        ("vllm --port=8000", "--port=8000", ["--port=8000"]),
        ("vllm 'a b'", "a b", ["a b"]),
        ('vllm "a b"', "a b", ["a b"]),
        (r"vllm a\ b", "a b", ["a", " b"]),
        ("vllm a\"b c\"'d'", "ab cd", ["a", "b c", "d"]),
        ("vllm --max\\\n-len", "--max-len", ["--max", "-len"]),
        ('vllm "a\\\nb"', "ab", ["a", "b"]),
        (r'vllm "a\"b"', 'a"b', ["a", '"b']),
        (r"vllm $'a\tb'", "a\tb", [r"a\tb"]),
        (r"vllm $'it\'s'", "it's", ["it", "'s"]),
        ('vllm ""', "", ['""']),
        ("vllm ''", "", ["''"]),
        ('vllm \'{"method":"mtp"}\'', '{"method":"mtp"}', ['{"method":"mtp"}']),
        ("vllm a#b", "a#b", ["a#b"]),
        ("vllm --x='y'z", "--x=yz", ["--x=", "y", "z"]),
        ("vllm \U0001f600ä", "\U0001f600ä", ["\U0001f600ä"]),
        ('vllm "$(cat <<\'E\'\n{"a": 1}\nE\n)"', '{"a": 1}', ['{"a": 1}']),
    ],
)
def test_a_word_stands_where_its_characters_do(script: str, value: str, runs: list[str]) -> None:
    (word,) = words(script)
    assert word.value == value
    assert places(word) == runs


def test_positions_count_code_points_and_lines_of_either_kind() -> None:
    (word,) = words("echo \U0001f600; vllm \\\r\n  '\U0001f600' \r\n")
    assert word.value == "\U0001f600"
    assert at(word.span) == (2, 4, 2, 5)


def test_windows_line_ends_do_not_become_characters() -> None:
    script = read("A=1\r\nvllm serve \\\r\n  --port $A\r\necho done\r\n")
    assert [[w.value for w in c.words] for c in script.commands] == [["vllm", "serve", "--port", "1"], ["echo", "done"]]


def test_a_variable_is_edited_where_it_is_assigned_and_used_elsewhere() -> None:
    (word,) = words('PORT=8000\nvllm "--port=$PORT"\n')
    assert word.value == "--port=8000"
    first, second = word.pieces
    assert (at(first.span), first.via) == ((2, 7, 2, 14), ())
    assert at(second.span) == (1, 6, 1, 10)
    assert [at(use) for use in second.via] == [(2, 14, 2, 19)]


def test_every_hop_of_a_variable_is_a_use() -> None:
    (word,) = words("A=1\nB=$A\nvllm ${B}\n")
    assert [at(use) for use in word.via] == [(3, 6, 3, 10), (2, 3, 2, 5)]
    assert at(word.span) == (1, 3, 1, 4)


def test_given_variables_keep_their_places() -> None:
    env = Source("x.env", "N=4096\n")
    (word,) = words("vllm $N", variables={"N": Text.of(env, 2, 6)})
    assert (word.value, word.span.path, word.span.text) == ("4096", "x.env", "4096")
    assert [use.text for use in word.via] == ["$N"]


@pytest.mark.parametrize(
    ("script", "splice"),
    [("vllm $X", True), ('vllm "$X"', False), ("vllm --a=$X", True), ('vllm "${X}"', False), ("vllm ${X:-}", True)],
)
def test_what_the_environment_decides_is_a_hole(script: str, splice: bool) -> None:
    (word,) = words(script)
    (hole,) = word.holes
    assert hole.splice is splice
    assert "X" in hole.supply
    assert hole.span.text.startswith("$")


@pytest.mark.parametrize("use", ['"$@"', "$@", "$*", "${@}", '"${ARGS[@]}"', "$(opts)", "`opts`"])
def test_what_may_be_any_number_of_words_is_a_splice(use: str) -> None:
    (word,) = words(f"vllm {use}")
    assert word.value == HOLE
    assert word.holes[0].splice


def test_a_program_is_known_behind_an_unknown_directory() -> None:
    script = read('"$BIN/vllm" serve\n${VENV}/bin/mlx_lm.server --port 1\n$HOME/llama-server -c 1\n')
    tails = [c.words[0].value.rsplit("/", 1)[-1] for c in script.commands]
    assert tails == ["vllm", "mlx_lm.server", "llama-server"]
    assert all(c.words[0].holes for c in script.commands)


class TestDefaults:
    def test_a_default_is_the_value_and_the_doubt_is_kept(self) -> None:
        script = read('MODEL="${MODEL:-Qwen/Qwen3-32B}"\nvllm serve "$MODEL" --port 1\n')
        _, _, model, _, port = script.commands[0].words
        assert model.value == "Qwen/Qwen3-32B"
        assert at(model.span) == (1, 17, 1, 31)
        assert script.assumed_in(model) == ("MODEL",)
        assert script.assumed_in(port) == ()

    def test_a_default_inside_a_default(self) -> None:
        script = read("vllm --port ${A:-${B:-8013}}")
        word = script.commands[0].words[2]
        assert (word.value, places(word)) == ("8013", ["8013"])
        assert script.assumed_in(word) == ("B", "A")

    def test_a_default_that_is_another_variable(self) -> None:
        script = read("Y=7\nvllm ${X:-$Y}")
        word = script.commands[0].words[1]
        assert (word.value, at(word.span), script.assumed_in(word)) == ("7", (1, 3, 1, 4), ("X",))

    def test_known_variables_need_no_default(self) -> None:
        script = read("X=5; unset Y; vllm ${X:-9} ${Y:-8}")
        assert [w.value for w in script.commands[0].words] == ["vllm", "5", "8"]
        assert not script.assumed

    def test_an_argument_of_the_script_may_have_one(self) -> None:
        script = read('MODEL=${1:-org/m}\nvllm serve "$MODEL"')
        assert script.assumed_in(script.commands[0].words[2]) == ("1",)
        assert not read("vllm ${1:-a}", positional=[Text("sh")]).assumed

    def test_assigning_defaults_stay(self) -> None:
        assert values(": ${X:=3}\nvllm $X") == ["3"]
        assert values('vllm "${X:=a b}" $X') == ["a b", "a", "b"]

    @pytest.mark.parametrize(
        "script",
        [
            '[ -z "$X" ] && X=5',
            'if [ -z "${X:-}" ]; then X=5; fi',
            "[[ -z $X ]] && export X=5",
            'test -n "$X" || X=5',
            'if [[ -z "${X}" ]]; then echo no; X=5; Y=1; fi',
        ],
    )
    def test_a_test_that_gives_a_default(self, script: str) -> None:
        found = read(script + "\nvllm --port $X")
        word = found.commands[-1].words[2]
        assert (word.value, places(word), found.assumed_in(word)) == ("5", ["5"], ("X",))
        assert values("X=4; " + script + "\nvllm --port $X") == ["--port", "4"]
        assert values("X=; " + script + "\nvllm --port $X") == ["--port", "5"]

    def test_alternatives_and_demands(self) -> None:
        assert values('X=1; vllm ${X:+--flag "$X"} ${X:?must}') == ["--flag", "1", "1"]
        assert values("X=; vllm ${X:+--flag} a") == ["a"]
        for use in ("${U:+$U}", "${U:?must be set}"):
            (word,) = words(f"vllm {use}")
            assert word.holes[0].splice
            assert "U" in word.holes[0].supply
        flag, word = words("vllm ${U:+--flag $U}")  # this flag or none: its value is unknown either way
        assert flag.value == "--flag"
        assert "U" in word.holes[0].supply


class TestBranches:
    def test_a_value_set_in_a_branch_is_not_known_after_it(self) -> None:
        script = read("N=1\nif [ -f x ]; then N=2; vllm a $N; fi\nvllm b $N\n")
        first, second = [c for c in script.commands if c.words[0].value == "vllm"]
        assert (first.words[2].value, first.conditional) == ("2", True)
        assert (second.words[2].value, second.conditional) == (HOLE, False)

    def test_branches_that_agree_are_known(self) -> None:
        assert values("if a; then N=2; else N=2; fi; vllm $N") != ["2"]  # two places to edit
        assert values("N=2; if a; then M=1; fi; vllm $N") == ["2"]

    def test_a_branch_that_leaves_does_not_come_back(self) -> None:
        assert values("N=1; if a; then N=2; exit 1; fi; vllm $N") == ["1"]
        assert values("N=1; [ -n x ] || { N=2; exit; }; vllm $N") == ["1"]

    def test_appending_in_a_branch_keeps_what_was_there(self) -> None:
        found = words('ARGS=(--a b)\nif x; then ARGS+=(--c); fi\nvllm "${ARGS[@]}" --d')
        assert [w.value for w in found] == ["--a", "b", HOLE, "--d"]
        assert found[2].holes[0].splice
        found = words('CMD="--a b"\n[ "$X" ] && CMD="$CMD --c"\nvllm $CMD')
        assert [w.value for w in found] == ["--a", "b", HOLE]

    def test_a_loop_does_not_know_its_own_changes(self) -> None:
        assert values("N=1; for i in a b; do vllm $i $N; N=2; done") == [HOLE, HOLE]
        found = words('A=(x); while read -r l; do A+=("$l"); done; vllm "${A[@]}"')
        assert [w.value for w in found] == ["x", HOLE]

    @pytest.mark.parametrize(
        ("function", "expected"),
        [
            ("pick() { N=$1; }", HOLE),
            ("pick() { if a; then keep $1; fi; }; keep() { N=$1; }", HOLE),
            ("pick() { local N=$1; shift; }", "0"),
            ("pick() { declare -a N; read -r N; }", "0"),
            ("pick() { (N=$1); }", "0"),
            ("pick() { pick; M=1; }", "0"),
        ],
    )
    def test_a_function_changes_variables_in_a_loop(self, function: str, expected: str) -> None:
        assert values(f"N=0\n{function}\nfor i in a b; do\n  while c; do pick $i; done\ndone\nvllm $N") == [expected]

    def test_conditional_places(self) -> None:
        branches = "if b; then c; elif d; then e; else f; fi\ncase $x in *) l;; esac\nwhile m; do n; done\n"
        script = read("a\n" + branches + "g || h\n[ x ] && i\nj && k\n")
        flags = {c.words[0].value: c.conditional for c in script.commands}
        assert [name for name, flag in flags.items() if flag] == ["c", "d", "e", "f", "l", "n", "h", "i"]

    def test_nothing_runs_behind_exec(self) -> None:
        assert [c.words[0].value for c in read("a\nexec vllm serve\nb\n").commands] == ["a", "exec"]
        assert [c.words[0].value for c in read("exec >log 2>&1\nvllm\n").commands] == ["vllm"]
        assert [c.words[0].value for c in read("if a; then exec b; fi\nc\n").commands] == ["a", "exec", "c"]

    def test_a_subshell_keeps_its_changes(self) -> None:
        assert values("N=1; (N=2); N=3 | cat; vllm $N") == ["1"]
        assert values("N=1; { N=2; }; vllm $N") == ["2"]


class TestFunctions:
    def test_a_call_runs_the_body_with_its_arguments(self) -> None:
        script = read('serve() { vllm serve "$1" --port "$2"; }\nserve a 1\nserve b 2 &\n')
        assert [[w.value for w in c.words[2:]] for c in script.commands] == [["a", "--port", "1"], ["b", "--port", "2"]]
        assert [c.background for c in script.commands] == [False, True]
        assert not any(c.conditional for c in script.commands)
        word = script.commands[0].words[2]
        assert (at(word.span), [at(use) for use in word.via]) == ((2, 7, 2, 8), [(1, 23, 1, 25)])

    def test_a_function_that_nothing_calls_is_conditional(self) -> None:
        (found,) = read('main() {\n  vllm serve "$@"\n}\n').commands
        assert found.conditional
        assert found.words[2].holes[0].splice

    def test_arguments_of_the_script_reach_main(self) -> None:
        (found,) = read('main() { exec vllm "$@"; }\nmain "$@"', positional=[Text("x"), Text("--a")]).commands
        assert [w.value for w in found.words] == ["exec", "vllm", "--a"]

    def test_recursion_ends(self) -> None:
        assert len(read("f() { vllm; f; }; f").commands) == 1


class TestEnvironment:
    def test_what_is_exported(self) -> None:
        script = read("A=1\nexport B=2 A\nC=3\nD=4 vllm x\nvllm y\n")
        first, second = script.commands
        assert {k: v.value for k, v in first.env.items()} == {"A": "1", "B": "2", "D": "4"}
        assert {k: v.value for k, v in second.env.items()} == {"A": "1", "B": "2"}
        assert first.env["B"].span.line == 2

    def test_set_a_exports_all(self) -> None:
        (found,) = read("set -a\nA=1\nset +a\nB=2\nvllm").commands
        assert set(found.env) == {"A"}

    def test_a_file_that_is_sourced_may_set_more(self) -> None:
        source, found = read("source ./.env\nvllm $X").commands
        assert [w.value for w in source.words] == ["source", "./.env"]
        assert found.env_open[0].supply == "./.env"

    def test_assignments_are_listed(self) -> None:
        script = read("WINDOW=131072  # kvlint: derived longest_window of chat\nif a; then export X=1; fi\n")
        first, second = script.assignments
        assert (first.name, first.value and first.value.span.text, first.conditional) == ("WINDOW", "131072", False)
        assert (second.name, second.exported, second.conditional) == ("X", True, True)
        assert script.comments[0].text.span.line == 1


class TestInnerShells:
    def test_the_string_of_sh_c_is_followed(self) -> None:
        (found,) = read("""bash -lc 'exec vllm serve "$0" "$@"' model --port 1""").commands
        assert [w.value for w in found.words] == ["exec", "vllm", "serve", "model", "--port", "1"]

    def test_a_double_quoted_string_is_expanded_first(self) -> None:
        (found,) = read('P=1\nsh -c "vllm --port $P --x \\$Y"').commands
        assert [w.value for w in found.words] == ["vllm", "--port", "1", "--x", HOLE]
        assert found.words[2].span.line == 1

    def test_eval_reads_again(self) -> None:
        script = read("""CMD="vllm serve m --json '{\\"a\\": 1}'"\neval "$CMD --port 1"\n""")
        assert [w.value for w in script.commands[0].words] == [
            "vllm",
            "serve",
            "m",
            "--json",
            '{"a": 1}',
            "--port",
            "1",
        ]
        assert script.commands[0].words[2].span.line == 1
        assert script.commands[0].words[6].span.line == 2

    def test_commands_in_substitutions_are_nested(self) -> None:
        inner, outer = read('X="$(vllm --version)"; foo "$X"').commands
        assert (inner.words[1].value, inner.nested) == ("--version", True)
        assert outer.words[1].holes[0].supply == "the output of vllm"


class TestDocuments:
    def test_a_document_keeps_its_places(self) -> None:
        script = read("N=5\ncat > /x/a.plist <<EOF\n<i>$N</i>\n\tb\nEOF\nvllm\n")
        (found,) = script.heredocs
        assert (found.body.value, found.delimiter, found.literal) == ("<i>5</i>\n\tb\n", "EOF", False)
        assert found.target is not None
        assert found.target.value == "/x/a.plist"
        assert [at(p.span)[:2] for p in found.body.pieces] == [(3, 1), (1, 3), (3, 6)]
        assert script.commands[-1].words[0].value == "vllm"

    def test_a_quoted_delimiter_keeps_dollars(self) -> None:
        (found,) = read("sudo tee /etc/a.service <<'E' >/dev/null\n[Service]\nX=$Y\nE\n").heredocs
        assert (found.body.value, found.literal) == ("[Service]\nX=$Y\n", True)
        assert [w.value for w in found.command] == ["sudo", "tee", "/etc/a.service"]

    def test_leading_tabs_are_dropped_where_asked(self) -> None:
        (found,) = read("cat <<-E\n\ta\n\t\tb\n\tE\nvllm\n").heredocs
        assert found.body.value == "a\nb\n"
        assert [at(p.span)[:2] for p in found.body.pieces] == [(2, 2), (3, 3)]

    def test_a_shell_reads_its_commands_from_one(self) -> None:
        (found,) = read("bash <<'E'\nvllm serve\nE\n").commands
        assert [w.value for w in found.words] == ["vllm", "serve"]


class TestComments:
    def test_comments_and_where_they_stand(self) -> None:
        script = read("# kvlint: window=1\nvllm # b\nfoo '# no' a#no\n")
        assert [(c.text.value, c.own_line) for c in script.comments] == [("# kvlint: window=1", True), ("# b", False)]

    def test_a_comment_cuts_a_continued_command_off(self) -> None:
        script = read("vllm serve \\\n  # kvlint: ignore[x]\n  --port 1\n")
        assert script.comments[0].continued
        assert [[w.value for w in c.words] for c in script.commands] == [["vllm", "serve"], ["--port", "1"]]

    def test_a_folded_comment_swallows_the_rest(self) -> None:
        source = Source("a.yaml", "vllm serve\n# kvlint: x\n--port 1\n")
        lines = [Text.of(source, 0, 10), Text.of(source, 11, 22), Text.of(source, 23, 31)]
        blank = Text.at(" ", source.span(10, 11))
        script = commands(Text.join([lines[0], blank, lines[1], blank, lines[2]]))
        assert len(script.commands[0].words) == 2
        span = script.comments[0].text.span
        assert span.line < span.end_line


def test_arithmetic_stands_at_its_expression() -> None:
    (word,) = words("A=4\nvllm $((A * 1024))\n")
    assert (word.value, word.span.text) == ("4096", "$((A * 1024))")
    (word,) = words("vllm $((X * 2))")
    assert word.holes


def test_holes_of_a_template_are_kept() -> None:
    source = Source("t.yaml", 'vllm --port {{ .Port }} "{{ .Name }}" {{ .X }}/b')
    text = Text.join(
        [
            Text.of(source, 0, 12),
            Text.unknown(source.span(12, 23), "template"),
            Text.of(source, 23, 25),
            Text.unknown(source.span(25, 36), "template"),
            Text.of(source, 36, 38),
            Text.unknown(source.span(38, 46), "template"),
            Text.of(source, 46, 48),
        ]
    )
    found = commands(text).commands[0].words
    assert [w.value for w in found] == ["vllm", "--port", HOLE, HOLE, HOLE + "/b"]
    assert [w.holes[0].splice for w in found[2:]] == [True, False, True]


def test_a_script_of_compose_with_the_flags_in_command() -> None:
    script = """_spec_n="${SPEC_N:-1}"
case "${SPEC:-}" in off|no|0) _spec_n=0 ;; esac
if [ "$_spec_n" -gt 0 ]; then
  exec /app/llama-server "$@"
fi
ARGS=(); _skip=0
for _a in "$@"; do
  case "$_a" in
    --spec-type|-md) _skip=1; continue ;;
  esac
  ARGS+=("$_a")
done
exec /app/llama-server "${ARGS[@]}"
"""
    found = read(script, positional=[Text("--"), Text("-c"), Text("4096")])
    servers = [c for c in found.commands if c.words[0].value == "exec"]
    assert [w.value for w in servers[0].words] == ["exec", "/app/llama-server", "-c", "4096"]
    assert servers[1].words[2].holes[0].splice


def test_unreadable_places_are_faults_and_reading_goes_on() -> None:
    script = read("fi\n)\nvllm a\ncase x in\n")
    assert script.commands[0].words[1].value == "a"
    assert script.faults
