"""llama-swap's `config.yaml`: a command, a limit and a promise for each model; wherever such a document stands.

Facts: mostlygeek/llama-swap@0bdb3720, internal/config and internal/router (data/admission.toml).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvlint.admission import system
from kvlint.carriers.base import Finding, Item, is_number
from kvlint.carriers.embedded import Around
from kvlint.carriers.launch import Launch, launches, no_scripts
from kvlint.carriers.llama_swap.macros import defined, expand, macros_of, whose_macros
from kvlint.carriers.llama_swap.residence import residence
from kvlint.carriers.llama_swap.schema import refusals, without_port
from kvlint.carriers.proxies import served
from kvlint.carriers.scripts import Files
from kvlint.diagnostics import Unchecked
from kvlint.facts import Default, Fact, Unknown, Value, Written
from kvlint.formats import shell
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass, field, replace
from kvlint.residence import Residence
from kvlint.source import Text
from kvlint.subjects import Admission, Problem, Process, Promise, Site
from kvlint.tree import Map, Node, Opaque, Scalar

_LOCAL = regex(r"http://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]):([0-9]+)/?")
_PROGRAM = regex(r"llama|vllm|sglang|mlx|\$\{(?:PORT|MODEL_ID)\}")
_WHOLE = regex(r"config|swap")  # how people call the one file that llama-swap is given
SAID = 60  # characters of a command that are enough to know it by


class LlamaSwap:
    name = "llama-swap"

    def claims(self, item: Item) -> bool:
        return isinstance(item.node, Map) and (is_config(item.node) or _without_models(item.node))

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        holders = [item for item in items if isinstance(item.node, Map) and defined(item.node)]
        used: set[str] = set()
        for item in items:
            if not isinstance(item.node, Map) or _without_models(item.node):
                continue
            apart = _fragment(item.node, item.path)
            shared = whose_macros(item, holders) if apart else None
            used.update(root.path for root in (shared,) if root is not None)
            held = shared.node if shared is not None else None
            assert held is None or isinstance(held, Map)
            yield from config(item.node, served.around(item.path, project), files, held)
        for item in items:
            if isinstance(item.node, Map) and _without_models(item.node):
                yield from _whole(item.node)
                if item.path not in used:
                    supply = "the files of llama-swap's -config-dir"
                    yield Unchecked("width-below-admission", None, "models", supply, item.span)


CARRIER = LlamaSwap()


def is_config(node: Map) -> bool:
    """A mapping of models of which one has a command: no other format of ours is written so."""
    models = node.map("models")
    return models is not None and any(isinstance(entry.value, Map) and "cmd" in entry.value for entry in models)


def _without_models(node: Map) -> bool:
    """The part of a configuration that holds for all models, which are in other files of a `-config-dir`."""
    if "models" in node or not any(key in node for key in ("macros", "healthCheckTimeout")):
        return False
    macros = node.map("macros")
    programs = macros is None or any(
        isinstance(each.value, Scalar) and _PROGRAM.search(each.value.value) for each in macros
    )
    return (
        programs
        and len(node.entries) > 1
        and all(entry.key.value in system("llama-swap")["top_keys"] for entry in node)
    )


@dataclass(slots=True)
class _Config:
    """`files`: those of the project, where its commands may name scripts.

    `apart`: it may be read with others, of which none is in view.
    """

    root: Map
    path: str
    macros: dict[str, Text]
    settings: Mapping[str, Value[Any]]
    files: Files | None
    apart: bool = False
    numbered: bool = True  # whether the ports of its models can be counted here
    groups: dict[str, tuple[str, bool]] = field(default_factory=dict)  # model: (group, swaps)
    residence: Residence | None = None


def config(root: Map, around: Around, files: Files | None = None, shared: Map | None = None) -> Iterator[Finding]:
    """Everything that a llama-swap configuration holds, from whatever format it was read.

    `around`: how others of the unit reach the proxy, where its carrier knows.  `files`: where its commands may find scripts.
    `shared`: the file that is read with this one and holds its macros.
    """
    macros = {
        **dict(macros_of(shared.map("macros") if shared is not None else None)),
        **dict(macros_of(root.map("macros"))),
    }
    about = _Config(root, around.path, macros, _addresses(shared or root, around), files)
    about.apart = shared is None and _fragment(root, around.path)
    about.numbered = shared is None
    about.groups = dict(_groups(shared or root))
    about.residence = residence(shared or root, tuple(entry.key.value for entry in root.map("models") or ()))
    yield from _whole(root)
    port = system("llama-swap")["start_port"]
    start = root.string("startPort")
    if start and start.isdigit():
        port = int(start)
    models = root.map("models")
    for entry in sorted(models or (), key=lambda each: each.key.value):
        if not isinstance(entry.value, Map):
            continue
        yield from _model(about, entry.key, entry.value, around.unit, port)
        port += _uses_port(about, entry.value)


def _whole(root: Map) -> Iterator[Finding]:
    """What the loader says to the shape of a file."""
    yield from _unread_keys(root, system("llama-swap")["top_keys"], "top level")
    yield from refusals(root)


def _uses_port(about: _Config, node: Map) -> bool:
    """Whether a model takes the next port: its command asks for one, itself or through a macro."""
    command = node.get("cmd")
    if not isinstance(command, Scalar) or not command.value:
        return False
    expanded, _ = expand(command.text, {**about.macros, **dict(macros_of(node.map("macros")))}, "")
    lines = (line for line in expanded.value.splitlines() if not line.lstrip().startswith("#"))
    return any("${PORT}" in line for line in lines)


def _addresses(root: Map, around: Around) -> dict[str, Value[Any]]:
    port = around.ports[0] if around.ports else system("llama-swap")["listen_port"]
    found: dict[str, Value[Any]] = {"port": Fact(port, Default("llama-swap", (), "--listen"))}
    if around.hosts:
        found["hosts"] = Fact(around.hosts, Written(root.span))
    return found


def _groups(root: Map) -> Iterator[tuple[str, tuple[str, bool]]]:
    groups = root.map("groups") or root.map("routing", "router", "settings", "groups")
    for entry in groups or ():
        if not isinstance(entry.value, Map):
            continue
        swaps = entry.value.string("swap") != "false"
        for member in entry.value.list("members") or ():
            if isinstance(member, Scalar):
                yield member.value, (entry.key.value, swaps)


def _unread_keys(node: Map, known: list[str], where: str) -> Iterator[Problem]:
    """Keys that the loader ignores: it reads without strictness, so a misspelt limit leaves the default in force."""
    from difflib import get_close_matches

    for entry in node:
        key = entry.key.value
        if key in known or not entry.key.text.known or not _limits(key) or not is_number(entry.value):
            continue
        near = get_close_matches(key, known, n=1, cutoff=0.75)
        data = {"engine": "llama-swap", "flag": key, "expected": where, "suggestion": near[0] if near else None}
        default = str(system("llama-swap")["default_limit"])
        same = isinstance(entry.value, Scalar) and entry.value.value == default
        yield Problem("admission-ineffective", entry.key.span, data, doubt=_SAME if same else None)


_SAME = "the default is the same number"
_COUNTED = "llama-swap counts the models of all its files"
_ESCAPED = "`$${` is how a template keeps a dollar sign, so that something fills this file in first"


def _fragment(root: Map, path: str) -> bool:
    """Whether a file may be one of a `-config-dir`: models and nothing else, in a file of another name or run by macros."""
    if any(entry.key.value != "models" for entry in root):
        return False
    if not _WHOLE.search(path.rpartition("/")[2].lower()):
        return True
    commands = (entry.value.string("cmd") or "" for entry in root.map("models") or () if isinstance(entry.value, Map))
    return any(command.lstrip().startswith("${") for command in commands)


def _limits(key: str) -> bool:
    """A key that reads like a limit; others may belong to a newer release or to a person."""
    folded = key.lower().replace("_", "").replace("-", "")
    return any(word in folded for word in ("concurren", "maxrunning", "maxmodels", "parallel", "limit", "maxrequests"))


def _model(about: _Config, key: Scalar, node: Map, unit: str, port: int) -> Iterator[Finding]:
    yield from _unread_keys(node, system("llama-swap")["model_keys"], "model")
    macros = {**about.macros, **dict(macros_of(node.map("macros")))}
    macros |= {"MODEL_ID": key.text, "PORT": _port(about, port, key)}
    group, swaps = about.groups.get(key.value, ("", True))
    site = Site(
        carrier="llama-swap",
        unit=unit,
        name=key.value,
        place=key.span,
        resident_with=None if swaps or not group else f"{about.path}#{group}",
        exclusive=swaps,
        data={"residence": (about.residence, key.value)} if about.residence is not None else {},
    )
    names = (key.value, *(item.value for item in node.list("aliases") or () if isinstance(item, Scalar)))
    process = None
    command = node.get("cmd")
    if isinstance(command, Scalar) and command.text.value:
        expanded, problems = expand(command.text, macros, key.value)
        doubt = _ESCAPED if "$${" in command.value else None
        yield from (_defined_elsewhere(each) if about.apart else replace(each, doubt=doubt) for each in problems)
        for line in launches(_launch(about, expanded, node, macros, key.value)):
            process = Process(site, line)
            yield process
            break
    if process is not None:
        yield from _port_refused(about, node, key, process, port)
    limit = _limit(node)
    yield Admission(
        id="",
        system="llama-swap",
        unit=unit,
        name=key.value,
        place=key.span,
        limit=limit,
        per="model",
        excess="reject",
        target=process,
        names=names,
        promises=tuple(_promises(node)),
        settings={
            **about.settings,
            **_upstream(about, node, macros),
            **_lifetime(about.root, node),
            **_program(command),
        },
    )


def _program(command: Node | None) -> dict[str, Value[Any]]:
    """What a command begins with, as it is written: what is asked for where it leads to no engine."""
    words = command.text.value.split() if isinstance(command, Scalar) else []
    if not words or not isinstance(command, Scalar):
        return {}
    at = command.text.value.index(words[0])
    place = command.text.slice(at, at + len(words[0]))
    begun = " ".join(words)
    said = begun if len(begun) <= SAID else begun[:SAID].rpartition(" ")[0] + " …"
    return {"program": Fact(said, Written(place.span, place.via))} if place.known else {}


def _port(about: _Config, port: int, key: Scalar) -> Text:
    if about.numbered:
        return Text.at(str(port), key.span)
    return Text.unknown(key.span, _COUNTED, "the port of this model")


def _one_word(word: Text) -> Text:
    """A port that is not known is still a number: nothing else may stand where it is put in."""
    return replace(
        word, holes=tuple(replace(hole, splice=hole.splice and hole.reason != _COUNTED) for hole in word.holes)
    )


def _defined_elsewhere(problem: Problem) -> Unchecked:
    name = problem.span.text.strip("${}")
    return Unchecked("unknown-macro", None, f"macro {name}", "the file of llama-swap that defines it", problem.span)


def _port_refused(about: _Config, node: Map, key: Scalar, process: Process, port: int) -> Iterator[Problem]:
    """Releases before the check gave the port all the same: a command that names it by number ran there."""
    found = without_port(node, _uses_port(about, node), key.span)
    if found is None or node.open:
        return
    doubt = "older releases of llama-swap run it" if str(port) in (word.value for word in process.line.args) else None
    yield replace(found, doubt=doubt)


def _upstream(about: _Config, node: Map, macros: Mapping[str, Text]) -> dict[str, Value[Any]]:
    """The literal port on this machine to which requests are sent."""
    proxy = node.get("proxy")
    if not isinstance(proxy, Scalar) or not proxy.text.value:
        port = macros["PORT"]
        return {"assigned_port": Fact(int(port.value), Default("llama-swap", (), "startPort"))} if port.known else {}
    address, _ = expand(proxy.text, macros, "")
    match = _LOCAL.fullmatch(address.value) if address.known else None
    if match is None:
        return {}
    called = address.slice(*match.span(1))
    return {"upstream_port": Fact(int(called.value), Written(called.span, called.via))}


def _lifetime(root: Map, node: Map) -> dict[str, Value[Any]]:
    """Seconds that an idle model is kept, 0 for ever; and whether several keys are let in."""
    found: dict[str, Value[Any]] = {}
    for section, name in ((node, "ttl"), (root, "globalTTL")):
        seconds = section.get(name)
        if is_number(seconds) and "ttl" not in found:
            assert isinstance(seconds, Scalar)
            found["ttl"] = Fact(int(seconds.value), Written(seconds.text.span, seconds.text.via))
    keys = root.list("apiKeys")
    if keys is not None and len(keys.items) > 1:
        found["tenants"] = Fact("apiKeys", Written(keys.items[1].span))
    return found


def _launch(about: _Config, command: Text, node: Map, macros: Mapping[str, Text], model: str) -> Launch:
    words = tuple(_one_word(word) for word in shell.split(command, comment_lines=True))
    env: dict[str, Text] = {}
    for item in node.list("env") or ():
        if isinstance(item, Scalar) and "=" in item.value:
            expanded, _ = expand(item.text, macros, model)
            cut = expanded.value.index("=")
            env[expanded.value[:cut]] = expanded.slice(cut + 1)
    place = words[0].span if words else command.span
    scripts = about.files.scripts(about.path) if about.files is not None else no_scripts
    sources = about.files.sources if about.files is not None else None
    return Launch(words=words, place=place, env=env, scripts=scripts, sources=sources)


def _limit(node: Map) -> Value[int]:
    found = node.get("concurrencyLimit")
    if isinstance(found, Opaque):
        return Unknown("concurrencyLimit", found.reason, "a literal concurrencyLimit")
    if isinstance(found, Scalar) and found.text.known and found.value.lstrip("-").isdigit():
        value = int(found.value)
        if value > 0:
            return Fact(value, Written(found.text.span, found.text.via))
    return Fact(system("llama-swap")["default_limit"], Default("llama-swap", (), "concurrencyLimit"))


def _promises(node: Map) -> Iterator[Promise]:
    """`capabilities.context` is told to clients and checked by nobody; what `setParams` holds is put into every request."""
    found = node.text("capabilities", "context")
    if found is not None and found.value.isdigit() and int(found.value) > 0:
        tokens = Fact(int(found.value), Written(found.span, found.via))
        yield Promise("total", tokens, False, "llama-swap capabilities.context")
    for key in ("max_tokens", "max_completion_tokens"):
        found = node.text("filters", "setParams", key)
        if found is not None and found.value.isdigit() and int(found.value) > 0:
            tokens = Fact(int(found.value), Written(found.span, found.via))
            yield Promise("output", tokens, True, f"llama-swap setParams.{key}")
