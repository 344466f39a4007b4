"""The same snippets, read by kvlint and run by the shell itself."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from kvlint.formats.shell import commands
from kvlint.source import Source, Text

BASH = shutil.which("bash")
SHOW = 'show() { for a in "$@"; do printf "%s\\0" "$a"; done >&9; printf "\\1\\0" >&9; }\n'

SNIPPETS = r"""
show a 'b c' "d e" f\ g "h\"i" 'j'\''k' $'l\tm\'n' ""
%%
X=1; show $X "$X" ${X} "${X}y" x$X-y
%%
X="a b  c"; show $X "$X" p$X"q"$X; X=" a b "; show $X "$X" [$X]
%%
show ${U:-d} "${U:-d e}" ${U:-d e} ${U:-"d e"}
%%
U=; show ${U:-d} "${U-d}" ${U:+z} "${U:+z}" ${U+z} x"$U"y $U "$U"
%%
U=v; show ${U:+z} ${U:+--f "$U"} ${U:-d} ${U:=q}; : ${W:=dd}; show $W; show "${V:=a b}"; show $V
%%
A=(--a b "c d" 'e'); show "${A[@]}" ${A[@]} "${A[*]}" "x${A[@]}y" ${A[1]} "${A[2]}" ${#A[@]} "${A[-1]}" $A
%%
A=(1); A+=(2 "3 4"); show "${A[@]}" "${#A[@]}"
%%
A=(); show "${A[@]}" x; show ${A[@]+"${A[@]}"} y; A=(q); show ${A[@]+"${A[@]}"} y
%%
X=4; show $((X * 1024)) $((2**10)) $(( (X+1)%3 )) $((-7/2)) $((-7%3)) $((0x10)) $((010)) $((1<<20)) $((X>3?1:0))
%%
X=4; show $((!X)) "$((X))k" $(($X*2)) $((1+2*3-4)) $((7&3|8)) $((~5)) $((1<2&&3>2)) $((9223372036854775807+1))
%%
M=org/name-7b.gguf; show ${M##*/} ${M#*/} ${M%/*} ${M%%/*} ${M%.gguf} ${M//\//_} ${M/name/x} ${#M} ${M:0:3} ${M: -4}
%%
M=org/name-7b.gguf; show ${M:4} "${M//-/}" "${M//\//_}" ${M^^} ${M%.bin}
%%
f() { show f "$1" "$#" "$@"; shift; show g "$@"; }; f 1 "2 3" 4
%%
set -- x "y z" w; show "$@"; show $#; show "$*"; shift; show "$1" "$@"; shift 2; show "$@" e; set a b; show $1 $2
%%
X=0; (X=inner; show $X); show $X; { X=brace; show $X; }; show $X
%%
X=1 Y="2 3" Z=$X; show $X "$Y" $Z
%%
IFS=,; X=a,b,,c; show $X; unset IFS; X="a b"; show $X
%%
IFS=$'\n\t'; X="a b
c"; show $X
%%
CMD='show a "b c"'; eval "$CMD"; eval $CMD d; $CMD
%%
show a \
  b \
  c # no
show "a
b" 'c
d' "e\
f"
%%
show a#b '#c' \#d "\$X" '$X' \$X "\a" "\\" "\`"
%%
show "${U:-${V:-deep}}" "${V:-"in ner"}" ${NO:-${NO2:-'a b'}}
%%
if false; then X=9; fi; show end; for i in 1; do :; done; show done
%%
show "$(cat <<'Q'
li ne
two

Q
)"
%%
U=u; X=$(cat <<Q
v $U \$U "q"
Q
); show "$X"
%%
show a;show b&&show c
%%
show "a"'b'c"d"; X='a"b'; show $X "$X" '"'
%%
show "$@" end; show 2>/dev/null a >/dev/stderr b 2>&1; show a >/dev/null
%%
export E=1 F="2 3"; show $E "$F"; declare -a D=(1 2); show "${D[@]}"; readonly R=5; show $R
%%
X=5; [[ $X == 5 && a < b ]]; X+=2; show $X; show "a$" "$" $ "a $ b" '$'
%%
unset Q; show "${Q-unset}" ${Q:-x}; time show t; ! show n; function ff { show ff "$1"; }; ff 1; ff 2
%%
S='a  b'; show "$S" $S; T=$S; show "$T"; T="$S c"; show $T; N=3; show $N$N "$N"$N ${N}00
%%
bash -c 'printf "" ' ; X="--a 1"; X="$X --b '2 3'"; eval "show $X"; show $X
""".strip("\n").split("\n%%\n")


@pytest.mark.skipif(BASH is None, reason="no bash")
@pytest.mark.parametrize("snippet", SNIPPETS)
def test_words_are_those_that_the_shell_passes(snippet: str) -> None:
    source = Source("run.sh", snippet + "\n")
    script = commands(Text.of(source, 0, len(source.text)), positional=[Text("bash")])
    ours = [
        [word.value for word in command.words[1:]] for command in script.commands if command.words[0].value == "show"
    ]
    assert ours == _run(snippet)


def _run(snippet: str) -> list[list[str]]:
    assert BASH is not None
    reader, writer = os.pipe()
    script = f"exec 9>&{writer}\n{SHOW}{snippet}\n"
    subprocess.run(
        [BASH, "-c", script], env={"PATH": "/usr/bin:/bin"}, pass_fds=[writer], capture_output=True, timeout=20
    )
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as output:
        tokens = output.read().split("\0")[:-1]
    shown: list[list[str]] = [[]]
    for token in tokens:
        if token == "\1":
            shown.append([])
        else:
            shown[-1].append(token)
    return shown[:-1]
