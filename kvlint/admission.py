"""What is known of the systems in front of engines: keys they read, defaults, what unset means (data/admission.toml)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _data() -> Mapping[str, Mapping[str, Any]]:
    path = Path(__file__).parent / "_data" / "admission.json"
    data: Mapping[str, Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return data


def system(name: str) -> Mapping[str, Any]:
    """One system's facts; KeyError for a name that is none."""
    return _data()[name]
