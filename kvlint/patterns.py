"""Regular expressions that are compiled when they are first used: most runs use few of those that they import."""

from __future__ import annotations

import re
from typing import Any, AnyStr, Generic, cast


class _Pattern(Generic[AnyStr]):
    """Stands for a compiled pattern; each of its attributes is kept once it was asked for."""

    def __init__(self, text: AnyStr, flags: int) -> None:
        self._text: AnyStr = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, put off."""
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))
