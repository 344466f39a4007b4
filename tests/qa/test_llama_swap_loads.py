"""What llama-swap refuses to load, what it does not read, and what waits or fails behind it."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

MODEL = "models:\n  a: {concurrencyLimit: 4, cmd: 'llama-server --port ${PORT} -m /m/a.gguf -c 32768 -np 4'}\n"


def said(text: str, *rules: str) -> list[tuple[str, str, str]]:
    report = check_files({"llama-swap.yaml": text})
    return [(each.rule, each.severity, each.text) for each in report.findings if each.rule in rules]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("startPort: 0\n", "0"),
        ("globalTTL: -1\n", "-1"),
        ("logToStdout: stdout\n", "stdout"),
        ("apiKeys: ['']\n", "''"),
        ("apiKeys: [a b]\n", "a b"),
        ("macros: {'a b': '1'}\n", "'a b'"),
        (f"macros: {{{'a' * 64}: '1'}}\n", "a" * 64),
        ("macros: {a: [b]}\n", "a"),
        ("groups: {g: {members: [a]}}\nmatrix: {vars: {x: a}, sets: {s: x}}\n", "matrix"),
        ("matrix: {vars: {x: a}}\nrouting: {router: {settings: {groups: {g: {members: [a]}}}}}\n", "matrix"),
    ],
)
def test_refused(text: str, marked: str) -> None:
    assert said(text + MODEL, "wrong-schema") == [("wrong-schema", "error", marked)]


@pytest.mark.parametrize(
    "text",
    [
        "startPort: 1\n",
        "startPort: ${env.START}\n",
        "globalTTL: 0\n",
        "logToStdout: both\n",
        f"macros: {{{'a' * 63}: 1, b-c_d: true}}\n",
        "apiKeys: ['${env.KEY}']\n",
        "matrix: {vars: {x: a}, sets: {s: x}}\n",
    ],
)
def test_taken(text: str) -> None:
    assert said(text + MODEL, "wrong-schema") == []


def test_a_key_that_is_not_read_and_changes_nothing() -> None:
    rule = "admission-ineffective"
    assert said("concurrencyLimit: 4\n" + MODEL, rule) == [(rule, "error", "concurrencyLimit")]
    assert said("concurrencyLimit: 10\n" + MODEL, rule) == [(rule, "warning", "concurrencyLimit")]


@pytest.mark.parametrize(("inner", "found"), [(8080, 1), (8000, 0)])
def test_the_port_inside_the_container_that_a_model_runs_in(inner: int, found: int) -> None:
    command = f"docker run --rm -p ${{PORT}}:{inner} vllm/vllm-openai:v0.11.0 --model acme/a"
    text = f"models:\n  a: {{cmd: '{command}'}}\n"
    assert len(said(text, "values-disagree")) == found


@pytest.mark.parametrize(
    ("more", "limit", "severity"),
    [("", 8, "error"), ("", 1, None), ("--interrupt_requests false", 8, "note")],
)
def test_a_server_that_interrupts(more: str, limit: int, severity: str | None) -> None:
    """llama_cpp.server answers one request at a time, and a new one ends it unless that is turned off."""
    command = f"python -m llama_cpp.server --model /m/a.gguf --port ${{PORT}} {more}".strip()
    text = f"models:\n  a: {{concurrencyLimit: {limit}, cmd: '{command}'}}\n"
    expected = [] if severity is None else [("width-below-admission", severity, str(limit))]
    assert said(text, "width-below-admission") == expected
