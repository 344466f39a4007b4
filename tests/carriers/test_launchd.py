"""Agents as launchd starts them: launchd.plist(5), no shell, no variables."""

from __future__ import annotations

import pytest
from found import argument, env, line, lines, only, problems


def plist(
    arguments: list[str], more: str = "", label: str = "<key>Label</key><string>com.example.chat</string>"
) -> str:
    strings = "".join(f"    <string>{each}</string>\n" for each in arguments)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://x/p.dtd">\n'
        f'<plist version="1.0"><dict>\n  {label}\n{more}'
        f"  <key>ProgramArguments</key>\n  <array>\n{strings}  </array>\n</dict></plist>\n"
    )


def test_arguments_and_environment() -> None:
    more = "<key>EnvironmentVariables</key><dict><key>HF_HOME</key><string>/hf</string></dict>"
    text = plist(["/opt/homebrew/bin/mlx_lm.server", "--model", "a &amp; b", "--max-tokens", "512"], more)
    name, process = only({"mac/com.example.chat.plist": text})
    assert name == "mac/com.example.chat.plist#com.example.chat"
    assert line(process) == "/opt/homebrew/bin/mlx_lm.server --model a & b --max-tokens 512"
    assert env(process) == {"HF_HOME": "/hf"}
    assert argument(process, "--max-tokens").span.text == "512"
    assert process.site.place.text == "/opt/homebrew/bin/mlx_lm.server"
    assert not process.line.env_open


def test_wrappers_and_pins() -> None:
    text = plist(["/usr/bin/caffeinate", "-i", "/opt/uvx", "--from", "mlx-lm==0.31.2", "mlx_lm.server", "--model", "m"])
    _, process = only({"a.plist": text})
    assert line(process) == "mlx_lm.server --model m"
    assert [(pin.distribution, pin.version.span.text) for pin in process.line.pins] == [("mlx-lm", "0.31.2")]


def test_without_a_shell_a_variable_stays_text() -> None:
    text = plist(["/opt/mlx_lm.server", "--model", "~/m/$NAME", "--max-tokens", "512"])
    assert lines({"a.plist": text}) == {
        "a.plist#com.example.chat": "/opt/mlx_lm.server --model ~/m/$NAME --max-tokens 512"
    }
    assert problems({"a.plist": text}) == [("unexpanded-variable", "$NAME")]


def test_a_shell_that_the_agent_starts_reads_its_own() -> None:
    text = plist(["/bin/zsh", "-lc", "M=q; exec mlx_lm.server --model $M --port $PORT"])
    _, process = only({"a.plist": text})
    assert line(process) == "mlx_lm.server --model q ?".replace("?", "--port ?")
    assert argument(process, "--model").span.text == "q"
    assert problems({"a.plist": text}) == []


@pytest.mark.parametrize("ending", [".tpl", ".example", ".in"])
def test_a_template_holds_what_is_not_known(ending: str) -> None:
    text = plist(["${HOME}/bin/mlx_lm.server", "--model", "__MODEL__", "--port", "@PORT@"], label="")
    name, process = only({f"chat.plist{ending}": text})
    assert (name, line(process)) == (f"chat.plist{ending}#chat", "?/bin/mlx_lm.server --model ? --port ?")
    assert problems({f"chat.plist{ending}": text}) == []


def test_program_is_what_runs() -> None:
    text = plist(["chat", "--model", "m"], "<key>Program</key><string>/opt/mlx_lm.server</string>")
    assert list(lines({"a.plist": text}).values()) == ["/opt/mlx_lm.server --model m"]


def test_a_script_of_the_repository_is_followed() -> None:
    files = {
        "a.plist": plist(["/Users/me/llm/start.sh", "8080"]),
        "bin/start.sh": '#!/bin/zsh\nexec mlx_lm.server --model m --port "$1"\n',
    }
    assert lines(files) == {"a.plist#com.example.chat": "mlx_lm.server --model m --port 8080"}


def test_a_version_comes_from_the_requirements_beside() -> None:
    from kvlint.pipeline import evaluate, memory_project

    files = {"mac/a.plist": plist(["/opt/mlx_lm.server", "--model", "m"]), "mac/requirements.txt": "mlx-lm==0.31.2\n"}
    (group,) = evaluate(memory_project(files)).groups
    assert group.first.version is not None
    assert group.first.version.origin.span.path == "mac/requirements.txt"
