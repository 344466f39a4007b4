"""Several outputs at once: what is refused before anything is read, and how files are written."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from kvlint.config import ConfigError
from kvlint.diagnostics import Report
from kvlint.reports.write import FORMATS, Output, outputs, write

sys.path.insert(0, str(Path(__file__).parent))
from samples import report


@pytest.fixture(autouse=True)
def _outside_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


def save(output: Output, made: Report | None = None) -> None:
    write(output, made or report(), lambda text, role: f"<{text}>", quiet=False, verbose=False, echo=lambda text: None)


def test_default() -> None:
    assert outputs(()) == [Output("full", None)]


def test_default_in_actions_adds_annotations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert outputs(()) == [Output("full", None), Output("github", None)]
    assert outputs(("json",)) == [Output("json", None)]
    monkeypatch.setenv("GITHUB_ACTIONS", "false")
    assert outputs(()) == [Output("full", None)]


def test_several(tmp_path: Path) -> None:
    file = str(tmp_path / "out=1.sarif")
    assert outputs((f"sarif={file}", "full")) == [Output("sarif", file), Output("full", None)]
    assert outputs(("concise", "github")) == [Output("concise", None), Output("github", None)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("yaml",), "unknown format 'yaml'"),
        (("full", "json"), "only one format can go to standard output"),
        (("full", "full"), "only one format can go to standard output"),
        (("json", "github"), "only one format can go to standard output"),
        (("sarif=",), "needs the name of a file"),
        (("sarif={tmp}/none/out.sarif",), "there is no directory"),
        (("sarif={tmp}",), "is a directory"),
        (("sarif={tmp}/a", "json={tmp}/./a"), "two formats are to be written to"),
    ],
)
def test_refused(given: tuple[str, ...], words: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        outputs(tuple(each.replace("{tmp}", str(tmp_path)) for each in given))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="may write everywhere")
def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(ConfigError, match="cannot be written"):
        outputs((f"sarif={tmp_path}/a",))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_can_be_written(name: str, tmp_path: Path) -> None:
    save(Output(name, str(tmp_path / "out")))
    text = (tmp_path / "out").read_text(encoding="utf-8")
    assert text.endswith("\n")
    assert "<error" not in text
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_file_is_replaced_whole_with_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text("x" * 100_000)
    file.chmod(0o640)
    save(Output("json", str(file)), Report())
    assert json.loads(file.read_text())["findings"] == []
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save(Output("json", str(tmp_path / "link")))
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "real").read_text())


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out.json"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ConfigError, match="No space left on device"):
        save(Output("json", str(file)))
    assert file.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.json"]


def test_a_device_is_written_as_it_is() -> None:
    save(Output("json", os.devnull))
    assert not Path(os.devnull).is_file()


def test_a_job_summary_is_added_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "summary"
    file.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    save(Output("markdown", str(file)))
    assert file.read_text(encoding="utf-8").startswith("before\n## kvlint: 2 errors")


def test_quiet_prints_findings_only_where_there_are_any() -> None:
    printed: list[str] = []
    for made in (Report(), report()):
        write(Output("full", None), made, lambda text, role: text, quiet=True, verbose=False, echo=printed.append)
    assert len(printed) == 1
    write(Output("json", None), Report(), lambda text, role: text, quiet=True, verbose=False, echo=printed.append)
    assert len(printed) == 2
