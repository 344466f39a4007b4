"""The data that scripts compile from `data/` into the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).parent / "_data"


def load(name: str) -> Any:
    """One compiled JSON file, read anew: whoever asks keeps it."""
    return json.loads((DIRECTORY / name).read_bytes())
