"""The functions of Nix on strings.  Results keep the places of the characters they are made of."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from kvlint.formats.nix.coerce import integer, known_string, to_text
from kvlint.formats.nix.values import Items, Outside, Path, Run, Splice, Str, Stuck, Thunk, Value, done, failed, hole
from kvlint.patterns import regex
from kvlint.source import Span, Text
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator

_VERSION_PART = regex(r"[.-]*([0-9]+|[^0-9.-]+)")


def join(ev: Evaluator, span: Span, separator: Text, items: Thunk, *, more: bool = False) -> Text:
    """The items as strings with `separator` between; an item that is not known is a hole."""
    value = ev.either(ev.force(items))
    if not isinstance(value, Items):
        if isinstance(value, (Opaque, Outside)):
            return hole(value.span, value, splice=True)
        raise ev.wrong(value, "list", span)
    parts: list[Text] = []
    for number, item in enumerate(value.items):
        if number:
            parts.append(separator)
        parts.append(item_text(ev, item, span, more=more))
    return ev.joined(parts, span) if parts else Text("", (), (), span)


def item_text(ev: Evaluator, item: Thunk | Splice, span: Span, *, more: bool = False) -> Text:
    if isinstance(item, Splice):
        return hole(item.unknown.span, item.unknown, splice=True)
    return to_text(ev, ev.either(ev.force(item)), item.span, more=more, copy=not more, thunk=item)


def concat_strings_sep(ev: Evaluator, span: Span, separator: Thunk, items: Thunk) -> Value:
    return Str(join(ev, span, ev.text_of(separator), items))


def string_length(ev: Evaluator, span: Span, value: Thunk) -> Value:
    text = _coerced(ev, value)
    return integer(len(known_string(text).encode("utf-8", "surrogatepass")), span, text)


def _coerced(ev: Evaluator, value: Thunk) -> Text:
    return to_text(ev, ev.either(ev.force(value)), value.span)


def substring(ev: Evaluator, span: Span, start: Thunk, length: Thunk, value: Thunk) -> Value:
    first, count = ev.int_of(start), ev.int_of(length)
    text = _coerced(ev, value)
    characters = known_string(text)
    if first < 0:
        raise failed(span, "substring starts before the string")
    if not characters.isascii():
        raise Stuck(Opaque(span, "substring counts bytes, and the string is not ASCII"))
    if first >= len(characters):
        return Str(Text("", (), (), span))
    return Str(text.slice(first, len(characters) if count < 0 else first + count))


def replace_strings(ev: Evaluator, span: Span, old: Thunk, new: Thunk, value: Thunk) -> Value:
    olds = [ev.string_of(item) for item in ev.list_of(old)]
    news = [ev.text_of(item) for item in ev.list_of(new)]
    if len(olds) != len(news):
        raise failed(span, "the two lists have different lengths")
    return Str(replaced(ev, span, ev.text_of(value), list(zip(olds, news, strict=True))))


def replaced(ev: Evaluator, span: Span, text: Text, pairs: list[tuple[str, Text]]) -> Text:
    """Each place takes the first string that matches there, as Nix does; an empty one matches everywhere."""
    if not pairs:
        return text
    if text.holes and any(len(old) != 1 for old, _ in pairs):
        first = text.holes[0]
        raise Stuck(Opaque(first.span, first.reason, first.supply))
    if any(not old for old, _ in pairs):
        raise Stuck(Opaque(span, "an empty string is replaced"))
    table: dict[str, Text] = {}
    for old, new in pairs:
        table.setdefault(old, new)
    parts: list[Text] = []
    at = 0
    for match in re.compile("|".join(re.escape(old) for old, _ in pairs)).finditer(text.value):
        parts += [text.slice(at, match.start()), table[match[0]]]
        at = match.end()
    return ev.joined([*parts, text.slice(at)], span)


def base_name(ev: Evaluator, span: Span, value: Thunk) -> Value:
    text = _path_text(ev, value, span)
    end = len(text.value)
    if end > 1 and text.value[end - 1] == "/":
        end -= 1
    start = text.value.rfind("/", 0, end) + 1
    return Str(_whole_slice(text, start, end, span))


def dir_name(ev: Evaluator, span: Span, value: Thunk) -> Value:
    given = ev.either(ev.force(value))
    text = _path_text(ev, value, span)
    cut = text.value.rfind("/")
    if cut <= 0:
        if text.holes:
            raise Stuck(Opaque(span, "the directory is not known"))
        result = Text.at("." if cut < 0 else "/", span)
    else:
        result = text.slice(0, cut)
    if isinstance(given, Path):
        return Path(result, posixpath.dirname(given.file) or "." if given.file is not None else None)
    return Str(result)


def _path_text(ev: Evaluator, value: Thunk, span: Span) -> Text:
    return to_text(ev, ev.either(ev.force(value)), span, copy=False)


def _whole_slice(text: Text, start: int, end: int, span: Span) -> Text:
    """A slice that no hole before it could move."""
    if start == 0 and text.holes:
        raise Stuck(Opaque(span, "the last step of the path is not known"))
    return text.slice(start, end)


def version_parts(version: str) -> list[str]:
    return [match[1] for match in _VERSION_PART.finditer(version)]


def split_version(ev: Evaluator, span: Span, value: Thunk) -> Value:
    text = ev.text_of(value)
    known_string(text)
    found = [text.slice(*match.span(1)) for match in _VERSION_PART.finditer(text.value)]
    return Items(tuple(done(Str(part), part.span) for part in found))


def compare_versions(a: str, b: str) -> int:
    """-1, 0 or 1: number by number, `pre` before the end, the end before words, words before numbers."""
    left, right = version_parts(a), version_parts(b)
    for index in range(max(len(left), len(right))):
        x = left[index] if index < len(left) else ""
        y = right[index] if index < len(right) else ""
        if _older(x, y):
            return -1
        if _older(y, x):
            return 1
    return 0


def _older(x: str, y: str) -> bool:
    if x.isdigit() and y.isdigit():
        return int(x) < int(y)
    if x == "" and y.isdigit():
        return True
    if x == "pre" and y != "pre":
        return True
    if y == "pre":
        return False
    if y.isdigit():
        return True
    return not x.isdigit() and x < y


def compare(ev: Evaluator, span: Span, a: Thunk, b: Thunk) -> Value:
    left, right = ev.text_of(a), ev.text_of(b)
    versions = known_string(left), known_string(right)
    if any(len(part) > 9 for version in versions for part in version_parts(version) if part.isdigit()):
        raise Stuck(Opaque(span, "a part of the version is a very large number"))
    return integer(compare_versions(*versions), span, left, right)


def discard_context(ev: Evaluator, span: Span, value: Thunk) -> Value:
    return Str(ev.text_of(value))


STRING_BUILTINS: dict[str, tuple[int, Run]] = {
    "baseNameOf": (1, base_name),
    "compareVersions": (2, compare),
    "concatStringsSep": (2, concat_strings_sep),
    "dirOf": (1, dir_name),
    "replaceStrings": (3, replace_strings),
    "splitVersion": (1, split_version),
    "stringLength": (1, string_length),
    "substring": (3, substring),
    "unsafeDiscardStringContext": (1, discard_context),
}
