"""YAML files named by `--config`, key by key, with the place of each."""

from __future__ import annotations

from typing import Any, NamedTuple

from kvlint.source import Text

_LARGEST = 1 << 20
_MOST = 20_000


class Entry(NamedTuple):
    key: str
    value: Any
    key_text: Text
    value_text: Text


class Unreadable(ValueError):
    """The file is no YAML mapping, or larger than a configuration is."""


def entries(text: Text) -> list[Entry]:
    """The top level of a YAML file, as a safe loader reads it.  Raises `Unreadable`."""
    import yaml

    if len(text.value) > _LARGEST:
        raise Unreadable("larger than 1 MiB")
    try:
        loader = yaml.SafeLoader(text.value)
        node = loader.get_single_node()
        if node is None:
            return []
        if not isinstance(node, yaml.MappingNode):
            raise Unreadable("not a mapping")
        bounded(node)
        return [
            Entry(
                str(loader.construct_object(key, deep=True)),
                loader.construct_object(value, deep=True),
                text.slice(key.start_mark.index, key.end_mark.index),
                text.slice(value.start_mark.index, value.end_mark.index),
            )
            for key, value in node.value
        ]
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, OverflowError) as error:
        raise Unreadable(str(error).partition("\n")[0]) from None


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
