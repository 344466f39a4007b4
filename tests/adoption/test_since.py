"""`--since` and `--focus-only`: which findings a change is answerable for."""

from __future__ import annotations

from typing import Any

from repository import CHAT, CONFIG

OTHER = CHAT.replace("200000", "190000")
FLAG = "#!/bin/sh\nexec uvx --from vllm==0.19.1 vllm serve Qwen/Qwen3-8B --max-num-sequences 4\n"


def test_what_was_there_is_not_shown(chat: Any) -> None:
    assert chat.check().rules == ["cold-prompt-cache"]
    result = chat.check("--since", "HEAD")
    assert (result.status, result.rules) == (0, [])


def test_what_only_moved_is_not_shown(chat: Any) -> None:
    chat.write({"chat.sh": CHAT.replace("# kvlint", "# a\n" * 40 + "# kvlint")})
    assert chat.check("--since", "HEAD").rules == []


def test_a_new_finding_is_shown_in_a_new_file_and_in_an_old_one(chat: Any) -> None:
    chat.write({"new.sh": OTHER})
    found = chat.check("--since", "HEAD").json["findings"]
    assert [finding["path"] for finding in found] == ["new.sh"]
    chat.write(
        {
            "new.sh": None,
            "chat.sh": CHAT.replace("exec ", "uvx --from vllm==0.19.1 vllm serve x --sequences 4 &\nexec "),
        }
    )
    result = chat.check("--since", "HEAD")
    assert (result.status, result.rules) == (1, ["unknown-flag"])


def test_a_finding_with_other_values_is_shown(chat: Any) -> None:
    chat.write({"chat.sh": OTHER})
    assert chat.check("--since", "HEAD").rules == ["cold-prompt-cache"]


def test_a_finding_is_shown_where_its_cause_was_changed_elsewhere(chat: Any) -> None:
    """The finding stands in chat.sh; the budget that causes it was lowered in kvlint.toml."""
    chat.commit({"kvlint.toml": CONFIG.replace("48GiB", "96GiB")})
    assert chat.check().rules == []
    chat.write({"kvlint.toml": CONFIG})
    found = chat.check("--since", "HEAD").json["findings"]
    assert [(finding["rule"], finding["path"]) for finding in found] == [("cold-prompt-cache", "chat.sh")]


def test_a_changed_line_of_an_input_shows_a_finding_of_equal_values(chat: Any) -> None:
    chat.write({"kvlint.toml": CONFIG.replace('"48GiB"', '"49152MiB"')})
    assert chat.check("--since", "HEAD").rules == ["cold-prompt-cache"]


def test_an_input_whose_line_was_taken_out_shows_the_finding(chat: Any) -> None:
    """Two lines said the budget, the later one winning; without it the same value comes from the other."""
    chat.commit({"kvlint.toml": CONFIG + '\n[[hardware]]\nmatch = "chat.sh"\nbudget = "48GiB"\n'})
    chat.write({"kvlint.toml": CONFIG})
    assert chat.check("--since", "HEAD").rules == ["cold-prompt-cache"]


def test_an_older_revision(chat: Any) -> None:
    chat.commit({"new.sh": OTHER})
    assert chat.check("--since", "HEAD").rules == []
    assert chat.check("--since", "HEAD~1").rules == ["cold-prompt-cache"]


def test_the_project_below_the_top_of_the_repository(repo: Any) -> None:
    repo.commit({"mac/chat.sh": CHAT, "mac/kvlint.toml": CONFIG, "linux/x.sh": FLAG})
    assert repo.check("--since", "HEAD", "mac").rules == []
    repo.write({"mac/new.sh": OTHER})
    assert repo.check("--since", "HEAD", "mac").rules == ["cold-prompt-cache"]
    assert repo.check("--since", "HEAD", cwd="mac").rules == ["cold-prompt-cache"]


def test_files_that_git_ignores_are_no_change(repo: Any) -> None:
    repo.commit({".gitignore": "chat.sh\n", "kvlint.toml": CONFIG})
    repo.write({"chat.sh": CHAT})
    assert repo.check().rules == ["cold-prompt-cache"]
    assert repo.check("--since", "HEAD").rules == []


def test_a_suppression_that_was_taken_away_shows(chat: Any) -> None:
    hidden = CHAT.replace("# kvlint", "# kvlint: ignore[cold-prompt-cache] known\n# kvlint")
    chat.commit({"chat.sh": hidden})
    assert chat.check().rules == []
    chat.write({"chat.sh": CHAT})
    assert chat.check("--since", "HEAD").rules == ["cold-prompt-cache"]


def test_a_revision_that_cannot_be_judged_hides_nothing(chat: Any) -> None:
    for revision in ("nowhere", "--since"):
        result = chat.check("--since", revision)
        assert (result.status, result.rules) == (1, ["cold-prompt-cache"])
        assert "showing everything" in result.err
    chat.commit({"kvlint.toml": "nonsense = 1\n"})
    chat.write({"kvlint.toml": CONFIG})
    result = chat.check("--since", "HEAD")
    assert result.rules == ["cold-prompt-cache"]
    assert "kvlint.toml:1:1" in result.err


def test_without_a_repository_everything_shows(tmp_path: Any, repo: Any) -> None:
    repo.write({"chat.sh": CHAT, "kvlint.toml": CONFIG})
    for path in sorted((repo.root / ".git").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (repo.root / ".git").rmdir()
    result = repo.check("--since", "HEAD")
    assert result.rules == ["cold-prompt-cache"]
    assert "not a git repository" in result.err


def test_focus_is_what_is_passed(chat: Any) -> None:
    chat.commit({"x.sh": FLAG})
    assert sorted(chat.check().rules) == ["cold-prompt-cache", "unknown-flag"]
    assert chat.check("--focus-only", "x.sh").rules == ["unknown-flag"]
    assert chat.check("--focus-only", str(chat.root / "x.sh")).rules == ["unknown-flag"]
    assert sorted(chat.check("--focus-only", ".").rules) == ["cold-prompt-cache", "unknown-flag"]


def test_an_input_in_focus_shows_the_finding_elsewhere(chat: Any) -> None:
    found = chat.check("--focus-only", "kvlint.toml").json["findings"]
    assert [finding["path"] for finding in found] == ["chat.sh"]


def test_an_empty_focus_reports_nothing(chat: Any) -> None:
    result = chat.check("--focus-only", "--fail-on", "note", "--strict-facts")
    assert (result.status, result.rules) == (0, [])
    assert result.json["summary"]["servers"] == 0
    assert result.json["unchecked"] == []


def test_names_that_are_no_text_or_not_there_are_no_trouble(chat: Any) -> None:
    chat.write({"logo.png": b"\x89PNG\x00"})
    result = chat.check("--focus-only", "logo.png", "gone.yaml", "../outside.yaml")
    assert (result.status, result.rules, result.json["not_understood"]) == (0, [], [])


def test_splitting_the_names_never_changes_what_is_found(repo: Any) -> None:
    """A nested configuration would be the nearest one for half of the names."""
    names = ["chat.sh", "mac/chat.sh", "mac/kvlint.toml", "x.sh", "kvlint.toml"]
    files = {"chat.sh": CHAT, "mac/chat.sh": OTHER, "x.sh": FLAG, "kvlint.toml": CONFIG}
    repo.commit({**files, "mac/kvlint.toml": 'ignore = ["all"]\n'})
    whole = repo.check("--focus-only", *names)
    for cut in range(1, len(names)):
        parts = [repo.check("--focus-only", *names[:cut]), repo.check("--focus-only", *names[cut:])]
        prints = {finding["fingerprint"] for part in parts for finding in part.json["findings"]}
        assert prints == {finding["fingerprint"] for finding in whole.json["findings"]}
        assert max(part.status for part in parts) == whole.status == 1


def test_a_file_deleted_in_the_index_is_answered_for(chat: Any) -> None:
    """kvlint.toml says a larger budget than pyproject.toml, which counts once kvlint.toml is gone."""
    table = "[tool.kvlint]\n" + CONFIG.replace("[[", "[[tool.kvlint.")
    chat.commit({"pyproject.toml": table, "kvlint.toml": CONFIG.replace("48GiB", "96GiB"), "x.sh": "#!/bin/sh\n"})
    assert chat.check("--focus-only").rules == []
    chat.git("rm", "-q", "kvlint.toml")
    assert chat.check("--focus-only").rules == ["cold-prompt-cache"]
    assert chat.check("--focus-only", "x.sh").rules == ["cold-prompt-cache"]


def test_a_deletion_does_not_answer_for_what_was_there(chat: Any) -> None:
    chat.commit({"x.sh": FLAG})
    chat.git("rm", "-q", "x.sh")
    assert chat.check("--focus-only").rules == []
