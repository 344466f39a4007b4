"""The GitHub Action's own steps, run in bash as the runner does, on a pull request that raises a window.

KVLINT_SNAPSHOTS=write takes what is printed as the new snapshots.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from action_runner import Result, Runner

from kvlint import __version__

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOTS = Path(__file__).parent / "snapshots"
CONFIG = """\
select = ["budget", "admission"]

[[hardware]]
match = "**"
available_kv = "3.81GiB"

[[floor]]
match = "**"
min_concurrency = 1
"""
NOTHING = {"findings": "0", "errors": "0", "warnings": "0", "notes": "0"}

pytestmark = pytest.mark.skipif(not shutil.which("bash") or not shutil.which("git"), reason="needs bash and git")


def git(directory: Path, *arguments: str) -> str:
    author = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
    committer = {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": os.devnull}
    environment = {**os.environ, **author, **committer}
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def pull_request(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose last commit raises the window of one server; its tag `base` is the commit before."""
    repository = tmp_path_factory.mktemp("pull") / "repository"
    shutil.copytree(ROOT / "examples/sound/k8s", repository / "k8s")
    (repository / "kvlint.toml").write_text(CONFIG)
    git(repository.parent, "init", "-q", "-b", "main", str(repository))
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "base")
    git(repository, "tag", "base")
    server = repository / "k8s/qwen.yaml"
    server.write_text(server.read_text().replace("--max-model-len=16384", "--max-model-len=32768"))
    git(repository, "commit", "-q", "-a", "-m", "Raise the window")
    return repository


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A kvlint to run where a test is not about installing it."""
    home = tmp_path_factory.mktemp("program")
    program = home / "kvlint"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m kvlint "$@"\n')
    program.chmod(0o755)
    (home / "python").symlink_to(sys.executable)
    return str(program)


def runner(repository: Path, home: Path, program: str | None, base: str | None = "base") -> Runner:
    event = {"pull_request": {"base": {"sha": git(repository, "rev-parse", base)}}} if base else {}
    return Runner(ROOT, repository, home, event, {"install": {"kvlint": program}} if program else {})


def annotations(result: Result) -> list[str]:
    return [line for line in result.log.splitlines() if line.startswith("::")]


def snapshot(name: str, text: str, repository: Path) -> None:
    base = git(repository, "rev-parse", "base")
    text = (
        text.replace(base, "BASE").replace(base[:12], "BASE").replace(base[:7], "BASE").replace(__version__, "VERSION")
    )
    file = SNAPSHOTS / name
    if os.environ.get("KVLINT_SNAPSHOTS") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_a_window_that_no_longer_fits(pull_request: Path, tmp_path: Path, program: str) -> None:
    result = runner(pull_request, tmp_path, program).run(
        sarif_file="out.sarif", formats="junit=out.xml\ngitlab=out.json"
    )
    assert result.status == 1
    outputs = "".join(f"{name}={value}\n" for name, value in result.outputs.items())
    snapshot("action-annotations.txt", "".join(f"{line}\n" for line in annotations(result)), pull_request)
    snapshot("action-summary.md", result.summary, pull_request)
    snapshot("action-outputs.txt", outputs, pull_request)
    assert {each.name for each in pull_request.glob("out.*")} == {"out.sarif", "out.xml", "out.json"}
    for written in pull_request.glob("out.*"):
        written.unlink()


def test_the_summary_compares_before_it_lists(pull_request: Path, tmp_path: Path, program: str) -> None:
    """16,384 and 32,768 tokens of 147,456 bytes are 2.25 and 4.5 GiB, of a pool of 3.81 GiB."""
    summary = runner(pull_request, tmp_path, program).run().summary
    assert "16,384" in summary
    assert "32,768" in summary
    assert re.search(r"2\.25.*4\.5|4\.5.*2\.25", summary)
    assert summary.index("16,384") < summary.index("window-exceeds-pool")


def test_no_base_is_said(pull_request: Path, tmp_path: Path, program: str) -> None:
    result = runner(pull_request, tmp_path, program, base=None).run()
    assert "Not compared: this event has no base revision." in result.summary
    assert "window-exceeds-pool" in result.summary
    assert result.status == 1


@pytest.mark.parametrize("base", ["0" * 40, "--upload-pack=touch x", "a b", "$(touch x)", "nowhere"])
def test_a_base_that_cannot_be_had(pull_request: Path, tmp_path: Path, program: str, base: str) -> None:
    result = runner(pull_request, tmp_path, program).run(base=base)
    assert "Not compared: " in result.summary
    assert result.outputs["errors"] == "1"
    assert not (pull_request / "x").exists()


def test_a_shallow_clone_fetches_its_base(pull_request: Path, tmp_path: Path, program: str) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", pull_request.as_uri(), "clone")
    event = {"pull_request": {"base": {"sha": git(pull_request, "rev-parse", "base")}}}
    result = Runner(ROOT, tmp_path / "clone", tmp_path / "home", event, {"install": {"kvlint": program}}).run()
    assert "16,384" in result.summary


def test_a_shallow_clone_without_its_origin_says_so(pull_request: Path, tmp_path: Path, program: str) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", pull_request.as_uri(), "clone")
    git(tmp_path / "clone", "remote", "remove", "origin")
    event = {"pull_request": {"base": {"sha": git(pull_request, "rev-parse", "base")}}}
    result = Runner(ROOT, tmp_path / "clone", tmp_path / "home", event, {"install": {"kvlint": program}}).run()
    assert "set fetch-depth: 0 at actions/checkout." in result.summary
    assert result.outputs["errors"] == "1"


def test_a_floor_fails_where_the_check_does_not(pull_request: Path, tmp_path: Path, program: str) -> None:
    """The pull request brings the concurrency below 1; with the paths elsewhere only the floor sees it."""
    (pull_request / "elsewhere").mkdir(exist_ok=True)
    result = runner(pull_request, tmp_path, program).run(paths="elsewhere")
    assert result.status == 1
    assert [line for line in annotations(result) if "title=kvlint floor" in line]
    assert runner(pull_request, tmp_path, program).run(paths="elsewhere", fail_on="never").status == 0


def test_nothing_new_since_the_head(pull_request: Path, tmp_path: Path, program: str) -> None:
    result = runner(pull_request, tmp_path, program, base="HEAD").run(new_only="true")
    assert {name: result.outputs[name] for name in NOTHING} == NOTHING


def test_everything_is_new_since_the_base(pull_request: Path, tmp_path: Path, program: str) -> None:
    assert runner(pull_request, tmp_path, program).run(new_only="true").outputs["errors"] == "1"


def test_a_level_that_lets_it_pass(pull_request: Path, tmp_path: Path, program: str) -> None:
    result = runner(pull_request, tmp_path, program).run(fail_on="never")
    assert (result.status, result.outputs["errors"], result.outputs["exit-code"]) == (0, "1", "0")


def test_a_path_that_does_not_exist(pull_request: Path, tmp_path: Path, program: str) -> None:
    result = runner(pull_request, tmp_path, program).run(paths="k8s\nno such")
    assert result.status == 2
    assert result.outputs["exit-code"] == "2"
    assert result.outputs["findings"] == ""


@pytest.mark.parametrize("version", ["0.1.0; touch x", "--help", "0.1.0\nx", "https://example.org/x"])
def test_a_version_that_is_none(pull_request: Path, tmp_path: Path, version: str) -> None:
    result = runner(pull_request, tmp_path, None).run(version=version)
    assert result.status == 2
    assert not (pull_request / "x").exists()


def test_it_installs_itself(pull_request: Path, tmp_path: Path) -> None:
    result = runner(pull_request, tmp_path, None).run()
    if re.search(r"No matching distribution|Could not find a version|NewConnectionError", result.log):
        pytest.skip("the build's requirements cannot be had here")
    assert f"kvlint {__version__}" in result.log
    assert result.outputs["errors"] == "1"


def test_every_action_is_pinned_by_commit() -> None:
    for file in (ROOT / "action.yml", *(ROOT / ".github/workflows").glob("*.yml")):
        for line in file.read_text().splitlines():
            used = re.search(r"uses:\s*(\S+)", line)
            if used and not used[1].startswith("./"):
                assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", used[1]), line


def test_permissions_are_read_only() -> None:
    for file in (ROOT / ".github/workflows").glob("*.yml"):
        workflow = yaml.safe_load(file.read_text())
        stated = [workflow["permissions"], *(job.get("permissions", {}) for job in workflow["jobs"].values())]
        assert all(value == "read" for each in stated for value in (each or {}).values()), file.name
