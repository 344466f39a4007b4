"""The rule files, and what is compiled from them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import build_data  # noqa: E402
import build_docs  # noqa: E402

from kvlint.ruleset import load  # noqa: E402
from kvlint.sizing.server import DERIVED  # noqa: E402

CONTRACT = ROOT / "../shared/design/contract.md"
VOCABULARY = build_data.read_vocabulary()
FILES = sorted((ROOT / "rules").glob("*/*.yaml"))
MODEL = (ROOT / "rules/window/window-beyond-model.yaml").read_text(encoding="utf-8")


def test_compiled_data_is_current() -> None:
    assert build_data.stale(build_data.build()) == []


def test_documentation_is_current() -> None:
    assert build_docs.stale(build_docs.build()) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_rule_file_is_short(path: Path) -> None:
    rule, _, examples = path.read_text(encoding="utf-8").partition("\nexamples:\n")
    assert examples
    assert len(rule.splitlines()) < 60


def test_loaded_rules_are_the_files() -> None:
    assert sorted(load.rules()) == sorted(path.stem for path in FILES) == sorted(load.pages())


def complaints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> list[str]:
    path = tmp_path / "rules/window/window-beyond-model.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(build_data, "ROOT", tmp_path)
    return list(build_data.mistakes(build_data.read_rule_file(path), VOCABULARY))


def test_the_model_rule_is_without_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complaints(tmp_path, monkeypatch, MODEL) == []


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("holds: window <=", "holds: windw <=", "8:8", "unknown name `windw`; did you mean `window`?"),
        ("<= model_window", "<= modelwindow", "8:18", "did you mean `model_window`?"),
        ("{model_window} pos", "{mdl_window} pos", "12:10", "did you mean `model_window`?"),
        ("mark: window", "mark: windows", "9:7", "unknown name `windows`"),
        ("largest: window", "largest: windows", "15:12", "unknown name `windows`"),
        ("engines: [vllm, ", "engines: [vllmm, ", "7:11", "unknown engine `vllmm`"),
        ("engines: [vllm, ", "engines: [vllm ~=0.9, ", "7:11", "not an engine with version bounds"),
        ("  - error for vllm", "  - fatal for vllm", "4:5", "does not match"),
        ("  - warning\n", "  - note if windw > 1\n  - warning\n", "5:13", "unknown name `windw`"),
        ("  - warning\n", "  - warning for sglang\n", "4:3", "the last case must hold for all"),
        ("subject: server", "subject: sever", "6:10", "'sever' is not one of"),
        ("subject: server", "kind: x\nsubject: server", "6:7", "only problems are of a kind"),
        ("  good:\n", "  good:\n    finds: [{text: a}]\n", "54:12", "nothing is found here"),
        ("since: 0.1.0\n", "since: 0.1.0\nextra: 1\n", "1:1", "'extra' was unexpected"),
        ("holds: window <= model_window\n", "", "1:1", "'holds' is a required property"),
        ("name: window-beyond-model\n", "name: window-beyond\n", "1:7", "the file is called window-beyond-model.yaml"),
    ],
)
def test_a_mistake_is_found_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, place: str, message: str
) -> None:
    assert old in MODEL
    found = complaints(tmp_path, monkeypatch, MODEL.replace(old, new, 1))
    assert any(message in complaint for complaint in found), found
    pattern = re.compile(r"rules/window/window-beyond-model\.yaml:(\d+):\d+: ")
    assert all(pattern.match(complaint) for complaint in found)
    assert any(f":{place}: " in complaint for complaint in found), found


def test_every_scalar_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = MODEL.replace("since: 0.1.0", "since: 0.30").replace("severity: error\n", "severity: on\n")
    found = complaints(tmp_path, monkeypatch, text)
    assert any("'0.30' does not match" in complaint for complaint in found)


def test_a_file_that_is_no_yaml_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, text in enumerate(("a: [", "", "a: {b: 1}}", "a: 1\na: 2")):
        with pytest.raises(build_data.Invalid):
            complaints(tmp_path / str(number), monkeypatch, text)


def test_every_derived_value_can_be_named() -> None:
    assert set(DERIVED) <= set(load.units("server"))


@pytest.mark.skipif(not CONTRACT.exists(), reason="the contract is not beside the repository")
def test_every_setting_of_the_contract_can_be_named() -> None:
    section = CONTRACT.read_text(encoding="utf-8").partition("## Settings")[2].partition("- **`window`**")[0]
    settings = set(re.findall(r"`([a-z_]+)`", section)) - {"both", "prefill", "decode"}
    assert len(settings) > 40
    assert settings <= set(load.units("server"))


def test_rules_read_the_coefficients() -> None:
    assert load.units("link")["coefficient.admission_slack"] == "ratio"
    assert load.units("link")["link.server.window"] == "tokens"
    assert load.units("problem")["problem.data.flag"] == "text"
