"""Git objects as files, and the lines that differ, from repositories made here."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from kvlint.changes import Change, Changes, parse
from kvlint.files import MAX_BYTES, Unreadable
from kvlint.git import GitError, Kept, Repository, UnknownRevision


def tree(repo: Any, revision: str = "HEAD", at: str = ".") -> Any:
    return Repository.around(repo.root / at).tree(revision)


def changes(repo: Any, revision: str = "HEAD") -> Changes:
    repository = Repository.around(repo.root)
    with repository.tree(revision) as found:
        return repository.changes(revision, found.entries)


def test_a_tree_has_the_names_and_bytes_of_its_revision(repo: Any) -> None:
    odd = 'a "b"\tü\\x.yaml'
    repo.commit({"a.yaml": "one\n", "d/b.yaml": b"\xff\x00\n", odd: "odd"})
    repo.write({"a.yaml": "two\n", "d/b.yaml": None, "new.yaml": ""})
    with tree(repo) as found:
        assert list(found.paths()) == sorted(["a.yaml", "d/b.yaml", odd])
        assert found.read("a.yaml") == b"one\n"
        assert found.read("d/b.yaml") == b"\xff\x00\n"
        assert found.read(odd) == b"odd"
        assert not found.exists("new.yaml")
        with pytest.raises(Unreadable):
            found.read("new.yaml")


def test_a_directory_of_the_repository_is_a_tree_of_its_own(repo: Any) -> None:
    repo.commit({"a.yaml": "", "d/b.yaml": "b", "d/e/c.yaml": "c"})
    with tree(repo, at="d") as found:
        assert list(found.paths()) == ["b.yaml", "e/c.yaml"]
        assert found.read("e/c.yaml") == b"c"


def test_directories_that_no_run_enters_are_left_out(repo: Any) -> None:
    repo.commit({"node_modules/a.yaml": "", "d/vendor/b.yaml": "", "vendor.yaml": ""})
    with tree(repo) as found:
        assert list(found.paths()) == ["vendor.yaml"]


def test_links_are_followed_inside_the_tree_only(repo: Any) -> None:
    repo.write({"d/real.yaml": "text"})
    for name, target in {
        "d/near.yaml": "real.yaml",
        "far.yaml": "d/near.yaml",
        "out.yaml": "../../etc/passwd",
        "absolute.yaml": "/etc/passwd",
        "circle.yaml": "circle.yaml",
        "directory": "d",
    }.items():
        (repo.root / name).symlink_to(target)
    repo.commit({})
    with tree(repo) as found:
        assert list(found.paths()) == ["d/near.yaml", "d/real.yaml", "far.yaml"]
        assert found.read("far.yaml") == b"text"
        assert not found.exists("out.yaml")


def test_what_is_too_large_is_passed_over(repo: Any) -> None:
    repo.commit({"a.yaml": "before", "large.yaml": b"x" * (MAX_BYTES + 1), "z.yaml": "after"})
    with tree(repo) as found:
        with pytest.raises(Unreadable, match="larger than"):
            found.read("large.yaml")
        assert found.read("z.yaml") == b"after"


@pytest.mark.parametrize("revision", ["nowhere", "", "--help", "HEAD~9", "HEAD..HEAD", "a\nb", "HEAD:a.yaml"])
def test_an_unknown_revision_is_said(repo: Any, revision: str) -> None:
    repo.commit({"a.yaml": ""})
    with pytest.raises(UnknownRevision):
        tree(repo, revision)


def test_a_shallow_clone_says_what_to_do(repo: Any, tmp_path: Any) -> None:
    repo.commit({"a.yaml": "1"})
    repo.commit({"a.yaml": "2"})
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", repo.root.as_uri(), tmp_path / "c"], check=True, capture_output=True
    )
    repository = Repository.around(tmp_path / "c")
    with repository.tree("HEAD") as found:
        assert found.read("a.yaml") == b"2"
    with pytest.raises(UnknownRevision, match="shallow"):
        repository.tree("HEAD~1")


def test_no_repository_and_no_git(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    with pytest.raises(GitError, match="not a git repository"):
        Repository.around(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="not installed"):
        Repository.around(tmp_path)


def test_a_missing_object_is_an_error_and_no_empty_file(repo: Any) -> None:
    repo.commit({"a.yaml": "text"})
    name = repo.git("rev-parse", "HEAD:a.yaml")
    (repo.root / ".git/objects" / name[:2] / name[2:]).unlink()
    with tree(repo) as found, pytest.raises(GitError):
        found.read("a.yaml")


def test_a_hook_of_another_repository_does_not_lead_astray(
    repo: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit({"a.yaml": "text"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
    with tree(repo) as found:
        assert list(found.paths()) == ["a.yaml"]


def test_nothing_of_the_repository_is_run(repo: Any, tmp_path: Any) -> None:
    ran = tmp_path / "ran"
    repo.commit({"a.yaml": "1\n", ".gitattributes": "*.yaml diff=evil\n"})
    for key in ("core.fsmonitor", "diff.external", "diff.evil.command", "diff.evil.textconv"):
        repo.git("config", key, f"touch {ran};")
    repo.write({"a.yaml": "2\n"})
    assert changes(repo).touch_new("a.yaml", 1, 1)
    assert not ran.exists()


def test_changed_lines(repo: Any) -> None:
    repo.commit({"a.yaml": "".join(f"{n}\n" for n in range(1, 11)), "same.yaml": "x\n", "gone.yaml": "x\ny\n"})
    text = "0\n1\n2\nthree\n4\n5\n8\n9\n10\n"  # 0 added, 3 replaced, 6 and 7 taken out
    repo.write({"a.yaml": text, "gone.yaml": None, "new.yaml": "n\n"})
    found = changes(repo)
    assert [line for line in range(1, 10) if found.touch_new("a.yaml", line, line)] == [1, 4]
    assert found.touch_new("a.yaml", 6, 7)  # 5 and 8, with the gap between them
    assert not found.touch_new("a.yaml", 7, 9)
    assert [line for line in range(1, 11) if found.touch_old("a.yaml", line, line)] == [3, 6, 7]
    assert found.touch_new("new.yaml", 1, 1)
    assert found.touch_old("gone.yaml", 1, 1)
    assert not found.touch_new("same.yaml", 1, 1)


def test_files_that_are_binary_to_git_are_changed_as_a_whole(repo: Any) -> None:
    repo.commit({"a and b.yaml": "x\n".encode("utf-16")})
    repo.write({"a and b.yaml": "x\ny\n".encode("utf-16")})
    assert changes(repo).files == {"a and b.yaml": Change(whole=True)}


def test_odd_names(repo: Any) -> None:
    names = ['q"uote.yaml', "tab\t.yaml", "ünïcode.yaml", "sp ace.yaml", "back\\slash.yaml", "new\nline.yaml"]
    repo.commit(dict.fromkeys(names, "1\n"))
    repo.write(dict.fromkeys(names, "2\n"))
    assert sorted(changes(repo).files) == sorted(names)


def test_content_is_never_read_as_a_header(repo: Any) -> None:
    trap = "-- a/x.yaml\n++ b/y.yaml\n@@ -1 +90 @@\ndiff --git a/z b/z\n"
    repo.commit({"a.yaml": trap + "end"})
    repo.write({"a.yaml": "++ b/other.yaml"})
    found = changes(repo)
    assert list(found.files) == ["a.yaml"]
    assert found.files["a.yaml"] == Change(added=((1, 1),), removed=((1, 5),))


def test_a_patch_without_anything() -> None:
    assert list(parse(b"")) == []


def test_names_deleted_in_the_index(repo: Any) -> None:
    assert Repository.around(repo.root).deleted() == ()
    repo.commit({"a.yaml": "", "d/b.yaml": "", "c.yaml": ""})
    repo.git("rm", "-q", "d/b.yaml")
    repo.git("mv", "c.yaml", "moved.yaml")
    repo.write({"a.yaml": None})
    assert sorted(Repository.around(repo.root).deleted()) == ["c.yaml", "d/b.yaml"]
    (repo.root / "d").mkdir(exist_ok=True)
    assert Repository.around(repo.root / "d").deleted() == ("b.yaml",)


def test_what_git_ignores_has_not_changed(repo: Any) -> None:
    from kvlint.files import Disk

    repo.commit({".gitignore": "*.env\nbuild/\n", "a.yaml": "old"})
    repo.write({"local.env": "X=1", "build/b.yaml": "b", "new.yaml": "n", "a.yaml": "new"})
    repository = Repository.around(repo.root)
    with repository.tree("HEAD") as found:
        kept = Kept.of(repository, found, Disk(repo.root))
        assert list(kept.paths()) == [".gitignore", "a.yaml", "build/b.yaml", "local.env"]
        assert kept.read("a.yaml") == b"old"
        assert kept.read("local.env") == b"X=1"
        assert not kept.exists("new.yaml")
