"""Arguments that nobody wrote as such: the words by which a chart or an operator starts an engine, and flags from keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Union

from kvlint.admission import system
from kvlint.command import CommandLine
from kvlint.config import Config
from kvlint.engines.options import ENGINES, options
from kvlint.globs import matches_server
from kvlint.patterns import regex
from kvlint.source import HOLE, Span, Text
from kvlint.tree import List, Map, Node, Opaque, Scalar

Spelled = Union[str, Sequence[str]]

# Flags that are worth asking whose they are: every engine's list has some of them, an exporter's or a proxy's has none.
_TELLING = regex(r"--?(?:.*(?:model|ctx|context|gpu|parallel|quant|kv-|kv_|num-seq|batch|mem-fraction|prompt).*|ngl)")
_FLAG = regex(r"--?[A-Za-z][\w.-]*")
LEAST_TELLING = 2
# Engines whose model stands before their flags.
_POSITIONAL = ("vllm", "trtllm", "lmdeploy")
_REPOSITORY = regex(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
# Engines that run in containers: those of Apple's MLX do not, and have many of vLLM's flags.
_CONTAINED = tuple(name for name in ENGINES if "mlx" not in name)


def started(engine: str, place: Span) -> tuple[Text, ...]:
    """The words by which an engine is started where nobody writes them, all at `place`; none for an unknown name."""
    return tuple(Text.at(word, place) for word in system("engines")["started"].get(engine, ()))


def continued(engine: str, words: Sequence[Text], args: Sequence[Text]) -> Sequence[Text]:
    """The words that start an engine, without the subcommand that the arguments begin with.

    No words where what they begin with is neither that nor the model: it is a program of the image's own.
    """
    given, rest = [word.value for word in args], [word.value for word in words[1:]]
    for count in range(len(rest), 0, -1):
        if given[:count] == rest[-count:]:
            return words[: len(words) - count]
    return words if engine in _POSITIONAL and _model(given[0]) else ()


def _model(word: str) -> bool:
    """A repository's id, or a path that says it leads to a model: a program's name has seldom a number in it."""
    if word.endswith((".sh", ".py")):
        return False
    if not word.startswith("/"):
        return _REPOSITORY.fullmatch(word) is not None
    parent, _, name = word.rstrip("/").rpartition("/")
    return "model" in word or (parent != "" and any(each.isdigit() for each in name))


def option(spelled: Spelled, key: Span, value: Node | None) -> list[Text]:
    """The words of one key: a flag and its value, a bare flag for true; for false its second spelling, if it has one.

    A list gives several values, a mapping gives JSON.
    """
    on, off = (spelled, None) if isinstance(spelled, str) else (spelled[0], spelled[1])
    if isinstance(value, Opaque):
        return [Text.at(on, key), Text.unknown(value.span, value.reason, value.supply)]
    if isinstance(value, Scalar):
        if value.tag == "null" or not value.text.value:
            return []
        if value.tag == "bool":
            words = [on] if truth(value) else [off] if off else []
            return [Text.at(word, key) for word in words]
        return [Text.at(on, key), value.text]
    if isinstance(value, List):
        items = [item.text for item in value if isinstance(item, Scalar)]
        return [Text.at(on, key), *items] if items else []
    if isinstance(value, Map):
        return [Text.at(on, key), Text.at(json.dumps(plain(value)), value.span)]
    return []


def options_of(node: Map | None, flags: Mapping[str, Spelled]) -> list[Text]:
    """The words of a mapping's keys that have a flag, in the order of `flags`."""
    words: list[Text] = []
    for key, spelled in flags.items():
        entry = node.entry(key) if node is not None else None
        if entry is not None:
            words += option(spelled, entry.key.span, entry.value)
    return words


def truth(node: Node | None) -> bool:
    return isinstance(node, Scalar) and node.value.strip().lower() in ("true", "yes", "on", "1")


def plain(node: Node) -> Any:
    """A node as JSON would have it; what is not known as null."""
    if isinstance(node, Map):
        return {entry.key.value: plain(entry.value) for entry in node}
    if isinstance(node, List):
        return [plain(item) for item in node]
    if not isinstance(node, Scalar) or node.tag == "null" or not node.text.known:
        return None
    if node.tag == "bool":
        return truth(node)
    return _number(node.value) if node.tag in ("int", "float") else node.value


def _number(text: str) -> Any:
    digits = text.replace("_", "")
    if digits.lstrip("+-").isdigit():
        return int(digits)
    try:
        return float(Fraction(digits))
    except (ValueError, ZeroDivisionError):
        return text


def whose(words: Iterable[Text], image: str = "", env: Iterable[str] = ()) -> str | None:
    """The engine that an image's arguments plainly belong to: two that no other has, and none that only another has.

    Two more for each flag that the engine never had: another program shares some names, a mistake stands beside many.
    An image that has the engine's name in its own counts as one, and so do variables that begin with it.
    """
    flags = [match.group() for word in words if (match := _FLAG.match(word.value))]
    if len(flags) < LEAST_TELLING or not any(_TELLING.fullmatch(flag) for flag in flags):
        return None
    tellers: dict[str, int] = {}
    for flag in dict.fromkeys(flags):
        dashed = flag.replace("_", "-")
        owners = [name for name in _CONTAINED if options(name).known(flag) or options(name).known(dashed)]
        if len(owners) == 1:
            tellers[owners[0]] = tellers.get(owners[0], 0) + 1
    if len(tellers) != 1:
        return None
    (name, count), *_ = tellers.items()
    has = options(name).known
    named = re.search(rf"(?:^|[-_./]){name}(?:[-_.:]|$)", image.rpartition("/")[2]) is not None
    named = named or any(variable.startswith(f"{name.upper()}_") for variable in env)
    strangers = [flag for flag in dict.fromkeys(flags) if not has(flag) and not has(flag.replace("_", "-"))]
    if strangers:
        from kvlint.engines.problems import FORKS

        strangers = [] if FORKS.search(image) else strangers  # a fork has flags of its own
    return name if count + named >= LEAST_TELLING * (1 + len(strangers)) else None


def declared(config: Config, identity: str, words: Sequence[Text]) -> str | None:
    """The engine that `[[engine]]` names for a container of no engine's own image: its `match` names the server itself, or every
    flag among `words` is one of that engine.
    """
    found = None
    for table in config.all("engine"):
        name, match = table.get("name"), table.get("match")
        if name is None or not matches_server(match, identity):
            continue
        flags = [flag.group() for word in words if (flag := _FLAG.match(word.value))]
        known = options(name).known
        if "#" in match or (flags and all(known(flag) or known(flag.replace("_", "-")) for flag in flags)):
            found = str(name)
    return found


def build_of(image: str) -> str | None:
    """The engine of an image that is not in its own repository but plainly is a build of it, entrypoint included."""
    name = image.partition("@")[0]
    for engine, pattern in system("engines")["builds"].items():
        if re.fullmatch(pattern, name):
            return str(engine)
    return None


def another(image: str) -> bool:
    """Whether an image is plainly of a program that shares an engine's flags and serves no text."""
    return re.fullmatch(system("engines")["others"], image.partition("@")[0]) is not None


def told(lines: Iterable[CommandLine]) -> list[CommandLine]:
    """The lines of one container that say something: another branch's `exec server "$@"` stands for the same server."""
    found = list(lines)
    return [line for line in found if any(word.value.strip(HOLE) for word in line.args)] or found[:1]
