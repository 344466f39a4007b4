"""`check --format json`: every key with its type, places in code points, names that last."""

from __future__ import annotations

from typing import Any

import pytest
from contract_inputs import CHAT, MAC, chat, deployment

from kvlint import __version__
from kvlint.sizing.server import DERIVED
from kvlint.subjects import SETTINGS

BAD_CHAT = {"chat.sh": chat("window=40000 streams=2"), "kvlint.toml": MAC}


def test_the_document(project: Any) -> None:
    found = project.write(BAD_CHAT).check()
    assert list(found) == ["version", "tool", "summary", "findings", "unchecked", "not_understood"]
    assert found["version"] == 1
    assert found["tool"] == {"name": "kvlint", "version": __version__}
    assert found["summary"] == {
        "files_read": 2,
        "files_recognized": 1,
        "files_not_understood": 0,
        "servers": 1,
        "admissions": 0,
        "errors": 1,
        "warnings": 1,
        "notes": 0,
        "suppressed": 0,
        "unchecked": 0,
    }


def test_a_finding(project: Any) -> None:
    """One slot is 40,000 × 98,304 B; usable is ⌊24 GiB × 0.9⌋; 2 live slots and 16 GiB of weights leave less than nothing."""
    (finding,) = project.write(BAD_CHAT).findings("cold-prompt-cache")
    assert list(finding) == [
        *("rule", "severity", "certainty", "message", "path", "line", "column", "end_line", "end_column"),
        *("server", "servers", "admissions", "related", "values", "suggestions", "fingerprint", "fix"),
    ]
    assert (finding["severity"], finding["certainty"], finding["fix"]) == ("error", "certain", None)
    assert (finding["server"], finding["servers"], finding["admissions"]) == ("chat.sh#chat", ["chat.sh#chat"], [])
    place = [finding[key] for key in ("path", "line", "column", "end_line", "end_column")]
    assert place == ["chat.sh", 2, len("# kvlint: window=") + 1, 2, len("# kvlint: window=40000") + 1]
    usable, slot = 24 * 2**30 * 9 // 10, 40_000 * 98_304
    assert finding["values"]["slot_bytes"] == slot
    assert finding["values"]["prompt_cache_capacity_bytes"] == usable - 16 * 2**30 - 2 * slot
    assert set(finding["values"]) <= {*SETTINGS, *DERIVED}
    roles = {(each["role"], each["path"], each["message"]) for each in finding["related"]}
    assert ("cause", "kvlint.toml", "budget_bytes = 24 GiB") in roles
    for each in finding["related"]:
        assert list(each) == ["path", "line", "column", "end_line", "end_column", "role", "message"]
        assert each["role"] in ("cause", "counterpart", "use")


def test_columns_count_code_points(project: Any) -> None:
    line = "    command: --model 🦊/x --enforce-eagr\n"
    text = f"services:\n  llm:\n    image: vllm/vllm-openai:v0.11.0\r\n{line}"
    (finding,) = project.write({"compose.yaml": text}).findings("unknown-flag")
    start = line.index("--enforce-eagr")
    assert (finding["line"], finding["column"]) == (4, start + 1)
    assert (finding["end_line"], finding["end_column"]) == (4, start + 1 + len("--enforce-eagr"))
    assert finding["fix"] == {
        "safety": "safe",
        "message": "replace '--enforce-eagr' with '--enforce-eager'",
        "edits": [{**{key: finding[key] for key in PLACE}, "text": "--enforce-eager"}],
    }


PLACE = ("path", "line", "column", "end_line", "end_column")


def test_unchecked_and_not_understood(project: Any) -> None:
    found = project.write({"serve.sh": "vllm serve acme/unheard-of\n", "vllm.yaml": "a: [vllm\nb: }\n"}).check()
    assert {"rule", "server", "missing", "supply"} == set(found["unchecked"][0])
    assert found["summary"]["unchecked"] == len(found["unchecked"])
    (unread,) = found["not_understood"]
    assert list(unread) == ["path", "line", "message"]
    assert (unread["path"], found["summary"]["files_not_understood"]) == ("vllm.yaml", 1)


def test_identities(project: Any) -> None:
    served = project.write({"k8s/q.yaml": deployment() + "---\n" + deployment(), "run/chat.sh": CHAT}).show()["servers"]
    assert [each["id"] for each in served] == ["k8s/q.yaml#qwen/vllm", "k8s/q.yaml#qwen/vllm~2", "run/chat.sh#chat"]


def test_an_overlay_is_a_server_of_its_own_and_the_base_is_none(project: Any) -> None:
    base = deployment(args="[--model=Qwen/Qwen3-32B, --max-model-len=409600]")
    patch = "- op: replace\n      path: /spec/template/spec/containers/0/args/1\n      value: --max-model-len=4096\n"
    overlay = f"resources: [../../base]\npatches:\n- target: {{kind: Deployment}}\n  patch: |-\n    {patch}"
    project.write({"base/d.yaml": base, "base/kustomization.yaml": "resources: [d.yaml]\n"})
    assert [each["rule"] for each in project.findings("window-beyond-model")] == ["window-beyond-model"]
    project.write({"overlays/prod/kustomization.yaml": overlay})
    assert project.findings("window-beyond-model") == []
    assert project.server()["id"] == "base/d.yaml@overlays/prod#qwen/vllm"


def test_a_fingerprint_knows_no_line(project: Any) -> None:
    (before,) = project.write(BAD_CHAT).findings("cold-prompt-cache")
    project.write({"chat.sh": BAD_CHAT["chat.sh"].replace("\n", "\n" * 40, 1)})
    (after,) = project.findings("cold-prompt-cache")
    assert (after["line"], after["fingerprint"]) == (before["line"] + 39, before["fingerprint"])
    once = chat("window=40000").replace("exec ", "").replace("8080\n", "8080 &\n")
    first, second = project.write({"chat.sh": once + once}).findings("unbounded-prompt-cache")
    assert first["fingerprint"] != second["fingerprint"]


@pytest.mark.parametrize(("level", "status"), [("error", 1), ("warning", 1), ("note", 1), ("never", 0)])
def test_the_status_follows_the_level_and_never_the_format(project: Any, level: str, status: int) -> None:
    project.write(BAD_CHAT)
    for format_ in ("full", "concise", "json", "github", "sarif", "gitlab", "junit", "markdown"):
        assert project.run("check", "--format", format_, "--fail-on", level).status == status


def test_what_could_not_be_checked_fails_a_strict_run(project: Any) -> None:
    project.write({"serve.sh": "vllm serve acme/unheard-of --revision abc\n"})
    assert project.run("check").status == 0
    assert project.run("check", "--strict-facts").status == 1
    assert project.run("check", "--strict-facts", "--fail-on", "never").status == 0


def test_nothing_to_check_in_focus_is_four_only_when_asked(project: Any) -> None:
    project.write({**BAD_CHAT, "other/x.yaml": "a: 1\n"})
    assert project.run("check", "other").status == 0
    assert project.run("check", "--require-input", "other").status == 4
    assert project.run("check", "--require-input").status == 1


def test_the_use_of_what_is_written_elsewhere_is_shown(project: Any) -> None:
    """The characters to edit are underlined, wherever they stand; the alias or variable that took them there is a use."""
    service = "services:\n  a:\n    image: vllm/vllm-openai:v0.11.0\n"
    command = service + "    command: [--model, Qwen/Qwen3-32B, --max-model-len, {}]\n"
    aliased, variable = "x: &long '409600'\n" + command.format("*long"), command.format("'${LONG}'")
    for files, place, use in (
        ({"compose.yaml": aliased}, ("compose.yaml", 1), ("compose.yaml", 5)),
        ({"compose.yaml": variable, ".env": "LONG=409600\n"}, (".env", 1), ("compose.yaml", 4)),
    ):
        (finding,) = project.write(files).findings("window-beyond-model")
        assert (finding["path"], finding["line"]) == place
        assert [(each["path"], each["line"]) for each in finding["related"] if each["role"] == "use"] == [use]
