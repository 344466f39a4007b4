"""`--fix` and `--diff`: only safe fixes, only in files that are as they were read, byte for byte otherwise."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kvlint.diagnostics import Diagnostic, Edit, Fix, Report
from kvlint.files import Disk
from kvlint.fixes import Fixed, diff, fix, save
from kvlint.pipeline import Options, memory_project
from kvlint.project import Project
from kvlint.source import Source, Span

# 36 layers of 8 KV heads of 128: 36 × 2 × 8 × 128 × 2 bytes = 147,456 bytes for a token of Qwen3-8B.
DRIFTED = """\
#!/bin/sh
# kvlint: derived kv_bytes_per_token of chat
KV_BYTES=131072
exec uvx --from mlx-lm==0.32.2 mlx_lm.server --model Qwen/Qwen3-8B --port 8080
"""
CURRENT = DRIFTED.replace("131072", "147456")


def test_a_drifted_literal_is_fixed(repo: Any) -> None:
    repo.commit({"chat.sh": DRIFTED})
    assert repo.check().rules == ["derived-drift"]
    result = repo.check("--fix")
    assert (result.status, result.rules) == (0, [])
    assert "1 fixed" in result.err
    assert repo.read("chat.sh") == CURRENT
    assert repo.check("--fix").err == ""


def test_a_diff_changes_nothing_and_can_be_applied(repo: Any) -> None:
    repo.commit({"d/chat.sh": DRIFTED})
    result = repo.kvlint("check", "--diff")
    assert result.status == 1
    assert repo.read("d/chat.sh") == DRIFTED
    repo.write({"patch": result.out})
    repo.git("apply", "patch")
    assert repo.read("d/chat.sh") == CURRENT
    result = repo.kvlint("check", "--diff")
    assert (result.status, result.out) == (0, "")


def test_line_ends_and_byte_order_marks_stay(repo: Any) -> None:
    files = {
        "crlf/chat.sh": DRIFTED.replace("\n", "\r\n").encode(),
        "bom/chat.sh": b"\xef\xbb\xbf" + DRIFTED.replace("#!/bin/sh\n", "").encode(),
        "mode/chat.sh": DRIFTED.encode(),
    }
    repo.commit(files)
    (repo.root / "mode/chat.sh").chmod(0o751)
    assert repo.check("--fix").rules == []
    for name, before in files.items():
        assert (repo.root / name).read_bytes() == before.replace(b"131072", b"147456")
    assert (repo.root / "mode/chat.sh").stat().st_mode & 0o777 == 0o751
    assert list(repo.root.rglob("*.tmp")) == []


def test_only_what_is_shown_is_fixed(repo: Any) -> None:
    repo.commit({"a/chat.sh": DRIFTED, "b/chat.sh": DRIFTED})
    repo.check("--fix", "a")
    assert (repo.read("a/chat.sh"), repo.read("b/chat.sh")) == (CURRENT, DRIFTED)
    repo.check("--fix", "--ignore", "derived-drift")
    assert repo.read("b/chat.sh") == DRIFTED


def test_a_read_only_file_is_left_and_its_finding_stays(repo: Any) -> None:
    repo.commit({"chat.sh": DRIFTED})
    (repo.root / "chat.sh").chmod(0o444)
    result = repo.check("--fix")
    assert (result.status, result.rules) == (1, ["derived-drift"])
    assert "chat.sh: is read-only; left as it is" in result.err
    assert repo.read("chat.sh") == DRIFTED


def test_a_link_that_leads_out_of_the_project_is_not_written_through(repo: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside.sh"
    outside.write_text(DRIFTED)
    (repo.root / "chat.sh").symlink_to(outside)
    assert "outside the project" in repo.check("--fix").err
    assert outside.read_text() == DRIFTED


def test_standard_input_is_never_fixed(repo: Any) -> None:
    assert repo.check("--fix", "-", "--stdin-filename", "chat.sh").status == 2


def test_a_file_that_changed_meanwhile_is_left(tmp_path: Path) -> None:
    (tmp_path / "chat.sh").write_text(DRIFTED)
    fixed = fix(Project(Disk(tmp_path)), Options())
    (tmp_path / "chat.sh").write_text("somebody else\n")
    assert save(fixed, tmp_path) == ["chat.sh: changed while it was read; left as it is"]
    assert (tmp_path / "chat.sh").read_text() == "somebody else\n"


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Judge `kvlint.fixes` projects by a function of their one file's text instead of by the rules."""

    def install(judge: Any, text: str = "aaa bbb ccc\n") -> Fixed:
        def check(project: Project, _: Options) -> Report:
            source = Source("x.sh", project.files.read("x.sh").decode())
            return Report(findings=list(judge(source)))

        monkeypatch.setattr("kvlint.fixes.check", check)
        return fix(memory_project({"x.sh": text}), Options())

    return install


def finding(*edits: tuple[Span, str], safety: str = "safe", rule: str = "r", severity: str = "error") -> Diagnostic:
    made = Fix(safety, "replace it", tuple(Edit(span, text) for span, text in edits))
    return Diagnostic(rule, severity, "certain", "m", edits[0][0], fix=made, fingerprint=f"{rule} {edits[0][0].start}")


def at(source: Source, word: str) -> Span:
    start = source.text.find(word)
    return source.span(start, start + len(word))


def has(source: Source, word: str) -> bool:
    return word in source.text


def test_unsafe_fixes_and_unquoted_characters_are_not_applied(judged: Any) -> None:
    assert judged(lambda s: [finding((at(s, "aaa"), "x"), safety="unsafe")]).after == {}
    for text in ("a b", "$(rm)", "'", "x\ny", "ü", "#"):
        assert judged(lambda s, text=text: [finding((at(s, "aaa"), text))]).after == {}
    assert judged(lambda s: [finding((at(s, "aaa bbb"), "a b"))] if has(s, "aaa") else []).after == {
        "x.sh": b"a b ccc\n"
    }


def test_what_is_written_in_pieces_is_not_applied(judged: Any) -> None:
    assert judged(lambda s: [finding((Span(s, ((0, 1), (2, 3))), "x"))]).after == {}


def test_of_overlapping_fixes_the_later_one_waits_for_the_next_round(judged: Any) -> None:
    def judge(source: Source) -> Any:
        if has(source, "aaa"):
            yield finding((at(source, "aaa bbb"), "x"))
            yield finding((at(source, "bbb ccc"), "never"))
        elif has(source, "ccc"):
            yield finding((at(source, "ccc"), "y"), severity="warning")

    fixed = judged(judge)
    assert (fixed.after, fixed.applied) == ({"x.sh": b"x y\n"}, 2)


def test_a_fix_is_made_whole_or_not_at_all(judged: Any) -> None:
    def judge(source: Source) -> Any:
        if has(source, "aaa"):
            yield finding((at(source, "aaa"), "x"))
            yield finding((at(source, "ccc"), "y"), (at(source, "aaa"), "z"))

    assert judged(judge).after == {"x.sh": b"x bbb ccc\n"}


def test_the_same_edit_asked_for_twice_is_made_once(judged: Any) -> None:
    fixed = judged(lambda s: [finding((at(s, "aaa"), "x")) for _ in range(2)] if has(s, "aaa") else [])
    assert fixed.after == {"x.sh": b"x bbb ccc\n"}


def test_a_round_that_would_cause_an_error_is_dropped(judged: Any) -> None:
    def judge(source: Source) -> Any:
        yield finding((at(source, "aaa"), "x")) if has(source, "aaa") else finding((at(source, "bbb"), "y"), rule="new")

    fixed = judged(judge)
    assert fixed.after == {}
    assert "would cause new in x.sh" in fixed.skipped[0]


def test_fixes_that_undo_each_other_end(judged: Any) -> None:
    def judge(source: Source) -> Any:
        old, new = ("aaa", "xxx") if has(source, "aaa") else ("xxx", "aaa")
        yield finding((at(source, old), new), severity="warning")

    assert judged(judge).applied <= 8


def test_a_diff_says_nothing_to_terminals_and_runners() -> None:
    text = b"aaa\n::error::x\n \x1b[31m\nlast"
    fixed = Fixed(Report(), {"x.sh": text}, {"x.sh": text.replace(b"aaa", b"b")})
    shown = diff(fixed)
    assert "\x1b" not in shown
    assert not any(line[1:].lstrip().startswith("::") for line in shown.splitlines())
    assert shown.endswith(" last\n\\ No newline at end of file\n")


def test_files_of_another_owner_are_no_crash(tmp_path: Path) -> None:
    fixed = Fixed(Report(), {"gone.sh": b"a"}, {"gone.sh": b"b"})
    assert save(fixed, tmp_path) == [f"gone.sh: {os.strerror(2)}; left as it is"]


TYPO = "#!/bin/sh\nexec uvx --from vllm=={} vllm serve Qwen/Qwen3-8B {}\n"


@pytest.mark.parametrize(
    ("typed", "fixed"),
    [
        ("--max-modle-len 4096", "--max-model-len 4096"),
        ("--max-modle-len=4096", "--max-model-len=4096"),
        ("'--max-modle-len' 4096", "'--max-model-len' 4096"),
        ("--gpu-memory-utilisation 0.8 --enforce-eagre", "--gpu-memory-utilization 0.8 --enforce-eager"),
        ('"--max-modle-len"=4096', '"--max-modle-len"=4096'),  # flag and value cannot be told apart
        ("--max-num-sequences 4", "--max-num-seqs 4"),  # a word cut short
        ("--max-num-callers 4", "--max-num-callers 4"),  # nothing is near
        ("--max-kv-size 4", "--max-kv-size 4"),  # another engine's
    ],
)
def test_a_flag_that_only_one_other_is_near_to(repo: Any, typed: str, fixed: str) -> None:
    repo.commit({"serve.sh": TYPO.format("0.11.0", typed)})
    assert "unknown-flag" in repo.check("--fail-on", "never").rules
    repo.check("--fix")
    assert repo.read("serve.sh") == TYPO.format("0.11.0", fixed)


def test_a_flag_that_two_others_are_near_to_is_only_suggested(repo: Any) -> None:
    """`--max-loras` and `--max-lora-rank`."""
    repo.commit({"serve.sh": TYPO.format("0.11.0", "--max-lora 2")})
    repo.check("--fix")
    assert repo.read("serve.sh") == TYPO.format("0.11.0", "--max-lora 2")
