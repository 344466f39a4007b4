"""What a chat template prints that another request would not have: dates, clocks, chance, callers.

A cached prefix is reused up to the first token that differs, so it matters what such text stands before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvlint.formats.jinja import Tag, tags
from kvlint.patterns import regex
from kvlint.records import dataclass

_QUOTED = regex(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_CALL = regex(r"\b(?:strftime_now|now|utcnow|uuid4|random|time)\(")
_FILTER = regex(r"\|\s*random\b")
_CALLER = regex(
    r"(?<![.\w\[])(?:user_(?:name|id|email)|username|session_id|conversation_id|request_id|client_ip)\b(?!\s*=)"
)
_NAME = regex(r"(?<![.\w])[A-Za-z_]\w*")
_SET = regex(r"\s*set\s+([A-Za-z_][\w.]*)\s*(?:=|$)")
_LOOP = regex(r"\s*for\b.*\bin\b.*messages")
_TIME = frozenset("HIMSfpcXTRsr")  # directives of strftime that say more than the date


@dataclass(frozen=True, slots=True)
class Volatile:
    """`kind`: date, clock, random, caller; `start`, `end`: the expression's place in the template."""

    kind: str
    start: int
    end: int


def volatile(text: str) -> Iterator[Volatile]:
    """Each source once, where what it gives is printed before the last message, or before any text at all."""
    found = list(tags(text))
    end = _last_message(text, found)
    carrying: dict[str, Volatile] = {}
    told: set[Volatile] = set()
    for tag in found:
        body = _QUOTED.sub(lambda match: " " * len(match[0]), text[tag.start : tag.end])
        sources = [*_sources(text, tag, body), *_carried(body, carrying)]
        assigned = _SET.match(body) if tag.kind == "statement" else None
        if assigned is not None:
            if sources:
                carrying.setdefault(assigned[1].partition(".")[0], sources[0])
        elif tag.kind == "output" and tag.start < end:
            for source in sources:
                if source not in told:
                    told.add(source)
                    yield source


def _last_message(text: str, found: list[Tag]) -> int:
    """Where the last loop over messages ends; the end of the template where it has none."""
    depth: list[bool] = []
    last = -1
    for tag in found:
        if tag.kind != "statement":
            continue
        body = text[tag.start : tag.end]
        word = _NAME.search(body)
        if word is not None and word[0] == "for":
            depth.append(_LOOP.match(body[:500]) is not None)
        elif word is not None and word[0] == "endfor" and depth and depth.pop():
            last = tag.start
    return last if last >= 0 else len(text.rstrip())


def _sources(text: str, tag: Tag, body: str) -> Iterator[Volatile]:
    """What a tag itself asks for; `body` is its text with quoted pieces blanked."""
    for call in _CALL.finditer(body):
        end = body.find(")", call.end())
        if end < 0:
            continue
        start, stop = tag.start + call.start(), tag.start + end + 1
        yield Volatile(_kind(call[0], text[tag.start + call.end() : stop - 1]), start, stop)
    for match in _FILTER.finditer(body):
        yield Volatile("random", tag.start + match.start(), tag.start + match.end())
    if tag.kind == "output":
        for match in _CALLER.finditer(body):
            yield Volatile("caller", tag.start + match.start(), tag.start + match.end())


def _kind(call: str, argument: str) -> str:
    if call.startswith(("uuid", "random")):
        return "random"
    if call != "strftime_now(":
        return "clock"
    directives = re.findall(r"%-?([A-Za-z])", argument)
    return "clock" if any(each in _TIME for each in directives) else "date"


def _carried(body: str, carrying: dict[str, Volatile]) -> Iterator[Volatile]:
    return (carrying[name[0]] for name in _NAME.finditer(body) if name[0] in carrying) if carrying else iter(())
