"""Engines, releases and their bounds."""

from __future__ import annotations

import pytest

from kvlint.ruleset.scopes import Scope, speaks_to


@pytest.mark.parametrize(
    ("scope", "release", "covered"),
    [
        ("mlx-lm", "0.1", True),
        ("mlx-lm>=0.32.0", "0.32.0", True),
        ("mlx-lm >=0.32.0 <=0.32.2", "0.32.3", False),
        ("mlx-lm>=0.32.0,<=0.32.2", "0.32.1", True),
        ("vllm <0.20.2", "0.20.2", False),
        ("vllm <0.20.2", "0.9.2", True),
        ("llama-server >=b6000", "b11434", True),
        ("vllm <0.9.1", "0.9.1rc1", True),
        ("vllm >=0.10", "0.10.0", True),
        ("vllm >=0.10", "nightly", False),
        ("vllm", "nightly", True),
    ],
)
def test_scopes(scope: str, release: str, covered: bool) -> None:
    assert Scope.parse(scope).covers(release) is covered


@pytest.mark.parametrize("text", ["", "Vllm", "vllm 0.9", "vllm >= ", "vllm ~=0.9", "vllm>=0.9 extra", "vllm >=x.y"])
def test_what_is_no_scope_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="`"):
        Scope.parse(text)


def test_a_rule_that_holds_for_some_releases_only_asks_for_the_version() -> None:
    scopes = (Scope.parse("vllm"), Scope.parse("mlx-lm >=0.32.0"))
    assert speaks_to((), None, ()) is True
    assert speaks_to(scopes, "vllm", ()) is True
    assert speaks_to(scopes, "sglang", ("0.5.0",)) is False
    assert speaks_to(scopes, None, ()) is False
    assert speaks_to(scopes, "mlx-lm", ("0.32.0", "0.32.2")) is True
    assert speaks_to(scopes, "mlx-lm", ("0.31.3",)) is False
    assert speaks_to(scopes, "mlx-lm", ("0.31.3", "0.32.0")) is None
    assert speaks_to(scopes, "mlx-lm", ()) is None


def test_a_scope_prints_as_it_is_read() -> None:
    assert str(Scope.parse("mlx-lm>=0.32.0,<=0.32.2")) == "mlx-lm >=0.32.0 <=0.32.2"
