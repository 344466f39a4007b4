"""What the documents show is what the program prints, and what they point to exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kvlint.config import Config, load
from kvlint.source import Source

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs/README.md",
    *sorted((ROOT / "docs/guides").glob("*.md")),
]
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
VENV = "python3 -m venv .venv && .venv/bin/python -m pip install -q"


def test_outputs_and_tables_are_current() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/build_readme.py", "--check"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_two_lines_are_complete_commands() -> None:
    language, text = FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8"))[0]
    assert language == "sh"
    assert text.splitlines() == [
        f"{VENV} . && .venv/bin/kvlint check examples --fail-on never",
        f"{VENV} -e '.[dev]' && .venv/bin/python -m pytest -n auto",
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document: Path) -> None:
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", text):
        if "://" not in target:
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_snippets_of_configuration_are_valid(document: Path) -> None:
    for language, text in FENCE.findall(document.read_text(encoding="utf-8")):
        if language == "toml":
            assert isinstance(load(Source("kvlint.toml", text)), Config)
        if language == "yaml":
            assert yaml.safe_load(text) is not None


def test_options_in_the_documents_exist() -> None:
    known = set(
        re.findall(
            r"--[a-z][a-z-]+",
            subprocess.run(
                [sys.executable, "-m", "kvlint", "check", "--help"], cwd=ROOT, capture_output=True, text=True
            ).stdout,
        )
    )
    for document in DOCUMENTS:
        for call in re.findall(r"kvlint check((?: [^\n|`&;<>]*)?)", document.read_text(encoding="utf-8")):
            for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", call):
                assert option in known, f"{document.name}: {option}"


def test_every_guide_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    for guide in (ROOT / "docs/guides").glob("*.md"):
        assert f"(guides/{guide.name})" in index


def test_the_hook_and_the_action_are_documented() -> None:
    guide = (ROOT / "docs/guides/github-action.md").read_text(encoding="utf-8")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    for name in (*action["inputs"], *action["outputs"]):
        assert f"`{name}`" in guide, name
