"""What is learned on the way to an engine is kept, through shells, containers and scripts."""

from __future__ import annotations

from typing import Any

import pytest
from found import line, lines, only

from kvlint.carriers.launch import Launch, launches
from kvlint.command import CommandLine, Opening, Pin
from kvlint.formats import shell
from kvlint.source import Source, Text


def text(value: str, path: str = "run.sh") -> Text:
    return Text.of(Source(path, value), 0, len(value))


def launched(value: str, **more: Any) -> list[CommandLine]:
    words = tuple(shell.split(text(value)))
    return [*launches(Launch(words=words, place=words[0].span, env={}, **more))]


def shown(found: CommandLine) -> str:
    return " ".join(word.value.replace("\ufffc", "?") for word in found.words)


def test_a_shell_inside_a_container_keeps_image_container_and_variables() -> None:
    (found,) = launched(
        "docker run --gpus 2 --env-file x.env -e A=1 --entrypoint bash my/vllm:1 -c 'uvx --from vllm==0.11.0 vllm serve $A'"
    )
    assert shown(found) == "vllm serve 1"
    assert found.image is not None
    assert found.image.value == "my/vllm:1"
    assert found.container.gpus.value == "2"
    assert [opening.span.text for opening in found.env_open] == ["x.env"]
    assert [pin.version.value for pin in found.pins] == ["0.11.0"]
    assert [wrapper.name for wrapper in found.wrappers] == ["docker run", "uv tool run"]
    assert found.shell


def test_a_command_for_an_image_whose_entrypoint_is_not_known() -> None:
    for value in ("vllm serve m --port 1", "sh -c 'exec vllm serve m --port 1'"):
        (found,) = launched(f"docker run --gpus 2 nvcr.io/nvidia/vllm:25.09-py3 {value}")
        assert shown(found) == "vllm serve m --port 1"
        assert found.image is not None
        assert (found.image.value, found.container.gpus.value) == ("nvcr.io/nvidia/vllm:25.09-py3", "2")
    (own,) = launched("docker run vllm/vllm-openai:v0.11.0 --model m")
    assert (own.program, shown(own)) == (None, "--model m")
    assert launched("docker run busybox echo vllm") == []


def test_a_shell_behind_a_wrapper_keeps_its_pins_and_the_launch_s_own() -> None:
    pin = Pin("other", text("1"))
    unseen = Opening(0, text("x").span, "more may be set")
    (found,) = launched("env B=2 sh -c 'pip install vllm==0.11.0 && vllm serve $B'", pins=(pin,), env_open=(unseen,))
    assert shown(found) == "vllm serve 2"
    assert [each.distribution for each in found.pins] == ["other", "vllm"]
    assert found.env_open == (unseen,)


def test_arguments_of_the_shell_reach_the_script() -> None:
    assert [shown(each) for each in launched("""sh -c 'exec vllm serve "$0" "$@"' m --port 1""")] == [
        "vllm serve m --port 1"
    ]


HELD = {
    name: text(body, name)
    for name, body in {
        "./serve.sh": 'exec vllm serve m "$@"',
        "./again.sh": "./again.sh; vllm serve again",
        "/opt/vllm": "exec /usr/bin/vllm serve wrapped $1",
    }.items()
}


def scripts(word: Text, given: object = ()) -> Text | None:
    return HELD.get(word.value)


def test_a_script_is_read_with_what_it_is_given() -> None:
    for value in ("./serve.sh --port 1", "nohup ./serve.sh --port 1", "bash -e ./serve.sh --port 1"):
        assert [shown(each) for each in launched(value, scripts=scripts)] == ["vllm serve m --port 1"], value


def test_a_script_may_have_the_name_of_an_engine() -> None:
    assert [shown(each) for each in launched("/opt/vllm x y", scripts=scripts)] == ["/usr/bin/vllm serve wrapped x"]


def test_a_script_that_starts_itself_ends() -> None:
    assert [shown(each) for each in launched("./again.sh", scripts=scripts)] == ["vllm serve again"]


def test_unseen_arguments_are_unseen_in_the_script() -> None:
    words = tuple(shell.split(text("./serve.sh --port 1 --seed 2")))
    unseen = Opening(3, text("more").span, "more arguments")
    (found,) = launches(Launch(words=words, place=words[0].span, env={}, open=(unseen,), scripts=scripts))
    assert shown(found) == "vllm serve m --port 1 ? --seed 2"
    assert [(opening.index, opening.reason) for opening in found.open] == [(4, "more arguments")]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("standard-supervisor vllm serve m", "vllm serve m"),
        (
            "start_with_pid_file /tmp/x.pid python3 -m sglang.launch_server --model-path m",
            "sglang.launch_server --model-path m",
        ),
        ("RunCMD llama-server -m m.gguf -c 4096", "llama-server -m m.gguf -c 4096"),
    ],
)
def test_a_launcher_that_is_not_in_view_is_passed(command: str, expected: str) -> None:
    (found,) = launched(command, shell=True)
    assert shown(found).endswith(expected)
    assert [opening.reason for opening in found.env_open] == [f"{found.wrappers[0].name} may set variables"]


def test_a_launcher_may_be_given_an_interpreter_that_is_not_known() -> None:
    script = '#!/bin/bash\nrun_in_background "$LOG" "$PYTHON" -m vllm.entrypoints.openai.api_server --model m\n'
    assert lines({"a.sh": script}) == {"a.sh#a": "vllm.entrypoints.openai.api_server --model m"}


@pytest.mark.parametrize(
    "command",
    [
        "log_info vllm serve m",
        "gunicorn --x vllm serve m",
        "pkill -f llama-server -m x",
        "cmake --build build --target llama-server -m",
        "install_binary llama-server --force",
        "require_command vllm serve",
        "ln -s build/llama-server llama-server",
        "systemctl start llama-server",
        "frobnicate a b c d vllm serve m",
    ],
)
def test_who_only_speaks_of_an_engine_starts_none(command: str) -> None:
    assert launched(command, shell=True) == []


def test_a_script_that_is_not_in_view_is_passed_where_it_is_given_a_command() -> None:
    (found,) = launched("/docker-entrypoint.sh vllm serve m")
    assert shown(found) == "vllm serve m"
    assert [opening.reason for opening in found.env_open] == ["docker-entrypoint.sh may set variables"]
    assert launched("/check.sh vllm") == []
    assert launched("/check.sh --engine vllm serve") == []


def test_a_path_leads_to_a_script_only_if_one_agrees_best() -> None:
    script = '#!/bin/sh\nexec vllm serve m "$@"\n'
    unit = "[Service]\nExecStart=/srv/a/serve.sh --port 1\n"
    assert "x.service#x" in lines({"x.service": unit, "a/serve.sh": script, "b/serve.sh": script})
    assert "x.service#x" not in lines({"x.service": unit, "c/serve.sh": script, "b/serve.sh": script})


def test_a_path_that_leaves_the_project_is_known_by_its_name() -> None:
    unit = "[Service]\nExecStart=/bin/sh ../../serve.sh\n"
    name, process = only({"units/x.service": unit, "serve.sh": "#!/bin/sh\nvllm serve m\n"})
    assert (name, line(process)) == ("units/x.service#x", "vllm serve m")
