"""Presets of llama-server's router: an INI file with a section a model, each of which the router starts as a process of its own.

Keys are flags without their dashes, or variables; a section's win over those of `[*]`, the router's own arguments over both
(ggml-org/llama.cpp@00dd0816:tools/server/server-models.cpp; common/preset.cpp).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kvlint.carriers.base import PRESETS_FLAG, PRESETS_VARIABLE, Finding, Item, directory
from kvlint.carriers.scripts import Files
from kvlint.command import CommandLine, Opening
from kvlint.engines.options import Option, options
from kvlint.formats.ini import Section, sections
from kvlint.formats.shell.filled import replaced
from kvlint.formats.shell.text import where
from kvlint.project import Project
from kvlint.records import replace
from kvlint.source import Text
from kvlint.subjects import Process, Site

ENGINE = "llama-server"
OF_HUB = ("hf", "hfr", "hf-repo", "LLAMA_ARG_HF_REPO")
OF_MODEL = ("model", "m", "model-url", "mu", "LLAMA_ARG_MODEL", "LLAMA_ARG_MODEL_URL", *OF_HUB)
# Keys of the presets alone (common/arg.cpp: options that are no arguments), and the one that is reserved.
NO_FLAGS = ("version", "load-on-startup", "stop-timeout")
# Arguments of the router that it does not hand on: server-models.cpp, unset_reserved_args.  `--models-preset` is kept here all
# the same: it means nothing to a process with a model, and a release that has no router refuses it.
RESERVED = (
    *("models_dir", "models_max", "models_autoload", "model", "mmproj", "alias", "hf_repo"),
    *("api_key", "ssl_key_file", "ssl_cert_file"),
)
TRUE, FALSE = ("true", "on", "enabled", "1"), ("false", "off", "disabled", "0")


class Presets:
    name = "presets"

    def claims(self, item: Item) -> bool:
        if item.kind != "ini":
            return False
        return _plainly(list(sections(Text.of(item.source, 0, len(item.source.text)))))

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        """The models of files that no router in view names."""
        for item in items:
            site = Site("presets", f"host {directory(item.path)}", "", item.span, data={"router": item.path})
            text = Text.of(item.source, 0, len(item.source.text))
            for section, settings in _models(text):
                program, flag, path = (Text.at(word, section.span) for word in (ENGINE, PRESETS_FLAG, item.path))
                line = CommandLine(program, (*_words(section, settings), flag, path))
                yield Process(replace(site, name=section.value, place=section.span, data=dict(site.data)), line)


CARRIER = Presets()


def _plainly(read: list[Section]) -> bool:
    """Whether a file that no router names can be nothing else: it names models, and every key is one of llama-server's."""
    settings = [(key.value, value.value) for section in read for key, value in section.settings]
    models = any(key in OF_HUB or (key in OF_MODEL and value.endswith(".gguf")) for key, value in settings)
    return models and all(key in NO_FLAGS or _option(key) is not None for key, _ in settings)


def children(process: Process, files: Files) -> Iterator[Process]:
    """The processes of a router's presets in place of the router's own; nothing where it has none in these files."""
    named = _named(process)
    if named is None or not named.known:
        return
    mounted = process.site.data.get("mounted")
    text = mounted(named.value) if mounted is not None else None
    if text is None:
        path = files.find(named, process.site.place.path)
        source = files.source(path) if path is not None else None
        text = Text.of(source, 0, len(source.text)) if source is not None else None
    if text is None:
        return
    own, loaded = _handed_on(process.line)
    read = options("llama-server").environment
    # What the router's own line is made of is no setting, and its models' lines no longer show that.
    env = {name: value for name, value in process.line.env.items() if name in read or not process.line.names(name)}
    for section, settings in _models(text):
        line = replace(process.line, args=(*_words(section, settings), *own), env=env)
        data = {key: value for key, value in process.site.data.items() if key != "identity"}
        data["router"] = f"{process.site.place.path}#{process.site.name}"
        site = replace(process.site, name=section.value, place=section.span, exclusive=loaded == "1", data=data)
        yield Process(site, line)


def unseen(process: Process) -> Process:
    """A router whose presets are not in view: they may set what its own arguments leave out.

    What llama-swap starts stays the process that its limit stands before.
    """
    named = _named(process)
    if named is None or process.site.carrier in ("presets", "llama-swap"):
        return process
    what = named.value if named.known else "its presets"
    opening = Opening(0, where(named), f"{what} may set it for each model", "the presets")
    return replace(process, line=replace(process.line, open=(opening, *process.line.open)))


def _named(process: Process) -> Text | None:
    for word, following in pairwise(process.line.args):
        if word.value == PRESETS_FLAG:
            return following
    return process.line.env.get(PRESETS_VARIABLE)


def _models(text: Text) -> Iterator[tuple[Text, dict[str, tuple[Text, Text]]]]:
    """Each model's name, and its settings by option over those of `[*]`."""
    read = [section for section in sections(text) if section.name is not None]
    everywhere = next((_by_option(section) for section in read if section.name and section.name.value == "*"), {})
    for section in read:
        if section.name is not None and section.name.value not in ("*", "default", ""):
            yield section.name, {**everywhere, **_by_option(section)}


def _by_option(section: Section) -> dict[str, tuple[Text, Text]]:
    found = {}
    for key, value in section.settings:
        option = _option(key.value)
        if key.value not in NO_FLAGS:
            found[option.dest if option is not None else key.value] = (key, value)
    return found


def _option(key: str) -> Option | None:
    """The option of a key, as the newest release that has it knows it."""
    known = options(ENGINE)
    found = known.known(f"--{key}") or known.known(f"-{key}") or [each for each in known.options if each.env == key]
    return max(found, key=lambda option: option.releases, default=None)


def _words(name: Text, settings: dict[str, tuple[Text, Text]]) -> Iterator[Text]:
    """The arguments of a model's process.  Without a model of its own its name is that of a repository."""
    if not any(key.value in OF_MODEL for key, _ in settings.values()) and "/" in name.value:
        yield from (Text.at("-hf", name.span), name)
    for key, written in settings.values():
        option, value = _option(key.value), replaced(written)
        if option is None or not option.switch:
            spelling = option.name if option is not None else f"--{key.value}"
            yield from (Text.at(spelling, key.span), value)
            continue
        negated = any(spelling.lstrip("-") == key.value for spelling in option.off)
        wanted = (value.value not in FALSE) != negated
        spellings = option.spellings if wanted else option.off
        if spellings:
            yield Text.at(spellings[-1], value.span if value.pieces else key.span)


def _handed_on(line: CommandLine) -> tuple[list[Text], str | None]:
    """The router's arguments that its processes get too, and how many models it keeps loaded."""
    kept: list[Text] = []
    loaded: str | None = None
    at = 0
    while at < len(line.args):
        word = line.args[at]
        option = next(iter(options(ENGINE).known(word.value)), None)
        size = 1 if option is None or option.switch else 2
        if option is None or option.dest not in RESERVED:
            kept += line.args[at : at + size]
        elif option.dest == "models_max" and at + 1 < len(line.args):
            loaded = line.args[at + 1].value
        at += size
    return kept, loaded
