"""Commands in templates of Jinja or Go: what an action writes is a hole, a branch of the template one of the script."""

from __future__ import annotations

import re

from kvlint.formats.shell.text import Slicer, made, unknown
from kvlint.parsing import FILLED_ENDINGS
from kvlint.patterns import regex
from kvlint.source import Text

# `{{ name … }}`, but nothing that a shell or awk would write; `{% word … %}`; `{# … #}`, which is no `${#name}`.
_ACTION = regex(
    r"\{\{[-~]?[ \t]*(?P<output>[A-Za-z_.$(][^{}\n]{0,400})\}\}|\{%[-+]?\s*(?P<word>\w+)(?P<rest>(?:(?!%\}|\{%)[\s\S]){0,400})%\}"
    r"|(?<!\$)\{#(?:(?!#\}|\{#)[\s\S]){0,400}#\}"
)
_PLACEHOLDERS = (
    r"\{\{[-~]?\s*[A-Za-z_.$(][^{}\n]{0,400}\}\}|\{%[^{}%]{0,400}%\}"
    r"|(?<![\w@])@[A-Za-z_]\w*@(?![\w@])|__[A-Z][A-Z0-9_]*?__"
)
_PLACEHOLDER = regex(_PLACEHOLDERS)
# In a file whose ending says that it is a template: what Python's `format` puts in.  Elsewhere it is text, or a list of YAML.
_FIELD = regex(_PLACEHOLDERS + r"|(?<![${\w])\{[A-Za-z_]\w*\}(?!\})")
_WORD = regex(r"[-\s]*(?P<word>if|else if|else|end|range|with|define|block|template|include)\b")
_OPENS = {"if": "if", "for": "for", "range": "for", "with": "if"}
_MIDDLES = ("elif", "else", "else if")
_CLOSES = ("endif", "endfor", "end", "endwith")
NEAR = 200  # characters of a line in which an action of its own may be indented


class _Action:
    __slots__ = ("alone", "end", "match", "start", "word")

    def __init__(self, match: re.Match[str], text: str) -> None:
        self.match = match
        self.start, self.end = match.span()
        go = _WORD.match(match["output"]) if match["output"] else None
        self.word = match["word"] or (go["word"] if go is not None else "" if match["output"] else "#")
        before = text[max(0, self.start - NEAR) : self.start].rpartition("\n")
        after = text[self.end : self.end + NEAR].partition("\n")
        begins, ends = bool(before[1]) or self.start <= NEAR, bool(after[1]) or self.end + NEAR >= len(text)
        self.alone = begins and ends and not before[2].strip() and not after[0].strip()


def filled(text: Text, *, script: bool = True) -> Text:
    """The text that a template makes, as far as it is written.  `script`: a shell reads it, so that it may have branches."""
    value = text.value
    if "{{" not in value and "{%" not in value:
        return text
    actions = [_Action(match, value) for match in _ACTION.finditer(value)]
    if not actions:
        return text
    cut = Slicer(text)
    words = _branches(actions, value, script)
    parts: list[Text] = []
    at = 0
    for action in actions:
        if action.start < at:
            continue
        end, word = words.get(action.start, (action.end, None))
        place = cut.span(action.start, end)
        parts.append(cut(at, action.start))
        written = value[action.start : action.end]
        if word is not None:
            before, asks, after = word
            parts.append(made(before, place))
            if asks:
                parts += [unknown(place, f"{written} is decided where the file is filled in"), made(after, place)]
        elif action.word == "" or action.word in ("include", "template") or end > action.end:
            reason = f"{written} is filled in before the script runs"
            parts.append(unknown(place, reason, f"the value of {written}", splice=True))
        at = end
    return Text.join([*parts, cut(at, len(value))])


def replaced(word: Text) -> Text:
    """One word with holes for what is put in before anything reads it: actions, `@NAME@`, `__NAME__`, a template's `{name}`."""
    value = word.value
    if "{" not in value and "@" not in value and "__" not in value:
        return word
    cut = Slicer(word)
    parts: list[Text] = []
    at = 0
    template = bool(word.pieces) and word.pieces[0].span.path.endswith(FILLED_ENDINGS)
    for match in (_FIELD if template else _PLACEHOLDER).finditer(value):
        reason = f"{match[0]} is filled in before this is used"
        hole = unknown(cut.span(*match.span()), reason, f"the value of {match[0]}")
        parts += [cut(at, match.start()), hole]
        at = match.end()
    return Text.join([*parts, cut(at, len(value))]) if parts else word


Written = tuple[str, bool, str]


def _branches(actions: list[_Action], text: str, script: bool) -> dict[int, tuple[int, Written | None]]:
    """What stands for a branch's actions: words of the shell where they stand on lines of their own, else one hole for all."""
    found: dict[int, tuple[int, Written | None]] = {}
    stack: list[list[_Action]] = []
    for action in actions:
        if action.word in _OPENS:
            stack.append([action])
        elif action.word in _MIDDLES and stack:
            stack[-1].append(action)
        elif action.word in _CLOSES and stack:
            parts = [*stack.pop(), action]
            if script and all(part.alone for part in parts) and not any(_continued(part, text) for part in parts):
                kind = _OPENS[parts[0].word]
                for part in parts:
                    found[part.start] = part.end, _written(part, kind, part is parts[0], part is action)
            else:
                # what stands between two lines that belong together is no line of its own
                joins = action.alone and _continued(parts[0], text)
                stop = text.find("\n", action.end) + 1 if joins else action.end
                found[parts[0].start] = max(stop, action.end), None
    return found


def _continued(action: _Action, text: str) -> bool:
    """Whether the line before an action goes on in the next one."""
    return text.endswith(("\\\n", "\\\r\n"), 0, text.rfind("\n", 0, action.start) + 1)


def _written(action: _Action, kind: str, first: bool, last: bool) -> Written:
    if last:
        return ("fi" if kind == "if" else "done"), False, ""
    if first:
        return ("if test ", True, "; then") if kind == "if" else ("for _ in ", True, "; do")
    if kind == "for":
        return ":", False, ""
    return ("else", False, "") if action.word == "else" else ("elif test ", True, "; then")
