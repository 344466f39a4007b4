"""Modules of Nix that run an engine: what their options make of its command line."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import PRESETS_FLAG
from kvlint.carriers.launch import Launch
from kvlint.carriers.nix.services import File, spread, variables, words
from kvlint.carriers.nix.store import ini
from kvlint.command import Opening
from kvlint.formats import systemd
from kvlint.records import replace
from kvlint.source import Span, Text
from kvlint.subjects import Process
from kvlint.tree import List, Map, Node, Opaque, Scalar

# The options of nixpkgs' own module (nixos/modules/services/misc/llama-cpp.nix); a module of one's own may have more.
_LLAMA_OPTIONS = frozenset(
    {
        "enable",
        "package",
        "model",
        "modelsDir",
        "modelsPreset",
        "extraFlags",
        "extraArgs",
        "settings",
        "host",
        "port",
        "openFirewall",
    }
)
_FOREIGN = "an option of a module that is not nixpkgs' own"


def ollama(file: File, name: str, place: Span, node: Map) -> Iterator[Process]:
    """`services.ollama`: configured by its environment."""
    env, unseen = variables(node.get("environmentVariables"))
    host, port = node.text("host"), node.text("port")
    if host is not None and port is not None:
        env.setdefault("OLLAMA_HOST", Text.join((host, Text.at(":", port.span), port)))
    line = (Text.at("ollama", place), Text.at("serve", place))
    yield from file.start(Launch(line, place, env, env_open=unseen), name, place)


def app(file: File, name: str, place: Span, node: Map) -> Iterator[Process]:
    """`launchd.envVariables`, `launchd.user.envVariables`: what Ollama's app finds when it is started."""
    env, unseen = variables(node)
    env = {name: value for name, value in env.items() if name.startswith("OLLAMA_")}
    if env:
        unseen = (
            *unseen,
            Opening(0, place, "the app may be given more variables", "launchd.user.envVariables for each"),
        )
        line = (Text.at("ollama", place), Text.at("serve", place))
        yield from file.start(Launch(line, place, env, env_open=unseen), "ollama", place)


def llama_server(file: File, name: str, place: Span, node: Map) -> Iterator[Process]:
    """`services.llama-cpp`: `model`, `host`, `port`, `extraFlags`; in newer trees `settings`, each key an option."""
    line = [Text.at("llama-server", place)]
    for key, option in (("host", "--host"), ("port", "--port"), ("model", "--model"), ("modelsDir", "--models-dir")):
        entry = node.entry(key)
        if entry is not None:
            line += _option(option, entry.key, entry.value)
    for entry in node.map("settings") or ():
        for value in entry.value if isinstance(entry.value, List) else (entry.value,):
            line += _option(f"--{entry.key.value}", entry.key, value)
    presets = node.get("modelsPreset")
    text = ini(presets) if isinstance(presets, Map) else None
    if presets is not None and not (isinstance(presets, Scalar) and presets.tag == "null"):
        path = file.kept.add(f"{name}-presets.ini", text) if text is not None else None
        word = Text.at(path, presets.span) if path is not None else _value(presets)
        line += (Text.at(PRESETS_FLAG, place), word)
    more = node.get("extraFlags") or node.get("extraArgs")
    arguments, openings = words(more)
    if isinstance(more, Scalar):
        arguments = tuple(systemd.split(spread(more.text, file)))
    foreign = [
        Opening(0, entry.key.span, _FOREIGN, "extraFlags") for entry in node if entry.key.value not in _LLAMA_OPTIONS
    ]
    shifted = tuple(replace(opening, index=opening.index + len(line)) for opening in openings)
    yield from file.start(Launch((*line, *arguments), place, {}, open=(*foreign[:1], *shifted)), name, place)


def _value(node: Node) -> Text:
    reason = node.reason if isinstance(node, Opaque) else "a value that is no text"
    return node.text if isinstance(node, Scalar) else Text.unknown(node.span, reason)


def _option(option: str, key: Scalar, value: Node) -> Iterator[Text]:
    """An option with its value; true is the option alone, false and null are none."""
    if isinstance(value, Scalar) and value.tag in ("bool", "null"):
        if value.value == "true":
            yield Text.at(option, key.span)
        return
    yield Text.at(option, key.span)
    if isinstance(value, Scalar):
        if value.value:
            yield value.text
    else:
        reason = value.reason if isinstance(value, Opaque) else "a value that is no text"
        yield Text.unknown(value.span, reason, f"the value of {key.value}")
