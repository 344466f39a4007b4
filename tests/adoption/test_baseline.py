"""`--baseline`: it hides what it holds, hears what changed, and only shrinks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from repository import CHAT, CONFIG

from kvlint.pipeline import Options, check_files

FLAG = "#!/bin/sh\nexec uvx --from vllm==0.19.1 vllm serve Qwen/Qwen3-8B --max-num-sequences 4\n"


def entries(repo: Any) -> list[str]:
    return [row["rule"] for row in json.loads(repo.read("base.json"))["findings"]]


@pytest.fixture
def accepted(chat: Any) -> Any:
    result = chat.check("--baseline", "base.json", "--write-baseline")
    assert (result.status, result.rules) == (0, [])
    assert result.json["summary"]["suppressed"] == 1
    assert entries(chat) == ["cold-prompt-cache"]
    return chat


def test_accepted_findings_are_hidden_and_counted(accepted: Any) -> None:
    result = accepted.check("--baseline", "base.json")
    assert (result.status, result.rules, result.err) == (0, [], "")
    assert result.json["summary"]["suppressed"] == 1


def test_a_finding_that_moved_stays_accepted(accepted: Any) -> None:
    accepted.write({"chat.sh": CHAT.replace("# kvlint", "# a\n" * 40 + "# kvlint")})
    assert accepted.check("--baseline", "base.json").rules == []


def test_new_findings_and_other_values_are_heard(accepted: Any) -> None:
    accepted.write({"x.sh": FLAG})
    assert accepted.check("--baseline", "base.json").rules == ["unknown-flag"]
    accepted.write({"x.sh": None, "chat.sh": CHAT.replace("200000", "190000")})
    result = accepted.check("--baseline", "base.json")
    assert (result.status, result.rules) == (1, ["cold-prompt-cache"])
    assert "1 of 1 entries stale" in result.err


def test_writing_again_never_adds(accepted: Any) -> None:
    accepted.write({"x.sh": FLAG})
    result = accepted.check("--baseline", "base.json", "--write-baseline")
    assert (result.status, result.rules) == (1, ["unknown-flag"])
    assert entries(accepted) == ["cold-prompt-cache"]


def test_what_is_no_longer_found_is_told_and_then_taken_out(accepted: Any) -> None:
    accepted.write({"chat.sh": CHAT.replace("200000", "32000")})
    result = accepted.check("--baseline", "base.json")
    assert result.status == 0
    assert "stale" in result.err
    assert entries(accepted) == ["cold-prompt-cache"]
    accepted.check("--baseline", "base.json", "--write-baseline")
    assert entries(accepted) == []


def test_a_run_that_did_not_look_takes_nothing_out(accepted: Any) -> None:
    accepted.write({"other.sh": "#!/bin/sh\n"})
    shrink = ("--baseline", "base.json", "--write-baseline")
    for result in (
        accepted.check(*shrink, "other.sh"),
        accepted.check(*shrink, "--ignore", "prompt-cache"),
        accepted.check(*shrink, select="unknown-flag"),
    ):
        assert (result.status, result.err) == (0, "")
        assert entries(accepted) == ["cold-prompt-cache"]


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2, "findings": []}', '{"version": 1, "findings": [{}]}'])
def test_a_file_that_is_no_baseline(chat: Any, text: str) -> None:
    chat.write({"base.json": text})
    result = chat.check("--baseline", "base.json")
    assert (result.status, result.out) == (2, "")


def test_a_baseline_that_is_not_there_or_cannot_be_written(chat: Any) -> None:
    assert chat.check("--baseline", "none.json").status == 2
    assert chat.check("--write-baseline").status == 2
    assert chat.check("--baseline", "no/where.json", "--write-baseline").status == 2


def prints(files: dict[str, str]) -> list[tuple[str, str]]:
    options = Options(select=("cold-prompt-cache", "unknown-flag"))
    return [(each.rule, each.fingerprint) for each in check_files(files, CONFIG, options).findings]


def test_fingerprints_survive_a_move_and_tell_servers_apart() -> None:
    moved = CHAT.replace("#!/bin/sh\n", "#!/bin/sh\n" + "# a\n" * 40)
    assert prints({"chat.sh": CHAT}) == prints({"chat.sh": moved})
    assert prints({"chat.sh": CHAT}) == prints({"chat.sh": CHAT.replace("200000", "190000")})
    assert prints({"chat.sh": CHAT}) != prints({"talk.sh": CHAT})
    twice = prints({"x.sh": FLAG.replace("4\n", "4 --max-num-sequences 5\n")})
    assert len({fingerprint for _, fingerprint in twice}) == len(twice) >= 1


def test_what_could_not_be_checked_has_fingerprints_too(repo: Any) -> None:
    repo.commit({"chat.sh": CHAT})
    found = repo.check("--strict-facts").json["findings"]
    assert found
    assert all(finding["fingerprint"] for finding in found)
    assert repo.check("--strict-facts", "--baseline", "b.json", "--write-baseline").rules == []
    assert repo.check("--strict-facts", "--baseline", "b.json").rules == []
