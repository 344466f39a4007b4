"""Shell scripts: the engines they start, and the configurations they write."""

from __future__ import annotations

import pytest
from found import argument, env, findings, line, lines, only, processes


def test_several_commands_of_one_script() -> None:
    text = "#!/bin/sh\nexport HF_HOME=/hf\nN=4\nvllm serve a --max-num-seqs $N &\nvllm serve b --port 2\n"
    found = processes({"bin/run.sh": text})
    assert {identity: line(process) for identity, process in found.items()} == {
        "bin/run.sh#run": "vllm serve a --max-num-seqs 4",
        "bin/run.sh#run~2": "vllm serve b --port 2",
    }
    first = found["bin/run.sh#run"]
    assert env(first) == {"HF_HOME": "/hf"}
    number = argument(first, "--max-num-seqs")
    assert (number.span.text, number.span.line, [use.text for use in number.via]) == ("4", 3, ["$N"])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("bin/serve", "#!/usr/bin/env bash\nvllm serve m\n"),
        ("serve.command", "vllm serve m\n"),
        ("bin/serve", "#! /bin/sh -e\nvllm serve m\n"),
        (".zshrc", "serve() {\n  vllm serve m\n}\n"),
        ("serve.sh.example", "vllm serve m\n"),
    ],
)
def test_files_that_are_scripts(path: str, text: str) -> None:
    assert list(lines({path: text}).values()) == ["vllm serve m"]


@pytest.mark.parametrize(
    "text", ["#!/usr/bin/env fish\nvllm serve m\n", "#!/usr/bin/python\n# vllm\n", "vllm serve m\n"]
)
def test_files_that_are_none(text: str) -> None:
    assert lines({"bin/serve": text}) == {}


def test_a_container_brings_its_own_surroundings() -> None:
    text = (
        "docker run -d --gpus '\"device=0,1\"' -p 127.0.0.1:9000:8000 --shm-size 2g --ipc=host --name chat -m 64g "
        "-e A=1 vllm/vllm-openai:v0.11.0 --model m\n"
    )
    _, process = only({"run.sh": text})
    assert line(process) == "[vllm/vllm-openai:v0.11.0] --model m"
    site = process.site
    assert [each.value for each in site.device_ids] == ["0", "1"]
    assert {host: port.value for host, port in site.published.items()} == {9000: 8000}
    assert (site.shared_memory.value, site.memory_limit.value) == (2 * 2**30, 64 * 2**30)  # type: ignore[union-attr]
    assert (site.host_ipc, site.hosts, env(process)) == (True, ("chat",), {"A": "1"})


def test_devices_that_are_visible() -> None:
    _, process = only({"run.sh": "CUDA_VISIBLE_DEVICES=2,3 vllm serve m\n"})
    assert process.site.gpus is not None
    assert (process.site.gpus.value, [each.span.text for each in process.site.device_ids]) == (2, ["2", "3"])


PLIST = """<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
  <key>Label</key><string>com.example.chat</string>
  <key>ProgramArguments</key>
  <array><string>$HOME/bin/vllm</string><string>serve</string><string>a &amp; b</string>
  <string>--max-model-len</string><string>${WINDOW}</string></array>
</dict></plist>
"""


def test_a_plist_in_a_here_document() -> None:
    text = f'#!/bin/bash\nWINDOW=4096\ncat > "$HOME/Library/LaunchAgents/x.plist" <<EOF\n{PLIST}EOF\n'
    name, process = only({"install.sh": text})
    assert (name, line(process)) == ("install.sh#com.example.chat", "?/bin/vllm serve a & b --max-model-len 4096")
    window = argument(process, "--max-model-len")
    assert (window.span.text, window.span.line, [use.text for use in window.via]) == ("4096", 2, ["${WINDOW}"])
    assert argument(process, "serve").span.text == "a &amp; b"


@pytest.mark.parametrize(
    "opening",
    [
        "cat > /etc/systemd/system/chat.service <<'EOF'\n",
        "sudo tee /etc/systemd/system/chat.service >/dev/null <<'EOF'\n",
        "cat <<'EOF' | sudo tee \"$UNITS/chat.service\" > /dev/null\n",
    ],
)
def test_a_unit_in_a_here_document(opening: str) -> None:
    body = "[Service]\nEnvironment=WINDOW=4096\nExecStart=/opt/vllm serve m \\\n  --max-model-len ${WINDOW}\n"
    name, process = only({"install.sh": f"#!/bin/sh\n{opening}{body}EOF\n"})
    assert (name, line(process)) == ("install.sh#chat", "/opt/vllm serve m --max-model-len 4096")
    window = argument(process, "--max-model-len")
    assert (window.span.text, [use.text for use in window.via]) == ("4096", ["${WINDOW}"])


def test_a_unit_whose_variables_the_script_puts_in() -> None:
    text = "PORT=81\ncat > /etc/systemd/system/chat.service <<EOF\n[Service]\n"
    text += "ExecStart=/opt/vllm serve m --port $PORT \\$MORE\nEOF\n"
    _, process = only({"install.sh": text})
    assert line(process) == "/opt/vllm serve m --port 81 ?"
    assert (argument(process, "--port").span.line, [each.span.text for each in process.line.open]) == (1, ["$MORE"])


def test_a_llama_swap_configuration_in_a_here_document() -> None:
    body = "models:\n  chat:\n    cmd: vllm serve m --port ${PORT}\n    concurrencyLimit: 3\n"
    found = findings({"install.sh": f"cat > config.yaml <<'EOF'\n{body}EOF\n"})
    ((identity, process),) = found.processes
    assert (identity, process.site.carrier) == ("install.sh#chat", "llama-swap")
    (admission,) = found.admissions
    assert admission.limit is not None
    assert admission.limit.origin.span.text == "3"


def test_an_object_that_is_applied_and_a_script_that_is_written() -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n    - name: c\n"
        "      image: vllm/vllm-openai:v0.11.0\n      args: [--model, m]\n"
    )
    text = f"kubectl apply -f - <<EOF\n{pod}EOF\ncat > start.sh <<'EOF'\n#!/bin/sh\nexec vllm serve m \"$@\"\nEOF\n"
    assert lines({"install.sh": text}) == {
        "install.sh#p/c": "[vllm/vllm-openai:v0.11.0] --model m",
        "install.sh#start": "vllm serve m ?",
    }


def test_a_here_document_that_is_no_configuration() -> None:
    assert lines({"a.sh": "cat <<EOF\nTo start: vllm serve m --port 1\nEOF\n"}) == {}


def test_a_script_that_starts_another_says_with_which_arguments() -> None:
    files = {
        "all.sh": "#!/bin/sh\nexport W=4096\n./lib/serve.sh a 1 &\nbash lib/serve.sh b 2\n",
        "lib/serve.sh": '#!/bin/sh\nexec vllm serve "$1" --port "$2" --max-model-len "$W"\n',
    }
    found = processes(files)
    assert {identity: line(process) for identity, process in found.items()} == {
        "all.sh#all": "vllm serve a --port 1 --max-model-len 4096",
        "all.sh#all~2": "vllm serve b --port 2 --max-model-len 4096",
    }
    assert [each.name for each in found["all.sh#all"].line.wrappers] == ["serve.sh", "exec"]
    assert argument(found["all.sh#all"], "--max-model-len").span.path == "all.sh"


def test_scripts_that_start_each_other_end() -> None:
    files = {
        "one.sh": "#!/bin/sh\n./two.sh\nvllm serve one\n",
        "two.sh": "#!/bin/sh\n./one.sh\n./two.sh\nvllm serve two\n",
    }
    assert sorted(set(lines(files).values())) == ["vllm serve one", "vllm serve two"]


def test_a_backslash_at_the_end_of_a_file_joins_nothing() -> None:
    """`bash` and `make` drop it; in the text behind `-c` it is an argument."""
    assert list(lines({"a.sh": "vllm serve m --port 1 \\"}).values()) == ["vllm serve m --port 1"]
    assert list(lines({"Makefile": "run:\n\tvllm serve m --port 1 \\"}).values()) == ["vllm serve m --port 1"]
    inner = 'services: {llm: {image: vllm/vllm-openai, entrypoint: [bash, -c, "vllm serve m \\\\"]}}\n'
    assert list(lines({"compose.yaml": inner}).values()) == ["vllm serve m \\"]
