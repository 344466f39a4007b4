"""How a run ends, and what the configuration says of findings."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import click
import pytest
from repository import CHAT, CONFIG, clean

from kvlint.pipeline import Options, check_files
from kvlint.reports.write import FORMATS

OFF = '[severity]\ncold-prompt-cache = "{}"\n'


def run(repo: Any, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "kvlint", *arguments)
    return subprocess.run(command, cwd=repo.root, env=clean(), capture_output=True, text=True, check=False, **options)


def test_findings_are_one_and_the_format_never_changes_that(chat: Any) -> None:
    for name in FORMATS:
        assert chat.kvlint("check", "--format", name).status == 1
        assert chat.kvlint("check", "--format", f"{name}={name}.out").status == 1
        assert chat.kvlint("check", "--format", name, "--fail-on", "never").status == 0


def test_help_names_every_format(chat: Any) -> None:
    told = " ".join(chat.kvlint("check", "--help").out.split())
    assert ", ".join(FORMATS) in told


@pytest.mark.parametrize(
    "arguments",
    [
        ("--no-such-option",),
        ("--fail-on", "critical"),
        ("--select", "cold-prompt-cash"),
        ("--format", "xml"),
        ("--format", "json=no/such/dir/x"),
        ("--config", "none.toml"),
        ("no-such-path",),
        ("-",),
        ("--since",),
    ],
)
def test_usage_errors_are_two(chat: Any, arguments: tuple[str, ...]) -> None:
    result = chat.kvlint("check", *arguments)
    assert result.status == 2
    assert result.out == ""
    assert result.err


def test_a_report_that_cannot_be_written_is_two(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kvlint.reports.write._save", full)
    result = chat.kvlint("check", "--format", "json=out.json")
    assert (result.status, result.err) == (2, "kvlint: out.json could not be written: No space left on device\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("selct = []\n", "kvlint.toml:1:1: unknown key 'selct'; did you mean 'select'?"),
        (
            '[[hardware]]\nmatch = "**"\nmemroy = "1GiB"\n',
            "kvlint.toml:3:1: unknown key 'memroy'; did you mean 'memory'?",
        ),
        ('[[hardware]]\nmemory = "1GiB"\n', "needs match"),
        ('[[floor]]\nmatch = "**"\nmin_warm_slots = "two"\n', "kvlint.toml:3:"),
        ("[[ignore]]\nrule = 3\n", "kvlint.toml:2:"),
        ('[[ignore]]\nrule = "x"\nuntil = "soon"\n', "expected a date"),
        ('[severity]\ncold-prompt-cache = "fatal"\n', "'fatal' is none of"),
        ('[severity]\ncold-prompt-cash = "note"\n', "did you mean 'cold-prompt-cache'?"),
        ("[[hardware]]\n[[hardware]\n", "kvlint.toml:2"),
        ("[coefficients]\nholdback = {value = 0.2}\n", "needs a reason"),
    ],
)
def test_configuration_errors_are_two_with_their_place(chat: Any, text: str, told: str) -> None:
    chat.write({"kvlint.toml": text})
    result = chat.check()
    assert (result.status, result.out) == (2, "")
    assert told in result.err


def test_nothing_to_check_is_four_only_when_asked(repo: Any) -> None:
    repo.commit({"readme.yaml": "a: 1\n"})
    assert repo.check().status == 0
    assert repo.check("--require-input").status == 4


def test_a_fault_of_ours_is_three_and_the_rest_is_still_printed(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kvlint import pipeline

    build, named = pipeline.build, chat.root / "talk.sh"
    named.write_text(CHAT)

    def broken(process: Any, identity: str, around: Any) -> Any:
        if identity.startswith("talk.sh"):
            raise ZeroDivisionError("by zero")
        return build(process, identity, around)

    monkeypatch.setattr(pipeline, "build", broken)
    result = chat.check()
    assert (result.status, result.rules) == (3, ["cold-prompt-cache"])
    assert result.err == "kvlint: internal error: talk.sh#talk: ZeroDivisionError: by zero; please report it\n"


def test_a_rule_that_fails_does_not_silence_the_others(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kvlint.ruleset import run as module

    judge = module.judge

    def broken(rule: Any, subject: Any) -> Any:
        if rule.name == "window-beyond-model":
            raise RecursionError("deep")
        return judge(rule, subject)

    monkeypatch.setattr(module, "judge", broken)
    result = chat.check(select="cold-prompt-cache,window-beyond-model")
    assert (result.status, result.rules) == (3, ["cold-prompt-cache"])
    assert "window-beyond-model: RecursionError: deep" in result.err


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (click.Abort(), 130), (ValueError("x"), 3)])
def test_interrupted_and_broken_runs(
    chat: Any, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int
) -> None:
    def end(*_: Any) -> None:
        raise error

    monkeypatch.setattr("kvlint.pipeline.check", end)
    result = chat.kvlint("check")
    assert result.status == status
    assert len(result.err.splitlines()) <= 1


def test_a_closed_pipe_ends_quietly(chat: Any) -> None:
    command = f"{sys.executable} -m kvlint check --format json; echo $? >status"
    done = subprocess.run(
        ["sh", "-c", f"({command}) | head -c 1"], cwd=chat.root, env=clean(), capture_output=True, check=True
    )
    assert done.stderr == b""
    assert chat.read("status").strip() in ("0", "1")  # 1 where all was written before the pipe closed


def test_statistics_count_by_rule(chat: Any) -> None:
    chat.write({"talk.sh": CHAT})
    lines = chat.kvlint("check", "--statistics", "--select", "cold-prompt-cache").out.splitlines()
    assert lines[-1] == "2  error    cold-prompt-cache"
    result = chat.check("--statistics")
    assert len(result.rules) == 2
    assert result.err == "2  error    cold-prompt-cache\n"


def severities(config: str, chat: str = CHAT) -> dict[str, str]:
    found = check_files({"chat.sh": chat}, CONFIG + config, Options(select=("cold-prompt-cache",)))
    return {each.rule: each.severity for each in found.findings}


def test_a_severity_of_the_project_replaces_the_rules_own() -> None:
    assert severities("") == {"cold-prompt-cache": "error"}
    assert severities(OFF.format("note")) == {"cold-prompt-cache": "note"}
    assert severities('[severity]\nprompt-cache = "warning"\n') == {"cold-prompt-cache": "warning"}
    assert severities(OFF.format("off")) == {}


def test_a_severity_never_lifts_what_doubt_has_capped() -> None:
    """The streams are the default of a variable that may be set otherwise."""
    doubtful = {
        "serve.sh": "#!/bin/sh\nEXTRA=$1\nexec uvx --from vllm==0.19.1 vllm serve Qwen/Qwen3-8B --max-num-sequences 4 $EXTRA\n"
    }
    plain = check_files(doubtful, None, Options(select=("unknown-flag",)))
    raised = check_files(doubtful, '[severity]\nunknown-flag = "error"\n', Options(select=("unknown-flag",)))
    assert [each.severity for each in plain.findings] == [each.severity for each in raised.findings]


@pytest.mark.parametrize(
    ("table", "hidden"),
    [
        ('[[ignore]]\nat = "chat.sh"\n', True),
        ('[[ignore]]\nat = "talk.sh"\n', False),
        ('[[ignore]]\nrule = "cold-prompt-cache"\nat = "chat.sh"\n', True),
        ('[[ignore]]\nrule = "cold-prompt-cache"\nat = "chat.sh#chat"\n', True),
        ('[[ignore]]\nrule = "cold-prompt-cache"\nat = "talk.sh"\n', False),
        ('[[ignore]]\nrule = "cold-prompt-cache"\nat = "chat.sh#talk"\n', False),
        ('[[ignore]]\nrule = "window-beyond-model"\nat = "**"\n', False),
        ('[[ignore]]\nrule = "cold-prompt-cache"\nat = "**"\nuntil = 2999-01-31\n', True),
        ('[[ignore]]\nrule = "cold-prompt-cache"\nat = "**"\nuntil = 2020-01-31\n', False),
        ('[[per_file_ignore]]\nmatch = "*.sh"\n', True),
        ('[[per_file_ignore]]\nmatch = "**"\nrules = ["cold-prompt-cache"]\n', True),
        ('[[per_file_ignore]]\nmatch = "*.sh"\nrules = ["cold-prompt-cache"]\n', True),
        ('[[per_file_ignore]]\nmatch = "mac/**"\nrules = ["cold-prompt-cache"]\n', False),
        ('[[per_file_ignore]]\nmatch = "**"\nrules = ["window-beyond-model"]\n', False),
    ],
)
def test_ignores_of_the_configuration(table: str, hidden: bool) -> None:
    found = check_files({"chat.sh": CHAT}, CONFIG + table, Options(select=("cold-prompt-cache",)))
    assert ([each.rule for each in found.findings] == []) is hidden
    assert found.suppressed == int(hidden)


def test_what_standard_input_holds(chat: Any) -> None:
    done = run(chat, "check", "--format", "json", "-", "--stdin-filename", "talk.sh", input=CHAT)
    assert done.returncode == 1
    assert {finding["path"] for finding in json.loads(done.stdout)["findings"]} == {"talk.sh"}
