"""Files that a script reads into itself: settings beside it, and what a file that is not in view leaves open."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

SERVE = 'exec uvx --from vllm==0.11.0 vllm serve Qwen/Qwen3-8B --max-model-len "$LEN"\n'


def found(files: dict[str, str]) -> list[tuple[str, str, str]]:
    report = check_files(files)
    return [
        (each.severity, each.span.path, each.text) for each in report.findings if each.rule == "window-beyond-model"
    ]


@pytest.mark.parametrize(
    "lines",
    [
        "source ./chat.env",
        ". ./chat.env",
        'source "$(dirname "$0")/chat.env"',
        'here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)\nset -a\n. "$here/chat.env"\nset +a',
        "LEN=8192\nsource chat.env",
    ],
)
def test_settings_beside_a_script(lines: str) -> None:
    files = {"run/chat.sh": f"#!/bin/bash\n{lines}\n{SERVE}", "run/chat.env": "# tokens\nLEN=65536\n"}
    assert found(files) == [("error", "run/chat.env", "65536")]


def test_a_script_that_another_runs() -> None:
    files = {
        "chat.service": "[Service]\nExecStart=/srv/app/chat.sh\n",
        "app/chat.sh": f'#!/bin/bash\n. "$(dirname "$0")/chat.env"\n{SERVE}',
        "app/chat.env": "LEN=65536\n",
    }
    assert found(files) == [("error", "app/chat.env", "65536")]


def test_functions_that_are_read_and_called() -> None:
    files = {
        "chat.sh": "#!/bin/bash\nsource lib.sh\nserve 65536\n",
        "lib.sh": f"serve() {{\n  LEN=$1\n  {SERVE}}}\nother() {{\n  LEN=131072\n  {SERVE}}}\n",
    }
    assert ("error", "chat.sh", "65536") in found(files)
    assert ("error", "chat.sh", "131072") not in found(files)


def test_settings_that_are_not_in_view_leave_doubt() -> None:
    assert found({"chat.sh": f"#!/bin/bash\nLEN=65536\nsource /etc/chat.env\n{SERVE}"})[0][0] == "warning"
    assert found({"chat.sh": f"#!/bin/bash\nsource /etc/chat.env\nLEN=65536\n{SERVE}"})[0][0] == "error"
    assert found({"chat.sh": f"#!/bin/bash\nLEN=65536\nsource venv/bin/activate\n{SERVE}"})[0][0] == "error"


def test_files_that_read_each_other_end() -> None:
    files = {"a.sh": f"#!/bin/bash\nLEN=65536\nsource b.sh\n{SERVE}", "b.sh": "source a.sh\nsource b.sh\n"}
    assert [each[0] for each in found(files)] == ["error"]


def test_a_number_is_one_word() -> None:
    line = "exec uvx --from vllm==0.11.0 vllm serve Qwen/Qwen3-8B --port $((8000 + i)) --max-model-len 65536"
    assert [each[0] for each in found({"chat.sh": f"#!/bin/bash\nfor i in 0 1; do {line}; done\n"})] == ["error"]
