"""A Nix file that Nix refuses: said where it starts something, listed where it does not, and no other file is hidden by it."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

SOUND = """\
{ pkgs, ... }: {
  systemd.services.chat.serviceConfig.ExecStart =
    "${pkgs.uv}/bin/uvx --from vllm==0.11.0 vllm serve Qwen/Qwen3-8B --max-model-len 65536";
}
"""


@pytest.mark.parametrize(
    ("broken", "severity"),
    [
        (SOUND.replace('65536";', '65536"'), "error"),  # no semicolon
        (SOUND.replace("pkgs, ", ""), "error"),  # an undefined variable
        (SOUND.replace("; \n}", ""), None),
        (SOUND.replace("{ pkgs", "# @host@\n{ pkgs").replace('65536";', '65536"'), "warning"),  # filled in first
        (SOUND.replace("{ pkgs, ... }:", "{ pkgs, x, ... }: x |>"), "warning"),  # a feature of newer releases
    ],
)
def test_it_is_said(broken: str, severity: str | None) -> None:
    report = check_files({"broken.nix": broken, "sound.nix": SOUND})
    found = [(each.severity, each.span.path) for each in report.findings if each.rule == "unreadable-config"]
    assert found == ([] if severity is None else [(severity, "broken.nix")])
    assert [each.span.path for each in report.findings if each.rule == "window-beyond-model"][-1] == "sound.nix"
    assert len(report.not_understood) == len(found)


def test_a_file_that_starts_nothing_is_only_listed() -> None:
    report = check_files({"a.nix": "{ services.x.path = /models/a.gguf }\n"})
    assert report.findings == []
    assert [each.path for each in report.not_understood] == ["a.nix"]
