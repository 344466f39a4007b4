"""The hook of this checkout, installed and run by pre-commit itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pre_commit")

ROOT = Path(__file__).resolve().parents[2]
OFFLINE = re.compile(
    r"No matching distribution|Could not find a version|NewConnectionError|name resolution|Read timed out"
)
SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: qwen
spec:
  selector: {matchLabels: {app: qwen}}
  template:
    metadata:
      labels: {app: qwen}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
          args: [--model=Qwen/Qwen3-8B, --revision=b968826d9c46dd6066d109eabc6255188de91218, --max-model-len=16384]
"""
PROXY = """\
model_list:
  - model_name: qwen
    litellm_params:
      model: hosted_vllm/qwen
      api_base: http://qwen/v1
    model_info:
      max_input_tokens: 16384
"""
CONFIG = """\
[[hardware]]
match = "**"
available_kv = "3.81GiB"

[[parity]]
name = "window"
equal = ["server.yaml#qwen/vllm:window", "litellm.yaml#model_list[model_name=qwen].model_info.max_input_tokens"]
"""
# 36 layers x 8 heads x 128 x 2 x 2 bytes = 147,456 bytes a token: 16,384 tokens are 2.25 GiB, 32,768 are 4.5 GiB of 3.81 GiB.
LONGER = ("--max-model-len=16384", "--max-model-len=32768")


class Repository:
    def __init__(self, path: Path, home: Path) -> None:
        self.path = path
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "GITHUB_"))},
            "PRE_COMMIT_HOME": str(home),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@example.org",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def run(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            arguments, cwd=self.path, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return done.returncode, done.stdout

    def git(self, *arguments: str) -> str:
        status, text = self.run("git", *arguments)
        assert status == 0, text
        return text

    def precommit(self, *arguments: str) -> tuple[int, str]:
        status, text = self.run(sys.executable, "-m", "pre_commit", *arguments)
        if status and OFFLINE.search(text):
            pytest.skip("the hook's environment cannot be built here")
        return status, text

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.path / f"{name}.yaml").write_text(text)
            self.git("add", f"{name}.yaml")

    def commit(self) -> tuple[int, str]:
        return self.run("git", "commit", "-q", "-m", "change")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout's files as they are, as a repository that pre-commit can clone."""
    listed = subprocess.run(
        [
            "git",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
            "--",
            "kvlint",
            "*.toml",
            "*.md",
            ".pre-commit-hooks.yaml",
            "LICENSE",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    path = tmp_path_factory.mktemp("hook") / "checkout"
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, path / name)
    hook = Repository(path, tmp_path_factory.mktemp("unused"))
    hook.git("init", "-q", "-b", "main")
    hook.git("add", "-A", "-f")
    hook.git("commit", "-q", "-m", "hook")
    return path


@pytest.fixture(scope="module")
def home(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environment it builds, once for all tests."""
    return tmp_path_factory.mktemp("pre-commit-home")


@pytest.fixture
def repository(checkout: Path, home: Path, tmp_path: Path) -> Repository:
    """A repository with the hook in it, and a sound configuration committed."""
    path = tmp_path / "repository"
    path.mkdir()
    made = Repository(path, home)
    made.git("init", "-q", "-b", "main")
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True, check=True)
    (path / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {checkout.as_uri()}\n    rev: {revision.stdout.strip()}\n    hooks: [{{id: kvlint}}]\n"
    )
    (path / "kvlint.toml").write_text(CONFIG)
    (path / "server.yaml").write_text(SERVER)
    (path / "litellm.yaml").write_text(PROXY)
    made.git("add", ".")
    made.git("commit", "-q", "-m", "sound")
    status, text = made.precommit("install", "--install-hooks")
    assert status == 0, text
    return made


def test_a_bad_commit_is_stopped(repository: Repository) -> None:
    repository.write(server=SERVER.replace(*LONGER), litellm=PROXY.replace("16384", "32768"))
    status, text = repository.commit()
    assert status == 1
    assert "window-exceeds-pool" in text
    assert "values-disagree" not in text


def test_a_good_commit_passes(repository: Repository) -> None:
    shorter = "--max-model-len=8192"
    repository.write(server=SERVER.replace(LONGER[0], shorter), litellm=PROXY.replace("16384", "8192"))
    status, text = repository.commit()
    assert status == 0, text


def test_one_side_of_a_pair_is_enough(repository: Repository) -> None:
    """Only the proxy is staged, so the server's name is not among those that pre-commit passes."""
    repository.write(litellm=PROXY.replace("16384", "12288"))
    status, text = repository.commit()
    assert status == 1
    assert "values-disagree" in text
    assert "server.yaml" in text


def test_deleting_the_counterpart_is_caught(repository: Repository) -> None:
    """pre-commit passes no name at all."""
    repository.git("rm", "-q", "litellm.yaml")
    status, text = repository.commit()
    assert status == 1, text
    assert "litellm.yaml" in text


def test_a_deletion_that_uncovers_something_is_caught(repository: Repository) -> None:
    """pyproject.toml says less memory, and counts once kvlint.toml is gone; again no name is passed."""
    (repository.path / "pyproject.toml").write_text('[[tool.kvlint.hardware]]\nmatch = "**"\navailable_kv = "1GiB"\n')
    repository.git("add", ".")
    repository.git("commit", "-q", "--no-verify", "-m", "both")
    repository.git("rm", "-q", "kvlint.toml")
    status, text = repository.commit()
    assert status == 1, text
    assert "window-exceeds-pool" in text


def test_a_commit_that_touches_none_of_it_passes(repository: Repository) -> None:
    """What was wrong before is not this commit's business."""
    repository.write(server=SERVER.replace(*LONGER))
    repository.git("commit", "-q", "--no-verify", "-m", "wrong")
    repository.write(unrelated="a: 1\n")
    status, text = repository.commit()
    assert status == 0, text


def test_three_thousand_names_say_what_three_say(repository: Repository) -> None:
    """pre-commit splits a line of more than 128 KiB: 3,000 names of 60 characters are several runs."""
    folder = repository.path / ("context-" + "x" * 20)
    folder.mkdir()
    names = [f"{folder.name}/{number:05}-{'y' * 25}.yaml" for number in range(2999)]
    for name in names:
        (repository.path / name).write_text("a: 1\n")
    (repository.path / "server.yaml").write_text(SERVER.replace(*LONGER))
    repository.git("add", "-A")
    few = repository.precommit("run", "kvlint", "--files", "server.yaml", *names[:2])
    many = repository.precommit("run", "kvlint", "--files", "server.yaml", *names)
    assert few[0] == many[0] == 1
    assert rules(few[1]) == rules(many[1]) == {"window-exceeds-pool", "values-disagree"}
    assert many[1].count("files read") > 1, "the names were meant to be split"


def test_three_thousand_good_names(repository: Repository) -> None:
    names = [f"{number:05}-{'y' * 50}.yaml" for number in range(3000)]
    for name in names:
        (repository.path / name).write_text("a: 1\n")
    repository.git("add", "-A")
    assert repository.precommit("run", "kvlint", "--files", *names)[0] == 0


def test_try_repo(repository: Repository, checkout: Path) -> None:
    repository.write(server=SERVER.replace(*LONGER))
    status, text = repository.precommit("try-repo", str(checkout), "kvlint", "--all-files")
    assert status == 1
    assert rules(text) == {"window-exceeds-pool", "values-disagree"}


def rules(text: str) -> set[str]:
    return set(re.findall(r"^(?:error|warning|note)\[([a-z-]+)\]", text, re.MULTILINE))
