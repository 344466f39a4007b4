"""Makefiles, justfiles and Procfiles: named lines that are given to a shell, after the tool's own variables are put in.

A variable is known where it is set once, without condition, to plain text; anything else is a hole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kvlint.formats.shell.text import Slicer, reached, unknown
from kvlint.patterns import regex
from kvlint.records import dataclass, field
from kvlint.source import Source, Span, Text

_LINE = regex(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_PROCESS = regex(r"(?P<name>[A-Za-z0-9_-]+):[ \t]*(?P<command>\S.*)")
_MAKE_SET = regex(
    r"(?P<export>export[ \t]+)?(?:override[ \t]+)?(?P<name>[A-Za-z_][\w.-]*)[ \t]*(?P<how>[:?+!]?:?:?=)[ \t]*(?P<value>.*)"
)
_MAKE_RULE = regex(r"(?P<name>[^\s:#=][^\s:#=]*)[^:=#]*::?(?!=)")
_MAKE_SPECIFIC = regex(r"[^\s:#][^:#=]*:[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_]\w*)[ \t]*[:?+]?=")
_MAKE_BRANCH = regex(r"(?P<open>ifn?(?:eq|def)\b|define\b)|(?P<close>endif\b|endef\b)")
_MAKE_USE = regex(r"\$(?:\$|\((?P<round>[^()]*(?:\([^()]*\)[^()]*)*)\)|\{(?P<curly>[^{}]*)\}|(?P<single>[^\s$]))")
_JUST_SET = regex(r"(?P<export>export[ \t]+)?(?P<name>[A-Za-z_][\w-]*)[ \t]*:=[ \t]*(?P<value>\S.*)")
_JUST_RULE = regex(r"@?(?P<name>[A-Za-z_][\w-]*)(?P<parameters>(?:[ \t]+[^:\n]*)?):(?!=)")
_JUST_PARAMETER = regex(r"[*+]?\$?(?P<name>[A-Za-z_][\w-]*)(?:=(?P<value>'[^']*'|\"[^\"\\]*\"))?")
_JUST_USE = regex(r"\{\{(?P<inner>(?!\{).*?)\}\}")
_JUST_TEXT = regex(
    r"(?:env(?:_var_or_default)?\(\s*(?:'[^']*'|\"[^\"]*\")\s*,\s*)?(?P<quoted>'[^']*'|\"[^\"\\]*\")\s*\)?\s*(?:#.*)?"
)
_PREFIX = regex(r"[ \t]*[@+-]*[ \t]*")

MOST_EXPANDED = 1 << 15  # characters that the variables of one Makefile may put in; what would be more stays unknown


@dataclass(frozen=True, slots=True)
class Recipe:
    """One script of a target: `variables` are those that its shell is given."""

    name: str
    text: Text
    variables: Mapping[str, Text] = field(default_factory=dict)


def procfile(source: Source) -> Iterator[Recipe]:
    """`web: command` lines."""
    for start, end in _lines(source):
        match = _PROCESS.fullmatch(source.text, start, end)
        if match:
            yield Recipe(match["name"], Text.of(source, *match.span("command")))


def makefile(source: Source) -> Iterator[Recipe]:
    """Each recipe line on its own, as make starts a shell for each."""
    variables = _MakeVariables()
    lines: list[tuple[str, Text]] = []
    target = ""
    for start, end in _lines(source):
        line = source.text[start:end]
        if line.startswith("\t"):
            if target:
                # Make ends the last line where the file does not: a backslash there joins nothing.
                last = end == len(source.text) and line.endswith("\\")
                lines.append((target, _recipe_line(source, start, end - last)))
            continue
        target = variables.line(source, start, end, line) or (
            target if not line.strip() or line.lstrip()[0] == "#" else ""
        )
    for name, text in lines:
        yield Recipe(name, variables.expand(text, 0), variables.exported)


def justfile(source: Source) -> Iterator[Recipe]:
    """Each line of a recipe, or its whole body where it starts with `#!`."""
    variables: dict[str, Text | None] = {}
    exported: set[str] = set()
    found: list[tuple[str, dict[str, Text | None], list[tuple[int, int]]]] = []
    for start, end in _lines(source):
        line = source.text[start:end]
        if line[:1] in (" ", "\t") or not line.strip():
            if found and line.strip():
                found[-1][2].append((start, end))
            continue
        if assignment := _JUST_SET.fullmatch(source.text, start, end):
            name = assignment["name"]
            known = _just_text(source, *assignment.span("value"))
            variables[name] = known if name not in variables else None
            exported |= {name} if assignment["export"] else set()
        elif rule := _JUST_RULE.match(source.text, start, end):
            found.append((rule["name"], _parameters(source, *rule.span("parameters")), []))
        elif line[0] != "#":
            found.append(("", {}, []))
    env = {name: text for name, text in variables.items() if name in exported and text is not None}
    for name, parameters, body in found:
        for text in _bodies(source, body) if name else ():
            yield Recipe(name, _interpolated(text, {**variables, **parameters}), env)


def _lines(source: Source) -> Iterator[tuple[int, int]]:
    """Lines with those that a backslash joins to them, line ends between left in."""
    start = -1
    for match in _LINE.finditer(source.text):
        start = match.start() if start < 0 else start
        if match[1].endswith("\\") and match[2]:
            continue
        if match.end(1) > start or match[2]:
            yield start, match.end(1)
        start = -1


def _recipe_line(source: Source, start: int, end: int) -> Text:
    """Without make's prefix characters, and without the tab that begins each further line."""
    match = _PREFIX.match(source.text, start, end)
    at = match.end() if match else start
    parts: list[Text] = []
    while (cut := source.text.find("\n\t", at, end)) >= 0:
        parts.append(Text.of(source, at, cut + 1))
        at = cut + 2
    return Text.join([*parts, Text.of(source, at, end)])


class _MakeVariables:
    """Make's variables by name; None for one that is set several times, or under a condition."""

    def __init__(self) -> None:
        self.values: dict[str, Text | None] = {}
        self.shared: set[str] = set()
        self.depth = 0
        self.left = MOST_EXPANDED

    @property
    def exported(self) -> dict[str, Text]:
        return {name: self.expand(text, 0) for name in self.shared if (text := self.values.get(name)) is not None}

    def line(self, source: Source, start: int, end: int, line: str) -> str | None:
        """Read a line that is no recipe; the target where it begins a rule."""
        branch = _MAKE_BRANCH.match(line.lstrip())
        if branch:
            self.depth += 1 if branch["open"] else -1
            return None
        if specific := _MAKE_SPECIFIC.match(line):
            self.values[specific["name"]] = None
            return None
        if assignment := _MAKE_SET.fullmatch(source.text, start, end):
            name, (a, b) = assignment["name"], assignment.span("value")
            plain = assignment["how"] in ("=", ":=", "::=", "?=") and not self.depth and name not in self.values
            bare = source.text[a:b].partition(" #")[0].rstrip()
            self.values[name] = Text.of(source, a, a + len(bare)) if plain else None
            self.shared |= {name} if assignment["export"] else set()
            return None
        rule = _MAKE_RULE.match(line)
        return rule["name"] if rule else None

    def expand(self, text: Text, depth: int) -> Text:
        if "$" not in text.value:
            return text
        cut = Slicer(text)
        parts, at = [], 0
        for match in _MAKE_USE.finditer(text.value):
            parts.append(cut(at, match.start()))
            parts.append(self.use(match, cut, depth))
            at = match.end()
        return Text.join([*parts, cut(at, len(text.value))])

    def use(self, match: re.Match[str], cut: Slicer, depth: int) -> Text:
        name = match["round"] or match["curly"] or match["single"]
        if name is None:
            return cut(match.start(), match.start() + 1)
        place = cut.span(*match.span())
        value = self.values.get(name)
        if value is None or depth > 8 or self.left < 0:
            return unknown(place, f"make's {match[0]} is not known", f"the value of {name}", splice=True)
        expanded = self.expand(value, depth + 1)
        self.left -= len(expanded.value)
        return reached(expanded, place)


def _just_text(source: Source, start: int, end: int) -> Text | None:
    match = _JUST_TEXT.fullmatch(source.text, start, end)
    if match is None:
        return None
    a, b = match.span("quoted")
    return Text.of(source, a + 1, b - 1)


def _parameters(source: Source, start: int, end: int) -> dict[str, Text | None]:
    found: dict[str, Text | None] = {}
    for match in _JUST_PARAMETER.finditer(source.text, start, end):
        a, b = match.span("value")
        found[match["name"]] = Text.of(source, a + 1, b - 1) if match["value"] else None
    return found


def _bodies(source: Source, body: list[tuple[int, int]]) -> Iterator[Text]:
    if not body:
        return
    if source.text[slice(*body[0])].lstrip().startswith("#!"):
        yield Text.of(source, body[0][0], body[-1][1])
        return
    for start, end in body:
        match = _PREFIX.match(source.text, start, end)
        yield Text.of(source, match.end() if match else start, end)


def _interpolated(text: Text, variables: Mapping[str, Text | None]) -> Text:
    cut = Slicer(text)
    parts, at = [], 0
    for match in _JUST_USE.finditer(text.value):
        place: Span | None = cut.span(*match.span())
        name = match["inner"].strip()
        value = variables.get(name)
        missing = unknown(place, f"just's {match[0]} is not known", f"the value of {name}", splice=True)
        parts += [cut(at, match.start()), reached(value, place) if value is not None else missing]
        at = match.end()
    return Text.join([*parts, cut(at, len(text.value))]) if parts else text
