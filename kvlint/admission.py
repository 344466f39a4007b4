"""What is known of the systems in front of engines: keys they read, defaults, what unset means (data/admission.toml)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from kvlint.compiled import load


@cache
def _data() -> Mapping[str, Mapping[str, Any]]:
    data: Mapping[str, Mapping[str, Any]] = load("admission.json")
    return data


def system(name: str) -> Mapping[str, Any]:
    """One system's facts; KeyError for a name that is none."""
    return _data()[name]
