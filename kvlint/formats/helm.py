"""Go templates (Helm, KServe), Jinja and `@name@` blanked at equal length: what remains is YAML, and every offset stays true.

An action that stands in a line with other text becomes characters that any scalar may hold; a line of actions alone becomes
a comment, or blank lines where a comment would end a block scalar.  What each action may do to the tree is kept in `actions`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

from kvlint.patterns import regex
from kvlint.records import dataclass, field
from kvlint.source import HOLE, Source

REASON = "a template fills this in"
SUPPLY = "render the template and check the result"

_ACTION = regex(r"\{\{|(?<!\$)\{[%#]|(?<![\w@])@[A-Za-z_][\w.-]*@(?![\w@])")
_INSIDE = regex(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|\'(?:[^\'\\\n]|\\.)*\'|\}\}')
_LONGEST = 4096
_WORD = regex(r"[-~+\s]*(/\*|\$[\w.]*(?:\s*,\s*\$\w+)?\s*:?=(?!=)|\w+)?")
_STRUCTURE = regex(r"\b(?:to_?(?:nice_)?(?:Yaml|Json|Toml|yaml|json)(?:Pretty)?|include|template|tpl|n?indent)\b")
_INDENT = regex(r"\b(n?)indent\s*\(?\s*(\d{1,3})\b")
_CLOSER = {"{{": "}}", "{%": "%}", "{#": "#}"}
_OPENERS = frozenset({"if", "with", "range", "define", "block", "for", "macro", "filter", "call", "raw", "autoescape"})
_CLOSERS = frozenset({"end"} | {f"end{word}" for word in _OPENERS})
_SILENT = frozenset({"/*", "set", "do", "import", "from", "extends", "break", "continue"})
_HEADER = regex(r"(?:^|[ \t:-])[|>](?:[1-9][-+]?|[-+][1-9]?)?[ \t]*(?:#.*)?$")
_REST = regex(r"[ \t]*(?:$|[ \t]#.*$)")


@dataclass(slots=True)
class Action:
    """`kind`: open, else, close (control), output, silent.  `column`: where its output begins.

    `alone`: its lines hold nothing else.  `structural`: it may write a map or a list.
    """

    start: int
    end: int
    kind: str
    column: int
    structural: bool
    alone: bool = False

    @property
    def control(self) -> bool:
        return self.kind in ("open", "else", "close")


@dataclass(slots=True)
class Template:
    """A source with its actions blanked: `text` has the length of `source.text`.  `gone`: lines that are taken to be left out."""

    source: Source
    text: str
    actions: list[Action]
    gone: list[tuple[int, int]] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self._starts = [action.start for action in self.actions]

    def within(self, start: int, end: int) -> list[Action]:
        return self.actions[bisect_left(self._starts, start) : bisect_left(self._starts, end)]


@dataclass(slots=True)
class Choice:
    """An `if` on lines of its own.  `arms`: the lines of each branch.  `whole`: one of them is taken, whatever holds."""

    start: int
    end: int
    arms: list[tuple[int, int]]
    whole: bool


def choices(template: Template, start: int, end: int) -> Iterator[Choice]:
    """Each `if` that begins between two offsets and whose every `else` and `end` stands on a line of its own, outermost first."""
    source, found = template.source, []
    stack: list[list[Action]] = []
    for action in template.actions:
        if action.kind == "open":
            stack.append([action])
        elif action.kind == "else" and stack:
            stack[-1].append(action)
        elif action.kind == "close" and stack:
            parts = [*stack.pop(), action]
            if start <= parts[0].start < end and all(part.alone for part in parts) and _says(source, parts[0], "if"):
                lines = [(_line_start(source, part.start), _line_end(source, part.end)) for part in parts]
                arms = [(one[1], other[0]) for one, other in pairwise(lines) if one[1] <= other[0]]
                whole = parts[-2].kind == "else" and not _says(source, parts[-2], "else if", "elif")
                if len(arms) == len(parts) - 1:
                    found.append(Choice(lines[0][0], lines[-1][1], arms, whole))
    yield from sorted(found, key=lambda choice: choice.start)


def _says(source: Source, action: Action, *words: str) -> bool:
    written = " ".join(source.text[action.start + 2 : action.end - 2].strip(" \t\r\n-+~").split(maxsplit=2)[:2])
    return any(written == word or written.startswith(word + " ") for word in words)


def taken(template: Template, choice: Choice, arm: int) -> Template:
    """The template with one branch of a choice written out, the others and the choice itself left out."""
    start, end = choice.arms[arm]
    gone = [(choice.start, start), (end, choice.end)]
    text = template.text
    for a, b in gone:
        text = text[:a] + "\n" * (b - a) + text[b:]
    kept = [action for action in template.actions if not any(a <= action.start < b for a, b in gone)]
    return Template(template.source, text, kept, gone)


def blank(source: Source) -> Template:
    """Blank every action of a template.  Never fails: an action that does not end is left as it stands."""
    text = source.text
    actions = list(_actions(source))
    groups = list(_alone(source, actions))
    fills: dict[int, str] = {}
    inside = _inside_blocks(source, groups)
    for group in groups:
        filler = "\n" if group[0].start in inside else "#"
        for action in group:
            action.alone = True
            fills[action.start] = filler
            filler = HOLE if filler == "#" else filler
    blanked: list[str] = []
    at = 0
    for action in actions:
        blanked.append(text[at : action.start])
        first = fills.get(action.start, HOLE)
        blanked.append(first + (first if first == "\n" else HOLE) * (action.end - action.start - 1))
        at = action.end
    blanked.append(text[at:])
    return Template(source, "".join(blanked), actions)


def is_template(text: str) -> bool:
    return _ACTION.search(text) is not None


def _actions(source: Source) -> Iterator[Action]:
    text = source.text
    last = {opener: text.rfind(closer) for opener, closer in _CLOSER.items()}
    at = 0
    while match := _ACTION.search(text, at):
        start = match.start()
        if match[0][0] == "@":  # what substituteAll, configure_file and Maven put in
            at = match.end()
            yield Action(start, at, "output", start - _line_start(source, start), True)
            continue
        end = _end(text, start) if start < last[match[0]] else -1
        if end < 0:
            at = start + 2
            continue
        yield _action(source, start, end)
        at = end


def _end(text: str, start: int) -> int:
    """Where the action at `start` ends, its strings passed over; -1 where it does not end nearby."""
    opener = text[start : start + 2]
    near = text.find(_CLOSER[opener], start + 2, start + _LONGEST)
    if opener != "{{" or near < 0:
        return near + 2 if near >= 0 else -1
    for match in _INSIDE.finditer(text, start + 2, start + _LONGEST):
        if match[0] == "}}":
            return match.end()
    return near + 2


def _action(source: Source, start: int, end: int) -> Action:
    inner = source.text[start + 2 : end - 2]
    column = start - _line_start(source, start)
    match = _WORD.match(inner)
    word = (match and match[1]) or ""
    structural = _STRUCTURE.search(inner) is not None
    if source.text[start + 1] == "#" or word in _SILENT or "=" in word:
        kind = "silent"
    elif word in _OPENERS:
        kind = "open"
    elif word in ("else", "elif"):
        kind = "else"
    elif word in _CLOSERS:
        kind = "close"
    else:
        kind = "output"
        if indent := _INDENT.search(inner):
            column = int(indent[2]) + (0 if indent[1] else column)
    return Action(start, end, kind, column, structural)


def _line_start(source: Source, offset: int) -> int:
    return source.line_starts[bisect_right(source.line_starts, offset) - 1]


def _line_end(source: Source, offset: int) -> int:
    index = bisect_right(source.line_starts, offset)
    return source.line_starts[index] if index < len(source.line_starts) else len(source.text)


def _alone(source: Source, actions: list[Action]) -> Iterator[list[Action]]:
    """Groups of actions with nothing but blanks (and a comment at the end) on their lines."""
    text = source.text
    index = 0
    while index < len(actions):
        group = [actions[index]]
        index += 1
        stop = _line_end(source, group[0].end)
        while index < len(actions) and actions[index].start < stop:
            group.append(actions[index])
            index += 1
            stop = max(stop, _line_end(source, group[-1].end))
        parts = [text[_line_start(source, group[0].start) : group[0].start]]
        parts += (text[one.end : other.start] for one, other in pairwise(group))
        if not any(part.strip(" \t") for part in parts) and _REST.match(text[group[-1].end : stop].rstrip("\r\n")):
            yield group


def _inside_blocks(source: Source, groups: list[list[Action]]) -> set[int]:
    """The groups, by where they start, that stand among the lines of a block scalar but not in line with its text.

    A comment there would end the scalar, set its indentation, or keep it from being folded.
    """
    inside: set[int] = set()
    spans = {_line_start(source, group[0].start): (group[0].start, group[-1].end) for group in groups}
    waiting: list[tuple[int, int]] = []  # groups since the last line of text, with their columns
    parent, indent, folded = (
        -1,
        -1,
        False,
    )  # of the block scalar that is open: its header line's and its text's indentation
    skip = 0
    for start in source.line_starts if spans else ():
        if start < skip:
            continue
        if start in spans:
            waiting.append((spans[start][0], spans[start][0] - start))
            skip = spans[start][1]
            continue
        line = source.text[start : _line_end(source, start)].rstrip("\r\n")
        written = len(line) - len(line.lstrip(" "))
        if written == len(line):
            continue
        first = parent >= 0 and indent < 0 and written > parent
        indent = written if first else indent
        if indent >= 0 and written >= indent:
            inside.update(at for at, column in waiting if column < indent or (column > indent and (first or folded)))
        else:
            indent = -1
            header = _HEADER.search(line[-200:])
            parent, folded = (written, ">" in header[0].partition("#")[0]) if header else (-1, False)
        waiting.clear()
    return inside
