"""A member of a `[[parity]]` that is no longer there breaks the promise; one that is only unknown does not."""

from __future__ import annotations

from pathlib import Path

import kvlint

SERVER = "#!/bin/sh\nexec uvx --from vllm==0.13.0 vllm serve Qwen/Qwen3-8B --max-model-len 16384\n"
PARITY = '[[parity]]\nname = "window"\nequal = ["serve.sh#serve:window", "limits.env#MAX_INPUT"]\n'


def found(directory: Path, *, server: str = SERVER, limits: str | None) -> list[tuple[str, str]]:
    (directory / "serve.sh").write_text(server)
    (directory / "kvlint.toml").write_text(PARITY)
    if limits is not None:
        (directory / "limits.env").write_text(limits)
    report = kvlint.check([str(directory)])
    return [(each.severity, each.message) for each in report.findings if each.rule == "values-disagree"]


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    ((severity, message),) = found(tmp_path, limits=None)
    assert severity == "error"
    assert "serve.sh#serve:window is 16384" in message
    assert "limits.env#MAX_INPUT is gone: there is no file limits.env" in message


def test_members_that_agree(tmp_path: Path) -> None:
    assert found(tmp_path, limits="MAX_INPUT=16384\n") == []


def test_a_value_that_is_not_known_is_no_break(tmp_path: Path) -> None:
    server = SERVER.replace("16384", "$WINDOW")
    assert found(tmp_path, server=server, limits="MAX_INPUT=16384\n") == []
