"""YAML files named by `--config`, key by key, with the place of each."""

from __future__ import annotations

from typing import Any

from kvlint.records import dataclass
from kvlint.source import Text

_LARGEST = 1 << 20
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One key.  `value_text` is what the value says, without YAML's quotes; `items` the same of a list's members."""

    key: str
    value: Any
    key_text: Text
    value_text: Text
    items: tuple[Text, ...] = ()


class Unreadable(ValueError):
    """The file is no YAML mapping, or larger than a configuration is."""


def entries(text: Text, *, filled: bool = False) -> list[Entry]:
    """The top level of a YAML file, as a safe loader reads it: a key's last value, in the place of its first.

    Raises `Unreadable`, also for a file without anything in it where the engine asks for a mapping (`filled`).
    """
    import yaml

    if len(text.value) > _LARGEST:
        raise Unreadable("larger than 1 MiB")
    try:
        loader = yaml.SafeLoader(text.value)
        node = loader.get_single_node()
        if node is None and filled:
            raise Unreadable("nothing in it")
        if node is None:
            return []
        if not isinstance(node, yaml.MappingNode):
            raise Unreadable("not a mapping")
        bounded(node)
        loader.flatten_mapping(node)
        found: dict[str, Entry] = {}
        for key, value in node.value:
            entry = _entry(loader, text, key, value)
            found[entry.key] = entry
        return list(found.values())
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, OverflowError) as error:
        raise Unreadable(str(error).partition("\n")[0]) from None


def _entry(loader: Any, text: Text, key: Any, node: Any) -> Entry:
    value = loader.construct_object(node, deep=True)
    members = zip(node.value, value, strict=True) if isinstance(value, list) else ()
    return Entry(
        str(loader.construct_object(key, deep=True)),
        value,
        text.slice(key.start_mark.index, key.end_mark.index),
        _said(text, node, value),
        tuple(_said(text, member, each) for member, each in members),
    )


def _said(text: Text, node: Any, value: Any) -> Text:
    written = text.slice(node.start_mark.index, node.end_mark.index)
    if not isinstance(value, (str, int, float)) or isinstance(value, bool) or written.value == str(value):
        return written
    return Text.at(str(value), written.span)


def bounded(node: Any) -> None:
    """An alias that repeats its way up (or holds itself) is refused before it is built."""
    budget = _MOST
    stack = [node]
    while stack:
        current = stack.pop()
        budget -= 1
        if budget < 0:
            raise Unreadable("too large once its aliases are written out")
        value = current.value
        if isinstance(value, list):
            for item in value:
                stack.extend(item if isinstance(item, tuple) else (item,))
