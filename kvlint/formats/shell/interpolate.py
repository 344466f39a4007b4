"""Variables in strings that are not shell: compose's `${VAR:-default}` and the kubelet's `$(VAR)`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kvlint.formats.shell.text import Slicer, joined, reached, unknown
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.source import Text

if TYPE_CHECKING:
    from kvlint.formats.shell.expand import Assumption

_COMPOSE = regex(r"\$(?:(?P<escaped>\$)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<brace>\{))")
_BRACED = regex(r"([A-Za-z_][A-Za-z0-9_]*)(:?[-+?]|\})")
_KUBELET = regex(r"\$(?:\$|\(([^)]{0,200})\))")
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class Interpolated:
    """`assumed`: the defaults that were taken because nothing in view sets their variables."""

    text: Text
    assumed: tuple[Assumption, ...] = ()


def compose_interpolate(text: Text, env: Mapping[str, Text]) -> Interpolated:
    """`$VAR`, `${VAR}`, `${VAR:-d}`, `${VAR-d}`, `${VAR:?e}`, `${VAR:+x}`, nested; `$$` is a dollar sign.

    A variable that is not in `env` is a hole, or its default, which is then among `assumed`.  An empty default says no more
    than none: both give nothing where the variable is not set.
    """
    if "$" not in text.value:
        return Interpolated(text)
    assumed: list[Assumption] = []
    interpolated = _Compose(text, env, assumed).all()
    return Interpolated(interpolated, tuple(assumed))


class _Compose:
    def __init__(self, text: Text, env: Mapping[str, Text], assumed: list[Assumption]) -> None:
        self.text = text
        self.cut = Slicer(text)
        self.env = env
        self.assumed = assumed

    def all(self) -> Text:
        text, _ = self.until(0, None, 0)
        return text

    def until(self, at: int, closer: str | None, depth: int) -> tuple[Text, int]:
        """The text from `at` up to `closer` at this level, and where that is."""
        value = self.text.value
        parts: list[Text] = []
        kept = at
        while at < len(value) and value[at] != closer:
            found = _COMPOSE.match(value, at) if value[at] == "$" else None
            if found is None:
                at += 1
                continue
            parts.append(self.cut(kept, at))
            text, kept = self.reference(found, depth)
            parts.append(text)
            at = kept
        parts.append(self.cut(kept, at))
        return joined([part for part in parts if part.value] or parts[-1:]), at

    def reference(self, found: re.Match[str], depth: int) -> tuple[Text, int]:
        start, end = found.span()
        if found.group("escaped"):
            return self.cut(start + 1, end), end
        if found.group("name"):
            return self.plain(found.group("name"), start, end), end
        braced = _BRACED.match(self.text.value, end)
        if braced is None or depth >= _DEEPEST:
            return self.cut(start, end), end
        name, operator = braced.groups()
        if operator == "}":
            return self.plain(name, start, braced.end()), braced.end()
        mark = len(self.assumed)
        operand, close = self.until(braced.end(), "}", depth + 1)
        if close >= len(self.text.value):
            del self.assumed[mark:]
            return self.cut(start, close), close
        text = self.conditional(name, operator, operand, (start, braced.end(), close), mark)
        return text, close + 1

    def plain(self, name: str, start: int, end: int) -> Text:
        span = self.cut.span(start, end)
        if name in self.env:
            return reached(self.env[name], span)
        return unknown(span, f"{name} is not set in view", f"the value of {name}")

    def conditional(self, name: str, operator: str, operand: Text, places: tuple[int, int, int], mark: int) -> Text:
        start, inner, close = places
        given = self.env.get(name)
        use = self.cut.span(start, close + 1)
        if given is not None:
            present = bool(given.value) or operator[0] != ":"
            if operator[-1] == "+":
                return operand if present else Text("", (), (), use)
            if present or operator[-1] == "?":
                del self.assumed[mark:]
                return reached(given, use)
            return operand
        if operator[-1] != "-" or not operand.value:
            del self.assumed[mark:]
            return unknown(use, f"{name} is not set in view", f"the value of {name}")
        default = self.cut.span(inner, close)
        if use is not None and default is not None:
            from kvlint.formats.shell.expand import Assumption

            self.assumed.append(Assumption(name, use, default))
        return operand


def kubelet_expand(text: Text, env: Mapping[str, Text]) -> Text:
    """`$(VAR)` by `env`; what is not there stays as it is written, and `$$` is a dollar sign."""
    if "$" not in text.value:
        return text
    cut = Slicer(text)
    parts = []
    at = 0
    for found in _KUBELET.finditer(text.value):
        name = found.group(1)
        if name is not None and name not in env:
            continue
        parts.append(cut(at, found.start()))
        if name is None:
            parts.append(cut(found.start() + 1, found.end()))
        else:
            parts.append(reached(env[name], cut.span(*found.span())))
        at = found.end()
    parts.append(cut(at, len(text.value)))
    return joined([part for part in parts if part.value] or parts[-1:])
