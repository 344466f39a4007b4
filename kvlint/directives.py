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
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvlint.patterns import regex
from kvlint.records import dataclass, field, replace
from kvlint.source import Source, Span, Text

if TYPE_CHECKING:
    from kvlint.formats.document import Comment
    from kvlint.parsing import Parsed
    from kvlint.subjects import Process
    from kvlint.tree import Node

_DIRECTIVE = regex(r"kvlint:\s*(?P<body>.*?)\s*(?:-->|\*/)?\s*$", re.DOTALL)
_IGNORE = regex(r"ignore\s*\[(?P<rules>[^\]]*)\](?P<rest>.*)", re.DOTALL)
_DERIVED = regex(r"derived\s+(?P<relation><=\s*)?(?P<quantity>[a-z_]+)\s+of\s+(?P<server>\S+)(?P<rest>.*)", re.DOTALL)
_PIN = regex(r"pin\b(?P<rest>.*)", re.DOTALL)
_UNTIL = regex(r"\buntil=(\S+)")
_EMBEDDED = regex(
    r"(?:^|(?<=[ \t;]))(?P<comment>#[^\r\n]*?kvlint:[^\r\n]*|<!--(?:(?!-->)[\s\S])*?kvlint:(?:(?!-->)[\s\S])*?-->)",
    re.MULTILINE,
)
_REST = regex(r"[^\r\n]*")
_SETTING = regex(r"(?P<name>[a-z_]+)=(?P<value>\S+)")


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
    """The directives of a file, in order.  One where the format has no comments is of no known kind."""
    source = parsed.source
    if "kvlint:" not in source.text:
        return []
    found = {comment.span.start: parse(comment) for comment in _comments(parsed)}
    for text in texts(parsed):
        for comment, folded in _embedded(text, source):
            if not any(each.span.start <= comment.span.start < each.span.end for each in found.values()):
                read = parse(comment)
                lost = folded or parsed.kind == "systemd"
                found[comment.span.start] = replace(read, kind="unknown") if lost else read
    return [found[start] for start in sorted(found)]


def _comments(parsed: Parsed) -> Iterator[Comment]:
    """The comments of the format itself."""
    source, kind = parsed.source, parsed.kind
    if kind == "shell":
        from kvlint.formats import shell
        from kvlint.source import Text

        for each in shell.commands(Text.of(source, 0, len(source.text))).comments:
            if "kvlint:" in each.text.value and each.text.span.source is source:
                yield _as_comment(each.text.span)
    elif kind == "nix":
        from kvlint.formats import nix

        for span, text in nix.comments(source):
            if "kvlint:" in text:
                yield _as_comment(span)
    elif kind in ("systemd", "env", "dockerfile"):
        module = import_module(f"kvlint.formats.{kind}")
        yield from module.parse(source).comments
    elif parsed.documents:
        for document in parsed.documents:
            for comment in document.comments:
                yield _as_comment(comment.span, comment.own_line and not _behind(comment.span))
    else:
        yield from (_as_comment(source.span(*match.span("comment"))) for match in _EMBEDDED.finditer(source.text))


def texts(parsed: Parsed) -> Iterator[Text]:
    """The strings of a file in which a directive may be a comment of what the string holds: a script, a document."""
    source = parsed.source
    if parsed.kind == "nix":
        from kvlint.formats import nix

        reading = nix.read(source)
        yield from _scalars(reading.root)
        yield from (script.text for script in reading.scripts)
    elif parsed.kind == "systemd":
        from kvlint.formats import systemd

        yield from (each.value for part in systemd.parse(source).sections for each in part.settings)
    elif parsed.kind == "dockerfile":
        from kvlint.formats import dockerfile

        yield from (each.text for each in dockerfile.parse(source).instructions)
    elif parsed.kind == "shell":
        from kvlint.formats import shell
        from kvlint.source import Text

        yield from (each.body for each in shell.commands(Text.of(source, 0, len(source.text))).heredocs)
    for document in parsed.documents:
        if document.node is not None:
            yield from _scalars(document.node)


def _scalars(node: Node) -> Iterator[Text]:
    from kvlint.tree import Scalar, walk

    return (each.text for each in walk(node) if isinstance(each, Scalar) and "kvlint:" in each.text.value)


def _embedded(text: Text, source: Source) -> Iterator[tuple[Comment, bool]]:
    """Comments of what a string holds, as far as they stand in the file itself; and whether more was folded into one."""
    if "kvlint:" not in text.value:
        return
    for match in _EMBEDDED.finditer(text.value):
        part = text.slice(*match.span("comment"))
        if not part.pieces or part.span.source is not source:
            continue
        line = _REST.match(source.text, part.span.start)
        folded = match["comment"].startswith("#") and part.span.line != part.span.end_line
        span = source.span(part.span.start, line.end()) if folded and line else part.span
        own_line = not text.value[: match.start("comment")].rpartition("\n")[2].strip()
        yield _as_comment(span, own_line), folded


def _as_comment(span: Span, own_line: bool | None = None) -> Comment:
    """A comment stands on a line of its own if nothing is before it there, and nothing behind."""
    from kvlint.formats.document import Comment

    source = span.source
    if own_line is None:
        before = source.text[source.line_starts[span.line - 1] : span.start]
        own_line = not before.strip(" \t\ufeff") and not _behind(span)
    return Comment(span, source.text[span.start : span.end], own_line)


def _behind(span: Span) -> str:
    """What stands behind a place on its line."""
    found = _REST.match(span.source.text, span.end)
    return found[0].strip() if found else ""


def misplaced(directive: Directive, process: Process) -> bool:
    """Whether the directive became an argument of a process, or cut its command off in the middle."""
    span = directive.span
    words = [word.span for word in process.line.words if word.pieces and word.span.source is span.source]
    if any(start < span.end and span.start < end for word in words for start, end in word.pieces):
        return True
    if not process.line.shell:
        return False
    above = span.source.line(span.line - 1).rstrip() if directive.own_line and span.line > 1 else ""
    return above.endswith("\\") and any(word.end_line == span.line - 1 for word in words)


def parse(comment: Comment) -> Directive:
    """What a comment says; `unknown` where it is none of ours."""
    match = _DIRECTIVE.search(comment.text)
    body = match["body"] if match else ""
    place: dict[str, Any] = {"span": comment.span, "line": comment.span.line, "own_line": comment.own_line}
    if found := _IGNORE.match(body):
        rules = tuple(name.strip() for name in found["rules"].split(",") if name.strip())
        kind = "ignore" if rules and _dated(found["rest"]) else "unknown"
        return Directive(kind, **place, rules=rules, until=_until(found["rest"]), reason=_reason(found["rest"]))
    if found := _DERIVED.match(body):
        relation = "<=" if found["relation"] else "=="
        return Directive("derived", **place, relation=relation, quantity=found["quantity"], server=found["server"])
    if found := _PIN.match(body):
        kind = "pin" if _dated(found["rest"]) else "unknown"
        return Directive(kind, **place, until=_until(found["rest"]), reason=_reason(found["rest"]))
    settings = {each["name"]: (each["value"], _inner(comment, match, each)) for each in _SETTING.finditer(body)}
    if settings and match:
        return Directive("settings", **place, settings=settings)
    return Directive("unknown", **place)


def _inner(comment: Comment, body: re.Match[str] | None, setting: re.Match[str]) -> Span:
    start = comment.span.start + (body.start("body") if body else 0)
    return comment.span.source.span(start + setting.start("value"), start + setting.end("value"))


def _dated(text: str) -> bool:
    """Whether what stands as a date is one: what is meant to end would last for ever otherwise."""
    return _UNTIL.search(text) is None or _until(text) is not None


def _until(text: str) -> datetime.date | None:
    match = _UNTIL.search(text)
    try:
        return datetime.date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _reason(text: str) -> str:
    return _UNTIL.sub("", text).strip()
