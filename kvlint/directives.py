"""`# kvlint:` comments: what they say and what they cover.

    # kvlint: ignore[rule-a,rule-b] until=2027-01-31 reason
    # kvlint: derived kv_bytes_per_token of chat
    # kvlint: derived <= slot_bytes of chat
    # kvlint: pin reason until=2027-01-31
    # kvlint: window=131072 streams=2
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvlint.source import Source, Span

if TYPE_CHECKING:
    from kvlint.formats.document import Comment
    from kvlint.parsing import Parsed

_DIRECTIVE = re.compile(r"kvlint:\s*(?P<body>.*?)\s*(?:-->|\*/)?\s*$", re.DOTALL)
_IGNORE = re.compile(r"ignore\s*\[(?P<rules>[^\]]*)\](?P<rest>.*)", re.DOTALL)
_DERIVED = re.compile(r"derived\s+(?P<relation><=\s*)?(?P<quantity>[a-z_]+)\s+of\s+(?P<server>\S+)(?P<rest>.*)", re.DOTALL)
_PIN = re.compile(r"pin\b(?P<rest>.*)", re.DOTALL)
_UNTIL = re.compile(r"\buntil=(\S+)")
_SETTING = re.compile(r"(?P<name>[a-z_]+)=(?P<value>\S+)")


@dataclass(frozen=True, slots=True)
class Directive:
    """`kind`: ignore, derived, pin, settings or unknown.  `line`: where it stands; `own_line`: nothing else stands there."""

    kind: str
    span: Span
    line: int
    own_line: bool
    rules: tuple[str, ...] = ()
    until: datetime.date | None = None
    reason: str = ""
    relation: str = "=="
    quantity: str = ""
    server: str = ""
    settings: Mapping[str, tuple[str, Span]] = field(default_factory=dict)


def of(parsed: Parsed) -> list[Directive]:
    """The directives of a file, in order."""
    if "kvlint:" not in parsed.source.text:
        return []
    return [parse(comment) for comment in _comments(parsed)]


def _comments(parsed: Parsed) -> Iterator[Comment]:
    if parsed.kind == "shell":
        from kvlint.formats import shell
        from kvlint.source import Text

        source = parsed.source
        for each in shell.commands(Text.of(source, 0, len(source.text))).comments:
            if "kvlint:" in each.text.value:
                yield _as_comment(source, each.text.span, each.text.value)
    elif parsed.kind == "nix":
        from kvlint.formats import nix

        for span, text in nix.comments(parsed.source):
            if "kvlint:" in text:
                yield _as_comment(parsed.source, span, text)
    elif parsed.kind in ("systemd", "env"):
        yield from _line_comments(parsed.source, "#;")
    else:
        for document in parsed.documents:
            yield from document.comments


def _as_comment(source: Source, span: Span, text: str) -> Comment:
    from kvlint.formats.document import Comment

    line, column = source.position(span.start)
    return Comment(span, text, not source.line(line)[: column - 1].strip())


def _line_comments(source: Source, markers: str) -> Iterator[Comment]:
    from kvlint.formats.document import Comment

    for number in range(1, len(source.line_starts) + 1):
        text = source.line(number)
        if "kvlint:" in text and text.lstrip()[:1] in markers:
            start = source.line_starts[number - 1]
            yield Comment(source.span(start, start + len(text)), text, True)


def parse(comment: Comment) -> Directive:
    """What a comment says; `unknown` where it is none of ours."""
    match = _DIRECTIVE.search(comment.text)
    body = match["body"] if match else ""
    place: dict[str, Any] = {"span": comment.span, "line": comment.span.line, "own_line": comment.own_line}
    if found := _IGNORE.match(body):
        rules = tuple(name.strip() for name in found["rules"].split(",") if name.strip())
        return Directive("ignore", **place, rules=rules, until=_until(found["rest"]), reason=_reason(found["rest"]))
    if found := _DERIVED.match(body):
        relation = "<=" if found["relation"] else "=="
        return Directive("derived", **place, relation=relation, quantity=found["quantity"], server=found["server"])
    if found := _PIN.match(body):
        return Directive("pin", **place, until=_until(found["rest"]), reason=_reason(found["rest"]))
    settings = {each["name"]: (each["value"], _inner(comment, match, each)) for each in _SETTING.finditer(body)}
    if settings and match:
        return Directive("settings", **place, settings=settings)
    return Directive("unknown", **place)


def _inner(comment: Comment, body: re.Match[str] | None, setting: re.Match[str]) -> Span:
    start = comment.span.start + (body.start("body") if body else 0)
    return comment.span.source.span(start + setting.start("value"), start + setting.end("value"))


def _until(text: str) -> datetime.date | None:
    match = _UNTIL.search(text)
    try:
        return datetime.date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _reason(text: str) -> str:
    return _UNTIL.sub("", text).strip()
