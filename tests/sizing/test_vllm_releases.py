from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kvlint.sizing.spans import parse
from kvlint.sizing.vllm.releases import known_releases, neighbours, rules, semantic_class

ROOT = Path(__file__).resolve().parents[2]


def test_the_compiled_data_is_current() -> None:
    script = [sys.executable, str(ROOT / "scripts/build_vllm_memory.py"), "--check"]
    assert subprocess.run(script, check=False).returncode == 0


def test_releases_are_ordered() -> None:
    written = ["0.9.2", "0.10.1.dev101", "0.10.1", "0.10.2rc1", "0.10.2", "v0.11.0", "0.11.1rc6.dev115", "0.33.0"]
    assert sorted(written, key=parse) == written
    assert parse("0.6.3") == parse("0.6.3.post1")
    with pytest.raises(ValueError, match="nightly"):
        parse("nightly")


def test_a_release_that_was_run_follows_one_set_of_rules() -> None:
    executed = [
        "0.9.2",
        "0.10.2",
        "0.11.2",
        "0.13.0",
        "0.16.0",
        "0.17.1",
        "0.19.1",
        "0.20.2",
        "0.24.0",
        "0.27.1",
        "0.30.0",
    ]
    executed += ["0.33.0"]
    assert all(len(rules(release)) == 1 for release in executed)
    assert len({semantic_class(release) for release in executed}) == len(executed)


def test_between_two_that_differ_both_hold() -> None:
    older, newer = rules("0.14.0rc1")
    assert (older.request_count, newer.request_count) == ("layers", "first-group")
    assert neighbours("0.14.0rc1") == ("0.13.0", "0.16.0")
    assert neighbours("0.19.1") == ("0.19.1",)


@pytest.mark.parametrize(
    "release",
    [
        *(
            "0.6.1",
            "0.6.4",
            "0.6.5",
            "0.7.0",
            "0.9.0",
            "0.11.1",
            "0.14.0",
            "0.14.1",
            "0.15.0",
            "0.17.0",
            "0.18.0",
            "0.19.0",
        ),
        *("0.20.0", "0.20.1", "0.21.0", "0.22.0", "0.23.0", "0.25.0", "0.26.0", "0.27.0", "0.28.0", "0.31.0"),
    ],
)
def test_releases_whose_files_were_compared_follow_one_set_of_rules(release: str) -> None:
    assert len(rules(release)) == 1


@pytest.mark.parametrize("release", ["0.8.0", "0.9.1", "0.10.1", "0.32.0"])
def test_what_was_not_worked_out_stays_uncertain(release: str) -> None:
    assert len(rules(release)) == 2


def test_releases_that_mean_the_same_are_one_class() -> None:
    assert semantic_class("0.19.1") == semantic_class("0.19.1.post1") != semantic_class("0.20.2")
    assert semantic_class("0.24.0") == semantic_class("0.25.1")


def test_past_the_ends_the_nearest_is_taken() -> None:
    assert semantic_class("0.5.4") == semantic_class(known_releases()[0])
    assert semantic_class("0.40.0") == semantic_class(known_releases()[-1])
    assert neighbours("0.40.0") == (known_releases()[-1],)
