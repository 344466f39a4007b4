"""trtllm-serve: click, and a YAML file whose keys become arguments of the engine beside those of the command line.

The keys stand in the reading's settings under `yaml.<key>`, those of a nested mapping under `yaml.<key>.<inner>`: which of the
two places wins is the engine's to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvlint.engines.argparse import Given, Load, Reading
from kvlint.engines.dialects import click
from kvlint.engines.dialects.common import AFTER, Sheet, words_of
from kvlint.engines.dialects.configfile import Unreadable, bounded
from kvlint.engines.options import Option, Options
from kvlint.source import HOLE, Text

LARGEST = 1 << 20
YAML = "yaml"


def read(options: Options, release: str, args: tuple[Text, ...], entry: str | None, load: Load) -> Reading:
    sheet = Sheet(options, release)
    click.parse(sheet, options.at(release), words_of(args))
    config = sheet.settings.get("config")
    if config is not None and config.value is not None:
        _merge(sheet, config.value, load)
    return sheet.reading()


def _merge(sheet: Sheet, name: Text, load: Load) -> None:
    """The file's keys; where it is not in view, anything may stand in it."""
    text = None if HOLE in name.value else load(name)
    if text is None:
        sheet.open.append(name)
        return
    try:
        for given in _keys(sheet, text):
            sheet.settings[given.dest] = given
    except Unreadable as error:
        sheet.object(AFTER, "config-file", name, stage="post", why=str(error))


def _keys(sheet: Sheet, text: Text) -> Iterator[Given]:
    import yaml

    if len(text.value) > LARGEST:
        raise Unreadable("larger than 1 MiB")
    try:
        loader = yaml.SafeLoader(text.value)
        node = loader.get_single_node()
        if node is None:
            return
        if not isinstance(node, yaml.MappingNode):
            raise Unreadable("not a mapping")
        bounded(node)
        yield from _mapping(sheet, text, loader, node, YAML)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, OverflowError) as error:
        raise Unreadable(str(error).partition("\n")[0]) from None


def _mapping(sheet: Sheet, text: Text, loader: Any, node: Any, prefix: str) -> Iterator[Given]:
    import yaml

    for key, value in node.value:
        dest = f"{prefix}.{loader.construct_object(key, deep=True)}"
        place = text.slice(value.start_mark.index, value.end_mark.index)
        named = text.slice(key.start_mark.index, key.end_mark.index)
        option = Option((dest,), dest, "str", sheet.options.all_releases, -1)
        yield Given(option, named, dest, (place,), loader.construct_object(value, deep=True), None, "file")
        if isinstance(value, yaml.MappingNode) and prefix == YAML:
            yield from _mapping(sheet, text, loader, value, dest)
