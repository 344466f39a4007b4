"""nixpkgs' `lib` for command lines: quoting for the shell and for systemd, options made of sets, lines of an env file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kvlint.formats.nix.builtins import to_json
from kvlint.formats.nix.coerce import to_text
from kvlint.formats.nix.strings import replaced
from kvlint.formats.nix.values import (
    Attrs,
    Bool,
    Items,
    Null,
    Outside,
    Run,
    Splice,
    Str,
    Stuck,
    Thunk,
    Value,
    done,
    failed,
    hole,
    kind_of,
    one_word,
)
from kvlint.patterns import regex
from kvlint.source import Span, Text
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator

_SHELL_SAFE = regex(r"[A-Za-z0-9,._+:@%/-]+\Z")


def shell_word(ev: Evaluator, span: Span, thunk: Thunk) -> Text:
    """`escapeShellArg`: one word; quoted where it must be."""
    text = one_word(to_text(ev, ev.either(ev.force(thunk)), span, more=True, copy=False, thunk=thunk))
    if _SHELL_SAFE.match(text.value):
        return text
    inner = replaced(ev, span, text, [("'", Text.at("'\\''", span))])
    return ev.joined([Text.at("'", span), inner, Text.at("'", span)], span)


def escape_shell_arg(ev: Evaluator, span: Span, value: Thunk) -> Value:
    return Str(shell_word(ev, span, value))


def escape_shell_args(ev: Evaluator, span: Span, items: Thunk) -> Value:
    value = ev.either(ev.force(items))
    if isinstance(value, (Opaque, Outside)):
        return Str(hole(value.span, value, splice=True))
    if not isinstance(value, Items):
        raise ev.wrong(value, "list", span)
    return Str(shell_line(ev, span, value))


def shell_line(ev: Evaluator, span: Span, value: Items) -> Text:
    parts: list[Text] = []
    for number, item in enumerate(value.items):
        if number:
            parts.append(Text.at(" ", span))
        if isinstance(item, Splice):
            parts.append(hole(item.unknown.span, item.unknown, splice=True))
        else:
            parts.append(shell_word(ev, item.span, item))
    return ev.joined(parts, span) if parts else Text("", (), (), span)


def escape_systemd_arg(ev: Evaluator, span: Span, value: Thunk) -> Text:
    """`utils.escapeSystemdExecArg` (nixos/lib/utils.nix): JSON's quotes, with `%` and `$` doubled."""
    found = ev.either(ev.force(value))
    if isinstance(found, (Bool, Null, Items)):
        raise failed(span, f"a {kind_of(found)} cannot be an argument of a unit's command")
    text = one_word(to_text(ev, found, span, more=True, copy=True, thunk=value))
    quoted = to_json(ev, span, done(Str(text), span))
    assert isinstance(quoted, Str)
    return replaced(ev, span, quoted.text, [("%", Text.at("%%", span)), ("$", Text.at("$$", span))])


def escape_systemd_one(ev: Evaluator, span: Span, value: Thunk) -> Value:
    return Str(escape_systemd_arg(ev, span, value))


def escape_systemd_args(ev: Evaluator, span: Span, items: Thunk) -> Value:
    parts: list[Text] = []
    for number, item in enumerate(ev.items_of(items).items):
        if number:
            parts.append(Text.at(" ", span))
        if isinstance(item, Splice):
            parts.append(hole(item.unknown.span, item.unknown, splice=True))
        else:
            parts.append(escape_systemd_arg(ev, item.span, item))
    return Str(ev.joined(parts, span) if parts else Text("", (), (), span))


def value_string(ev: Evaluator, span: Span, thunk: Thunk) -> Text:
    """`lib.generators.mkValueStringDefault {}`."""
    value = ev.either(ev.force(thunk))
    if isinstance(value, (Bool, Null)):
        return value.text
    if isinstance(value, (Items, Attrs)):
        raise failed(span, f"a {kind_of(value)} cannot be the value of an option")
    return to_text(ev, value, span, more=True, copy=False, thunk=thunk)


def _option_name(key: Text, span: Span) -> Text:
    return Text.join([Text.at("-" if len(key.value.encode()) == 1 else "--", span), key])


def gnu_command_line(ev: Evaluator, span: Span, options: Thunk, values: Thunk) -> Value:
    """`lib.cli.toGNUCommandLine`, with the default rendering or another separator."""
    given = ev.attrs_of(options)
    unusual = set(ev.names(given, span)) - {"optionValueSeparator"}
    if unusual:
        raise Stuck(Opaque(span, f"{min(unusual)} changes how the options are written"))
    separator = None
    if "optionValueSeparator" in given.slots and kind_of(ev.known(given.slots["optionValueSeparator"].value)) != "null":
        separator = ev.text_of(given.slots["optionValueSeparator"].value)
    found = ev.attrs_of(values)
    arguments: list[Thunk | Splice] = []
    for name in ev.names(found, span):
        slot = found.slots[name]
        arguments += _option(ev, span, _option_name(slot.key, slot.key_span), slot.value, separator)
    return Items(tuple(arguments))


def _option(
    ev: Evaluator, span: Span, option: Text, thunk: Thunk, separator: Text | None, top: bool = True
) -> list[Thunk | Splice]:
    value = ev.either(ev.force(thunk))
    if isinstance(value, (Opaque, Outside)):
        return [Splice(Opaque(value.span, value.reason, value.supply))]
    if isinstance(value, Null):
        return []
    if top and isinstance(value, Bool):
        return [done(Str(option), thunk.span)] if value.value else []
    if top and isinstance(value, Items):
        found: list[Thunk | Splice] = []
        for item in value.items:
            found += [item] if isinstance(item, Splice) else _option(ev, span, option, item, separator, top=False)
        return found
    text = value_string(ev, span, thunk)
    if separator is None:
        return [done(Str(option), thunk.span), done(Str(text), thunk.span)]
    return [done(Str(ev.joined([option, separator, text], span)), thunk.span)]


def gnu_command_line_new(ev: Evaluator, span: Span, options: Thunk, values: Thunk) -> Value:
    """`lib.cli.toCommandLineGNU` with `explicitBool` at most: `--name=value`, `-nvalue`."""
    given = ev.attrs_of(options)
    unusual = set(ev.names(given, span)) - {"explicitBool"}
    if unusual:
        raise Stuck(Opaque(span, f"{min(unusual)} changes how the options are written"))
    explicit = "explicitBool" in given.slots and ev.bool_of(given.slots["explicitBool"].value)
    found = ev.attrs_of(values)
    arguments: list[Thunk | Splice] = []
    for name in ev.names(found, span):
        slot = found.slots[name]
        value = ev.either(ev.force(slot.value))
        items = value.items if isinstance(value, Items) else (slot.value,)
        for item in items:
            arguments += _option_new(ev, span, slot.key, slot.key_span, item, explicit)
    return Items(tuple(arguments))


def _option_new(
    ev: Evaluator, span: Span, key: Text, key_span: Span, item: Thunk | Splice, explicit: bool
) -> list[Thunk | Splice]:
    if isinstance(item, Splice):
        return [item]
    value = ev.either(ev.force(item))
    if isinstance(value, (Opaque, Outside)):
        return [Splice(Opaque(value.span, value.reason, value.supply))]
    if isinstance(value, Null) or (isinstance(value, Bool) and not value.value and not explicit):
        return []
    option = _option_name(key, key_span)
    if isinstance(value, Bool) and not explicit:
        return [done(Str(option), item.span)]
    separator = Text.at("=", span) if len(option.value) > 2 else Text("", (), (), span)
    return [done(Str(ev.joined([option, separator, value_string(ev, span, item)], span)), item.span)]


def _shell_of(make: Callable[[Evaluator, Span, Thunk, Thunk], Value]) -> Run:
    def run(ev: Evaluator, span: Span, options: Thunk, values: Thunk) -> Value:
        made = make(ev, span, options, values)
        assert isinstance(made, Items)
        return Str(shell_line(ev, span, made))

    return run


def to_key_value(ev: Evaluator, span: Span, options: Thunk, values: Thunk) -> Value:
    """`lib.generators.toKeyValue {}`: one `name=value` a line."""
    if ev.names(ev.attrs_of(options), span):
        raise Stuck(Opaque(span, "the options change how the lines are written"))
    found = ev.attrs_of(values)
    parts: list[Text] = []
    for name in ev.names(found, span):
        slot = found.slots[name]
        if "=" in name:
            raise Stuck(Opaque(slot.key_span, "the name holds an equals sign"))
        text = value_string(ev, span, slot.value)
        parts += [slot.key, Text.at("=", span), text, Text.at("\n", span)]
    return Str(ev.joined(parts, span) if parts else Text("", (), (), span))


def generate_json(ev: Evaluator, span: Span, options: Thunk, value: Thunk) -> Value:
    return to_json(ev, span, value)


SHELL_FUNCTIONS: dict[str, tuple[int, Run]] = {
    "cli.toCommandLineGNU": (2, gnu_command_line_new),
    "cli.toCommandLineShellGNU": (2, _shell_of(gnu_command_line_new)),
    "cli.toGNUCommandLine": (2, gnu_command_line),
    "cli.toGNUCommandLineShell": (2, _shell_of(gnu_command_line)),
    "escapeShellArg": (1, escape_shell_arg),
    "escapeShellArgs": (1, escape_shell_args),
    "generators.toJSON": (2, generate_json),
    "generators.toKeyValue": (2, to_key_value),
    "generators.toYAML": (2, generate_json),
    "utils.escapeSystemdExecArg": (1, escape_systemd_one),
    "utils.escapeSystemdExecArgs": (1, escape_systemd_args),
}
