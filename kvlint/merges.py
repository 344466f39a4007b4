"""Documents in which both sides of a merge stand."""

from __future__ import annotations

import re

from kvlint.formats.document import Document, Unreadable
from kvlint.parsing import Parsed
from kvlint.patterns import regex
from kvlint.source import Span

_SIDES = tuple(regex(text, re.MULTILINE) for text in (r"^<{7} .*$", r"^={7}\r?$", r"^>{7}(?: |\r?$)"))
_OURS = regex(r"<{7} (?:HEAD|ours|Updated upstream)\b")


def unmerged(parsed: Parsed) -> list[Document]:
    """The documents of a file; one in which both sides of a merge stand is not read, whatever it would parse as."""
    source = parsed.source
    found = []
    for document in parsed.documents or [Document(None, None, source.span(0, len(source.text)))]:
        place = _conflict(document.span)
        # Text in quotes may show how an edit is marked; what git writes where a file would be read has its own labels.
        plain = parsed.kind != "modelfile" and place is not None and _OURS.match(place.text)
        if place is not None and (document.problem is not None or plain):
            problem = Unreadable("a merge conflict is not resolved here", place)
            document = Document(None, problem, document.span, document.comments)
        found.append(document)
    return found if parsed.documents or found[0].problem is not None else []


def _conflict(document: Span) -> Span | None:
    """The line with which git begins the first side, where it says of a second one too where it begins and ends."""
    text, at = document.source.text, document.start
    lines = []
    for side in _SIDES:
        match = side.search(text, at, document.end)
        if match is None:
            return None
        lines.append(document.source.span(match.start(), match.end()))
        at = match.end()
    return lines[0]
