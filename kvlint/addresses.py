"""Addresses of values, as `[[parity]]` and `[[derived]]` write them.

file#server:window        a setting or derived value of a server
file#server:--flag        an option as its command line gives it
file#a.b[key=value]["nvidia.com/gpu"]   a place in a file's tree
file#NAME                 a variable of an env file or script
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kvlint.facts import Fact, Unknown, Value, Written
from kvlint.globs import names_server, names_workload
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.sizing.server import DERIVED
from kvlint.source import Span, Text
from kvlint.subjects import SETTINGS
from kvlint.tree import List, Map, Node, Scalar, step

if TYPE_CHECKING:
    from kvlint.evaluation import Evaluation
    from kvlint.subjects import ServerGroup

_STEP = regex(
    r"\.?(?P<key>[^.\[\]]+)|\[(?P<index>-?[0-9]+)\]|\[\"(?P<quoted>[^\"]*)\"\]"
    r"|\[(?P<field>[^=\[\]\"]+)=(?P<value>[^\[\]]*)\]"
)


@dataclass(frozen=True, slots=True)
class Found:
    """What an address leads to: a value, where it stands, and the literal if it is one.

    `gone`: why the address leads nowhere, where that is certain; what is only unknown is not gone.
    """

    address: str
    value: Value[Any]
    span: Span | None
    text: Text | None = None
    group: ServerGroup | None = None
    gone: str = ""


def resolve(address: str, evaluation: Evaluation) -> Found:
    """The value at an address; an `Unknown` that says what of it was not found."""
    path, hash_, rest = address.partition("#")
    if not hash_:
        return _missing(address, "an address is file#place")
    base = (evaluation.project.config.path or "").rpartition("/")[0]
    full = f"{base}/{path}" if base else path
    if not evaluation.project.files.exists(full):
        return _missing(address, f"there is no file {full}", gone=True)
    server, colon, name = rest.rpartition(":")
    if colon and server and not server.endswith('"'):
        return _of_server(address, full, server, name, evaluation)
    return _of_file(address, full, rest, evaluation)


def places(path: str, rest: str, evaluation: Evaluation) -> tuple[Span, ...]:
    """Where what `path#rest` names is written, a flag's own word included; `path` is seen from the project's root."""
    if not evaluation.project.files.exists(path):
        return ()
    server, colon, name = rest.rpartition(":")
    address = f"{path}#{rest}"
    if colon and server and not server.endswith('"'):
        found = _written(_of_server(address, path, server, name, evaluation).value)
        words = _words(f"{path}#{server}", name, evaluation) if name.startswith("-") else ()
        return (*words, *((found,) if found is not None else ()))
    found = _written(_of_file(address, path, rest, evaluation).value)
    return (found,) if found is not None else ()


def _near(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, [*SETTINGS, *DERIVED], n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""


def _words(server: str, flag: str, evaluation: Evaluation) -> tuple[Span, ...]:
    """The words of a server's line that are a flag as typed, whether the engine knows it or not."""
    group = server_named(server, evaluation)
    if group is None:
        return ()
    typed = ((word, word.value.partition("=")[0]) for word in group.first.process.line.args)
    return tuple(word.span for word, name in typed if name.replace("_", "-") == flag.replace("_", "-"))


def server_named(name: str, evaluation: Evaluation, near: str | None = None) -> ServerGroup | None:
    """The one server that an id, a name, a trailing part of it or its workload names; those of the same file win over others."""
    exact = [group for group in evaluation.groups if group.id == name]
    if exact:
        return exact[0]
    path, hash_, tail = name.partition("#")
    wanted = tail if hash_ else name
    groups = [group for group in evaluation.groups if not hash_ or group.id.partition("#")[0] == path]
    for names in (names_server, names_workload):
        found = [group for group in groups if names(wanted, group.id.partition("#")[2])]
        own = [group for group in found if near is not None and group.id.partition("#")[0] == near]
        found = own or found
        if found:
            return found[0] if len(found) == 1 else None
    return None


def value_of(group: ServerGroup, name: str) -> Value[Any]:
    """A setting or derived value in all of a server's worlds; unknown where they differ."""
    seen: list[Fact[Any]] = []
    for world in group.live:
        found = world.get(name)
        if found is None:
            return Unknown(name, f"{name} does not apply to {group.id}", f"a server that has {name}")
        if isinstance(found, Unknown):
            return found
        if not any(other.value == found.value for other in seen):
            seen.append(found)
    if len(seen) > 1:
        return Unknown("engine.version", f"{name} differs between releases of the engine", "pin the engine's version")
    return seen[0]


def _missing(address: str, reason: str, *, gone: bool = False) -> Found:
    found = Unknown("address", f"{address}: {reason}", f"an address that exists: {address}: {reason}")
    return Found(address, found, None, gone=reason if gone else "")


def _of_server(address: str, path: str, server: str, name: str, evaluation: Evaluation) -> Found:
    group = server_named(f"{path}#{server}", evaluation)
    if group is None:
        place = _of_file(address, path, f"{server}:{name}", evaluation)
        if isinstance(place.value, Fact):
            return place
        return _missing(address, f"no single server {server} in {path}")
    if name.startswith("-"):
        for flag in reversed(group.live[0].given):
            if name.replace("_", "-") in {each.replace("_", "-") for each in (flag.spelling, *flag.option.spellings)}:
                text = flag.value if flag.value is not None else flag.name
                return Found(address, Fact(text.value, Written(text.span, text.via)), text.span, text, group)
        return _missing(address, f"{name} is not given")
    if name not in SETTINGS and name not in DERIVED:
        return _missing(address, f"{name} is no setting and no derived value{_near(name)}")
    value = value_of(group, name)
    span = _written(value) or group.first.program
    return Found(address, value, span, None, group)


def _written(value: Value[Any]) -> Span | None:
    if not isinstance(value, Fact):
        return None
    return next((leaf.origin.span for leaf in value.leaves() if isinstance(leaf.origin, Written)), None)


def _of_file(address: str, path: str, place: str, evaluation: Evaluation) -> Found:
    parsed = evaluation.project.parsed(path)
    if parsed is None:
        return _missing(address, f"{path} cannot be read")
    for document in parsed.documents:
        node = _walk(document.node, place) if document.node is not None else None
        if isinstance(node, Scalar):
            return _literal(address, node.text)
    text = _variable(parsed, place)
    if text is not None:
        return _literal(address, text)
    return _missing(address, f"nothing at {place} in {path}")


def _literal(address: str, text: Text) -> Found:
    if not text.known:
        hole = text.holes[0]
        return Found(address, Unknown("address", hole.reason, hole.supply), text.span)
    return Found(address, Fact(text.value, Written(text.span, text.via)), text.span, text)


def _walk(node: Node, place: str) -> Node | None:
    current: Node | None = node
    position = 0
    while position < len(place) and current is not None:
        match = _STEP.match(place, position)
        if match is None:
            return None
        position = match.end()
        if match["key"] is not None:
            current = step(current, (match["key"],))
        elif match["quoted"] is not None:
            current = step(current, (match["quoted"],))
        elif match["index"] is not None:
            current = step(current, (int(match["index"]),))
        else:
            current = _selected(current, match["field"], match["value"])
    return current


def _selected(node: Node, field: str, value: str) -> Node | None:
    items: Iterator[Node] = iter(node.items) if isinstance(node, List) else iter(())
    return next((item for item in items if isinstance(item, Map) and item.string(field) == value), None)


def _variable(parsed: Any, name: str) -> Text | None:
    """A variable of an env file, a script or a unit; a place in a Nix expression."""
    if parsed.kind == "nix":
        from kvlint.formats import nix

        node = _walk(nix.evaluate(parsed.source), name)
        return node.text if isinstance(node, Scalar) else None
    if parsed.kind == "systemd":
        from kvlint.formats import systemd

        lines = systemd.parse(parsed.source).settings("Service", "Environment")
        pairs = (pair for line in lines for pair in systemd.assignments(line.value))
        return {key.value: value for key, value in pairs}.get(name)
    if parsed.kind == "env":
        from kvlint.formats import env

        found = env.parse(parsed.source).get(name)
        return found.value if found is not None else None
    if parsed.kind == "shell":
        from kvlint.formats import shell

        script = shell.commands(Text.of(parsed.source, 0, len(parsed.source.text)))
        return next((each.value for each in script.assignments if each.name == name and each.value is not None), None)
    return None
