"""The first pass: which files are seeds, and what a file's bytes are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kvlint.config import Config
from kvlint.contents import Contents
from kvlint.files import MAX_BYTES, Disk, Memory, Unreadable
from kvlint.project import SEEDS, Project, names_serving


@pytest.mark.parametrize("word", SEEDS)
def test_every_word_makes_a_seed_in_either_case(word: bytes) -> None:
    assert names_serving(b"a: " + word)
    assert names_serving(b"a: " + word.upper() + b"\n")


@pytest.mark.parametrize("text", [b"", b"helm: 1", b"kind: Model", b"maxConcurrency: 3", b"v l l m"])
def test_near_words_make_none(text: bytes) -> None:
    assert not names_serving(text)


def test_a_search_among_files_of_a_kind() -> None:
    files = {
        "a.yaml": b"kind: Service\nname: x",
        "b.yaml": b"kind: Secret\nname: x",
        "c.yaml": b"kind: Service\nname: y",
        "d.json": b'{"kind": "Service", "name": "z"}',
    }
    project = Project(Memory(files), Config())
    project.scan()
    assert list(project.search("name: x")) == ["a.yaml", "b.yaml"]
    assert list(project.search("name: x", "Service")) == ["a.yaml"]
    assert list(project.search("y", "Service")) == ["c.yaml"]
    assert list(project.search("z", "Service")) == ["d.json"]
    assert list(project.search("serv", "Service")) == []
    assert list(project.search("")) == []
    assert project.all_paths == set(files)


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    for size in (0, 1, 70_000):
        (tmp_path / "f").write_bytes(b"x" * size)
        assert Disk(tmp_path).read("f") == b"x" * size


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(Unreadable, match="regular"):
        Disk(tmp_path).read("d")
    with pytest.raises(Unreadable, match="No such file"):
        Disk(tmp_path).read("none")


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with open(tmp_path / "f", "wb") as file:
        os.truncate(file.fileno(), MAX_BYTES + 1)
    with pytest.raises(Unreadable, match="larger than 8 MiB"):
        Disk(tmp_path).read("f")


@pytest.mark.parametrize("odd", [b"\xff", "\ufeffvllm serve x".encode("utf-16"), b"\xff" * 3 + b"vllm"])
def test_bytes_that_stand_between_files_may_stand_in_one(odd: bytes) -> None:
    contents = Contents()
    texts = [b"kind: A", odd, b"VLLM serve", b"kind: B"]
    for number, text in enumerate(texts):
        contents.add(f"{number}.sh", text)
    assert [contents.get(f"{number}.sh") for number in range(4)] == texts
    assert {path for _, path in contents.hinted([b"vllm"])} >= {"2.sh"}
    assert {path for _, path in contents.hinted([b"vllm"])} <= {"1.sh", "2.sh"}
    assert contents.holding(b"kind") == ["0.sh", "3.sh"]


def test_nothing_outside_the_root_is_read_by_a_path_from_its_top(tmp_path: Path) -> None:
    outside = tmp_path / "outside.env"
    outside.write_bytes(b"A=1\n")
    root = tmp_path / "root"
    root.mkdir()
    assert not Disk(root).exists(str(outside))
    with pytest.raises(Unreadable):
        Disk(root).read(str(outside))
