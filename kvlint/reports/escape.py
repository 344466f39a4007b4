"""Text of unknown origin made harmless: what a path, a model's name or a comment holds never acts on whoever reads a report.

Besides terminals, logs have readers: a runner takes a line that starts with `::` after any spaces as a command, and `##[` or
`##vso[` wherever it stands (actions/runner, ActionCommand.cs, `TryParseV2` and `TryParse`).
"""

from __future__ import annotations

import json
from typing import Any

from kvlint.patterns import regex
from kvlint.ruleset.messages import clean
from kvlint.source import HOLE

LONGEST = 4000
ELLIPSIS = "..."

_MARKED = regex(r"##(?=\w*\[)")
_COMMAND = regex(r"^( *):(?=:)")
_XML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}


def line(text: str, longest: int = LONGEST) -> str:
    """One line for people and logs: `clean`, and nothing that a runner takes for a command."""
    shown = clean(text, longest)
    if "##" in shown:
        shown = _MARKED.sub(r"#\\x23", shown)
    return _COMMAND.sub(r"\1\\x3a", shown) if "::" in shown else shown


def cells(text: str) -> list[str]:
    """What `line` shows for each character, so that marks below a line of a file stand where they should; tabs are one space."""
    if text.isprintable() and HOLE not in text:
        shown = list(text)
    else:
        shown = [c if c.isprintable() and c != HOLE else " " if c == "\t" else clean(c) for c in text]
    for match in _MARKED.finditer(text) if "##" in text else ():
        shown[match.end() - 1] = r"\x23"
    return shown


def width(text: str) -> int:
    """Columns of a terminal: two for wide characters, none for marks that combine."""
    if text.isascii():
        return len(text)
    import unicodedata  # a large table that few reports need

    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def shortened(text: str, units: int) -> str:
    """At most `units` UTF-16 code units, as services count characters."""
    data = text.encode("utf-16-le", "surrogatepass")
    if len(data) <= 2 * units:
        return text
    return data[: 2 * (units - len(ELLIPSIS))].decode("utf-16-le", "ignore") + ELLIPSIS


def well_formed(text: str) -> str:
    """`text` without lone surrogates, which no encoding of a report can hold."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def xml(text: str) -> str:
    """`line` as XML text or attribute value; every character that XML forbids is written out by then."""
    return "".join(_XML.get(c, c) for c in line(text))


def to_json(value: Any) -> str:
    """JSON in ASCII, so that it survives any terminal and log; `value` holds well-formed text."""
    return _MARKED.sub(r"#\\u0023", json.dumps(value, indent=2)) + "\n"
