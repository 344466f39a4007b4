"""nixpkgs' `lib` on strings: joining, quoting for the shell, command lines made of sets, programs of packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kvlint.formats.nix import outside
from kvlint.formats.nix.builtins import BUILTINS
from kvlint.formats.nix.coerce import integer, known_string, to_text, truth
from kvlint.formats.nix.json import from_json
from kvlint.formats.nix.lists import map_list
from kvlint.formats.nix.strings import compare_versions, item_text, join, replaced
from kvlint.formats.nix.values import (
    Bool,
    Items,
    Outside,
    Run,
    Str,
    Stuck,
    Thunk,
    Value,
    done,
    failed,
    hole,
    map_chars,
)
from kvlint.patterns import regex
from kvlint.source import Span, Text
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator

_WHOLE_NUMBER = regex(r"[ \t\n\v\f\r]*(-?[0-9]+)[ \t\n\v\f\r]*\Z")


def concat_strings(ev: Evaluator, span: Span, items: Thunk) -> Value:
    return Str(join(ev, span, Text("", (), (), span), items))


def concat_lines(ev: Evaluator, span: Span, items: Thunk) -> Value:
    found = ev.items_of(items)
    parts: list[Text] = []
    for item in found.items:
        parts += [item_text(ev, item, span), Text.at("\n", span)]
    return Str(ev.joined(parts, span) if parts else Text("", (), (), span))


def concat_map_strings(ev: Evaluator, span: Span, function: Thunk, items: Thunk) -> Value:
    return concat_strings(ev, span, done(map_list(ev, span, function, items), span))


def concat_map_strings_sep(ev: Evaluator, span: Span, separator: Thunk, function: Thunk, items: Thunk) -> Value:
    value = ev.either(ev.force(items))
    if isinstance(value, (Opaque, Outside)):
        return Str(hole(value.span, value, splice=True))
    return Str(join(ev, span, ev.text_of(separator), done(map_list(ev, span, function, items), span)))


def concat_imap_strings_sep(ev: Evaluator, span: Span, separator: Thunk, function: Thunk, items: Thunk) -> Value:
    found = ev.list_of(items)
    numbers = [done(integer(index + 1, span), span) for index in range(len(found))]
    mapped = [ev.later(function, n, i, span=i.span) for n, i in zip(numbers, found, strict=True)]
    return Str(join(ev, span, ev.text_of(separator), done(Items(tuple(mapped)), span)))


def concat_map_attrs_sep(ev: Evaluator, span: Span, separator: Thunk, function: Thunk, value: Thunk) -> Value:
    found = ev.attrs_of(value)
    slots = [found.slots[name] for name in ev.names(found, span)]
    mapped = [ev.later(function, done(Str(s.key), s.key_span), s.value, span=s.value.span) for s in slots]
    return Str(join(ev, span, ev.text_of(separator), done(Items(tuple(mapped)), span)))


def optional_string(ev: Evaluator, span: Span, condition: Thunk, value: Thunk) -> Value:
    answer = ev.either(ev.force(condition))
    if isinstance(answer, (Opaque, Outside)):
        reason = f"it depends on {condition.span.text}: {answer.reason}"
        return Str(hole(span, Opaque(span, reason, answer.supply), splice=True))
    if not isinstance(answer, Bool):
        raise ev.wrong(answer, "bool", span)
    return Str(ev.text_of(value)) if answer.value else Str(Text("", (), (), span))


def get_exe(ev: Evaluator, span: Span, package: Thunk) -> Value:
    return Str(outside.executable(ev, package, span))


def get_exe_named(ev: Evaluator, span: Span, package: Thunk, program: Thunk) -> Value:
    directory = to_text(ev, ev.force(package), span)
    return Str(ev.joined([directory, Text.at("/bin/", span), ev.text_of(program)], span))


def get_output(ev: Evaluator, span: Span, package: Thunk) -> Value:
    return ev.force(package)


def _edge(test: Callable[[str, str], bool]) -> Run:
    def run(ev: Evaluator, span: Span, part: Thunk, value: Thunk) -> Value:
        return truth(test(ev.string_of(value), ev.string_of(part)), span)

    return run


def remove_prefix(ev: Evaluator, span: Span, prefix: Thunk, value: Thunk) -> Value:
    start, text = ev.string_of(prefix), ev.text_of(value)
    if text.holes and text.holes[0].at < len(start):
        known_string(text)
    return Str(text.slice(len(start)) if text.value.startswith(start) else text)


def remove_suffix(ev: Evaluator, span: Span, suffix: Thunk, value: Thunk) -> Value:
    end, text = ev.string_of(suffix), ev.text_of(value)
    if text.holes and text.holes[-1].at >= len(text.value) - len(end):
        known_string(text)
    return Str(text.slice(0, len(text.value) - len(end)) if end and text.value.endswith(end) else text)


def split_string(ev: Evaluator, span: Span, separator: Thunk, value: Thunk) -> Value:
    sign, text = ev.string_of(separator), ev.text_of(value)
    known_string(text)
    if not sign:
        raise Stuck(Opaque(span, "the string is split at nothing"))
    parts: list[Text] = []
    at = 0
    while True:
        cut = text.value.find(sign, at)
        parts.append(text.slice(at, len(text.value) if cut < 0 else cut))
        if cut < 0:
            return Items(tuple(done(Str(part), part.home or span) for part in parts))
        at = cut + len(sign)


def characters(ev: Evaluator, span: Span, value: Thunk) -> Value:
    text = ev.text_of(value)
    if not known_string(text).isascii():
        raise Stuck(Opaque(span, "the characters are bytes, and the string is not ASCII"))
    return Items(tuple(done(Str(text.slice(i, i + 1)), span) for i in range(len(text.value))))


def _case(change: Callable[[str], str]) -> Run:
    def run(ev: Evaluator, span: Span, value: Thunk) -> Value:
        text = ev.text_of(value)
        return Str(map_chars(text, lambda s: "".join(change(c) if c.isascii() else c for c in s)))

    return run


def bool_to_string(ev: Evaluator, span: Span, value: Thunk) -> Value:
    found = ev.known(value)
    if not isinstance(found, Bool):
        raise ev.wrong(found, "bool", span)
    return Str(found.text)


def to_int(ev: Evaluator, span: Span, value: Thunk) -> Value:
    text = ev.text_of(value)
    match = _WHOLE_NUMBER.match(known_string(text))
    if match is None or (len(match[1]) > 1 and match[1].startswith("0")):
        raise failed(span, "the string is not a whole number")
    return from_json(ev, span, done(Str(text.slice(*match.span(1))), span))


def float_to_string(ev: Evaluator, span: Span, value: Thunk) -> Value:
    return Str(to_text(ev, ev.whole(value), span, more=True))


def _escape(ev: Evaluator, span: Span, signs: Thunk, value: Thunk) -> Value:
    pairs = [(sign, Text.at("\\" + sign, span)) for sign in (ev.string_of(item) for item in ev.list_of(signs))]
    return Str(replaced(ev, span, ev.text_of(value), pairs))


def replace_string(ev: Evaluator, span: Span, old: Thunk, new: Thunk, value: Thunk) -> Value:
    return Str(replaced(ev, span, ev.text_of(value), [(ev.string_of(old), ev.text_of(new))]))


def replicate_string(ev: Evaluator, span: Span, count: Thunk, value: Thunk) -> Value:
    number = ev.int_of(count)
    if not 0 <= number <= 1000:
        raise Stuck(Opaque(span, "the string is too long to be evaluated"))
    return Str(ev.joined([ev.text_of(value)] * number, span) if number else Text("", (), (), span))


def _version(test: Callable[[int], bool]) -> Run:
    def run(ev: Evaluator, span: Span, a: Thunk, b: Thunk) -> Value:
        return truth(test(compare_versions(ev.string_of(a), ev.string_of(b))), span)

    return run


STRING_FUNCTIONS: dict[str, tuple[int, Run]] = {
    "boolToString": (1, bool_to_string),
    "concatImapStringsSep": (3, concat_imap_strings_sep),
    "concatLines": (1, concat_lines),
    "concatMapAttrsStringSep": (3, concat_map_attrs_sep),
    "concatMapStrings": (2, concat_map_strings),
    "concatMapStringsSep": (3, concat_map_strings_sep),
    "concatStrings": (1, concat_strings),
    "concatStringsSep": (2, BUILTINS["concatStringsSep"].run),
    "escape": (2, _escape),
    "fileContents": (1, lambda ev, span, path: Str(_chomped(outside.source_of(ev, path, span)))),
    "strings.floatToString": (1, float_to_string),
    "getBin": (1, get_output),
    "getExe": (1, get_exe),
    "getExe'": (2, get_exe_named),
    "hasInfix": (2, _edge(lambda text, part: part in text)),
    "hasPrefix": (2, _edge(str.startswith)),
    "hasSuffix": (2, _edge(str.endswith)),
    "importJSON": (
        1,
        lambda ev, span, path: from_json(ev, span, done(Str(outside.source_of(ev, path, span)), span)),
    ),
    "join": (2, BUILTINS["concatStringsSep"].run),
    "optionalString": (2, optional_string),
    "removePrefix": (2, remove_prefix),
    "removeSuffix": (2, remove_suffix),
    "replaceString": (3, replace_string),
    "splitString": (2, split_string),
    "stringToCharacters": (1, characters),
    "strings.replicate": (2, replicate_string),
    "toInt": (1, to_int),
    "toLower": (1, _case(str.lower)),
    "toUpper": (1, _case(str.upper)),
    "versionAtLeast": (2, _version(lambda order: order >= 0)),
    "versionOlder": (2, _version(lambda order: order < 0)),
}


def _chomped(text: Text) -> Text:
    """`fileContents` takes one line feed off the end."""
    return text.slice(0, len(text.value) - 1) if text.value.endswith("\n") else text
