"""supervisord: programs, their environment, and `%(name)s`."""

from __future__ import annotations

import configparser
import shlex
import time

from found import argument, env, line, lines, only, problems, processes
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.formats.supervisor import assignments, expand, parse
from kvlint.pipeline import check_files
from kvlint.source import Source, Text

CONF = """\
[supervisord]
nodaemon=true
environment=HF_HOME="/hf",WINDOW="4096"

; [program:old]
[program:Qwen]
directory = /srv
environment = CUDA_VISIBLE_DEVICES="0,1", # the first two
    MODEL='org/m' , ARGS='--seed%%'
command = vllm serve %(ENV_MODEL)s --max-model-len %(ENV_WINDOW)s
    --port 8000 ; the line goes on
    # not this one
    --served-model-name "%(program_name)s a;b" %(ENV_MORE)s --seed 1;2
stdout_logfile: /dev/stdout

[program:web]
command=nginx
"""


def test_a_program() -> None:
    name, process = only({"supervisord.conf": CONF})
    assert (name, line(process)) == (
        "supervisord.conf#Qwen",
        "vllm serve org/m --max-model-len 4096 --port 8000 --served-model-name Qwen a;b ? --seed 1;2",
    )
    assert env(process) == {
        "HF_HOME": "/hf",
        "WINDOW": "4096",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "MODEL": "org/m",
        "ARGS": "--seed%",
    }
    window = argument(process, "--max-model-len")
    assert (window.span.text, window.span.line, [use.text for use in window.via]) == ("4096", 3, ["%(ENV_WINDOW)s"])
    assert argument(process, "--port").span.line == 11
    (opening,) = process.line.open
    assert opening.span.text == "%(ENV_MORE)s"
    assert process.site.resident_with is not None


def test_processes_of_a_program() -> None:
    conf = """\
[program:vllm]
numprocs=2
numprocs_start=1
process_name=%(program_name)s_%(process_num)02d
environment=CUDA_VISIBLE_DEVICES="%(process_num)d"
command=vllm serve m --port 80%(process_num)02d
"""
    assert lines({"conf.d/vllm.ini": conf}) == {
        "conf.d/vllm.ini#vllm_01": "vllm serve m --port 8001",
        "conf.d/vllm.ini#vllm_02": "vllm serve m --port 8002",
    }
    found = processes({"conf.d/vllm.ini": conf})
    assert [env(each) for each in found.values()] == [{"CUDA_VISIBLE_DEVICES": "1"}, {"CUDA_VISIBLE_DEVICES": "2"}]


def test_processes_that_are_many_or_not_counted_here() -> None:
    for number in ("1000000000", "%(ENV_N)s"):
        conf = f"[program:a]\nnumprocs={number}\nprocess_name=x%(process_num)s\ncommand=vllm serve m --port 8%(process_num)s\n"
        assert lines({"a.conf": conf}) == {"a.conf#a": "vllm serve m --port 8?"}


def test_where_no_shell_runs() -> None:
    conf = "[program:a]\ncommand=vllm serve m --max-model-len $WINDOW\n"
    assert lines({"a.conf": conf}) == {"a.conf#a": "vllm serve m --max-model-len $WINDOW"}
    found = [each for each in check_files({"a.conf": conf}).findings if each.rule == "unexpanded-variable"]
    assert [each.severity for each in found] == ["warning"]
    conf = (
        "[program:a]\nenvironment=N=4\ncommand=/bin/bash -c 'vllm serve m --max-num-seqs $N --port \"%(ENV_PORT)s\"'\n"
    )
    assert lines({"a.conf": conf}) == {"a.conf#a": "vllm serve m --max-num-seqs 4 --port ?"}


def test_a_script_beside_it() -> None:
    files = {
        "app/run.sh": '#!/bin/sh\nexec vllm serve "$1"\n',
        "etc/supervisord.conf": "[program:a]\ndirectory=/srv/app\ncommand=./run.sh m\n",
        "run.sh": "#!/bin/sh\necho vllm\n",
    }
    assert lines(files) == {"etc/supervisord.conf#a": "vllm serve m"}
    files["etc/supervisord.conf"] = "[program:a]\ncommand=%(here)s/app/run.sh m\n"
    assert lines(files) == {"etc/supervisord.conf#a": "vllm serve m"}


def test_an_environment_that_supervisord_refuses_is_unseen() -> None:
    _, process = only({"a.conf": "[program:a]\nenvironment=A=1 B=2\ncommand=vllm serve m\n"})
    assert env(process) == {}
    assert [each.span.text for each in process.line.env_open] == ["A=1 B=2"]


def test_one_that_a_script_writes() -> None:
    script = (
        "#!/bin/sh\ncat > /etc/supervisor/conf.d/llm.conf <<EOF\n[program:llm]\ncommand=vllm serve m --port 1\nEOF\n"
    )
    (found,) = processes({"a.sh": script}).items()
    assert (found[0], line(found[1])) == ("a.sh#llm", "vllm serve m --port 1")
    assert argument(found[1], "--port").span.line == 4


def test_together_on_one_device() -> None:
    part = (
        "[program:{0}]\nenvironment=CUDA_VISIBLE_DEVICES=0\n"
        "command=vllm serve Qwen/Qwen3-8B --gpu-memory-utilization 0.7 --port {1}\n"
    )
    conf = part.format("a", 1) + part.format("b", 2)
    rules = {each.rule: each.severity for each in check_files({"supervisord.conf": conf}).findings}
    assert rules["shared-device-overcommit"] == "error"
    apart = conf.replace("command", "autostart=false\ncommand")
    rules = {each.rule: each.severity for each in check_files({"supervisord.conf": apart}).findings}
    assert rules["shared-device-overcommit"] == "warning"


def test_a_comment_covers_a_value_of_several_lines() -> None:
    conf = (
        "[program:a]\n# kvlint: ignore[window-beyond-model] served so on purpose\n"
        "command=vllm serve Qwen/Qwen3-8B\n  --max-model-len 65536\n"
    )
    assert [each.rule for each in check_files({"a.conf": conf}).findings if each.rule == "window-beyond-model"] == []
    rules = [each.rule for each in check_files({"a.conf": conf.replace("kvlint", "")}).findings]
    assert "window-beyond-model" in rules  # 65,536 against the model's 40,960 positions


def whole(text: str) -> Text:
    return Text.of(Source("a.conf", text), 0, len(text))


@given(st.text("abA=,\"' /.#%-é\n", max_size=40))
@settings(max_examples=300, deadline=None)
def test_assignments_against_the_lexer_that_supervisord_uses(text: str) -> None:
    lexer = shlex.shlex(text)
    lexer.wordchars += "/.+-():"
    try:
        tokens = list(lexer)
    except ValueError:  # a quote is not closed
        assert assignments(whole(text)) in (None, {}) or text.count('"') % 2 or text.count("'") % 2
        return
    wanted: dict[str, str] | None = {}
    for at in range(0, len(tokens), 4):
        three = tokens[at : at + 3]
        if len(three) < 3 or three[1] != "=":
            wanted = None
            break
        assert wanted is not None
        wanted[three[0]] = three[2].strip("'\"")
    found = assignments(whole(text))
    assert (None if found is None else {name: value.value for name, value in found.items()}) == wanted


@given(
    st.lists(
        st.sampled_from(["[program:a]", "[b]", "Key=v", " more ", "k : v;w", "; c", "  ;c", "", "x = # y", "k2=a #b"])
    )
)
@settings(max_examples=300, deadline=None)
def test_sections_against_the_reader_that_supervisord_uses(rows: list[str]) -> None:
    text = "[program:a]\nfirst=1\n" + "\n".join(rows)
    reader = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"), strict=False)
    try:
        reader.read_string(text)
    except configparser.Error:
        parse(whole(text))
        return
    found = {
        name: {key: each.value.value.split("\n") for key, each in section.settings.items()}
        for name, section in parse(whole(text)).items()
    }
    wanted = {
        name: {key: [each for each in value.split("\n") if each] or [""] for key, value in reader.items(name)}
        for name in reader.sections()
    }
    assert {
        name: {key: [each for each in lines if each] or [""] for key, lines in part.items()}
        for name, part in found.items()
    } == wanted


@given(st.text("%(n)sd0A ", max_size=20))
@settings(max_examples=300, deadline=None)
def test_expansion_against_the_operator_that_supervisord_uses(text: str) -> None:
    try:
        wanted = text % {"n": 7}
    except (KeyError, ValueError, TypeError):
        assert not expand(whole(text), {"n": 7}).known
        return
    found = expand(whole(text), {"n": 7})
    assert found.value == wanted or not found.known


def test_hostile() -> None:
    start = time.process_time()
    for text in (
        "[program:vllm]\ncommand=" + "%(ENV_A)s" * 50_000,
        "[program:vllm]\nenvironment=" + "A=%(ENV_A)s," * 20_000 + "\ncommand=vllm serve %(ENV_A)s",
        "[program:vllm]\ncommand=vllm serve m\n" + " x\n" * 50_000,
        "[program:vllm]\ncommand=" + "%(" * 50_000,
        "[program:a]\ncommand=vllm serve m\n" * 2_000,
        "[program:\n[program:]\n[program:vllm]\n=\n:\ncommand\nvllm\n",
        "[program:a]\nnumprocs=" + "9" * 5_000 + "\ncommand=vllm serve %(process_num)9999999999d",
    ):
        problems({"supervisord.conf": text})
    assert time.process_time() - start < 20
